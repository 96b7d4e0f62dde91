//! Values of a key that taken rows reference.

use roaring::RoaringTreemap;

use crate::hash::value;
use crate::hashes::Hashes;
use crate::numbers::{bytes_of, number};

/// The stored form of a value.
#[derive(Clone, Copy, Debug)]
enum Kept {
    Number(u64),
    Hash(u128),
}

impl Kept {
    fn of(bytes: &[u8]) -> Self {
        number(bytes).map_or_else(|| Self::Hash(value(bytes)), Self::Number)
    }
}

/// Values wanted by one key.
#[derive(Debug)]
struct Wanted {
    by: u32,
    numbers: RoaringTreemap,
    others: Hashes,
}

impl Wanted {
    fn new(by: u32) -> Self {
        Self { by, numbers: RoaringTreemap::new(), others: Hashes::default() }
    }

    fn contains(&self, value: Kept) -> bool {
        match value {
            Kept::Number(number) => self.numbers.contains(number),
            Kept::Hash(hash) => self.others.contains(hash),
        }
    }

    fn insert(&mut self, value: Kept) {
        match value {
            Kept::Number(number) => self.numbers.insert(number),
            Kept::Hash(hash) => self.others.insert(hash),
        };
    }

    fn remove(&mut self, value: Kept) {
        match value {
            Kept::Number(number) => self.numbers.remove(number),
            Kept::Hash(hash) => self.others.remove(hash),
        };
    }
}

/// Values wanted by several keys. Whole numbers are stored in sets, other values as hashes.
#[derive(Debug, Default)]
pub struct WantedValues {
    /// Each value is stored once: with the first of the keys that want it, in the catalogue's
    /// order.
    wanted: Vec<Wanted>,
    numbers_found: RoaringTreemap,
}

impl WantedValues {
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Returns false if it was already wanted.
    pub fn want(&mut self, bytes: &[u8], by: u32) -> bool {
        let value = Kept::of(bytes);
        let known = self.wanted.iter_mut().find(|wanted| wanted.contains(value));
        let is_new = known.is_none();
        let mut was_found = false;
        if let Some(known) = known {
            if known.by <= by {
                return false;
            }
            was_found = matches!(value, Kept::Hash(hash) if known.others.is_found(hash));
            known.remove(value);
        }
        let at = self.wanted.partition_point(|wanted| wanted.by < by);
        if self.wanted.get(at).is_none_or(|wanted| wanted.by != by) {
            self.wanted.insert(at, Wanted::new(by));
        }
        self.wanted[at].insert(value);
        if was_found {
            self.find(bytes);
        }
        is_new
    }

    /// Marks a value as found, and returns the key that wanted it.
    pub fn find(&mut self, bytes: &[u8]) -> Option<u32> {
        let value = Kept::of(bytes);
        let wanted = self.wanted.iter_mut().find(|wanted| wanted.contains(value))?;
        match value {
            Kept::Number(number) => self.numbers_found.insert(number),
            Kept::Hash(hash) => wanted.others.find(hash),
        };
        Some(wanted.by)
    }

    pub fn is_found(&self, bytes: &[u8]) -> bool {
        match Kept::of(bytes) {
            Kept::Number(number) => self.numbers_found.contains(number),
            Kept::Hash(hash) => self.wanted.iter().any(|wanted| wanted.others.is_found(hash)),
        }
    }

    /// Returns the number of values that were not found.
    pub fn missing(&self) -> u64 {
        let missing = |it: &Wanted| it.numbers.len() + it.others.len() - it.others.found();
        self.wanted.iter().map(missing).sum::<u64>() - self.numbers_found.len()
    }

    /// Returns the memory in use.
    pub fn bytes(&self) -> u64 {
        let bytes = |it: &Wanted| bytes_of(&it.numbers) + it.others.bytes();
        self.wanted.iter().map(bytes).sum::<u64>() + bytes_of(&self.numbers_found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(of: i64) -> Vec<u8> {
        [&8_u32.to_be_bytes()[..], &of.to_be_bytes()].concat()
    }

    proptest! {
        #[test]
        fn numbers_and_hashes_say_the_same(
            wants in prop::collection::vec((0..30_i64, 0..5_u32), 0..60),
            finds in prop::collection::vec(0..40_i64, 0..40),
        ) {
            // Negative numbers are not taken for numbers of a sequence.
            let (mut small, mut hashed) = (WantedValues::default(), WantedValues::default());
            for (of, by) in wants {
                let is_new = small.want(&bytes(of), by);
                prop_assert_eq!(is_new, hashed.want(&bytes(-1 - of), by));
            }
            for of in finds {
                prop_assert_eq!(small.find(&bytes(of)), hashed.find(&bytes(-1 - of)));
                prop_assert_eq!(small.is_found(&bytes(of)), hashed.is_found(&bytes(-1 - of)));
            }
            prop_assert_eq!(small.missing(), hashed.missing());
            prop_assert_eq!(small.is_empty(), hashed.is_empty());
        }
    }
}
