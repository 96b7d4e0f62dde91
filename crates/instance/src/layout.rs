//! Placement of rows: key order is not physical order, and neither an index nor memory is needed to
//! find a row.
//!
//! A Feistel network permutes the smallest power of two that holds a schema's rows; a number that
//! falls outside is permuted again until it falls inside (cycle walking, Black and Rogaway 2002),
//! which takes fewer than two steps on average.

use blockstone_base::rng;

const ROUNDS: usize = 6;

/// A seeded permutation of `0..len`.
#[derive(Clone, Debug)]
pub struct Permutation {
    len: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    pub fn new(len: u64, seed: u64) -> Self {
        let bits = (64 - len.saturating_sub(1).leading_zeros()).max(2);
        let low_bits = bits / 2;
        let mut keys = [0; ROUNDS];
        for (round, key) in (1..).zip(&mut keys) {
            *key = rng::mix(seed ^ rng::mix(round)) | 1;
        }
        let (low_mask, high_mask) = ((1 << low_bits) - 1, (1 << (bits - low_bits)) - 1);
        Self { len, low_bits, low_mask, high_mask, keys }
    }

    /// Returns the place of `index`.
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        self.walk(index, Self::step)
    }

    /// Returns the index at `place`: the inverse permutation.
    pub fn origin(&self, place: u64) -> u64 {
        self.walk(place, Self::step_back)
    }

    #[inline]
    fn walk(&self, from: u64, step: impl Fn(&Self, u64) -> u64) -> u64 {
        debug_assert!(from < self.len, "{from} of {}", self.len);
        let mut value = step(self, from);
        while value >= self.len {
            value = step(self, value);
        }
        value
    }

    fn step_back(&self, value: u64) -> u64 {
        let (mut low, mut high) = (value & self.low_mask, value >> self.low_bits);
        for pair in self.keys.rchunks_exact(2) {
            high ^= round(low, pair[1]) & self.high_mask;
            low ^= round(high, pair[0]) & self.low_mask;
        }
        high << self.low_bits | low
    }

    #[inline]
    fn step(&self, value: u64) -> u64 {
        let (mut low, mut high) = (value & self.low_mask, value >> self.low_bits);
        for pair in self.keys.chunks_exact(2) {
            low ^= round(high, pair[0]) & self.low_mask;
            high ^= round(low, pair[1]) & self.high_mask;
        }
        high << self.low_bits | low
    }
}

/// The upper half of a product depends on every bit of both factors.
#[inline]
fn round(value: u64, key: u64) -> u64 {
    ((value ^ key >> 32).wrapping_mul(key)) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_place_is_taken_once(len in 1_u64..5000, seed: u64) {
            let permutation = Permutation::new(len, seed);
            let mut taken = vec![false; len as usize];
            for index in 0..len {
                let at = permutation.at(index) as usize;
                prop_assert!(!std::mem::replace(&mut taken[at], true), "{at} twice");
                prop_assert_eq!(permutation.origin(at as u64), index);
            }
        }

        #[test]
        fn places_of_a_large_table_are_inside_and_differ(
            len in 1_u64 << 33..1 << 40, seed: u64, index in 0_u64..1 << 33,
        ) {
            let permutation = Permutation::new(len, seed);
            let (here, next) = (permutation.at(index), permutation.at((index + 1) % len));
            prop_assert!(here < len && next < len && here != next);
        }
    }

    #[test]
    fn neighbours_are_scattered() {
        const LEN: u64 = 1 << 16;
        let permutation = Permutation::new(LEN, 42);
        let near =
            (1..LEN).filter(|&i| permutation.at(i).abs_diff(permutation.at(i - 1)) <= 16).count();
        // In a random order each of LEN pairs has a chance of 32 / LEN: 32 in total, give or take
        // six.
        assert!(near < 80, "{near} neighbours within 16 blocks");
        let kept = (0..LEN).filter(|&i| permutation.at(i) == i).count();
        assert!(kept < 12, "{kept} rows stayed where they were");
    }
}
