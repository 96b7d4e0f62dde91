//! All checks, in the order in which they are made.

use super::part::Check;

pub const ALL: &[Check] = &[super::direct::CHECK];
