//! Keyed permutations: different values stay different, and the same key yields the same result.
//!
//! A domain of at least a million values is permuted by FF1 of NIST SP 800-38G with AES-256. FF1
//! takes strings of digits in one radix: a value is numbered within its domain, the number written
//! in the smallest radix whose strings suffice, and a result outside of the domain is permuted
//! again (cycle walking). FF1 is not defined for smaller domains. Their values are sorted by their
//! images under AES-256: the prefix cipher of Black and Rogaway, "Ciphers with arbitrary finite
//! domains", 2002.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use aes::Aes256Enc;
use aes::cipher::BlockCipherEncrypt;
use fpe::ff1::{FF1, FlexibleNumeralString};
use hmac::{Hmac, KeyInit, Mac};
use num_bigint::BigUint;
use sha2::Sha256;

/// Smallest domain for which SP 800-38G revision 1 allows FF1.
const FF1_MIN: u32 = 1_000_000;
/// Bits of a digit of FF1: its radix is at most 2^16.
const DIGIT_BITS: u64 = 16;
/// The domain has at most 13 % fewer values than strings of four digits or more: hardly any value
/// is permuted twice.
const DIGITS_MIN: u64 = 4;
/// Maximum number of digits that are permuted at once: the time to number them grows with their
/// square.
const PIECE: usize = 256;

/// The keys that are derived from a secret key for one purpose.
pub struct Keyed {
    mac: Hmac<Sha256>,
    ff1: [u8; 32],
    prefix: Aes256Enc,
    /// The permutations of small domains, by their number of values.
    tables: RwLock<BTreeMap<u32, Arc<[u32]>>>,
}

impl Keyed {
    /// Derives the keys for a purpose. Results for different purposes are independent.
    pub fn new(key: &[u8], purpose: &str) -> Self {
        // HMAC takes a key of any length, and replaces a long one by its hash.
        let mut block = [0; 64];
        let hashed = <Sha256 as sha2::Digest>::digest(key);
        let key = if key.len() > block.len() { hashed.as_slice() } else { key };
        block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        let mut mac = Hmac::new(&block.into());
        mac.update(&(purpose.len() as u64).to_le_bytes());
        mac.update(purpose.as_bytes());
        // Three parts: one or two, which `number` hashes, would show a part of the key in place of
        // a value that has its name.
        let derived = |of: &[u8]| hash(&mac, &[b"key", b"of", of]);
        let (ff1, prefix) = (derived(b"FF1"), Aes256Enc::new(&derived(b"prefix").into()));
        Self { mac, ff1, prefix, tables: RwLock::default() }
    }

    pub fn number(&self, parts: &[&[u8]]) -> u64 {
        let mut number = [0; 8];
        number.iter_mut().zip(hash(&self.mac, parts)).for_each(|(to, from)| *to = from);
        u64::from_le_bytes(number)
    }

    /// Returns the image of `value` in a permutation of `0..size`; `None` for a value outside.
    pub fn permute(&self, value: u64, size: u64) -> Option<u64> {
        if value >= size {
            return None;
        }
        self.permute_below(value.into(), &size.into(), b"")?.try_into().ok()
    }

    /// Permutes all sequences of digits with these radices; `shape` selects the permutation.
    pub fn permute_digits(&self, digits: &mut [u32], radices: &[u32], shape: &[u8]) -> Option<()> {
        let pieces = digits.len().div_ceil(PIECE);
        let range = |piece| digits.len() * piece / pieces..digits.len() * (piece + 1) / pieces;
        let ranges: Vec<_> = (0..pieces).map(range).collect();
        let shape = hash(&self.mac, &[shape]);
        let mut sums: Vec<[u8; 32]> =
            ranges.iter().map(|range| self.sum(&digits[range.clone()])).collect();
        for (piece, range) in ranges.into_iter().enumerate() {
            // The tweak of a piece is a hash of all others, so that each depends on all of them.
            // The others do not change meanwhile, so the steps can be undone in reverse order and
            // the whole is a permutation.
            sums[piece] = [0; 32];
            let number = (piece as u64).to_le_bytes();
            let tweak = hash(&self.mac, &[&shape, &number, sums.as_flattened()]);
            self.permute_piece(&mut digits[range.clone()], radices.get(range.clone())?, &tweak)?;
            sums[piece] = self.sum(&digits[range]);
        }
        Some(())
    }

