//! All checks, in the order in which they are made.

use blockstone_report::render::json::schema::Tables;

use super::part::Check;
use super::{coherence, direct, durability, iosize, metadata, order};

pub const ALL: &[Check] = &[
    direct::CHECK,
    order::CHECK,
    coherence::CHECK,
    durability::CHECK,
    metadata::CHECK,
    iosize::CHECK,
];

/// The tables of each.
pub const TABLES: &[Tables] = &[
    direct::TABLES,
    order::TABLES,
    coherence::TABLES,
    durability::TABLES,
    metadata::TABLES,
    iosize::TABLES,
];
