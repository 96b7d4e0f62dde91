//! The writes of one batch, all in flight together: through one io_uring for all disks; without
//! io_uring, through one thread per disk. Simulated disks take no time and are served in turn.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::atomic::Ordering;

use blockstone_sys::batch::{BatchRing, GatherWrite, PARTS_MAX, Written};
use blockstone_sys::thread;

use super::map::UnitAddress;
use super::state::{Present, Rings, Shared};
use crate::disk::{Disk, DiskError};

/// Maximum length of a write joined from adjacent blocks.
pub(super) const RUN_BYTES_MAX: usize = 1 << 20;
pub(super) const BATCH_PARTS_MAX: usize = PARTS_MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct UnitWrite<'a> {
    pub place: UnitAddress,
    pub offset: u64,
    pub data: &'a [u8],
    pub piece: u32,
}

impl UnitWrite<'_> {
    pub fn disk(&self) -> usize {
        usize::from(self.place.disk)
    }
}
const DEPTH: u32 = 256;

/// Writes to perform, joined into runs of adjacent parts.
pub(super) struct Batch<'a> {
    pub shared: &'a Shared,
    pub present: &'a Present,
    pub parts: &'a [UnitWrite<'a>],
    pub runs: &'a [Range<usize>],
    pub durable: bool,
}

