//! The kinds of generated data sets.

use super::{Kind, mixed, oracle_like, oracle_loaded, pg_like, random, shifted, slob, text, zeros};

/// All kinds, one per line.
pub const ALL: &[&Kind] = &[
    &oracle_like::KIND,
    &oracle_loaded::KIND,
    &pg_like::KIND,
    &slob::KIND,
    &random::KIND,
    &zeros::KIND,
    &text::KIND,
    &mixed::KIND,
    &shifted::KIND,
];
