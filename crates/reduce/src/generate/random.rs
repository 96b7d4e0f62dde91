//! Random bytes: nothing repeats and nothing compresses.

use blockstone_base::rng;

use super::{Kind, Shape};

/// Random bytes.
pub static KIND: Kind = Kind {
    name: "random",
    doc: "random bytes: nothing repeats and nothing compresses",
    block,
    distinct: |shape| Some((shape.blocks(), shape.blocks())),
};

fn block(shape: &Shape, file: u32, block: u64, out: &mut [u8]) {
    rng::fill(shape.key(file, block), out);
}
