//! All checks, in the order in which they run.

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

/// The tables of each check.
pub const TABLES: &[Tables] = &[
    direct::TABLES,
    order::TABLES,
    coherence::TABLES,
    durability::TABLES,
    metadata::TABLES,
    iosize::TABLES,
];
