//! Freshly formatted Oracle data files: a few unique blocks, then empty ones, which carry only
//! their number, so that all files have the same ones.

use blockstone_base::rng;

use super::sealed::{self, Header};
use super::{Distinct, Kind, Shape, put};

pub static KIND: Kind = Kind {
    name: "oracle-like",
    doc: "freshly formatted Oracle data files: individual headers, then identical empty blocks",
    block,
    distinct: Some(distinct),
    quarters: Some(quarters),
};

/// File header, header of the space map, then the map.
const TYPES: [u8; 3] = [0x0b, 0x1d, 0x1e];

fn block(shape: &Shape, file: u32, block: u64, out: &mut [u8]) {
    if block < shape.head_blocks {
        head(shape, file, block, out);
    } else {
        out.fill(0);
        // No file number: otherwise no two files would have a block in common.
        sealed::seal(out, &Header { kind: 0, address: block as u32, scn: 0, flags: 5 });
    }
}

fn distinct(shape: &Shape) -> Distinct {
    let heads = shape.head_blocks.min(shape.blocks_per_file);
    let is_any_empty = shape.files > 0 && shape.blocks_per_file > heads;
    let masked = u64::from(shape.files) * heads + u64::from(is_any_empty);
    Distinct { plain: shape.distinct_by_head(), masked }
}

/// Of this many blocks of a head …
const HEADS: u64 = 400;
/// … these compress to a half, all others to a quarter, as empty blocks do. An array reported
/// 81.8:1 and 306.9:1 for files whose heads are 33 % of all contents, so that a content takes
/// 2,183.5 bytes of 8,192 on average; if the others take 2,048 bytes, heads take 2,463, which is
/// 0.2025 × 4,096 + 0.7975 × 2,048. The real contents are not known.
const WIDE_HEADS: u64 = 81;
/// Bytes of a block that a compressor needs in addition to those that do not compress.
const OVERHEAD_BYTES: usize = 160;

/// Returns whether a block of a head compresses to a half of its size, not to a quarter. Those are
/// spread evenly.
fn is_wide(block: u64) -> bool {
    block * WIDE_HEADS % HEADS < WIDE_HEADS
}

fn quarters(shape: &Shape) -> u64 {
    let heads = shape.head_blocks.min(shape.blocks_per_file);
    // The first block is wide, and so is each at which b × WIDE_HEADS ÷ HEADS has grown by a whole.
    let wide = heads.checked_sub(1).map_or(0, |last| last * WIDE_HEADS / HEADS + 1);
    distinct(shape).plain + u64::from(shape.files) * wide
}

/// Generates a block of the head of a file, which no other file has: a part of it does not
/// compress.
pub(super) fn head(shape: &Shape, file: u32, block: u64, out: &mut [u8]) {
    let part = out.len() / if is_wide(block) { 2 } else { 4 } - OVERHEAD_BYTES;
    rng::fill(shape.key(file, block), &mut out[..part]);
    out[part..].fill(0);
    put(out, 20, &file.to_le_bytes());
    put(out, 24, &block.to_le_bytes());
    let kind = TYPES[(block as usize).min(TYPES.len() - 1)];
    let header = Header { kind, address: address(file, block), scn: 1000 + block, flags: 4 };
    sealed::seal(out, &header);
}

/// Returns the address of a block of a file; files are numbered from one.
pub(super) const fn address(file: u32, block: u64) -> u32 {
    (file + 1) << 22 | (block as u32 & 0x003f_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_blocks_of_a_head_of_any_length_are_counted() {
        let mut wide = 0;
        for head_blocks in 0..1000 {
            let shape = Shape { files: 1, blocks_per_file: 1000, head_blocks, ..Shape::default() };
            assert_eq!(quarters(&shape), 1000 + wide, "{head_blocks}");
            wide += u64::from(is_wide(head_blocks));
        }
    }
}
