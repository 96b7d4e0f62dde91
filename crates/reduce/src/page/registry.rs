//! The formats of database pages.

use super::Format;

/// All of them, the most certain first. One line each.
pub const ALL: &[&Format] = &[];
