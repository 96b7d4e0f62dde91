//! Contents and the number of their occurrences: exact while they fit, then a fixed share of all
//! contents.
//!
//! The share is one of *hash space*: a content is kept if its fingerprint is in the lowest 2^-n of
//! all. Which contents are kept then depends only on the contents themselves; each kept one is
//! counted at every occurrence, so its count is exact. A sample of *blocks* would lose most second
//! occurrences and suggest that nothing repeats.

use serde::{Deserialize, Serialize};

use crate::digest::Fingerprint;
use crate::sets::{FileId, SetId};

/// A place: a file, and a number of blocks or bytes from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location(u64);

const AT_BITS: u32 = 44;

/// Number of files that one scan can distinguish.
pub const FILES_MAX: usize = 1 << (64 - AT_BITS);

impl Location {
    #[inline]
    pub const fn new(file: FileId, at: u64) -> Self {
        Self((file as u64) << AT_BITS | at & ((1 << AT_BITS) - 1))
    }

    #[inline]
    pub const fn file(self) -> FileId {
        (self.0 >> AT_BITS) as FileId
    }

    #[inline]
    pub const fn at(self) -> u64 {
        self.0 & ((1 << AT_BITS) - 1)
    }
}

const NEVER_USED: u32 = 1 << 31;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub print: Fingerprint,
    pub first: Location,
    /// Number of occurrences; at least one.
    pub count: u32,
    set: u32,
}

const VACANT: Entry = Entry { print: 0, first: Location(0), count: 0, set: 0 };

impl Entry {
    pub fn new(print: Fingerprint, first: Location, count: u32) -> Self {
        Self { print, first, count, set: 0 }
    }

    /// The same content in another scan, whose files are numbered after `files` others.
    pub(crate) fn behind(self, files: FileId) -> Self {
        Self { first: Location::new(self.first.file() + files, self.first.at()), ..self }
    }

    #[inline]
    pub fn set(&self) -> SetId {
        SetId(self.set & !NEVER_USED)
    }

    #[inline]
    pub fn set_set(&mut self, set: SetId) {
        self.set = self.set & NEVER_USED | set.0;
    }

    /// Returns whether it belongs to pages that their database never used.
    pub fn never_used(&self) -> bool {
        self.set & NEVER_USED != 0
    }

    pub fn set_never_used(&mut self) {
        self.set |= NEVER_USED;
    }
}

/// Returns whether a fingerprint is in the lowest 2^-`share_log2` of hash space.
#[inline]
pub(crate) fn in_share(print: Fingerprint, share_log2: u32) -> bool {
    print.leading_zeros() >= share_log2
}

#[derive(Debug)]
pub enum Occurrence<'a> {
    /// The content is outside the share that is kept.
    Outside,
    /// The first occurrence of a content.
    New(&'a mut Entry),
    /// A further occurrence of a content, already counted.
    Again(&'a mut Entry),
}

/// Contents by fingerprint. A serialized table is empty; its contents are stored separately.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    #[serde(skip, default = "no_slots")]
    slots: Vec<Entry>,
    #[serde(skip)]
    len: usize,
    slots_max: usize,
    share_log2: u32,
}

const SLOTS_MIN: usize = 256;
/// No scan of any size gets to a smaller share, which would say nothing.
const SHARE_LOG2_MAX: u32 = 48;

fn no_slots() -> Vec<Entry> {
    vec![VACANT; SLOTS_MIN]
}

impl Table {
    /// Creates a table that takes at most `memory_bytes` once it has grown.
    pub fn new(memory_bytes: usize) -> Self {
        let slots_max = (memory_bytes / size_of::<Entry>()).max(SLOTS_MIN);
        Self { slots: no_slots(), len: 0, slots_max, share_log2: 0 }
    }

    /// Returns whether it can be filled and scaled; a deserialized one may be anything.
    pub(crate) fn is_sound(&self) -> bool {
        self.slots_max >= SLOTS_MIN && self.share_log2 <= SHARE_LOG2_MAX
    }

