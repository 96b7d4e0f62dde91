//! Data sets whose figures are known before counting, generated block by block as they are read: a
//! block depends only on its data set, its file and its place, so that nothing is stored.
//!
//! A kind is a file here and a line in [`registry::ALL`].
//!
//! ```
//! use blockstone_reduce::generate::{Shape, expected, find};
//!
//! let kind = find("oracle-like").expect("it is registered");
//! let shape = Shape { files: 11, blocks_per_file: 1024, head_blocks: 2, ..Shape::default() };
//! let expected = expected(kind, &shape).expect("it has a closed form");
//! assert_eq!(expected.distinct.plain, 1024 + 10 * 2);
//! ```

pub mod mixed;
pub mod oracle_like;
pub mod oracle_loaded;
pub mod pg_like;
pub mod random;
pub mod registry;
mod sealed;
pub mod shifted;
pub mod slob;
pub mod text;
pub mod zeros;

use blockstone_base::rng;

/// The size and the seed of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub files: u32,
    pub blocks_per_file: u64,
    /// Bytes per block: 2K to 32K.
    pub block_bytes: usize,
    /// Blocks at the beginning of each file that occur nowhere else, in kinds that have them.
    pub head_blocks: u64,
    /// A different seed gives different content.
    pub seed: u64,
}

impl Default for Shape {
    /// The 121 files described at [`Expected`], each at 1/256 of its size.
    fn default() -> Self {
        Self { files: 121, blocks_per_file: 16_384, block_bytes: 8192, head_blocks: 65, seed: 1 }
    }
}

impl Shape {
    pub const fn file_bytes(&self) -> u64 {
        self.blocks_per_file * self.block_bytes as u64
    }

    pub const fn blocks(&self) -> u64 {
        self.files as u64 * self.blocks_per_file
    }

    /// Returns a number for one block of one file of this data set.
    pub const fn key(&self, file: u32, block: u64) -> u64 {
        rng::mix(rng::mix(self.seed ^ rng::mix(file as u64)) ^ block)
    }

    /// Number of distinct blocks if files differ only in their heads.
    pub fn distinct_by_head(&self) -> u64 {
        let others = u64::from(self.files.saturating_sub(1));
        let first = if self.files == 0 { 0 } else { self.blocks_per_file };
        first + others * self.head_blocks.min(self.blocks_per_file)
    }
}

/// Blocks that deduplication must find when it compares whole blocks of the shape's size.
///
/// 121 freshly formatted data files of 32 GiB have 4,194,304 blocks of 8K each. If 8,692 blocks
/// (67.9 MiB) of each occur nowhere else and all others are the same in every file, the ratio is
/// 96.9:1; with 17,384 it is 80.8:1, with 16,750 it is 81.8:1. An array reported 81.8:1 for such
/// files, compression of 3.8:1, and 306.9:1 for both together: 3.75:1, before it is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    pub blocks: u64,
    pub distinct: Distinct,
    /// Quarters of a block that the distinct blocks take, on an array that stores compressed blocks
    /// in steps of a quarter.
    pub quarters: Option<u64>,
}

impl Expected {
    /// Blocks per distinct block.
    pub fn ratio(&self) -> f64 {
        self.blocks as f64 / self.distinct.plain as f64
    }

    /// Blocks per distinct block with fields masked.
    pub fn ratio_masked(&self) -> f64 {
        self.blocks as f64 / self.distinct.masked as f64
    }

    /// Compression in steps of a quarter of a block, at most 4:1.
    pub fn compression_in_quarters(&self) -> Option<f64> {
        Some(self.distinct.plain as f64 * 4.0 / self.quarters? as f64)
    }
}

/// Number of distinct blocks of a data set, zeros included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distinct {
    /// Without any mask.
    pub plain: u64,
    /// With all fields of their format masked.
    pub masked: u64,
}

impl Distinct {
    /// The same number whether or not anything is masked.
    pub const fn unmasked(blocks: u64) -> Self {
        Self { plain: blocks, masked: blocks }
    }
}

#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    pub doc: &'static str,
    /// Generates block `block` of file `file`: writes all of `out`, which is one block long.
    pub block: fn(&Shape, u32, u64, &mut [u8]),
    /// Number of distinct blocks; `None` if it has no closed form.
    pub distinct: Option<fn(&Shape) -> Distinct>,
    /// Quarters of a block that the distinct blocks take when compressed; `None` if unknown.
    pub quarters: Option<fn(&Shape) -> u64>,
}

pub fn find(name: &str) -> Option<&'static Kind> {
    registry::ALL.iter().find(|kind| kind.name == name).copied()
}

