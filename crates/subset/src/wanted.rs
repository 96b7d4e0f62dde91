//! Values of a key that taken rows reference.

use roaring::RoaringTreemap;

use crate::hash::value;
use crate::numbers::number;
use crate::shape::ValueMap;

/// A value that a taken row references.
#[derive(Clone, Copy, Debug)]
struct Want {
    /// The key that wanted it first, in the catalogue's order.
    by: u32,
    found: bool,
}

/// Whole numbers are in sets, other values are known by a hash.
#[derive(Default)]
pub struct WantedValues {
    /// By the key that wanted them, in the catalogue's order.
    numbers: Vec<(u32, RoaringTreemap)>,
    numbers_found: RoaringTreemap,
    others: ValueMap<Want>,
}

impl WantedValues {
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.others.is_empty()
    }

    /// False where it was wanted before.
    pub fn want(&mut self, bytes: &[u8], by: u32) -> bool {
        let Some(number) = number(bytes) else {
            let known = self.others.entry(value(bytes));
            let mut is_new = false;
            let want = known.or_insert_with(|| {
                is_new = true;
                Want { by, found: false }
            });
            want.by = want.by.min(by);
            return is_new;
        };
        let mut is_new = true;
        for (of, numbers) in &mut self.numbers {
            if *of <= by && numbers.contains(number) {
                return false;
            }
            is_new &= *of <= by || !numbers.remove(number);
        }
        let at = self.numbers.partition_point(|(of, _)| *of < by);
        if self.numbers.get(at).is_none_or(|(of, _)| *of != by) {
            self.numbers.insert(at, (by, RoaringTreemap::new()));
        }
        self.numbers[at].1.insert(number);
        is_new
    }

    /// The key that wanted a value that is found now.
    pub fn find(&mut self, bytes: &[u8]) -> Option<u32> {
        let Some(number) = number(bytes) else {
            let want = self.others.get_mut(&value(bytes))?;
            want.found = true;
            return Some(want.by);
        };
        let (by, _) = self.numbers.iter().find(|(_, numbers)| numbers.contains(number))?;
        self.numbers_found.insert(number);
        Some(*by)
    }

    pub fn is_found(&self, bytes: &[u8]) -> bool {
        match number(bytes) {
            Some(number) => self.numbers_found.contains(number),
            None => self.others.get(&value(bytes)).is_some_and(|want| want.found),
        }
    }

    /// Values that were not found.
    pub fn missing(&self) -> u64 {
        let numbers: u64 = self.numbers.iter().map(|(_, numbers)| numbers.len()).sum();
        let others = self.others.values().filter(|want| !want.found).count();
        numbers - self.numbers_found.len() + others as u64
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
