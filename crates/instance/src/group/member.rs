//! A disk's place in an open group: the disk while it is present, its state, what it missed, and
//! its counters.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use blockstone_base::named;
use blockstone_sys::clock;
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

use super::header::Header;
use super::units::{Lost, Units};
use crate::disk::{Disk, DiskError};
use crate::planted::{Planted, planted};

/// Interval at which a disk is checked for having vanished.
const LOOK_INTERVAL_NS: u64 = 200_000_000;

named! {
    DiskState {
        /// Read and written.
        Online = "online",
        /// Neither read nor written; what it misses is recorded.
        Offline = "offline",
        /// Written but not read, while it gets the units it missed.
        Resyncing = "resyncing",
    }
}

/// Cumulative counters of one disk since the group was opened. Headers and maps are not counted;
/// layout, repair and resync are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCounters {
    pub name: String,
    pub state: DiskState,
    pub reads: u64,
    pub read_bytes: u64,
    pub read_ns: u64,
    /// Successful writes, of any copy; adjacent blocks in one write count once.
    pub writes: u64,
    pub write_bytes: u64,
    pub write_ns: u64,
    pub syncs: u64,
    pub sync_ns: u64,
    pub errors: u64,
    /// Reads that it served because a disk earlier in the order could not.
    pub degraded_reads: u64,
    /// Bad copies of blocks on it that were overwritten with good ones.
    pub repaired_blocks: u64,
    /// Allocation units that it missed and does not have yet.
    pub stale_units: u64,
    /// Time during which it was not online, up to now, in nanoseconds.
    pub offline_ns: u64,
    /// Message of its last failure.
    pub last_error: Option<String>,
}

/// Counters, on separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counters {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    read_ns: AtomicU64,
    writes: AtomicU64,
    write_bytes: AtomicU64,
    write_ns: AtomicU64,
    syncs: AtomicU64,
    sync_ns: AtomicU64,
    pub errors: AtomicU64,
    pub degraded_reads: AtomicU64,
    pub repaired_blocks: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub name: String,
    pub header: Header,
    disk: RwLock<Option<Arc<dyn Disk>>>,
    state: AtomicU8,
    /// Changes of the state to and from offline are made under this lock, so that every write is
    /// either missed or unsynced.
    units: Mutex<Units>,
    flush_ended: Condvar,
    pub counters: Counters,
    next_look_ns: AtomicU64,
    absence: Mutex<Absence>,
}

/// Periods in which a disk was absent, and why it failed.
#[derive(Debug, Default)]
struct Absence {
    earlier_ns: u64,
    since_ns: Option<u64>,
    last_error: Option<String>,
}

impl Absence {
    fn follow(&mut self, state: DiskState) {
        match (state, self.since_ns) {
            (DiskState::Online, Some(since_ns)) => {
                self.earlier_ns += clock::now_ns() - since_ns;
                self.since_ns = None;
            }
            (DiskState::Offline | DiskState::Resyncing, None) => {
                self.since_ns = Some(clock::now_ns());
            }
            _ => {}
        }
    }

    fn so_far_ns(&self) -> u64 {
        self.earlier_ns + self.since_ns.map_or(0, |since_ns| clock::now_ns() - since_ns)
    }
}

impl Slot {
    /// Creates the place of a disk that is present and online, or that is missing.
    pub fn new(
        name: String,
        header: Header,
        disk: Option<Arc<dyn Disk>>,
        state: DiskState,
    ) -> Self {
        let units = header.units;
        let mut absence = Absence::default();
        absence.follow(state);
        Self {
            name,
            header,
            disk: RwLock::new(disk),
            state: AtomicU8::new(state as u8),
            units: Mutex::new(Units::new(units)),
            flush_ended: Condvar::new(),
            counters: Counters::default(),
            next_look_ns: AtomicU64::new(0),
            absence: Mutex::new(absence),
        }
    }

    #[inline]
    pub fn disk(&self) -> Option<Arc<dyn Disk>> {
        self.disk.read().clone()
    }

    pub fn set_disk(&self, disk: Option<Arc<dyn Disk>>) {
        *self.disk.write() = disk;
    }

    #[inline]
    pub fn state(&self) -> DiskState {
        DiskState::ALL[usize::from(self.state.load(Ordering::Acquire))]
    }

    pub fn set_state(&self, state: DiskState) {
        self.absence.lock().follow(state);
        self.state.store(state as u8, Ordering::Release);
    }

