//! Chunks cut at positions given by the content, not at multiples of the block size.
//!
//! A copy shifted by a few bytes has no block in common with its original, but nearly all chunks.
//! Data that repeats in chunks but not in blocks is lost to misalignment, and the distance between
//! two places of one chunk is the shift.

use std::collections::HashMap;
use std::sync::LazyLock;

use blockstone_base::rng;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::{self, Fingerprint, UNIT_BYTES};
use crate::sets::{FileId, SetId};
use crate::table::{Location, Occurrence, Table};

/// Minimum length of a chunk, except for the last one of a segment.
pub const CHUNK_BYTES_MIN: usize = 8 << 10;
pub const CHUNK_BYTES_MAX: usize = 64 << 10;
pub const CHUNK_BYTES_MEAN: usize = 16 << 10;

/// Bytes that decide whether a chunk ends after them: a 64-bit sum forgets older bytes.
const WINDOW_BYTES: usize = 64;
/// One position in 8 KiB ends a chunk.
const CUT: u64 = !(u64::MAX >> 13);

static GEAR: LazyLock<[u64; 256]> =
    LazyLock::new(|| std::array::from_fn(|byte| rng::mix(0x6765_6172 ^ rng::mix(byte as u64))));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Offset of the first byte from the start of the segment.
    pub start: u32,
    pub len: u32,
    pub print: Fingerprint,
}

/// Appends the chunks of `segment`, omitting those that consist only of zeros.
pub fn chunks(segment: &[u8], out: &mut Vec<Chunk>) {
    let mut start = 0;
    while start < segment.len() {
        let len = cut(&segment[start..]);
        let bytes = &segment[start..start + len];
        if bytes.iter().any(|&byte| byte != 0) {
            out.push(Chunk { start: start as u32, len: len as u32, print: digest::of(bytes) });
        }
        start += len;
    }
}

fn cut(bytes: &[u8]) -> usize {
    if bytes.len() <= CHUNK_BYTES_MIN {
        return bytes.len();
    }
    let end = bytes.len().min(CHUNK_BYTES_MAX);
    let gear: &[u64; 256] = &GEAR;
    let mut sum = 0_u64;
    for &byte in &bytes[CHUNK_BYTES_MIN - WINDOW_BYTES..CHUNK_BYTES_MIN] {
        sum = (sum << 1).wrapping_add(gear[usize::from(byte)]);
    }
    for (place, &byte) in bytes[CHUNK_BYTES_MIN..end].iter().enumerate() {
        if sum & CUT == 0 {
            return CHUNK_BYTES_MIN + place;
        }
        sum = (sum << 1).wrapping_add(gear[usize::from(byte)]);
    }
    end
}

/// A pair of files in which one holds data of the other, shifted by some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Displacement {
    /// File in which the chunks occurred first.
    pub original: FileId,
    /// File in which they occurred again.
    pub copy: FileId,
    /// Shift in bytes, positive if the copy is further from the beginning of its file.
    pub shift_bytes: i64,
}

/// Displacements counted before the rarest are dropped.
const DISPLACEMENTS_MAX: usize = 1 << 16;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chunks {
    pub(crate) table: Table,
    #[serde(serialize_with = "to_pairs", deserialize_with = "from_pairs")]
    displaced: Displaced,
}

impl Chunks {
    pub fn new(memory_bytes: usize) -> Self {
        let table = Table::new(memory_bytes);
        Self { table, displaced: HashMap::new() }
    }

    /// Returns whether a scan of this many files and bytes can have produced these counts.
    pub(crate) fn is_sound(&self, files: usize, bytes: u64) -> bool {
        let known = |file: FileId| (file as usize) < files;
        let possible = |key: &Displacement| {
            known(key.original) && known(key.copy) && key.shift_bytes.unsigned_abs() <= bytes
        };
        self.table.is_sound()
            && self.displaced.iter().all(|(key, count)| possible(key) && *count <= bytes)
    }

