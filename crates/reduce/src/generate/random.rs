//! Random bytes: nothing repeats and nothing compresses.

use blockstone_base::rng;

use super::{Distinct, Kind, Shape};

pub static KIND: Kind = Kind {
    name: "random",
    doc: "random bytes: nothing repeats and nothing compresses",
    block,
    distinct: Some(|shape| Distinct::unmasked(shape.blocks())),
    quarters: None,
};

fn block(shape: &Shape, file: u32, block: u64, out: &mut [u8]) {
    rng::fill(shape.key(file, block), out);
}