impl Batch<'_> {
    /// Performs every run and returns its result: the service time in nanoseconds, or the error.
    pub(super) fn perform(&self) -> Vec<Result<u64, DiskError>> {
        let raw = |run: &Range<usize>| {
            let disk = self.present.get(self.parts[run.start].disk());
            disk.is_some_and(|disk| disk.raw().is_some())
        };
        if self.runs.len() == 1 && self.runs[0].len() == 1 {
            return vec![self.perform_run(self.parts)];
        }
        if !self.runs.iter().all(raw) {
            return self.perform_in_turn();
        }
        match self.shared.take_ring() {
            Some(mut ring) => {
                let ends = self.perform_in_ring(&mut ring);
                self.shared.return_ring(ring);
                ends
            }
            None => self.perform_in_threads(),
        }
    }

    /// Performs the runs one after the other, starting with a different one each time: no disk is
    /// always the first to have what the others do not have yet.
    fn perform_in_turn(&self) -> Vec<Result<u64, DiskError>> {
        let turn = self.shared.turns.fetch_add(1, Ordering::Relaxed);
        let mut ends: Vec<_> = (0..self.runs.len())
            .map(|at| (at + turn) % self.runs.len())
            .map(|at| (at, self.perform_run(&self.parts[self.runs[at].clone()])))
            .collect();
        ends.sort_unstable_by_key(|(at, _)| *at);
        ends.into_iter().map(|(_, end)| end).collect()
    }

    fn perform_in_ring(&self, ring: &mut BatchRing) -> Vec<Result<u64, DiskError>> {
        let Self { present, parts, runs, durable, .. } = *self;
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part.data)).collect();
        let writes: Vec<GatherWrite<'_>> = runs
            .iter()
            .map(|run| {
                let first = &parts[run.start];
                let disk = present.get(first.disk()).and_then(|disk| disk.raw());
                let file = disk.expect("only runs on files come here");
                let parts = &slices[run.clone()];
                GatherWrite { file, offset_bytes: first.offset, parts, durable }
            })
            .collect();
        let mut done: Vec<Written> = Vec::new();
        ring.write(&writes, &mut done);
        let each = runs.iter().zip(&done);
        each.map(|(run, written)| self.end_of_run(&parts[run.clone()], *written)).collect()
    }

    /// Converts a completion into the result of its run. A write that the kernel cut short, or did
    /// not start, is written again without the ring.
    fn end_of_run(&self, run: &[UnitWrite<'_>], written: Written) -> Result<u64, DiskError> {
        const EINTR: i32 = 4;
        const EAGAIN: i32 = 11;
        let bytes: usize = run.iter().map(|part| part.data.len()).sum();
        match written.result {
            Ok(moved) if moved as usize == bytes => {
                self.shared.members[run[0].disk()].count_write(bytes as u64, written.elapsed_ns);
                Ok(written.elapsed_ns)
            }
            Ok(_) | Err(EINTR | EAGAIN) => self.perform_run(run),
            Err(errno) => {
                let number = run[0].disk();
                let disk = self.present.get(number).expect("it was written to");
                let error = DiskError::new(&**disk, "write", run[0].offset, errno);
                self.shared.members[number].failed(&error);
                Err(error)
            }
        }
    }

    fn perform_in_threads(&self) -> Vec<Result<u64, DiskError>> {
        let Self { parts, runs, .. } = *self;
        let same_disk =
            |a: &Range<usize>, b: &Range<usize>| parts[a.start].disk() == parts[b.start].disk();
        let disks: Vec<&[Range<usize>]> = runs.chunk_by(same_disk).collect();
        let ends = thread::each("writes", &disks, |runs| {
            let each = |run: &Range<usize>| self.perform_run(&parts[run.clone()]);
            runs.iter().map(each).collect::<Vec<_>>()
        });
        ends.into_iter().flatten().collect()
    }

    fn perform_run(&self, run: &[UnitWrite<'_>]) -> Result<u64, DiskError> {
        const ENODEV: i32 = 19;
        let member = &self.shared.members[run[0].disk()];
        let Some(disk) = self.present.get(run[0].disk()) else {
            let source = std::io::Error::from_raw_os_error(ENODEV);
            let (disk, offset) = (member.name.clone(), run[0].offset);
            return Err(DiskError { disk, operation: "write", offset, source });
        };
        let disk: &dyn Disk = &**disk;
        run.iter().map(|part| member.write(disk, part.offset, part.data, self.durable)).sum()
    }
}

impl Shared {
    /// Returns an idle ring; `None` if the kernel has no io_uring.
    fn take_ring(&self) -> Option<BatchRing> {
        let mut rings = self.rings.lock();
        let Rings::Idle(idle) = &mut *rings else { return None };
        if let Some(ring) = idle.pop() {
            return Some(ring);
        }
        let made = BatchRing::open(DEPTH).ok();
        if made.is_none() && idle.is_empty() {
            *rings = Rings::None;
        }
        made
    }

    fn return_ring(&self, ring: BatchRing) {
        let mut rings = self.rings.lock();
        if let Rings::Idle(idle) = &mut *rings {
            idle.push(ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::Bytes;

    use super::*;
    use crate::group::{
        BatchWrite, DiskGroup, DiskSpec, FileSpec, GroupSpec, Redundancy, unwatched,
    };

    #[test]
    fn without_io_uring_one_thread_a_disk_does_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let disks = ["a", "b", "c"].map(|name| DiskSpec::from(dir.path().join(name)));
        let spec = GroupSpec {
            disks: disks.into(),
            redundancy: Redundancy::Normal,
            allocation_unit: Bytes::mib(1),
            direct: false,
        };
        let (size, block) = (Bytes::mib(3), Bytes(512));
        let files = [FileSpec { name: "data".into(), size, block, fine: false }];
        let group = DiskGroup::create(&spec, &files, &unwatched).unwrap();
        *group.0.rings.lock() = Rings::None;
        let data = group.file("data").unwrap();
        let content = vec![7; 3 << 20];
        let writes: Vec<BatchWrite<'_>> = (0..)
            .zip(content.chunks(512))
            .map(|(number, data)| BatchWrite { offset: number * 512, data })
            .collect();
        let info = data.write_batch(&writes).unwrap();
        assert_eq!(info.bytes, 6 << 20);
        group.offline(1).unwrap();
        let mut found = vec![0; content.len()];
        data.read(0, &mut found, &|_, block| block == [7; 512]).unwrap();
        assert_eq!(found, content);
    }
}