    /// Counts the chunks of the segment that begins at `start_bytes` of `file`.
    pub fn count(&mut self, file: FileId, start_bytes: u64, chunks: &[Chunk]) {
        for chunk in chunks {
            let at = start_bytes + u64::from(chunk.start);
            let share = self.table.share_log2();
            let first = match self.table.see(chunk.print, Location::new(file, at)) {
                Occurrence::Outside => None,
                Occurrence::New(entry) => {
                    // Not a file set, but the length of one occurrence, which the ratio needs.
                    entry.set_set(SetId(chunk.len));
                    None
                }
                Occurrence::Again(entry) => Some(entry.first),
            };
            let now = self.table.share_log2();
            if now != share {
                // Displacements so far were counted in a larger share.
                self.scale(now - share);
            }
            if let Some(first) = first {
                self.displace(first, Location::new(file, at), chunk.len);
            }
        }
    }

    /// Counts the bytes of a copy, unless it is whole units away from its original: blocks find
    /// those too.
    fn displace(&mut self, original: Location, copy: Location, bytes: u32) {
        let shift_bytes = copy.at() as i64 - original.at() as i64;
        if shift_bytes % UNIT_BYTES as i64 != 0 {
            let (original, copy) = (original.file(), copy.file());
            let key = Displacement { original, copy, shift_bytes };
            *self.displaced.entry(key).or_default() += u64::from(bytes);
            self.forget_the_rarest();
        }
    }

    /// Bytes of chunks ÷ bytes of distinct chunks; `None` without chunks.
    pub fn ratio(&self) -> Option<f64> {
        let (mut bytes, mut different) = (0_u128, 0_u128);
        for entry in self.table.entries() {
            let len = u128::from(entry.set().0);
            bytes += len * u128::from(entry.count);
            different += len;
        }
        (different > 0).then(|| bytes as f64 / different as f64)
    }

    /// Displaced bytes, largest first; shifts by multiples of 4 KiB are not included.
    pub fn displacements(&self) -> Vec<(Displacement, u64)> {
        let share = self.table.share_log2();
        let mut all: Vec<_> =
            self.displaced.iter().map(|(key, bytes)| (*key, scaled(*bytes, share))).collect();
        all.sort_unstable_by_key(|&(key, bytes)| (std::cmp::Reverse(bytes), key));
        all
    }

    /// Adds the counts of another scan, whose files are numbered after `files` others.
    pub(crate) fn merge(&mut self, other: &Self, files: FileId) {
        let share = self.table.share_log2().max(other.table.share_log2());
        self.scale(share - self.table.share_log2());
        self.table.shrink_share(share);
        let halvings = share - other.table.share_log2();
        for (key, bytes) in &other.displaced {
            let (original, copy) = (key.original + files, key.copy + files);
            let key = Displacement { original, copy, ..*key };
            *self.displaced.entry(key).or_default() += bytes >> halvings;
        }
        for entry in other.table.entries() {
            let moved = entry.behind(files);
            let before = self.table.share_log2();
            let known = match self.table.add(moved) {
                Occurrence::Again(known) => Some(known.first),
                Occurrence::New(_) | Occurrence::Outside => None,
            };
            self.scale(self.table.share_log2() - before);
            // Its first occurrence in the other scan is one more copy of a chunk known here.
            if let Some(known) = known {
                self.displace(known, moved.first, entry.set().0);
            }
        }
    }

    fn scale(&mut self, halvings: u32) {
        if halvings > 0 {
            self.displaced.values_mut().for_each(|bytes| *bytes >>= halvings);
            self.displaced.retain(|_, bytes| *bytes > 0);
        }
    }

