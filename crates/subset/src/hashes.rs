//! A set of hashes of values, with a mark for those that were found.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::shape::AsIs;

/// Each part grows on its own: while one is copied to a larger table, the others are not.
const PARTS: usize = 256;
/// Bytes of an entry: its hash, and the table's control byte.
const ENTRY_BYTES: u64 = 9;

/// The upper 63 bits are a hash; the lowest bit is set if the value was found.
#[derive(Clone, Copy, Debug, Eq)]
struct Entry(u64);

impl Entry {
    fn new(hash: u128, found: bool) -> Self {
        Self(hash as u64 & !1 | u64::from(found))
    }

    fn is_found(self) -> bool {
        self.0 & 1 == 1
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0 | 1 == other.0 | 1
    }
}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0 >> 1);
    }
}

type Shard = HashSet<Entry, BuildHasherDefault<AsIs>>;

/// Takes 10 to 21 bytes per value. 71 bits of a hash are kept: the probability that two values
/// among 50 million collide is 10⁻⁶.
#[derive(Debug, Default)]
pub struct Hashes {
    parts: Vec<Shard>,
    found: u64,
}

impl Hashes {
    fn part(hash: u128) -> usize {
        (hash >> 64) as usize % PARTS
    }

    /// Returns false if it was already present.
    pub fn insert(&mut self, hash: u128) -> bool {
        if self.parts.is_empty() {
            self.parts.resize_with(PARTS, Shard::default);
        }
        self.parts[Self::part(hash)].insert(Entry::new(hash, false))
    }

    fn entry(&self, hash: u128) -> Option<Entry> {
        self.parts.get(Self::part(hash))?.get(&Entry::new(hash, false)).copied()
    }

    pub fn contains(&self, hash: u128) -> bool {
        self.entry(hash).is_some()
    }

    pub fn is_found(&self, hash: u128) -> bool {
        self.entry(hash).is_some_and(Entry::is_found)
    }

    /// Marks a value as found; returns false if it is not in the set.
    pub fn find(&mut self, hash: u128) -> bool {
        let Some(entry) = self.entry(hash) else { return false };
        if !entry.is_found() {
            self.parts[Self::part(hash)].replace(Entry::new(hash, true));
            self.found += 1;
        }
        true
    }

    /// Returns false if it was not present.
    pub fn remove(&mut self, hash: u128) -> bool {
        let Some(part) = self.parts.get_mut(Self::part(hash)) else { return false };
        let Some(entry) = part.take(&Entry::new(hash, false)) else { return false };
        self.found -= u64::from(entry.is_found());
        true
    }

    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Returns the number of values found.
    pub fn found(&self) -> u64 {
        self.found
    }

    /// Returns the memory in use.
    pub fn bytes(&self) -> u64 {
        // The table has an eighth more slots than it fills.
        self.parts.iter().map(|part| part.capacity() as u64 * 8 / 7 * ENTRY_BYTES).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::value;

    #[test]
    fn values_are_found_once_and_keep_their_mark_while_the_set_grows() {
        let mut set = Hashes::default();
        let hash = |at: u32| value(&at.to_be_bytes());
        for at in 0..100_000 {
            assert!(set.insert(hash(at)));
            assert!(!set.insert(hash(at)));
            if at % 3 == 0 {
                assert!(set.find(hash(at)) && set.find(hash(at)));
            }
        }
        assert!(!set.find(hash(100_000)) && !set.remove(hash(100_000)));
        assert!(set.remove(hash(0)) && set.remove(hash(1)));
        assert_eq!((set.len(), set.found()), (99_998, 33_333));
        for at in 2..100_000 {
            assert!(set.contains(hash(at)));
            assert_eq!(set.is_found(hash(at)), at % 3 == 0, "{at}");
        }
        let each = set.bytes() as f64 / set.len() as f64;
        assert!((10.0..21.0).contains(&each), "{each} bytes each");
    }
}