/// Fills `out` with the content of file `file` from byte `offset` on; past its end are zeros.
///
/// # Panics
/// If the block size of the shape is not a power of two from 2K to 32K.
pub fn fill(shape: &Shape, kind: &Kind, file: u32, offset: u64, out: &mut [u8]) {
    let size = shape.block_bytes;
    assert!(
        (2048..=32768).contains(&size) && size.is_power_of_two(),
        "a block is 2K to 32K in powers of two, not {size} bytes"
    );
    let (mut whole, mut at, mut out) = (Vec::new(), offset, out);
    while !out.is_empty() {
        let (block, skip) = (at / size as u64, (at % size as u64) as usize);
        let len = out.len().min(size - skip);
        let (part, rest) = out.split_at_mut(len);
        if block >= shape.blocks_per_file {
            part.fill(0);
        } else if len == size {
            (kind.block)(shape, file, block, part);
        } else {
            whole.resize(size, 0);
            (kind.block)(shape, file, block, &mut whole);
            part.copy_from_slice(&whole[skip..skip + len]);
        }
        at += len as u64;
        out = rest;
    }
}

/// Returns the figures of a data set, if its kind has a closed form for them.
pub fn expected(kind: &Kind, shape: &Shape) -> Option<Expected> {
    let quarters = kind.quarters.map(|quarters| quarters(shape));
    Some(Expected { blocks: shape.blocks(), distinct: kind.distinct?(shape), quarters })
}

/// Returns whether this kind has blocks at the beginning of files that occur nowhere else.
pub fn has_head(kind: &Kind) -> bool {
    let shape = Shape { files: 2, blocks_per_file: 8, ..Shape::default() };
    let with = |head_blocks| expected(kind, &Shape { head_blocks, ..shape });
    with(1) != with(2)
}

