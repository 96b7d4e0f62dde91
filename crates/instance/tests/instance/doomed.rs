//! Disks that fail one operation, lose their power during one, or run out of space.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use blockstone_instance::disk::{Disk, DiskError};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
/// What a disk without reserves is given at a time, as thin pools do it.
const EXTENT_BYTES: u64 = 1 << 20;

/// What befalls the disks that share it, counted over all their operations from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing.
    Spared,
    /// This operation fails, and no other.
    FailsAt(u64),
    /// The power goes during this operation: a write has reached the disk's cache, perhaps.
    PowerGoesAt(u64),
    /// No space is left: writes where nothing was ever written fail.
    Full,
}

/// The operations of several disks so far, and what befalls them.
#[derive(Debug)]
pub struct Doom {
    fate: Mutex<Fate>,
    operations: AtomicU64,
}

/// A disk under a [`Doom`].
#[derive(Debug)]
pub struct Doomed {
    inner: Arc<dyn Disk>,
    doom: Arc<Doom>,
    /// The extents that hold something.
    taken: Mutex<HashSet<u64>>,
}

enum Step {
    Done,
    Fails,
    InFlight,
}

impl Doom {
    pub fn new(fate: Fate) -> Arc<Self> {
        Arc::new(Self { fate: Mutex::new(fate), operations: AtomicU64::new(0) })
    }

    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// What befalls the disks from now on.
    pub fn change(&self, fate: Fate) {
        *self.fate.lock().unwrap() = fate;
    }

    /// The power goes during the `number`th operation from now.
    pub fn power_goes_in(&self, number: u64) {
        self.change(Fate::PowerGoesAt(self.operations() + number));
    }

    fn step(&self) -> Step {
        let fate = *self.fate.lock().unwrap();
        let number = self.operations.fetch_add(1, Ordering::Relaxed) + 1;
        match fate {
            Fate::FailsAt(at) if number == at => Step::Fails,
            Fate::PowerGoesAt(at) if number == at => Step::InFlight,
            Fate::PowerGoesAt(at) if number > at => Step::Fails,
            _ => Step::Done,
        }
    }
}

impl Doomed {
    pub fn disk(inner: Arc<dyn Disk>, doom: &Arc<Doom>) -> Arc<dyn Disk> {
        Arc::new(Self { inner, doom: Arc::clone(doom), taken: Mutex::default() })
    }

    /// Takes the extents of a write, if there is space for those that it does not have.
    fn take(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        let last = offset + data.len() as u64 - 1;
        let mut taken = self.taken.lock().unwrap();
        let full = *self.doom.fate.lock().unwrap() == Fate::Full;
        for extent in offset / EXTENT_BYTES..=last / EXTENT_BYTES {
            if full && !taken.contains(&extent) {
                return Err(DiskError::new(self, "write", offset, ENOSPC));
            }
            taken.insert(extent);
        }
        Ok(())
    }

    fn fail(&self, operation: &'static str, offset: u64) -> Result<(), DiskError> {
        Err(DiskError::new(self, operation, offset, EIO))
    }
}

impl Disk for Doomed {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        match self.doom.step() {
            Step::Done => self.inner.read_at(offset, out),
            Step::Fails | Step::InFlight => self.fail("read", offset),
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        match self.doom.step() {
            Step::Done => self.take(offset, data).and_then(|()| self.inner.write_at(offset, data)),
            Step::InFlight => self.inner.write_at(offset, data).and(self.fail("write", offset)),
            Step::Fails => self.fail("write", offset),
        }
    }

    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        match self.doom.step() {
            Step::Done => {
                self.take(offset, data).and_then(|()| self.inner.write_dsync_at(offset, data))
            }
            Step::InFlight => self.inner.write_at(offset, data).and(self.fail("write", offset)),
            Step::Fails => self.fail("write", offset),
        }
    }

    fn sync(&self) -> Result<(), DiskError> {
        match self.doom.step() {
            Step::Done => self.inner.sync(),
            Step::Fails | Step::InFlight => self.fail("sync", 0),
        }
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}