    pub fn units(&self) -> MutexGuard<'_, Units> {
        self.units.lock()
    }

    /// Stops using the disk. Writes that it acknowledged and that were not synced may be lost with
    /// it.
    pub fn leave(&self) {
        let mut units = self.units();
        self.set_state(DiskState::Offline);
        units.leave();
        // A thread that waits for a flush of this disk would wait in vain.
        self.flush_ended.notify_all();
    }

    /// Records the result of a write to some blocks of a unit: they are missed, may be lost until
    /// the next flush, or are durable. Returns the state of the disk at that moment.
    pub fn note_write(
        &self,
        unit: u32,
        blocks: Range<u64>,
        is_taken: bool,
        is_durable: bool,
    ) -> DiskState {
        let mut units = self.units();
        let state = self.state();
        if !is_taken || state == DiskState::Offline {
            units.missed.insert(unit, blocks);
        } else if !is_durable {
            units.unsynced.insert(unit);
        }
        state
    }

    pub fn failed(&self, error: &DiskError) {
        self.counters.errors.fetch_add(1, Ordering::Relaxed);
        self.absence.lock().last_error =
            Some(format!("{} at byte {}: {}", error.operation, error.offset, error.source));
    }

    pub fn last_error(&self) -> String {
        self.absence.lock().last_error.clone().unwrap_or_else(|| "no reason".to_owned())
    }

    #[inline]
    pub fn offset(&self, unit: u32) -> u64 {
        u64::from(unit) * self.header.unit_bytes
    }

    #[inline]
    pub fn read(&self, disk: &dyn Disk, offset: u64, out: &mut [u8]) -> Result<u64, DiskError> {
        let from_ns = clock::now_ns();
        disk.read_at(offset, out).inspect_err(|error| self.failed(error))?;
        let now_ns = clock::now_ns();
        self.counters.reads.fetch_add(1, Ordering::Relaxed);
        self.counters.read_bytes.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.counters.read_ns.fetch_add(now_ns - from_ns, Ordering::Relaxed);
        Ok(now_ns)
    }

    /// Writes, timed and counted; returns the duration in nanoseconds.
    pub fn write(
        &self,
        disk: &dyn Disk,
        offset: u64,
        data: &[u8],
        durable: bool,
    ) -> Result<u64, DiskError> {
        let from_ns = clock::now_ns();
        let result =
            if durable { disk.write_dsync_at(offset, data) } else { disk.write_at(offset, data) };
        result.inspect_err(|error| self.failed(error))?;
        let elapsed_ns = clock::now_ns() - from_ns;
        self.count_write(data.len() as u64, elapsed_ns);
        Ok(elapsed_ns)
    }

    /// Counts a successful write that was timed elsewhere.
    pub fn count_write(&self, bytes: u64, elapsed_ns: u64) {
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        self.counters.write_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.counters.write_ns.fetch_add(elapsed_ns, Ordering::Relaxed);
    }

    /// Whether [`Slot::sync`] has something to do, or to report.
    pub fn needs_sync(&self) -> bool {
        let units = self.units();
        self.state() != DiskState::Offline && units.end_of(units.covering()) != Some(Ok(()))
    }

    /// Makes durable every write that returned before, by a flush that begins afterwards. Callers
    /// that arrive during a flush wait for it, and one of them performs the next one for all. What
    /// an offline disk took counts as missed.
    pub fn sync(&self) -> Result<(), Lost> {
        let mut units = self.units();
        let covering = units.covering();
        loop {
            if let Some(end) = units.end_of(covering) {
                return end;
            }
            if self.state() == DiskState::Offline {
                return Ok(());
            }
            if units.is_flushing() {
                if planted(Planted::SyncReturnsEarly) {
                    return Ok(());
                }
                self.flush_ended.wait(&mut units);
                continue;
            }
            let flush = units.begin_flush();
            let is_durable = MutexGuard::unlocked(&mut units, || self.flush());
            units.end_flush(flush, is_durable);
            self.flush_ended.notify_all();
        }
    }

    /// Flushes the disk; returns whether it reports that everything is durable.
    fn flush(&self) -> bool {
        let Some(disk) = self.disk() else { return false };
        let from_ns = clock::now_ns();
        let retried = |error| if planted(Planted::FlushRetried) { disk.sync() } else { Err(error) };
        match disk.sync().or_else(retried) {
            Ok(()) => {
                self.counters.syncs.fetch_add(1, Ordering::Relaxed);
                self.counters.sync_ns.fetch_add(clock::now_ns() - from_ns, Ordering::Relaxed);
                true
            }
            Err(error) => {
                self.failed(&error);
                false
            }
        }
    }

    /// Whether the disk vanished unnoticed; checks at most once per [`LOOK_INTERVAL_NS`].
    #[inline]
    pub fn has_vanished(&self, disk: &dyn Disk, now_ns: u64) -> bool {
        let due_ns = self.next_look_ns.load(Ordering::Relaxed);
        now_ns >= due_ns && {
            let next_ns = now_ns + LOOK_INTERVAL_NS;
            let look = self.next_look_ns.compare_exchange(
                due_ns,
                next_ns,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            look.is_ok() && !disk.is_present()
        }
    }

    pub fn counters(&self) -> DiskCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        let stale_units = match self.state() {
            DiskState::Online => 0,
            DiskState::Offline | DiskState::Resyncing => self.units().missed.len(),
        };
        let (offline_ns, last_error) = {
            let absence = self.absence.lock();
            (absence.so_far_ns(), absence.last_error.clone())
        };
        DiskCounters {
            name: self.name.clone(),
            state: self.state(),
            reads: get(&counters.reads),
            read_bytes: get(&counters.read_bytes),
            read_ns: get(&counters.read_ns),
            writes: get(&counters.writes),
            write_bytes: get(&counters.write_bytes),
            write_ns: get(&counters.write_ns),
            syncs: get(&counters.syncs),
            sync_ns: get(&counters.sync_ns),
            errors: get(&counters.errors),
            degraded_reads: get(&counters.degraded_reads),
            repaired_blocks: get(&counters.repaired_blocks),
            stale_units,
            offline_ns,
            last_error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use blockstone_base::Bytes;

    use super::*;
    use crate::group::{DiskGroup, DiskSpec, FileSpec, GroupSpec, Redundancy, unwatched};

    fn slot() -> Slot {
        let header = Header {
            group_id: 1,
            disk: 0,
            unit_bytes: 1 << 20,
            units: 8,
            slot_bytes: 4096,
            failure_group: String::new(),
            copies: 2,
        };
        Slot::new("disk".to_owned(), header, None, DiskState::Online)
    }

    /// A write may end at any moment of a departure, here between its two steps.
    #[test]
    fn a_write_that_ends_while_its_disk_leaves_is_missed() {
        let slot = slot();
        std::thread::scope(|scope| {
            let mut units = slot.units();
            let write = scope.spawn(|| slot.note_write(3, 0..1, true, false));
            // Time to check the state, for a write that does not wait for the lock.
            std::thread::sleep(Duration::from_millis(50));
            units.leave();
            slot.set_state(DiskState::Offline);
            drop(units);
            assert_eq!(write.join().unwrap(), DiskState::Offline);
        });
        assert!(slot.units().missed.contains(3) && slot.units().unsynced.is_empty());
    }

    /// A disk leaves while a write ends: it may lose everything that it took, so that counts as
    /// missed.
    #[test]
    fn what_a_disk_took_while_it_left_is_missed() {
        let dir = tempfile::tempdir().unwrap();
        let spec = GroupSpec {
            disks: ["a", "b"].map(|name| DiskSpec::from(dir.path().join(name))).into(),
            redundancy: Redundancy::Normal,
            allocation_unit: Bytes::mib(1),
            direct: false,
        };
        let (size, block) = (Bytes::mib(2), Bytes(4096));
        let files = [FileSpec { name: "data".into(), size, block, fine: false }];
        let group = DiskGroup::create(&spec, &files, &unwatched).unwrap();
        group.sync().unwrap();
        let data = group.file("data").unwrap();
        data.write(0, &[1; 4096], false).unwrap();
        // Blocks the departure halfway.
        let held = group.0.members[0].absence.lock();
        std::thread::scope(|scope| {
            let leaves = scope.spawn(|| group.offline(0).unwrap());
            std::thread::sleep(Duration::from_millis(200));
            let writes = scope.spawn(|| data.write(1 << 20, &[2; 4096], false).unwrap());
            std::thread::sleep(Duration::from_millis(200));
            drop(held);
            leaves.join().unwrap();
            writes.join().unwrap();
        });
        let disk = &group.counters()[0];
        assert_eq!((disk.state, disk.stale_units), (DiskState::Offline, 2), "of 2 units written");
    }
}
