//! Zeros, as in space that was never written.

use super::{Distinct, Kind};

pub static KIND: Kind = Kind {
    name: "zeros",
    doc: "zeros only",
    block: |_, _, _, out| out.fill(0),
    distinct: Some(|shape| Distinct::unmasked(u64::from(shape.blocks() > 0))),
    quarters: None,
};
