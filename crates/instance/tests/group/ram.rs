//! A disk in memory with a volatile cache, whose operations a test can hold and whose results it
//! can decide.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use blockstone_instance::disk::{Disk, DiskError};

use crate::BLOCK;

const EIO: i32 = 5;

/// A write is in the cache immediately and on the medium after a successful sync. A failed sync
/// drops the data it should have made durable, as the kernel does after a failed write-back.
#[derive(Debug)]
pub struct Ram {
    name: String,
    bytes: u64,
    state: Mutex<State>,
    syncs: Mutex<Option<Held>>,
    writes: Mutex<Option<Held>>,
}

#[derive(Debug)]
struct State {
    cache: Vec<u8>,
    medium: Vec<u8>,
    /// Blocks of the cache that are not on the medium, with the number of their last write.
    dirty: BTreeMap<u64, u64>,
    written: u64,
    /// Blocks that cannot be read until they are written.
    unreadable: BTreeSet<u64>,
    syncs: u64,
}

#[derive(Debug)]
struct Held {
    arrived: Sender<u64>,
    verdict: Receiver<bool>,
}

/// The test's end of a held operation.
#[derive(Debug)]
pub struct Gate {
    arrived: Receiver<u64>,
    verdict: Sender<bool>,
}

impl Gate {
    /// Waits until an operation has arrived; returns its offset.
    pub fn wait(&self) -> u64 {
        self.arrived.recv().unwrap()
    }

    /// Lets the operation that arrived succeed or fail.
    pub fn decide(&self, ends_well: bool) {
        self.verdict.send(ends_well).unwrap();
    }
}

pub fn rams(count: usize) -> Vec<Arc<Ram>> {
    (0..count).map(|number| Arc::new(Ram::new(&format!("ram{number}"), 24 << 20))).collect()
}

pub fn disks(rams: &[Arc<Ram>]) -> Vec<Arc<dyn Disk>> {
    rams.iter().map(|ram| Arc::clone(ram) as Arc<dyn Disk>).collect()
}

fn gate(held: &Mutex<Option<Held>>) -> Gate {
    let (arrived, arrivals) = channel();
    let (verdict, verdicts) = channel();
    *held.lock().unwrap() = Some(Held { arrived, verdict: verdicts });
    Gate { arrived: arrivals, verdict }
}

/// Returns whether an operation succeeds; true if it is not held, or the gate is gone.
fn pass(held: &Mutex<Option<Held>>, offset: u64) -> bool {
    let Some(held) = held.lock().unwrap().take() else { return true };
    let arrived = held.arrived.send(offset);
    arrived.is_err() || held.verdict.recv().unwrap_or(true)
}

impl Ram {
    pub fn new(name: &str, bytes: u64) -> Self {
        let medium = vec![0; bytes as usize];
        let state = State {
            cache: medium.clone(),
            medium,
            dirty: BTreeMap::new(),
            written: 0,
            unreadable: BTreeSet::new(),
            syncs: 0,
        };
        let (syncs, writes) = (Mutex::default(), Mutex::default());
        Self { name: name.to_owned(), bytes, state: Mutex::new(state), syncs, writes }
    }

    /// Holds the next sync.
    pub fn hold_sync(&self) -> Gate {
        gate(&self.syncs)
    }

    /// Holds the next write, once it is in the cache.
    pub fn hold_write(&self) -> Gate {
        gate(&self.writes)
    }

    pub fn power_loss(&self) {
        let mut state = self.state.lock().unwrap();
        let State { cache, medium, .. } = &mut *state;
        cache.clone_from(medium);
        state.dirty.clear();
    }

    /// Returns the content that would be left after a power loss now.
    pub fn medium(&self) -> Vec<u8> {
        self.state.lock().unwrap().medium.clone()
    }

    /// Resets the disk to the state in which its medium was `image`.
    pub fn restore(&self, image: Vec<u8>) {
        let mut state = self.state.lock().unwrap();
        state.cache.clone_from(&image);
        state.medium = image;
        state.dirty.clear();
    }

    pub fn has_durably(&self, block: &[u8]) -> bool {
        self.state.lock().unwrap().medium.chunks(BLOCK as usize).any(|found| found == block)
    }

    pub fn syncs(&self) -> u64 {
        self.state.lock().unwrap().syncs
    }

    /// Replaces every block equal to `wanted` with `block`; returns their number.
    pub fn swap(&self, wanted: &[u8], block: &[u8]) -> usize {
        let places = self.find(wanted);
        let mut state = self.state.lock().unwrap();
        for at in &places {
            let range = *at as usize..*at as usize + block.len();
            state.cache[range.clone()].copy_from_slice(block);
            state.medium[range].copy_from_slice(block);
        }
        places.len()
    }

    /// Makes every block equal to `wanted` unreadable; returns their number.
    pub fn lose(&self, wanted: &[u8]) -> usize {
        let places = self.find(wanted);
        self.state.lock().unwrap().unreadable.extend(&places);
        places.len()
    }

    /// Returns the offsets of the blocks equal to `wanted`.
    pub fn find(&self, wanted: &[u8]) -> Vec<u64> {
        let state = self.state.lock().unwrap();
        let blocks = state.cache.chunks(BLOCK as usize);
        (0..).step_by(BLOCK as usize).zip(blocks).filter(|b| b.1 == wanted).map(|b| b.0).collect()
    }

    fn write(&self, offset: u64, data: &[u8], durable: bool) -> Result<(), DiskError> {
        {
            let mut state = self.state.lock().unwrap();
            let range = offset as usize..offset as usize + data.len();
            state.cache[range.clone()].copy_from_slice(data);
            for block in (offset..offset + data.len() as u64).step_by(BLOCK as usize) {
                state.unreadable.remove(&block);
                if durable {
                    state.dirty.remove(&block);
                } else {
                    state.written += 1;
                    let number = state.written;
                    state.dirty.insert(block, number);
                }
            }
            if durable {
                state.medium[range].copy_from_slice(data);
            }
        }
        if pass(&self.writes, offset) {
            Ok(())
        } else {
            Err(DiskError::new(self, "write", offset, EIO))
        }
    }
}

impl Disk for Ram {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        let state = self.state.lock().unwrap();
        if state.unreadable.range(offset..offset + out.len() as u64).next().is_some() {
            return Err(DiskError::new(self, "read", offset, EIO));
        }
        out.copy_from_slice(&state.cache[offset as usize..offset as usize + out.len()]);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.write(offset, data, false)
    }

    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.write(offset, data, true)
    }

    fn sync(&self) -> Result<(), DiskError> {
        let covered: Vec<(u64, u64, Vec<u8>)> = {
            let mut state = self.state.lock().unwrap();
            state.syncs += 1;
            let block = |at: u64| state.cache[at as usize..(at + BLOCK) as usize].to_vec();
            state.dirty.iter().map(|(at, number)| (*at, *number, block(*at))).collect()
        };
        let ends_well = pass(&self.syncs, 0);
        let state = &mut *self.state.lock().unwrap();
        for (at, number, data) in covered {
            let is_last = state.dirty.get(&at) == Some(&number);
            if is_last {
                state.dirty.remove(&at);
            }
            let range = at as usize..(at + BLOCK) as usize;
            if ends_well {
                state.medium[range].copy_from_slice(&data);
            } else if is_last {
                state.cache[range.clone()].copy_from_slice(&state.medium[range]);
            }
        }
        if ends_well { Ok(()) } else { Err(DiskError::new(self, "sync", 0, EIO)) }
    }

    fn size_bytes(&self) -> u64 {
        self.bytes
    }

    fn name(&self) -> &str {
        &self.name
    }
}
