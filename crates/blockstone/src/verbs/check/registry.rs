//! All checks, in the order in which they run.

use blockstone_report::render::json::schema::Tables;

use super::answer::Check;
use super::{coherence, direct, durability, iosize, metadata, order, report};

pub const ALL: &[Check] = &[
    direct::CHECK,
    order::CHECK,
    coherence::CHECK,
    durability::CHECK,
    metadata::CHECK,
    iosize::CHECK,
];

/// The tables of several checks, and of each.
pub const TABLES: &[Tables] = &[
    report::TABLES,
    direct::TABLES,
    order::TABLES,
    coherence::TABLES,
    durability::TABLES,
    metadata::TABLES,
    iosize::TABLES,
];
