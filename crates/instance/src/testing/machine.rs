//! Disks of one machine: they lose power together, and all events form one history.
//!
//! Requests of different threads are served concurrently. The lock is held only for bookkeeping; a
//! request takes its time between its beginning and its end, and others begin and end meanwhile.

use std::sync::Arc;
use std::time::Duration;

use blockstone_base::rng::{self, Rng};
use parking_lot::{Mutex, MutexGuard};

use super::history::{Event, History, Playback, Write, draw};
use super::image::{Image, SECTOR_BYTES, sectors};
use super::rows::Mark;
use crate::disk::{Disk, DiskError};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
/// Allocation size of a disk without reserved space, as in thin pools.
const EXTENT_BYTES: u64 = 1 << 20;

/// Faults while the power is on. Operations are counted from 1, over all disks of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The operation with this number, of any kind, fails.
    pub fails_at: Option<u64>,
    /// The write or sync with this number fails: a write leaves any part of itself, a sync drops
    /// the data it covered.
    pub change_fails_at: Option<u64>,
    /// The sync with this number fails.
    pub sync_fails_at: Option<u64>,
    /// Power is lost during the operation with this number: a write may have reached its disk.
    pub power_goes_at: Option<u64>,
    /// Power is lost during the write or sync with this number.
    pub power_goes_at_change: Option<u64>,
    /// Disks that die, each with the number of the machine's write or sync from which it fails
    /// every operation.
    pub dies: Vec<(usize, u64)>,
    /// No space is left: writes to unallocated extents fail.
    pub full: bool,
}

/// Several disks with a common power supply. Clones are the same machine.
#[derive(Clone, Debug)]
pub struct Machine(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Whether requests take time; if not, a run of one thread is the same every time.
    paced: bool,
}

#[derive(Debug)]
struct State {
    disks: Vec<Image>,
    history: History,
    faults: Faults,
    rng: Rng,
    operations: u64,
    changes: u64,
    syncs: u64,
    writes: u32,
    off: bool,
}

/// A disk of a [`Machine`].
#[derive(Debug)]
pub struct HostileDisk {
    machine: Machine,
    number: usize,
    name: String,
    size_bytes: u64,
}

enum Step {
    Done,
    Fails,
    /// It was in progress when power was lost.
    Cut,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Sync,
}

impl Machine {
    /// Creates a machine with empty disks, whose requests take no time.
    pub fn new(disks: usize, bytes: u64, seed: u64) -> Self {
        Self::with(vec![Image::new(bytes); disks], seed, false)
    }

