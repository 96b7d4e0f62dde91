//! Sets of numbers that take little memory if the numbers are close together.

use std::collections::BTreeSet;
use std::ops::Range;

use roaring::RoaringTreemap;

/// Whole numbers below this are taken for those of a sequence. Above it are times, hashes and text.
const SEQUENCE_END: u64 = 1 << 40;
/// Locators below this are positions of rows, which are close together. Above it are hashes.
const PLACES_END: u64 = 1 << 61;
/// Bytes per entry of a tree that is filled in arbitrary order.
const TREE_BYTES: u64 = 14;

/// Sorted locators of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Locators {
    near: RoaringTreemap,
    others: BTreeSet<u64>,
}

impl Locators {
    /// Returns false if it was already present.
    pub fn insert(&mut self, locator: u64) -> bool {
        if locator < PLACES_END { self.near.insert(locator) } else { self.others.insert(locator) }
    }

    pub fn contains(&self, locator: u64) -> bool {
        self.near.contains(locator) || self.others.contains(&locator)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> u64 {
        self.near.len() + self.others.len() as u64
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.range(0..u64::MAX).chain(self.others.last().copied().filter(|last| *last == u64::MAX))
    }

    pub fn range(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        let mut near = self.near.iter();
        near.advance_to(range.start);
        let near = near.take_while(move |locator| *locator < range.end);
        near.chain(self.others.range(range).copied())
    }

    /// Returns the memory in use.
    pub fn bytes(&self) -> u64 {
        bytes_of(&self.near) + self.others.len() as u64 * TREE_BYTES
    }
}

/// Returns the memory that a set takes: its lists have room for up to twice their contents.
pub fn bytes_of(numbers: &RoaringTreemap) -> u64 {
    2 * numbers.serialized_size() as u64
}

/// Returns the number that a key value represents: one field of eight bytes, and not a large one.
pub fn number(value: &[u8]) -> Option<u64> {
    let number = value.strip_prefix(&8_u32.to_be_bytes()[..])?.try_into().ok()?;
    Some(u64::from_be_bytes(number)).filter(|number| *number < SEQUENCE_END)
}

/// Returns the key value that represents this number.
pub fn value_of(number: u64) -> Box<[u8]> {
    [8_u32.to_be_bytes().as_slice(), &number.to_be_bytes()].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_number_only_if_it_is_one_small_field_of_eight_bytes() {
        let value = |field: &[u8]| [&(field.len() as u32).to_be_bytes()[..], field].concat();
        assert_eq!(number(&value(&17_i64.to_be_bytes())), Some(17));
        assert_eq!(*value_of(17), *value(&17_i64.to_be_bytes()));
        assert_eq!(number(&value(&(-1_i64).to_be_bytes())), None);
        assert_eq!(number(&value(b"eight by")), None);
        assert_eq!(number(&value(b"17")), None);
        assert_eq!(number(&[value(&[0; 8]), value(&[0; 8])].concat()), None);
    }

    #[test]
    fn locators_are_in_order_wherever_they_lie() {
        let mut all = Locators::default();
        for locator in [PLACES_END + 5, 7, u64::MAX, 3] {
            assert!(all.insert(locator) && !all.insert(locator));
        }
        assert_eq!(all.len(), 4);
        assert_eq!(all.iter().collect::<Vec<_>>(), [3, 7, PLACES_END + 5, u64::MAX]);
        assert_eq!(all.range(4..PLACES_END + 6).collect::<Vec<_>>(), [7, PLACES_END + 5]);
        assert!(all.contains(u64::MAX) && !all.contains(4));
    }
}
