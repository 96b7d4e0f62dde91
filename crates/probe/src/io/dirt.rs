//! Balances of the processes that made the pages of a file dirty. A kernel thread that writes pages
//! back later does so on behalf of these processes.
//!
//! Each process has a balance for each file: bytes that it passed to write system calls, less
//! bytes that reached a device since. Bytes that a kernel thread writes are divided by these
//! balances; if all of them are used up, the last process that wrote to the file is charged, since
//! a page is written as a whole even if a few of its bytes changed.

use std::collections::HashMap;
use std::hash::Hash;

/// Maximum number of files with a balance.
const FILES_MAX: usize = 8192;
/// Maximum number of processes with a balance for one file.
const OWNERS_MAX: usize = 256;
/// Number of readings after which a file without a write is forgotten if there is no room.
const READINGS_KEPT: u64 = 120;

/// Balances by file `F` and owner `O`.
#[derive(Debug)]
pub struct Dirt<F, O> {
    files: HashMap<F, Dirtied<O>>,
}

#[derive(Debug)]
struct Dirtied<O> {
    /// Owners with their balance in bytes; the one that wrote last is the last.
    by: Vec<(O, u64)>,
    reading: u64,
}

/// The part of a write that an owner is charged with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge<O> {
    pub owner: O,
    pub ios: u64,
    pub bytes: u64,
}

impl<F: Eq + Hash, O: Clone + PartialEq> Dirt<F, O> {
    pub fn new() -> Self {
        Self { files: HashMap::new() }
    }

    /// Notes that `owner` passed `bytes` to write system calls.
    pub fn add(&mut self, file: F, owner: &O, bytes: u64, reading: u64) {
        if self.files.len() >= FILES_MAX && !self.files.contains_key(&file) {
            let oldest = reading.saturating_sub(READINGS_KEPT);
            self.files.retain(|_, dirtied| dirtied.reading >= oldest);
            if self.files.len() >= FILES_MAX {
                return;
            }
        }
        let known = self.files.entry(file).or_insert(Dirtied { by: Vec::new(), reading });
        known.reading = reading;
        let before = known.by.iter().position(|(by, _)| by == owner);
        let before = before.map_or(0, |at| known.by.remove(at).1);
        if known.by.len() >= OWNERS_MAX {
            known.by.remove(0);
        }
        known.by.push((owner.clone(), before.saturating_add(bytes)));
    }

    /// Notes that `owner` itself sent `bytes` to a device: direct I/O, or its own flush, which may
    /// also write what others made dirty.
    pub fn written_by(&mut self, file: &F, owner: &O, bytes: u64) {
        let Some(known) = self.files.get_mut(file) else { return };
        let mut left = bytes;
        let (own, others): (Vec<_>, Vec<_>) = known.by.iter_mut().partition(|(by, _)| by == owner);
        for (_, balance) in own.into_iter().chain(others) {
            let part = left.min(*balance);
            *balance -= part;
            left -= part;
        }
    }

    /// Divides a write of a kernel thread among those who made the file dirty; empty if no writer
    /// of it is known.
    pub fn charge(&mut self, file: &F, ios: u64, bytes: u64) -> Vec<Charge<O>> {
        let Some(known) = self.files.get_mut(file) else { return Vec::new() };
        let all: u128 = known.by.iter().map(|(_, balance)| u128::from(*balance)).sum();
        let last = known.by.len().saturating_sub(1);
        let share = |of: u64, at: usize, balance: u64| match all {
            0 => {
                if at == last {
                    of
                } else {
                    0
                }
            }
            _ => (u128::from(of) * u128::from(balance) / all) as u64,
        };
        let mut charges: Vec<Charge<O>> = Vec::with_capacity(known.by.len());
        for (at, (owner, balance)) in known.by.iter_mut().enumerate() {
            let part = share(bytes, at, *balance);
            charges.push(Charge {
                owner: owner.clone(),
                ios: share(ios, at, *balance),
                bytes: part,
            });
            *balance -= part.min(*balance);
        }
        // The rest, lost by rounding, goes with the largest part.
        let (bytes_left, ios_left) = charges
            .iter()
            .fold((bytes, ios), |left, charge| (left.0 - charge.bytes, left.1 - charge.ios));
        if let Some(largest) = charges.iter_mut().max_by_key(|charge| charge.bytes) {
            largest.bytes += bytes_left;
            largest.ios += ios_left;
        }
        charges.retain(|charge| charge.bytes > 0 || charge.ios > 0);
        charges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charged(dirt: &mut Dirt<u8, &'static str>, bytes: u64) -> Vec<(&'static str, u64)> {
        let charges = dirt.charge(&1, 4, bytes);
        assert!(charges.is_empty() || charges.iter().map(|charge| charge.ios).sum::<u64>() == 4);
        charges.into_iter().map(|charge| (charge.owner, charge.bytes)).collect()
    }

    #[test]
    fn a_write_is_divided_by_what_each_process_wrote() {
        let mut dirt = Dirt::new();
        assert_eq!(charged(&mut dirt, 100), [], "nobody is known");
        dirt.add(1, &"a", 300, 0);
        dirt.add(1, &"b", 100, 0);
        assert_eq!(charged(&mut dirt, 200), [("a", 150), ("b", 50)]);
        // A page is written as a whole: more comes than is left of the balances.
        assert_eq!(charged(&mut dirt, 400), [("a", 300), ("b", 100)]);
        assert_eq!(charged(&mut dirt, 401), [("b", 401)], "it wrote last");
        dirt.add(1, &"a", 1, 1);
        assert_eq!(charged(&mut dirt, 4096), [("a", 4096)]);
    }

    #[test]
    fn what_a_process_writes_itself_is_not_charged_again() {
        let mut dirt = Dirt::new();
        dirt.add(1, &"session", 8192, 0);
        dirt.add(1, &"checkpointer", 4096, 0);
        dirt.written_by(&1, &"checkpointer", 8192);
        assert_eq!(charged(&mut dirt, 4096), [("session", 4096)]);
    }

    #[test]
    fn there_is_a_limit_on_files_and_on_the_processes_of_each() {
        let mut dirt = Dirt::new();
        for file in 0..FILES_MAX as u64 + 10 {
            dirt.add(file, &0, 1, 0);
        }
        assert_eq!(dirt.files.len(), FILES_MAX);
        dirt.add(1 << 40, &0, 1, READINGS_KEPT + 1);
        assert_eq!(dirt.files.len(), 1, "the old ones made room");
        for owner in 0..300 {
            dirt.add(1 << 40, &owner, 1, READINGS_KEPT + 1);
        }
        assert_eq!(dirt.files[&(1 << 40)].by.len(), OWNERS_MAX);
    }

    #[test]
    fn no_byte_is_lost_or_charged_twice() {
        let drawn = |seed: u64, below: u64| blockstone_base::rng::mix(seed) % below;
        for seed in 0..200 {
            let mut dirt = Dirt::new();
            for step in 0..drawn(seed, 20) {
                let (owner, bytes) = (drawn(seed * 91 + step, 6), drawn(seed * 97 + step, 1 << 40));
                dirt.add((), &owner, bytes, 0);
            }
            for step in 0..10 {
                let (ios, bytes) = (drawn(seed * 83 + step, 100), drawn(seed * 89 + step, 1 << 40));
                let charges = dirt.charge(&(), ios, bytes);
                let sums = charges
                    .iter()
                    .fold((0, 0), |sums, charge| (sums.0 + charge.ios, sums.1 + charge.bytes));
                assert!(charges.is_empty() || sums == (ios, bytes), "{charges:?}");
            }
        }
    }
}