    /// Creates a machine with these disks. If it is `paced`, requests take a short time.
    pub fn with(disks: Vec<Image>, seed: u64, paced: bool) -> Self {
        let state = State {
            history: History { base: disks.clone(), events: Vec::new() },
            disks,
            faults: Faults::default(),
            rng: Rng::new(seed, 7),
            operations: 0,
            changes: 0,
            syncs: 0,
            writes: 0,
            off: false,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), paced }))
    }

    pub fn disks(&self) -> Vec<Arc<dyn Disk>> {
        let sizes: Vec<u64> = self.lock().disks.iter().map(Image::size_bytes).collect();
        let disk = |(number, size_bytes)| {
            let name = format!("hostile-{number}");
            Arc::new(HostileDisk { machine: self.clone(), number, name, size_bytes })
                as Arc<dyn Disk>
        };
        sizes.into_iter().enumerate().map(disk).collect()
    }

    /// Sets the faults from now on. Operations are counted from 1 again.
    pub fn set_faults(&self, faults: Faults) {
        let mut state = self.lock();
        state.faults = faults;
        (state.operations, state.changes, state.syncs) = (0, 0, 0);
    }

    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Adds information about a session to the history.
    pub fn mark(&self, mark: Mark) {
        let mut state = self.lock();
        if !state.off {
            state.history.events.push(Event::Mark(mark));
        }
    }

    /// Turns the power off: requests in progress and all later ones fail.
    pub fn cut(&self) {
        self.lock().off = true;
    }

    /// Turns the power off, if it is still on, and on again: data that was not durable may be lost.
    pub fn lose_power(&self) {
        let mut state = self.lock();
        let playback = Playback::until(&state.history, state.history.events.len());
        let choices = playback.choices();
        let mut rng = state.rng.clone();
        let lost = draw(&choices, state.disks.len(), &mut rng);
        let disks = playback.image(&choices, &lost);
        state.rng = rng;
        state.restart(disks);
    }

    /// Returns the history since power-on, and starts a new one with the disks as they are.
    pub fn take_history(&self) -> History {
        let mut state = self.lock();
        let base = state.disks.clone();
        std::mem::replace(&mut state.history, History { base, events: Vec::new() })
    }

    /// Returns the content that survives any power loss: the durable one.
    pub fn durable(&self) -> Vec<Image> {
        let state = self.lock();
        Playback::until(&state.history, state.history.events.len()).durable().to_vec()
    }

    /// Returns the content that reads currently see.
    pub fn images(&self) -> Vec<Image> {
        self.lock().disks.clone()
    }

    /// Changes the content of a disk, immediately and durably.
    pub fn alter(&self, disk: usize, change: impl FnOnce(&mut Image)) {
        let mut state = self.lock();
        change(&mut state.disks[disk]);
        let disks = state.disks.clone();
        state.history = History { base: disks, events: Vec::new() };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Lets time pass, while other requests continue.
    fn pass(&self, draw: u64) {
        if !self.0.paced {
            return;
        }
        match draw % 8 {
            0..3 => std::thread::yield_now(),
            3..6 => std::thread::sleep(Duration::from_micros(1 + draw % 20)),
            _ => std::thread::sleep(Duration::from_micros(20 + draw % 200)),
        }
    }
}

impl State {
    fn restart(&mut self, disks: Vec<Image>) {
        self.history = History { base: disks.clone(), events: Vec::new() };
        self.disks = disks;
        self.faults = Faults::default();
        self.off = false;
    }

    fn step(&mut self, disk: usize, kind: Kind) -> Step {
        if self.off {
            return Step::Fails;
        }
        self.operations += 1;
        self.changes += u64::from(kind != Kind::Read);
        self.syncs += u64::from(kind == Kind::Sync);
        let Faults { fails_at, change_fails_at, sync_fails_at, .. } = self.faults;
        let Faults { power_goes_at, power_goes_at_change, .. } = self.faults;
        let changes = kind != Kind::Read;
        if power_goes_at.is_some_and(|at| at <= self.operations)
            || changes && power_goes_at_change.is_some_and(|at| at <= self.changes)
        {
            self.off = true;
            return Step::Cut;
        }
        let fails = fails_at == Some(self.operations)
            || changes && change_fails_at == Some(self.changes)
            || kind == Kind::Sync && sync_fails_at == Some(self.syncs)
            || self.has_died(disk, self.changes);
        if fails { Step::Fails } else { Step::Done }
    }

    /// Whether the disk had died by this number of `changes`.
    fn has_died(&self, disk: usize, changes: u64) -> bool {
        self.faults.dies.iter().any(|(dead, at)| *dead == disk && *at <= changes)
    }

    /// Changes the data of a failed write to what it leaves on the disk: each sector old, new, or
    /// neither; or, in a quarter of the cases, all of the new data, in a cache.
    fn part_of(&mut self, disk: usize, offset: u64, data: &mut [u8]) {
        if self.rng.below(4) == 0 {
            return;
        }
        let mut old = [0; SECTOR_BYTES];
        for (sector, bytes) in sectors(offset, data.len()).zip(data.chunks_mut(SECTOR_BYTES)) {
            match self.rng.below(8) {
                0..4 => {
                    let at = u64::from(sector) * SECTOR_BYTES as u64;
                    if self.disks[disk].read(at, &mut old).is_ok() {
                        bytes.copy_from_slice(&old);
                    }
                }
                4 => rng::fill(self.rng.next_u64(), bytes),
                _ => {}
            }
        }
    }

