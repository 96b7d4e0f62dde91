//! The formats of database pages.

use super::{Format, blockstone, innodb, oracle, postgres, stamped};

/// All of them, the most certain first. One line each.
pub const ALL: &[&Format] =
    &[&blockstone::FORMAT, &stamped::FORMAT, &innodb::FORMAT, &postgres::FORMAT, &oracle::FORMAT];
