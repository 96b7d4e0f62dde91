//! Values waiting to be fetched by key.

use roaring::RoaringTreemap;

use crate::numbers::{number, value_of};

/// Maximum number of values that are not whole numbers; if there are more, the whole table is read.
const OTHERS: usize = 250_000;
const OTHERS_BYTES: usize = 8 << 20;

#[derive(Default)]
pub struct Pending {
    numbers: RoaringTreemap,
    others: Vec<Box<[u8]>>,
    others_bytes: usize,
    /// Whether there were too many values; then none is kept.
    overflowed: bool,
}

impl Pending {
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn len(&self) -> u64 {
        self.numbers.len() + self.others.len() as u64
    }

    pub fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    pub fn is_empty(&self) -> bool {
        !self.overflowed && self.len() == 0
    }

    /// Keeps a value; overflows beyond `numbers_max` whole numbers.
    pub fn push(&mut self, value: &[u8], numbers_max: u64) {
        if self.overflowed {
            return;
        }
        if let Some(number) = number(value) {
            self.numbers.insert(number);
        } else {
            self.others_bytes += value.len();
            self.others.push(value.into());
        }
        if self.numbers.len() > numbers_max
            || self.others.len() > OTHERS
            || self.others_bytes > OTHERS_BYTES
        {
            *self = Self { overflowed: true, ..Self::default() };
        }
    }

    /// Returns the values in order: neighbours in an index are on the same pages.
    pub fn into_values(mut self) -> impl Iterator<Item = Box<[u8]>> {
        self.others.sort_unstable();
        self.numbers.into_iter().map(value_of).chain(self.others)
    }
}