    fn has_space(&self, disk: usize, offset: u64, len: usize) -> bool {
        let last = offset + len.max(1) as u64 - 1;
        let mut extents = offset / EXTENT_BYTES..=last / EXTENT_BYTES;
        !self.faults.full || extents.all(|extent| self.disks[disk].is_taken_within(extent))
    }
}

impl Image {
    fn is_taken_within(&self, extent: u64) -> bool {
        let end = ((extent + 1) * EXTENT_BYTES).min(self.size_bytes());
        (extent * EXTENT_BYTES..end).step_by(4096).any(|offset| self.is_taken(offset))
    }
}

impl HostileDisk {
    fn error(&self, operation: &'static str, offset: u64, errno: i32) -> DiskError {
        DiskError::new(self, operation, offset, errno)
    }

    fn write(&self, offset: u64, data: &[u8], durable: bool) -> Result<(), DiskError> {
        if offset + data.len() as u64 > self.size_bytes {
            return Err(DiskError::short(self, "write", offset));
        }
        let mut data = data.to_vec();
        let by = std::thread::current().name().unwrap_or_default().to_owned();
        let (write, step, delay, early) = {
            let mut state = self.machine.lock();
            let step = state.step(self.number, Kind::Write);
            if matches!(step, Step::Fails)
                && (state.off || state.has_died(self.number, state.changes - 1))
            {
                return Err(self.error("write", offset, EIO));
            }
            if !state.has_space(self.number, offset, data.len()) {
                return Err(self.error("write", offset, ENOSPC));
            }
            if matches!(step, Step::Fails) {
                state.part_of(self.number, offset, &mut data);
            }
            state.writes += 1;
            let number = state.writes;
            let durable = durable && matches!(step, Step::Done);
            let disk = self.number as u8;
            let write = Arc::new(Write { number, disk, offset, data, durable, by });
            state.history.events.push(Event::Write(Arc::clone(&write)));
            let draw = state.rng.next_u64();
            // Readers may see any part of a write in progress.
            let sectors = write.data.len() / SECTOR_BYTES + 1;
            let early = (draw >> 32) as usize % sectors * SECTOR_BYTES;
            state.disks[self.number].write(offset, &write.data[..early]);
            (write, step, draw, early)
        };
        if matches!(step, Step::Cut) {
            return Err(self.error("write", offset, EIO));
        }
        self.machine.pass(delay);
        let mut state = self.machine.lock();
        if state.off {
            return Err(self.error("write", offset, EIO));
        }
        state.disks[self.number].write(offset + early as u64, &write.data[early..]);
        let failed = matches!(step, Step::Fails);
        state.history.events.push(Event::Written { write: write.number, failed });
        match step {
            Step::Done => Ok(()),
            Step::Fails | Step::Cut => Err(self.error("write", offset, EIO)),
        }
    }
}

impl Disk for HostileDisk {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        if offset + out.len() as u64 > self.size_bytes {
            return Err(DiskError::short(self, "read", offset));
        }
        let mut state = self.machine.lock();
        match state.step(self.number, Kind::Read) {
            Step::Done => state.disks[self.number]
                .read(offset, out)
                .map_err(|bad| self.error("read", bad.max(offset), EIO)),
            Step::Fails | Step::Cut => Err(self.error("read", offset, EIO)),
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.write(offset, data, false)
    }

    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.write(offset, data, true)
    }

    fn sync(&self) -> Result<(), DiskError> {
        let disk = self.number as u8;
        let (since, failed, delay) = {
            let mut state = self.machine.lock();
            let failed = match state.step(self.number, Kind::Sync) {
                Step::Done => false,
                Step::Fails if !state.off => true,
                Step::Fails | Step::Cut => return Err(self.error("sync", 0, EIO)),
            };
            let since = state.history.events.len() as u32;
            state.history.events.push(Event::SyncBegins { disk });
            (since, failed, state.rng.next_u64())
        };
        self.machine.pass(delay);
        let mut state = self.machine.lock();
        if state.off {
            return Err(self.error("sync", 0, EIO));
        }
        state.history.events.push(Event::Synced { disk, since, failed });
        if failed { Err(self.error("sync", 0, EIO)) } else { Ok(()) }
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn name(&self) -> &str {
        &self.name
    }
}