fn put(block: &mut [u8], at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{self, Fingerprint};
    use crate::mask::{Mask, Masker};
    use crate::page;
    use std::collections::HashSet;

    fn shape(block_bytes: usize) -> Shape {
        Shape { files: 9, blocks_per_file: 40, block_bytes, head_blocks: 5, seed: 7 }
    }

    fn file(shape: &Shape, kind: &Kind, file: u32) -> Vec<u8> {
        let mut bytes = vec![0xee; shape.file_bytes() as usize];
        fill(shape, kind, file, 0, &mut bytes);
        bytes
    }

    /// Counts distinct blocks by keeping all of them: without masks, and with all fields masked.
    fn count(shape: &Shape, kind: &Kind) -> (u64, u64) {
        let (mut plain, mut masked) = (HashSet::new(), HashSet::new());
        for number in 0..shape.files {
            let bytes = file(shape, kind, number);
            let found = page::recognise(&bytes[..65536]);
            let mut units = Vec::new();
            if let Some(found) = found {
                Masker::default().units(&bytes, found, &mut units);
            }
            let per_block = shape.block_bytes / digest::UNIT_BYTES;
            for (index, block) in bytes.chunks(shape.block_bytes).enumerate() {
                let print = digest::block(block);
                plain.insert(print);
                let prints: Vec<Fingerprint> = block
                    .chunks(digest::UNIT_BYTES)
                    .enumerate()
                    .map(|(unit, bytes)| {
                        let parts = units.get(index * per_block + unit).and_then(|u| u.parts);
                        parts.map_or_else(|| digest::block(bytes), |it| it.masked(Mask::ALL))
                    })
                    .collect();
                masked.insert(prints);
            }
        }
        (plain.len() as u64, masked.len() as u64)
    }

    #[test]
    fn counting_every_block_finds_what_is_expected() {
        for block_bytes in [4096, 8192, 16384] {
            let shape = shape(block_bytes);
            for kind in registry::ALL {
                if let Some(expected) = expected(kind, &shape) {
                    let found = count(&shape, kind);
                    let numbers = (expected.distinct.plain, expected.distinct.masked);
                    assert_eq!(found, numbers, "{} at {block_bytes}", kind.name);
                }
            }
        }
    }

    #[test]
    fn a_block_is_the_same_whenever_it_is_made_and_another_with_another_seed() {
        let shape = shape(8192);
        for kind in registry::ALL {
            let whole = file(&shape, kind, 2);
            for (at, len) in [(0, 8192), (100, 5000), (8191, 2), (12_288, 65_536), (327_000, 680)] {
                let mut part = vec![0x55; len];
                fill(&shape, kind, 2, at as u64, &mut part);
                assert!(part == whole[at..at + len], "{} from {at}, {len} bytes", kind.name);
            }
            let other = file(&Shape { seed: 8, ..shape }, kind, 2);
            assert_eq!(other == whole, kind.name == "zeros", "{}", kind.name);
        }
        let mut behind = [1; 700];
        fill(&shape, &random::KIND, 0, shape.file_bytes() - 10, &mut behind);
        assert!(behind[10..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn formats_recognise_what_is_like_their_files_and_nothing_else() {
        for block_bytes in [2048, 4096, 8192, 16384, 32768] {
            let shape = shape(block_bytes);
            for kind in registry::ALL {
                let bytes = file(&shape, kind, 1);
                let found = page::recognise(&bytes[..65536]).map(|it| {
                    let look = |page| (it.format.look)(page, &mut page::Fields::default());
                    let pages = bytes.chunks(it.page_bytes);
                    let unknown = pages.map(look).filter(|&it| it == page::PageUse::Unknown);
                    (it.format.name, it.page_bytes, unknown.count())
                });
                let name = match kind.name {
                    "oracle-like" | "oracle-loaded" | "slob" => Some("Oracle"),
                    "pg-like" => Some("PostgreSQL"),
                    _ => None,
                };
                assert_eq!(found, name.map(|name| (name, block_bytes, 0)), "{}", kind.name);
            }
        }
    }

    #[test]
    fn only_oracle_files_have_a_head() {
        let with: Vec<&str> =
            registry::ALL.iter().filter(|kind| has_head(kind)).map(|kind| kind.name).collect();
        assert_eq!(with, ["oracle-like", "oracle-loaded"]);
    }

    #[test]
    fn the_arithmetic_of_the_121_files() {
        let ratio = |head_blocks| {
            let shape = Shape { blocks_per_file: 4_194_304, head_blocks, ..Shape::default() };
            expected(&oracle_like::KIND, &shape).unwrap().ratio()
        };
        let tenths = |value: f64| (value * 10.0).round() as u64;
        assert_eq!(tenths(ratio(8692)), 969);
        assert_eq!(tenths(ratio(2 * 8692)), 808);
        assert_eq!(tenths(ratio(16_750)), 818);
        assert_eq!(tenths(8692.0 * 8192.0 / f64::from(1 << 20)), 679, "MiB");
        assert_eq!((tenths(80.8 * 3.8), tenths(81.8 * 3.8)), (3070, 3108));
        for dedup in [80.8, 81.8] {
            assert_eq!(tenths(306.9 / dedup), 38, "either ratio fits 3.8, rounded");
        }
        let of = |head_blocks| {
            let shape = Shape { blocks_per_file: 4_194_304, head_blocks, ..Shape::default() };
            let expected = expected(&oracle_like::KIND, &shape).unwrap();
            let compression = expected.compression_in_quarters().unwrap();
            (expected.ratio(), compression, expected.ratio() * compression)
        };
        let (dedup, compression, both) = of(16_750);
        assert_eq!([dedup, compression, both].map(tenths), [818, 38, 3069]);
        assert_eq!(tenths(of(8692).2), 3725, "with the heads that differ byte by byte");
        let stored = 3.8 * 1024.0 / both;
        assert_eq!((stored * 100.0).round() as u64, 1268, "GiB of 3.8 TiB");
        let small = expected(&oracle_like::KIND, &Shape::default()).unwrap();
        assert_eq!(small.distinct.plain, 16_384 + 120 * 65);
        assert_eq!(tenths(small.ratio()), 820, "the scaled files have nearly that ratio");
    }

    #[test]
    fn heads_of_oracle_files_take_the_quarters_that_are_expected() {
        let shape = Shape { files: 3, blocks_per_file: 450, head_blocks: 423, ..shape(8192) };
        let (mut distinct, mut quarters) = (HashSet::new(), 0);
        for number in 0..shape.files {
            for block in file(&shape, &oracle_like::KIND, number).chunks(8192) {
                if distinct.insert(digest::block(block)) {
                    let lz4 = lz4_flex::block::compress(block).len();
                    let zstd = zstd::bulk::compress(block, 1).unwrap().len();
                    assert_eq!(lz4.div_ceil(2048), zstd.div_ceil(2048));
                    quarters += lz4.div_ceil(2048) as u64;
                }
            }
        }
        assert_eq!(expected(&oracle_like::KIND, &shape).unwrap().quarters, Some(quarters));
    }

    #[test]
    fn text_compresses_as_rows_do_and_random_bytes_do_not() {
        let shape = shape(8192);
        let ratio = |kind| {
            let bytes = file(&shape, kind, 3);
            let packed = |block: &[u8]| zstd::bulk::compress(block, 1).unwrap().len();
            bytes.len() as f64 / bytes.chunks(8192).map(packed).sum::<usize>() as f64
        };
        assert!((2.0..3.0).contains(&ratio(&text::KIND)), "{}", ratio(&text::KIND));
        assert!(ratio(&random::KIND) < 1.01);
        assert!(ratio(&slob::KIND) > 20.0);
    }
}