    /// Filler that repeats at every distance creates countless displacements, each of them rare.
    fn forget_the_rarest(&mut self) {
        if self.displaced.len() <= DISPLACEMENTS_MAX {
            return;
        }
        let mut counts: Vec<u64> = self.displaced.values().copied().collect();
        let middle = counts.len() / 2;
        let limit = *counts.select_nth_unstable(middle).1;
        self.displaced.retain(|_, bytes| *bytes > limit);
    }
}

/// Extrapolates bytes counted in a share to the whole hash space.
fn scaled(bytes: u64, share_log2: u32) -> u64 {
    bytes.saturating_mul(1_u64.checked_shl(share_log2).unwrap_or(u64::MAX))
}

type Displaced = HashMap<Displacement, u64>;

/// Serializes a map whose keys are not strings as a list of pairs.
fn to_pairs<S: Serializer>(map: &Displaced, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(map)
}

fn from_pairs<'de, D: Deserializer<'de>>(from: D) -> Result<Displaced, D::Error> {
    Ok(Vec::deserialize(from)?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Entry;

    fn random(seed: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        rng::fill(seed, &mut bytes);
        bytes
    }

    fn count(files: &[&[u8]]) -> Chunks {
        let mut all = Chunks::new(1 << 20);
        for (file, bytes) in files.iter().enumerate() {
            for (index, segment) in bytes.chunks(1 << 20).enumerate() {
                let mut found = Vec::new();
                chunks(segment, &mut found);
                all.count(file as FileId, (index as u64) << 20, &found);
            }
        }
        all
    }

    #[test]
    fn counts_that_no_scan_reaches_neither_overflow_nor_wrap() {
        assert_eq!((scaled(3, 2), scaled(3, 63), scaled(1, 64)), (12, u64::MAX, u64::MAX));
        let mut chunks = Chunks::new(1 << 20);
        for print in 1..4 {
            let mut entry = Entry::new(print << 100, Location::new(0, 0), u32::MAX);
            entry.set_set(SetId(u32::MAX >> 1));
            chunks.table.add(entry);
        }
        assert!((chunks.ratio().unwrap() - f64::from(u32::MAX)).abs() < 1.0);
        let key = Displacement { original: 0, copy: 0, shift_bytes: i64::MIN };
        assert!(chunks.is_sound(1, 1 << 40));
        chunks.displaced.insert(key, 1);
        assert!(!chunks.is_sound(1, 1 << 40));
    }

    #[test]
    fn chunks_cover_a_segment_and_keep_their_limits() {
        let bytes = random(1, 1 << 20);
        let mut found = Vec::new();
        chunks(&bytes, &mut found);
        let mut at = 0;
        for chunk in &found {
            assert_eq!(chunk.start, at);
            at += chunk.len;
            assert!(chunk.len as usize <= CHUNK_BYTES_MAX);
            assert!(chunk.len as usize >= CHUNK_BYTES_MIN || at as usize == bytes.len());
        }
        assert_eq!(at as usize, bytes.len());
        let mean = bytes.len() / found.len();
        assert!((12 << 10..22 << 10).contains(&mean), "{mean}");
    }

    #[test]
    fn a_shifted_copy_is_found_with_its_shift() {
        let original = random(2, 8 << 20);
        for shift in [3072_usize, 1, 700_000] {
            let mut copy = random(3, shift);
            copy.extend_from_slice(&original);
            let all = count(&[&original, &copy]);
            let (found, bytes) = all.displacements()[0];
            let expected = Displacement { original: 0, copy: 1, shift_bytes: shift as i64 };
            assert_eq!(found, expected);
            assert!(bytes > 7 << 20, "{bytes}");
            assert!(all.ratio().unwrap() > 1.8, "{:?}", all.ratio());
        }
    }

    #[test]
    fn an_aligned_copy_and_zeros_are_displaced_by_nothing() {
        let original = random(4, 2 << 20);
        let all = count(&[&original, &original, &vec![0; 1 << 20]]);
        assert!(all.displacements().is_empty());
        assert!((all.ratio().unwrap() - 2.0).abs() < 1e-9);
    }
}
