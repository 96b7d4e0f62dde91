//! Writing all copies of everything concurrently, and handling a disk that does not take its part.

use std::ops::Range;

use super::batch::{BATCH_PARTS_MAX, Batch, RUN_BYTES_MAX, UnitWrite};
use super::error::GroupError;
use super::map::{FileMap, UnitAddress};
use super::member::DiskState;
use super::read::check_range;
use super::state::{Present, Shared};
use super::{BatchInfo, BatchWrite};
use crate::disk::DiskError;
use crate::planted::{Planted, planted};
use blockstone_sys::clock;

/// Parts of a request to be written.
struct Spread<'a> {
    parts: Vec<UnitWrite<'a>>,
    /// Blocks of copies that are offline.
    missed: Vec<(UnitAddress, Range<u64>)>,
    pieces: usize,
}

impl Shared {
    pub(super) fn write(
        &self,
        file: &FileMap,
        writes: &[BatchWrite<'_>],
        durable: bool,
    ) -> Result<BatchInfo, GroupError> {
        for write in writes {
            check_range("write", file, write.offset, write.data.len())?;
        }
        let _writing = self.writing()?;
        let Spread { mut parts, missed, pieces } = self.spread(file, writes);
        parts.sort_unstable_by_key(|part| (part.place.disk, part.offset));
        let runs = runs(&parts);
        let present = Present::new(&self.members);
        let batch = Batch { shared: self, present: &present, parts: &parts, runs: &runs, durable };
        let mut ends = batch.perform();
        self.find_vanished(&present, &parts, &runs, &mut ends);

        // Missed blocks are recorded before any disk can return, which needs `io` exclusively.
        for (place, blocks) in missed {
            self.slot(place).note_write(place.unit, blocks, false, durable);
        }
        let mut taken = vec![false; pieces];
        for (run, end) in runs.iter().zip(&ends) {
            for part in &parts[run.clone()] {
                let (member, unit) = (self.slot(part.place), part.place.unit);
                let blocks = file.blocks(part.offset - member.offset(unit), part.data.len() as u64);
                let is_taken = end.is_ok() || planted(Planted::MissUntold);
                let state = member.note_write(unit, blocks, is_taken, durable);
                // A disk that left meanwhile, or is still returning, cannot be read from.
                taken[part.piece as usize] |= end.is_ok() && state == DiskState::Online;
            }
        }
        let failed: Vec<usize> = failed_disks(&parts, &runs, &ends);
        if taken.contains(&false) {
            let error = ends.into_iter().find_map(Result::err);
            let gone = |disk: usize| self.members[disk].state() != DiskState::Online;
            let error = error.map_or_else(|| self.copies_missing(&file.name, &gone), Into::into);
            self.write_failed(&error);
            return Err(error);
        }
        if !planted(Planted::MissUntold) {
            failed.into_iter().try_for_each(|disk| self.take_offline(disk))?;
        }
        let bytes = parts.iter().map(|part| part.data.len() as u64).sum();
        let service_ns = ends.iter().flatten().sum();
        Ok(BatchInfo { ios: runs.len() as u64, bytes, service_ns })
    }

    fn spread<'a>(&self, file: &FileMap, writes: &[BatchWrite<'a>]) -> Spread<'a> {
        let mut parts = Vec::with_capacity(writes.len() * file.copies);
        let (mut missed, mut pieces) = (Vec::new(), 0);
        for write in writes {
            for piece in file.pieces(write.offset, write.data.len()) {
                let data = &write.data[piece.at..piece.at + piece.len];
                for place in file.copies_of(piece.unit) {
                    let member = self.slot(*place);
                    if member.state() == DiskState::Offline {
                        missed.push((*place, file.blocks(piece.unit_offset, piece.len as u64)));
                        continue;
                    }
                    let offset = member.offset(place.unit) + piece.unit_offset;
                    parts.push(UnitWrite { place: *place, offset, data, piece: pieces as u32 });
                }
                pieces += 1;
            }
        }
        Spread { parts, missed, pieces }
    }

    /// Turns successful writes to a disk that has vanished into failures.
    fn find_vanished(
        &self,
        present: &Present,
        parts: &[UnitWrite<'_>],
        runs: &[Range<usize>],
        ends: &mut [Result<u64, DiskError>],
    ) {
        const ENODEV: i32 = 19;
        let now_ns = clock::now_ns();
        let mut vanished = None;
        let mut asked = None;
        for (run, end) in runs.iter().zip(ends) {
            let number = parts[run.start].disk();
            let Some(disk) = present.get(number) else { continue };
            if asked != Some(number) {
                asked = Some(number);
                let gone = self.members[number].has_vanished(&**disk, now_ns);
                vanished = gone.then_some(number).or(vanished);
            }
            if vanished == Some(number) && end.is_ok() {
                let error = DiskError::new(&**disk, "find", parts[run.start].offset, ENODEV);
                self.members[number].failed(&error);
                *end = Err(error);
            }
        }
    }
}

/// Joins parts that are adjacent on a disk into one write.
fn runs(parts: &[UnitWrite<'_>]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::with_capacity(parts.len());
    let mut bytes = 0;
    for (index, part) in parts.iter().enumerate() {
        let joins = index > 0
            && parts[index - 1].place.disk == part.place.disk
            && parts[index - 1].offset + parts[index - 1].data.len() as u64 == part.offset
            && bytes + part.data.len() <= RUN_BYTES_MAX;
        match runs.last_mut() {
            Some(run) if joins && run.len() < BATCH_PARTS_MAX => {
                run.end = index + 1;
                bytes += part.data.len();
            }
            _ => {
                runs.push(index..index + 1);
                bytes = part.data.len();
            }
        }
    }
    runs
}

fn failed_disks(
    parts: &[UnitWrite<'_>],
    runs: &[Range<usize>],
    ends: &[Result<u64, DiskError>],
) -> Vec<usize> {
    let failed = runs.iter().zip(ends).filter(|(_, end)| end.is_err());
    let mut disks: Vec<usize> = failed.map(|(run, _)| parts[run.start].disk()).collect();
    disks.dedup();
    disks
}