    #[inline]
    pub fn see(&mut self, print: Fingerprint, place: Location) -> Occurrence<'_> {
        if !self.keeps(print) {
            return Occurrence::Outside;
        }
        let mut slot = self.home(print);
        loop {
            let entry = &self.slots[slot];
            if entry.count == 0 {
                break;
            }
            if entry.print == print {
                let entry = &mut self.slots[slot];
                entry.count = entry.count.saturating_add(1);
                return Occurrence::Again(entry);
            }
            slot = self.after(slot);
        }
        // Up to three quarters of the slots may be occupied.
        if self.len >= self.slots.len() / 4 * 3 {
            return self.see_crowded(print, place);
        }
        self.len += 1;
        let entry = &mut self.slots[slot];
        *entry = Entry::new(print, place, 1);
        Occurrence::New(entry)
    }

    /// Prefetches the slots of several contents, so that their cache misses overlap.
    #[inline]
    pub fn fetch(&self, prints: &[Fingerprint]) {
        let counts = prints.iter().map(|&print| self.slots[self.home(print)].count);
        std::hint::black_box(counts.fold(0, u32::wrapping_add));
    }

    /// Adds a content that was counted before.
    pub fn add(&mut self, entry: Entry) -> Occurrence<'_> {
        let mut seen = self.see(entry.print, entry.first);
        match &mut seen {
            Occurrence::New(new) => **new = entry,
            Occurrence::Again(known) => known.count = known.count.saturating_add(entry.count - 1),
            Occurrence::Outside => {}
        }
        seen
    }

    /// Returns the contents kept, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().filter(|entry| entry.count > 0)
    }

    pub fn get(&self, print: Fingerprint) -> Option<&Entry> {
        self.find(print).map(|slot| &self.slots[slot])
    }

    pub(crate) fn for_each_set(&mut self, mut moved: impl FnMut(SetId) -> SetId) {
        for entry in self.slots.iter_mut().filter(|entry| entry.count > 0) {
            entry.set_set(moved(entry.set()));
        }
    }

    /// Marks a kept content as belonging to pages that their database never used.
    pub fn mark_never_used(&mut self, print: Fingerprint) {
        if let Some(slot) = self.find(print) {
            self.slots[slot].set_never_used();
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of contents in all hash space per content kept.
    pub fn scale(&self) -> f64 {
        (1_u64 << self.share_log2) as f64
    }

    /// Returns n, where 2^-n is the share of hash space that is kept; 0 means all of it.
    pub fn share_log2(&self) -> u32 {
        self.share_log2
    }

    #[inline]
    pub fn keeps(&self, print: Fingerprint) -> bool {
        in_share(print, self.share_log2)
    }

    pub fn halve(&mut self) {
        self.shrink_share(self.share_log2 + 1);
    }

    /// Keeps no more than a share of 2^-`share_log2`.
    pub fn shrink_share(&mut self, share_log2: u32) {
        if share_log2 <= self.share_log2 {
            return;
        }
        self.share_log2 = share_log2;
        // In place, because there may be no memory for a second table. Starting after a vacant
        // slot, every entry is taken out and, if it is kept, put back at the first vacant slot from
        // its home on: that is never after its old slot, as the entries before it are in place
        // already.
        let slots = self.slots.len();
        let Some(start) = self.slots.iter().position(|entry| entry.count == 0) else { return };
        for step in 1..=slots {
            let slot = (start + step) % slots;
            let entry = std::mem::replace(&mut self.slots[slot], VACANT);
            if entry.count == 0 {
                continue;
            }
            if self.keeps(entry.print) {
                self.place(entry);
            } else {
                self.len -= 1;
            }
        }
    }

    fn find(&self, print: Fingerprint) -> Option<usize> {
        let mut slot = self.home(print);
        while self.slots[slot].count > 0 {
            if self.slots[slot].print == print {
                return Some(slot);
            }
            slot = self.after(slot);
        }
        None
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    #[inline]
    fn home(&self, print: Fingerprint) -> usize {
        // The low half: the high one is the same everywhere in a small share.
        ((u128::from(print as u64) * self.slots.len() as u128) >> 64) as usize
    }

    #[cold]
    fn see_crowded(&mut self, print: Fingerprint, place: Location) -> Occurrence<'_> {
        if self.slots.len() < self.slots_max {
            let slots = (self.slots.len() * 2).min(self.slots_max);
            let old = std::mem::replace(&mut self.slots, vec![VACANT; slots]);
            old.into_iter().filter(|entry| entry.count > 0).for_each(|entry| self.place(entry));
        } else {
            self.halve();
        }
        self.see(print, place)
    }

    /// Puts an entry into the first vacant slot from its home on.
    fn place(&mut self, entry: Entry) {
        let mut slot = self.home(entry.print);
        while self.slots[slot].count > 0 {
            slot = self.after(slot);
        }
        self.slots[slot] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest;

    fn print(content: u64) -> Fingerprint {
        digest::of(&content.to_le_bytes())
    }

    #[test]
    fn all_that_fits_is_counted_exactly_and_first_places_stay() {
        let mut table = Table::new(1 << 20);
        for round in 0..3 {
            for content in 0..5000 {
                let seen = table.see(print(content), Location::new(round, content));
                assert_eq!(matches!(seen, Occurrence::New(_)), round == 0);
            }
        }
        assert_eq!((table.len(), table.share_log2()), (5000, 0));
        assert!(table.entries().all(|entry| entry.count == 3));
        let entry = table.get(print(77)).unwrap();
        assert_eq!((entry.first.file(), entry.first.at()), (0, 77));
        assert!(table.get(print(5000)).is_none());
    }

    #[test]
    fn a_share_is_one_of_contents_and_their_counts_stay_exact() {
        let mut table = Table::new(64 << 10);
        for _ in 0..2 {
            for content in 0..100_000 {
                table.see(print(content), Location::new(0, content));
            }
        }
        let share = table.share_log2();
        assert!(share > 0 && table.len() <= 2048 * 3 / 4);
        assert!(table.entries().all(|entry| entry.count == 2 && table.keeps(entry.print)));
        let estimate = (table.len() << share) as f64;
        assert!((estimate / 100_000.0 - 1.0).abs() < 0.15, "{estimate}");
        let kept = (0..100_000).filter(|&content| table.keeps(print(content))).count();
        assert_eq!(kept, table.len(), "every content of the share is there");
    }

    #[test]
    fn a_share_that_shrinks_loses_no_content_that_it_keeps() {
        let mut table = Table::new(1 << 20);
        for content in 0..15_000 {
            table.see(print(content), Location::new(0, content));
        }
        for share in 1..6 {
            table.shrink_share(share);
            let kept: Vec<u64> = (0..15_000).filter(|&it| table.keeps(print(it))).collect();
            assert_eq!(table.len(), kept.len());
            for content in kept {
                assert_eq!(table.get(print(content)).unwrap().first.at(), content);
            }
        }
    }

    #[test]
    fn flags_and_sets_do_not_touch_each_other() {
        let mut entry = Entry::new(1, Location::new(FILES_MAX as u32 - 1, 1 << 43), 1);
        entry.set_never_used();
        entry.set_set(SetId(12));
        assert!(entry.never_used());
        assert_eq!(entry.set(), SetId(12));
        assert_eq!((entry.first.file() as usize, entry.first.at()), (FILES_MAX - 1, 1 << 43));
    }
}
