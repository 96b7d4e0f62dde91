//! Sums of calls while a trace is read, and fast maps.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::model::{Histogram, Spent};

/// Nanoseconds per microsecond.
pub const US: f64 = 1000.0;

/// A hasher that multiplies and folds: keys are small numbers and maps are bounded, so collisions
/// cost little.
#[derive(Clone, Copy, Default)]
pub struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Folded>>;

/// Waits of one event.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub calls: u64,
    pub us: u64,
    pub max_us: u64,
    pub bytes: u64,
    pub blocks: u64,
    /// Calls and microseconds by powers of two.
    buckets: Vec<(u64, u64)>,
}

impl Tally {
    #[inline]
    pub fn add(&mut self, us: u64, size: Size) {
        self.calls += 1;
        self.us = self.us.saturating_add(us);
        self.max_us = self.max_us.max(us);
        self.bytes += size.bytes;
        self.blocks += size.blocks;
        let bucket = (u64::BITS - us.leading_zeros()) as usize;
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, (0, 0));
        }
        let bucket = &mut self.buckets[bucket];
        bucket.0 += 1;
        bucket.1 = bucket.1.saturating_add(us);
    }

    pub fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.us = self.us.saturating_add(other.us);
        self.max_us = self.max_us.max(other.max_us);
        self.bytes += other.bytes;
        self.blocks += other.blocks;
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), (0, 0));
        }
        for (ours, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            ours.0 += theirs.0;
            ours.1 = ours.1.saturating_add(theirs.1);
        }
    }

    pub fn spent(&self) -> Spent {
        Spent {
            calls: self.calls as f64,
            ns: self.us as f64 * US,
            max_ns: Some(self.max_us as f64 * US),
            histogram: self.histogram(),
            bytes: (self.bytes > 0).then_some(self.bytes as f64),
            blocks: (self.blocks > 0).then_some(self.blocks as f64),
            ..Spent::default()
        }
    }

    fn histogram(&self) -> Histogram {
        Histogram {
            calls: self.buckets.iter().map(|it| it.0 as f64).collect(),
            ns: self.buckets.iter().map(|it| it.1 as f64 * US).collect(),
        }
    }
}

/// Amount of data moved by one wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    pub bytes: u64,
    pub blocks: u64,
}

/// Tallies by event. An owner has few events, and the next event is usually the same as the last.
#[derive(Clone, Debug, Default)]
pub struct Tallies {
    pub list: Vec<(u16, Tally)>,
    last: usize,
}

impl Tallies {
    /// Returns the tally of an event, and whether it is new.
    #[inline]
    pub fn of(&mut self, event: u16) -> (&mut Tally, bool) {
        let at = match self.list.get(self.last) {
            Some((id, _)) if *id == event => self.last,
            _ => self.list.iter().position(|(id, _)| *id == event).unwrap_or(self.list.len()),
        };
        let new = at == self.list.len();
        if new {
            self.list.push((event, Tally::default()));
        }
        self.last = at;
        (&mut self.list[at].1, new)
    }

    pub fn merge(&mut self, other: &Self) {
        for (event, tally) in &other.list {
            self.of(*event).0.merge(tally);
        }
    }
}

/// Tallies by event and a key; those beyond the bound are merged by event.
#[derive(Debug, Default)]
pub struct Keyed {
    pub map: FastMap<(u16, u64), Tally>,
    pub others: Tallies,
}

impl Keyed {
    #[inline]
    pub fn add(&mut self, key: (u16, u64), us: u64, size: Size, limit: usize) {
        if let Some(tally) = self.map.get_mut(&key) {
            tally.add(us, size);
        } else if self.map.len() < limit {
            self.map.entry(key).or_default().add(us, size);
        } else {
            self.others.of(key.0).0.add(us, size);
        }
    }
}
