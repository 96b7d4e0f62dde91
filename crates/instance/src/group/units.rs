//! The units of a disk that are not safe on it: those that it missed, and those that it took and
//! may still lose, until a flush that began afterwards has succeeded.

use std::collections::HashMap;
use std::ops::Range;

use crate::planted::{Planted, planted};

/// A set of units.
#[derive(Clone, Debug)]
pub(super) struct Bitmap {
    words: Vec<u64>,
    len: u64,
}

impl Bitmap {
    pub fn new(units: u32) -> Self {
        Self { words: vec![0; units.div_ceil(64) as usize], len: 0 }
    }

    /// Inserts a unit; returns whether it is new in the set.
    #[inline]
    pub fn insert(&mut self, unit: u32) -> bool {
        let (word, bit) = (&mut self.words[unit as usize / 64], 1 << (unit % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        self.len += u64::from(is_new);
        is_new
    }

    pub fn remove(&mut self, unit: u32) {
        if self.contains(unit) {
            self.words[unit as usize / 64] &= !(1 << (unit % 64));
            self.len -= 1;
        }
    }

    pub fn contains(&self, unit: u32) -> bool {
        self.words[unit as usize / 64] & 1 << (unit % 64) != 0
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn clear(&mut self) {
        self.words.fill(0);
        self.len = 0;
    }

    fn units(words: &[u64]) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(words).filter(|(_, word)| **word != 0).flat_map(|(index, word)| {
            (0..64).filter(move |bit| word & 1 << bit != 0).map(move |bit| index * 64 + bit)
        })
    }
}

/// Data that a disk missed, by unit and, as far as known, by block.
#[derive(Debug)]
pub(super) struct Missed {
    units: Bitmap,
    /// For a unit without an entry, any of its blocks may have been missed.
    blocks: HashMap<u32, Vec<u64>>,
    /// Whether nothing on the disk can be trusted: it is new, or not the file that left.
    pub is_foreign: bool,
}

/// Age of a block in a unit that a disk missed, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// Only other blocks of its unit were missed.
    Current,
    Unknown,
    /// The block itself was missed.
    Old,
}

impl Missed {
    fn new(units: u32) -> Self {
        Self { units: Bitmap::new(units), blocks: HashMap::new(), is_foreign: false }
    }

    /// Records that the blocks of a unit in `range` were missed.
    pub fn insert(&mut self, unit: u32, range: Range<u64>) {
        if self.units.insert(unit) {
            self.blocks.insert(unit, Vec::new());
        }
        let Some(bits) = self.blocks.get_mut(&unit) else { return };
        for block in range {
            let word = block as usize / 64;
            if bits.len() <= word {
                bits.resize(word + 1, 0);
            }
            bits[word] |= 1 << (block % 64);
        }
    }

    /// Records that any block of the unit may have been missed.
    pub fn insert_unit(&mut self, unit: u32) {
        self.units.insert(unit);
        self.blocks.remove(&unit);
    }

    pub fn insert_units(&mut self, words: &[u64]) {
        Bitmap::units(words).for_each(|unit| self.insert_unit(unit));
    }

    fn remove(&mut self, unit: u32) {
        self.units.remove(unit);
        self.blocks.remove(&unit);
    }

    pub fn contains(&self, unit: u32) -> bool {
        self.units.contains(unit)
    }

    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    pub fn len(&self) -> u64 {
        self.units.len
    }

    pub fn words(&self) -> Vec<u64> {
        self.units.words.clone()
    }

    pub fn age(&self, unit: u32, block: u64) -> Age {
        let word = block as usize / 64;
        match self.blocks.get(&unit) {
            _ if self.is_foreign => Age::Old,
            None => Age::Unknown,
            Some(bits) if bits.get(word).is_some_and(|word| word & 1 << (block % 64) != 0) => {
                Age::Old
            }
            Some(_) => Age::Current,
        }
    }
}

/// The units of one disk, and its flushes. A flush covers the writes before it began; those made
/// while it runs wait for the next one.
#[derive(Debug)]
pub(super) struct Units {
    pub missed: Missed,
    /// Units written since the last flush began.
    pub unsynced: Bitmap,
    /// Units that the flush in progress makes durable.
    flushing: Bitmap,
    /// Number of flushes that have started, and that have ended: at most one is in progress.
    started: u64,
    ended: u64,
    /// The first flush that failed since the disk last left. The data it covered may be lost,
    /// whatever a later flush reports: the kernel reports a failed write-back once and drops the
    /// data.
    failed: Option<u64>,
    /// Number of times the disk has left. A flush that began earlier says nothing about the time
    /// after.
    departures: u64,
}

/// Error of a failed flush: data that the disk took and did not hold durably may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost;

/// A flush in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flush {
    departures: u64,
}

impl Units {
    pub fn new(units: u32) -> Self {
        Self {
            missed: Missed::new(units),
            unsynced: Bitmap::new(units),
            flushing: Bitmap::new(units),
            started: 0,
            ended: 0,
            failed: None,
            departures: 0,
        }
    }

    /// Returns the number of the flush that covers everything written so far: the next one if
    /// something was written since the last one began.
    pub fn covering(&self) -> u64 {
        self.started + u64::from(!self.unsynced.is_empty())
    }

    /// Returns the result of flush `number`, if it has ended.
    pub fn end_of(&self, number: u64) -> Option<Result<(), Lost>> {
        match self.failed {
            Some(failed) if failed <= number => Some(Err(Lost)),
            _ => (self.ended >= number).then_some(Ok(())),
        }
    }

    pub fn is_flushing(&self) -> bool {
        self.started > self.ended
    }

    pub fn is_lost(&self) -> bool {
        self.failed.is_some()
    }

    /// Whether a write to the unit is not yet durable.
    pub fn is_volatile(&self, unit: u32) -> bool {
        self.unsynced.contains(unit) || self.flushing.contains(unit)
    }

    pub fn begin_flush(&mut self) -> Flush {
        assert!(!self.is_flushing(), "one flush at a time");
        self.started += 1;
        std::mem::swap(&mut self.unsynced, &mut self.flushing);
        Flush { departures: self.departures }
    }

    pub fn end_flush(&mut self, flush: Flush, is_durable: bool) {
        self.ended = self.started;
        if !is_durable && flush.departures == self.departures {
            self.failed.get_or_insert(self.ended);
            Bitmap::units(&self.flushing.words).for_each(|unit| {
                self.unsynced.insert(unit);
            });
        }
        self.flushing.clear();
    }

    /// Records that the disk leaves: data that it may lose counts as missed.
    pub fn leave(&mut self) {
        for volatile in [&mut self.unsynced, &mut self.flushing] {
            if !planted(Planted::StaleForgotten) {
                self.missed.insert_units(&volatile.words);
            }
            volatile.clear();
        }
        self.failed = None;
        self.departures += 1;
    }

    /// Records that a unit was copied to the disk, which may still lose it.
    pub fn copied(&mut self, unit: u32) {
        self.unsynced.insert(unit);
        self.missed.remove(unit);
    }
}