    fn sum(&self, digits: &[u32]) -> [u8; 32] {
        let bytes: Vec<u8> = digits.iter().flat_map(|digit| digit.to_le_bytes()).collect();
        hash(&self.mac, &[&bytes])
    }

    fn permute_piece(&self, digits: &mut [u32], radices: &[u32], tweak: &[u8]) -> Option<()> {
        let (mut number, mut size) = (BigUint::ZERO, BigUint::from(1_u32));
        for (digit, radix) in digits.iter().zip(radices) {
            number = number * *radix + *digit;
            size *= *radix;
        }
        let number = self.permute_below(number, &size, tweak)?;
        unrank(number, digits.iter_mut().zip(radices.iter().copied()))
    }

    /// Returns the image of `number` in a permutation of `0..size`; `tweak` selects it if the
    /// domain is large enough for FF1.
    fn permute_below(&self, number: BigUint, size: &BigUint, tweak: &[u8]) -> Option<BigUint> {
        if let Some(size) = u32::try_from(size).ok().filter(|size| *size < FF1_MIN) {
            let at = usize::try_from(number).ok()?;
            return self.table(size).get(at).map(|image| BigUint::from(*image));
        }
        let count = size.bits().div_ceil(DIGIT_BITS).max(DIGITS_MIN);
        let root = (size - 1_u32).nth_root(u32::try_from(count).ok()?);
        let radix = u32::try_from(root).ok()? + 1;
        let mut digits = vec![0; count as usize];
        unrank(number, digits.iter_mut().map(|digit| (digit, radix)))?;
        // Ends: the images of a number form a cycle, and the number itself is below `size`.
        loop {
            digits = ff1(&self.ff1, radix, tweak, digits)?;
            let ranked = digits.iter().fold(BigUint::ZERO, |sum, digit| sum * radix + *digit);
            if ranked < *size {
                return Some(ranked);
            }
        }
    }

    /// Returns the permutation of a small domain.
    fn table(&self, size: u32) -> Arc<[u32]> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(&size) {
            return Arc::clone(table);
        }
        drop(tables);
        let number = |value: u32| (u128::from(size) << 64 | u128::from(value)).to_le_bytes().into();
        let mut images: Vec<aes::Block> = (0..size).map(number).collect();
        self.prefix.encrypt_blocks(&mut images);
        let mut order: Vec<(aes::Block, u32)> = images.into_iter().zip(0..).collect();
        order.sort_unstable();
        let mut table = vec![0; size as usize];
        for (rank, (_, value)) in (0..).zip(order) {
            table[value as usize] = rank;
        }
        let table = Arc::from(table);
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(tables.entry(size).or_insert(table))
    }
}

fn ff1(key: &[u8; 32], radix: u32, tweak: &[u8], digits: Vec<u16>) -> Option<Vec<u16>> {
    let ff1 = FF1::<Aes256Enc>::new(key, radix).ok()?;
    ff1.encrypt(tweak, &FlexibleNumeralString::from(digits)).ok().map(Vec::from)
}

