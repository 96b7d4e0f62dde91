//! The rules for a copy: what it left behind.

mod cache_displaced;
#[cfg(test)]
mod tests;

use blockstone_base::rule::{Judged, RuleOf};

/// In the order in which their verdicts are listed.
pub const ALL: &[RuleOf<CopyFindings>] = &[cache_displaced::RULE];

/// Bytes that were moved, and what the page cache held of the sources and targets. None where the
/// kernel does not tell, or keeps the files in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyFindings {
    pub data_bytes: u64,
    pub page_cache_bytes_before: Option<u64>,
    pub page_cache_bytes_after: Option<u64>,
}

impl Judged for CopyFindings {
    const VERB: &'static str = "copy";
}
