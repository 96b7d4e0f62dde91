//! One stream of random bytes, from which every file is cut 3,072 bytes later than the previous
//! one: all have the same bytes, but blocks only match where the shift is whole blocks.

use blockstone_base::rng;

use super::{Distinct, Kind, Shape};

pub static KIND: Kind = Kind {
    name: "shifted",
    doc: "the same random bytes in every file, each shifted 3,072 bytes from the one before",
    block,
    distinct: Some(distinct),
    quarters: None,
};

const SHIFT_BYTES: u64 = 3072;

fn block(shape: &Shape, file: u32, block: u64, out: &mut [u8]) {
    let start = block * shape.block_bytes as u64 + u64::from(file) * SHIFT_BYTES;
    stream(shape, start, out);
}

/// Files whose shifts differ by whole blocks share those blocks. As 3,072 is three times a power of
/// two, these are every (block / 1,024)th file, three blocks further on each time.
fn distinct(shape: &Shape) -> Distinct {
    let (files, period) = (u64::from(shape.files), shape.block_bytes as u64 / 1024);
    let step = shape.blocks_per_file.min(3);
    let class = |first: u64| {
        let others = (files - first).div_ceil(period) - 1;
        shape.blocks_per_file + others * step
    };
    let distinct = (0..period.min(files)).map(class).sum();
    Distinct::unmasked(distinct)
}

/// Returns the bytes of the data set's stream from `start` on.
pub(super) fn stream(shape: &Shape, start: u64, out: &mut [u8]) {
    let size = out.len() as u64;
    let (piece, skip) = (start / size, (start % size) as usize);
    let key = |piece| shape.key(u32::MAX, piece);
    if skip == 0 {
        return rng::fill(key(piece), out);
    }
    // Both pieces that the block overlaps are generated whole, the later one directly in `out`.
    let keep = out.len() - skip;
    let mut first = vec![0; out.len()];
    rng::fill(key(piece), &mut first);
    rng::fill(key(piece + 1), &mut out[keep..]);
    out[..keep].copy_from_slice(&first[skip..]);
}
