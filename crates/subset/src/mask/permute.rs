//! Keyed permutations: different values stay different, and the same key yields the same result.
//!
//! Both are Feistel networks whose round function is HMAC-SHA-256: each round adds to one half a
//! function of the other, so that it can be undone whatever that function is.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The same number as in FF3-1.
const ROUNDS: u8 = 8;

/// HMAC-SHA-256 under a key, for one purpose.
#[derive(Clone)]
pub struct Keyed(Hmac<Sha256>);

impl Keyed {
    /// Derives the key for a purpose. Results for different purposes are independent.
    pub fn new(key: &[u8], purpose: &str) -> Self {
        // HMAC takes a key of any length, and replaces a long one by its hash.
        let mut block = [0; 64];
        let hashed = <Sha256 as sha2::Digest>::digest(key);
        let key = if key.len() > block.len() { hashed.as_slice() } else { key };
        block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        let mut mac = Hmac::new(&block.into());
        mac.update(&(purpose.len() as u64).to_le_bytes());
        mac.update(purpose.as_bytes());
        Self(mac)
    }

    pub fn hash(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    pub fn number(&self, parts: &[&[u8]]) -> u64 {
        let mut number = [0; 8];
        number.iter_mut().zip(self.hash(parts)).for_each(|(to, from)| *to = from);
        u64::from_le_bytes(number)
    }

    /// Returns the image of `value` in a permutation of `0..size`; a value outside is unchanged.
    pub fn permute(&self, value: u64, size: u64) -> u64 {
        if value >= size || size < 2 {
            return value;
        }
        let bits = u64::BITS - (size - 1).leading_zeros();
        let mut at = value;
        // Cycle walking terminates: it follows a cycle that returns to `value`. It takes fewer than
        // two steps on average, because more than half of the numbers of this many bits are below
        // `size`.
        loop {
            at = self.permute_bits(at, bits, size);
            if at < size {
                return at;
            }
        }
    }

    /// Permutes all numbers of `bits` bits.
    fn permute_bits(&self, value: u64, bits: u32, size: u64) -> u64 {
        let low_bits = bits / 2;
        let low_mask = (1 << low_bits) - 1;
        let high_mask = (1 << (bits - low_bits)) - 1;
        let (mut low, mut high) = (value & low_mask, value >> low_bits);
        for round in 0..ROUNDS {
            let (from, to, mask) = if round % 2 == 0 {
                (low, &mut high, high_mask)
            } else {
                (high, &mut low, low_mask)
            };
            let parts = [&[round][..], &size.to_le_bytes(), &from.to_le_bytes()];
            *to ^= self.number(&parts) & mask;
        }
        high << low_bits | low
    }

    /// Permutes all sequences of digits with these radices; `shape` selects the permutation.
    pub fn permute_digits(&self, digits: &mut [u32], radices: &[u32], shape: &[u8]) {
        if let ([digit], [radix]) = (&mut *digits, radices) {
            let place = Self(self.with(shape));
            *digit = place.permute(u64::from(*digit), u64::from(*radix)) as u32;
            return;
        }
        let middle = digits.len() / 2;
        let (low, high) = digits.split_at_mut(middle);
        let (low_radices, high_radices) = radices.split_at(middle.min(radices.len()));
        for round in 0..ROUNDS {
            if round % 2 == 0 {
                self.add(high, high_radices, low, round, shape);
            } else {
                self.add(low, low_radices, high, round, shape);
            }
        }
    }

    fn with(&self, part: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
        mac
    }

    /// Adds to each digit of `to`, modulo its radix, a function of all digits of `from`.
    fn add(&self, to: &mut [u32], radices: &[u32], from: &[u32], round: u8, shape: &[u8]) {
        let bytes: Vec<u8> = from.iter().flat_map(|digit| digit.to_le_bytes()).collect();
        let seed = self.hash(&[&[round], shape, &bytes]);
        let mut block = [0; 32];
        for (number, (digit, &radix)) in to.iter_mut().zip(radices).enumerate() {
            // Four bytes per digit: the bias of the remainder is below 2^-24.
            let at = number % 8 * 4;
            if at == 0 {
                block = self.hash(&[&seed, &((number / 8) as u64).to_le_bytes()]);
            }
            let drawn =
                block[at..at + 4].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
            let radix = u64::from(radix.max(1));
            *digit = ((u64::from(*digit) + drawn) % radix) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn every_size_is_permuted(size in 1_u64..200, key: [u8; 16]) {
            let keyed = Keyed::new(&key, "test");
            let seen: BTreeSet<u64> = (0..size).map(|value| keyed.permute(value, size)).collect();
            prop_assert_eq!(seen, (0..size).collect::<BTreeSet<u64>>());
        }

        #[test]
        fn all_rows_of_digits_are_permuted(
            radices in prop::collection::vec(1_u32..6, 1..5),
            key: [u8; 16],
        ) {
            let keyed = Keyed::new(&key, "test");
            let count: u32 = radices.iter().product();
            let mut seen = BTreeSet::new();
            for number in 0..count {
                let mut rest = number;
                let mut digits: Vec<u32> = Vec::new();
                for radix in &radices {
                    digits.push(rest % radix);
                    rest /= radix;
                }
                keyed.permute_digits(&mut digits, &radices, b"shape");
                prop_assert!(digits.iter().zip(&radices).all(|(digit, radix)| digit < radix));
                seen.insert(digits);
            }
            prop_assert_eq!(seen.len(), count as usize);
        }
    }

    #[test]
    fn a_permutation_of_64_bits_moves_its_ends() {
        let keyed = Keyed::new(b"key", "test");
        let ends = [0, 1, u64::MAX / 2, u64::MAX - 2];
        let moved: BTreeSet<u64> = ends.iter().map(|end| keyed.permute(*end, u64::MAX)).collect();
        assert_eq!(moved.len(), ends.len());
        assert!(ends.iter().all(|end| !moved.contains(end)));
        let other = Keyed::new(b"key", "other");
        assert_ne!(keyed.permute(7, 1 << 63), other.permute(7, 1 << 63));
    }

    #[test]
    fn long_keys_are_taken_whole() {
        let long = Keyed::new(&[7; 200], "test");
        assert_ne!(long.number(&[b"a"]), Keyed::new(&[7; 64], "test").number(&[b"a"]));
    }
}
