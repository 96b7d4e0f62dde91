//! Zeros: what was never written.

use super::Kind;

/// Zeros.
pub static KIND: Kind = Kind {
    name: "zeros",
    doc: "zeros only",
    block: |_, _, _, out| out.fill(0),
    distinct: |shape| {
        let one = u64::from(shape.blocks() > 0);
        Some((one, one))
    },
};
