//! The formats of database pages.

use super::{Format, blockstone, innodb, oracle, postgres, stamped};

/// All formats, the most certain first, one per line.
pub const ALL: &[&Format] =
    &[&blockstone::FORMAT, &stamped::FORMAT, &innodb::FORMAT, &postgres::FORMAT, &oracle::FORMAT];