fn hash(mac: &Hmac<Sha256>, parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = mac.clone();
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Writes a number as digits, each with its radix, the most significant first.
fn unrank<'a, D: TryFrom<BigUint> + 'a>(
    mut number: BigUint,
    digits: impl DoubleEndedIterator<Item = (&'a mut D, u32)>,
) -> Option<()> {
    for (digit, radix) in digits.rev() {
        *digit = (&number % radix).try_into().ok()?;
        number /= radix;
    }
    Some(())
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
            let seen: BTreeSet<u64> =
                (0..size).map(|value| keyed.permute(value, size).unwrap()).collect();
            prop_assert_eq!(seen, (0..size).collect::<BTreeSet<u64>>());
            prop_assert_eq!(keyed.permute(size, size), None);
        }

        #[test]
        fn what_ff1_permutes_stays_inside_and_distinct(
            size in u64::from(FF1_MIN)..1 << 63,
            values in prop::collection::btree_set(0_u64..1 << 63, 1..40),
            key: [u8; 16],
        ) {
            let keyed = Keyed::new(&key, "test");
            let values: BTreeSet<u64> = values.into_iter().map(|value| value % size).collect();
            let seen: BTreeSet<u64> =
                values.iter().map(|value| keyed.permute(*value, size).unwrap()).collect();
            prop_assert_eq!(seen.len(), values.len());
            prop_assert!(seen.iter().all(|value| *value < size));
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
                keyed.permute_digits(&mut digits, &radices, b"shape").unwrap();
                prop_assert!(digits.iter().zip(&radices).all(|(digit, radix)| digit < radix));
                seen.insert(digits);
            }
            prop_assert_eq!(seen.len(), count as usize);
        }
    }

    /// Samples 7 to 9 of "Block Cipher Modes of Operation: FF1 Method for Format-Preserving
    /// Encryption" by NIST, those for AES-256.
    #[test]
    fn ff1_gives_what_nist_gives() {
        let key: [u8; 32] = [
            0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf,
            0x4f, 0x3c, 0xef, 0x43, 0x59, 0xd8, 0xd5, 0x80, 0xaa, 0x4f, 0x7f, 0x03, 0x6d, 0x6f,
            0x04, 0xfc, 0x6a, 0x94,
        ];
        let samples = [
            (10, "", "0123456789", "6657667009"),
            (10, "9876543210", "0123456789", "1001623463"),
            (36, "7777pqrs777", "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"),
        ];
        for (radix, tweak, plain, cipher) in samples {
            let plain = plain.chars().map(|digit| digit.to_digit(radix).unwrap() as u16);
            let image = ff1(&key, radix, tweak.as_bytes(), plain.collect()).unwrap();
            let image = image.iter().map(|digit| char::from_digit((*digit).into(), radix).unwrap());
            assert_eq!(image.collect::<String>(), cipher, "{tweak}");
        }
    }

    #[test]
    fn a_permutation_of_64_bits_moves_its_ends() {
        let keyed = Keyed::new(b"key", "test");
        let ends = [0, 1, u64::MAX / 2, u64::MAX - 2];
        let moved = ends.map(|end| keyed.permute(end, u64::MAX).unwrap());
        assert_eq!(BTreeSet::from(moved).len(), ends.len());
        assert!(ends.iter().all(|end| !moved.contains(end)));
        let other = Keyed::new(b"key", "other");
        assert_ne!(keyed.permute(7, 1 << 63), other.permute(7, 1 << 63));
    }

    #[test]
    fn all_of_a_long_text_depends_on_each_place_of_it() {
        let keyed = Keyed::new(b"key", "test");
        let radices = [26; 3 * PIECE];
        let permuted = |place: Option<usize>| {
            let mut digits = [7; 3 * PIECE];
            if let Some(place) = place {
                digits[place] = 8;
            }
            keyed.permute_digits(&mut digits, &radices, b"shape").unwrap();
            assert!(digits.iter().all(|digit| *digit < 26));
            digits
        };
        let first = permuted(None);
        for place in [0, PIECE, 3 * PIECE - 1] {
            let other = permuted(Some(place));
            for (one, other) in first.chunks(PIECE).zip(other.chunks(PIECE)) {
                let equal = one.iter().zip(other).filter(|(one, other)| one == other).count();
                assert!(equal < PIECE / 8, "{equal} of {PIECE} with another digit at {place}");
            }
        }
    }

    #[test]
    fn long_keys_are_taken_whole() {
        let long = Keyed::new(&[7; 200], "test");
        assert_ne!(long.number(&[b"a"]), Keyed::new(&[7; 64], "test").number(&[b"a"]));
    }
}
