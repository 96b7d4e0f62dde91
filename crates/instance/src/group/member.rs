//! A disk's place in an open group: the disk while it is there, its state, what it missed, and what
//! it did.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use blockstone_base::named;
use blockstone_sys::clock;
use parking_lot::{Mutex, RwLock};

use super::header::Header;
use crate::disk::{Disk, DiskError};

/// How often a disk is asked whether it is still there.
const LOOK_INTERVAL_NS: u64 = 200_000_000;

named! {
    DiskState {
        /// Read and written.
        Online = "online",
        /// Neither; what it misses is remembered.
        Offline = "offline",
        /// Written but not read, while it gets what it missed.
        Resyncing = "resyncing",
    }
}

/// What one disk did since the group was opened. All numbers are cumulative; headers and maps are
/// not counted, laying out, repair and resync are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCounters {
    pub name: String,
    pub state: DiskState,
    pub reads: u64,
    pub read_bytes: u64,
    pub read_ns: u64,
    /// Writes that ended well, of any copy; adjacent blocks in one write count once.
    pub writes: u64,
    pub write_bytes: u64,
    pub write_ns: u64,
    pub syncs: u64,
    pub sync_ns: u64,
    pub errors: u64,
    /// Reads that it served because a disk before it could not.
    pub degraded_reads: u64,
    /// Bad copies of blocks on it that were overwritten with good ones.
    pub repaired_blocks: u64,
    /// Allocation units that it missed and does not have yet.
    pub stale_units: u64,
    /// Time in which it was not online, up to now, in nanoseconds.
    pub offline_ns: u64,
    /// What it said when it last failed.
    pub last_error: Option<String>,
}

/// What is counted, on cache lines of its own.
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
    pub stale: Bitmap,
    /// Units written since its last sync: lost with it when it goes.
    pub unsynced: Bitmap,
    pub counters: Counters,
    next_look_ns: AtomicU64,
    absence: Mutex<Absence>,
}

/// When a disk was not there, and why it failed.
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

#[derive(Debug)]
pub(super) struct Bitmap(Vec<AtomicU64>);

impl Bitmap {
    pub fn new(units: u32) -> Self {
        Self((0..units.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    pub fn insert(&self, unit: u32) {
        let (word, bit) = (&self.0[unit as usize / 64], 1 << (unit % 64));
        if word.load(Ordering::Acquire) & bit == 0 {
            word.fetch_or(bit, Ordering::AcqRel);
        }
    }

    pub fn remove(&self, unit: u32) {
        self.0[unit as usize / 64].fetch_and(!(1 << (unit % 64)), Ordering::AcqRel);
    }

    pub fn contains(&self, unit: u32) -> bool {
        self.0[unit as usize / 64].load(Ordering::Acquire) & 1 << (unit % 64) != 0
    }

    pub fn insert_all(&self, words: &[u64]) {
        for (word, more) in self.0.iter().zip(words) {
            word.fetch_or(*more, Ordering::AcqRel);
        }
    }

    /// Empties it, and returns what was in it.
    pub fn take(&self) -> Vec<u64> {
        self.0.iter().map(|word| word.swap(0, Ordering::AcqRel)).collect()
    }

    pub fn words(&self) -> Vec<u64> {
        self.0.iter().map(|word| word.load(Ordering::Acquire)).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| word.load(Ordering::Acquire) == 0)
    }

    pub fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.load(Ordering::Acquire).count_ones())).sum()
    }
}

impl Slot {
    /// The place of a disk that is there and online, or that is missing.
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
            stale: Bitmap::new(units),
            unsynced: Bitmap::new(units),
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

    /// Stops its use. What it acknowledged and was not synced may be lost with it.
    pub fn leave(&self) {
        self.stale.insert_all(&self.unsynced.take());
        self.set_state(DiskState::Offline);
    }

    pub fn failed(&self, error: &DiskError) {
        self.counters.errors.fetch_add(1, Ordering::Relaxed);
        self.absence.lock().last_error =
            Some(format!("{} at byte {}: {}", error.operation, error.offset, error.source));
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

    /// Writes, timed and counted; returns how long it took in nanoseconds.
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

    /// Counts a write that ended well and was timed elsewhere.
    pub fn count_write(&self, bytes: u64, elapsed_ns: u64) {
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        self.counters.write_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.counters.write_ns.fetch_add(elapsed_ns, Ordering::Relaxed);
    }

    /// Makes durable what was written, if anything was.
    pub fn sync(&self) -> Result<(), DiskError> {
        let pending = self.unsynced.take();
        let Some(disk) = self.disk().filter(|_| pending.iter().any(|word| *word != 0)) else {
            return Ok(());
        };
        let from_ns = clock::now_ns();
        disk.sync().inspect_err(|error| {
            self.failed(error);
            self.unsynced.insert_all(&pending);
        })?;
        self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        self.counters.sync_ns.fetch_add(clock::now_ns() - from_ns, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the disk went away unnoticed; looks at most once in [`LOOK_INTERVAL_NS`].
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
            DiskState::Offline | DiskState::Resyncing => self.stale.len(),
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
