//! Values of a key that taken rows reference.

use roaring::RoaringTreemap;

use crate::hash::value;
use crate::hashes::Hashes;
use crate::numbers::{bytes_of, number};

/// Values that one key wants.
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
}

/// Whole numbers are in sets, other values are known by a hash.
#[derive(Debug, Default)]
pub struct WantedValues {
    /// Each value once: with the first of the keys that want it, in the catalogue's order.
    wanted: Vec<Wanted>,
    numbers_found: RoaringTreemap,
}

impl WantedValues {
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// False where it was wanted before.
    pub fn want(&mut self, bytes: &[u8], by: u32) -> bool {
        let (number, hash) = split(bytes);
        let mut moved = None;
        for wanted in &mut self.wanted {
            let contains = |it: &Wanted| {
                number.map_or_else(|| it.others.contains(hash), |it_is| it.numbers.contains(it_is))
            };
            if !contains(wanted) {
                continue;
            }
            if wanted.by <= by {
                return false;
            }
            moved = Some(wanted.others.is_found(hash));
            match number {
                Some(number) => wanted.numbers.remove(number),
                None => wanted.others.remove(hash),
            };
        }
        let at = self.wanted.partition_point(|wanted| wanted.by < by);
        if self.wanted.get(at).is_none_or(|wanted| wanted.by != by) {
            self.wanted.insert(at, Wanted::new(by));
        }
        let wanted = &mut self.wanted[at];
        match number {
            Some(number) => wanted.numbers.insert(number),
            None => wanted.others.insert(hash),
        };
        if number.is_none() && moved == Some(true) {
            wanted.others.find(hash);
        }
        moved.is_none()
    }

    /// The key that wanted a value that is found now.
    pub fn find(&mut self, bytes: &[u8]) -> Option<u32> {
        let (number, hash) = split(bytes);
        let Some(number) = number else {
            return self.wanted.iter_mut().find_map(|it| it.others.find(hash).then_some(it.by));
        };
        let by = self.wanted.iter().find(|wanted| wanted.numbers.contains(number))?.by;
        self.numbers_found.insert(number);
        Some(by)
    }

    pub fn is_found(&self, bytes: &[u8]) -> bool {
        let (number, hash) = split(bytes);
        match number {
            Some(number) => self.numbers_found.contains(number),
            None => self.wanted.iter().any(|wanted| wanted.others.is_found(hash)),
        }
    }

    /// Values that were not found.
    pub fn missing(&self) -> u64 {
        let missing = |it: &Wanted| it.numbers.len() + it.others.len() - it.others.found();
        self.wanted.iter().map(missing).sum::<u64>() - self.numbers_found.len()
    }

    /// Memory that they take.
    pub fn bytes(&self) -> u64 {
        let bytes = |it: &Wanted| bytes_of(&it.numbers) + it.others.bytes();
        self.wanted.iter().map(bytes).sum::<u64>() + bytes_of(&self.numbers_found)
    }
}

/// The number that a value is, or a hash of one that is none.
fn split(bytes: &[u8]) -> (Option<u64>, u128) {
    let number = number(bytes);
    (number, if number.is_some() { 0 } else { value(bytes) })
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
            // Negative numbers are no numbers of a sequence.
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
