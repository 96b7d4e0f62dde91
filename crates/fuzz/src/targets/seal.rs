//! Checksums recomputed after a mutation.

use xxhash_rust::xxh3::xxh3_64;

const MARK: &[u8] = b"xxh3-64:";
const DIGITS: usize = 16;

/// Recomputes the checksum of a Parquet file of ours; the last mark counts.
pub fn parquet(input: &[u8]) -> Vec<u8> {
    let at = input.windows(MARK.len()).rposition(|window| window == MARK);
    fill(input, at)
}

/// Recomputes the checksum of a document.
pub fn document(input: &[u8]) -> Vec<u8> {
    let key = [b"\"checksum\":\"", MARK].concat();
    let at = input.windows(key.len()).position(|window| window == key);
    fill(input, at.map(|at| at + key.len() - MARK.len()))
}

fn fill(input: &[u8], mark: Option<usize>) -> Vec<u8> {
    let mut sealed = input.to_vec();
    let digits = mark.map(|at| at + MARK.len()..at + MARK.len() + DIGITS);
    if let Some(digits) = digits.filter(|digits| digits.end <= sealed.len()) {
        sealed[digits.clone()].fill(b'0');
        let sum = format!("{:016x}", xxh3_64(&sealed));
        sealed[digits].copy_from_slice(sum.as_bytes());
    }
    sealed
}

/// Puts a little-endian word at `at`, if it fits.
pub fn put(bytes: &mut [u8], at: usize, word: u64) {
    if let Some(place) = bytes.get_mut(at..at + 8) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}
