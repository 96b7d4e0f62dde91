//! The rules for a copy: the state in which it leaves the page cache.

mod cache_displaced;
#[cfg(test)]
mod tests;

use blockstone_base::rule::{Judged, RuleOf};

/// All rules, in the order in which their verdicts are listed.
pub const ALL: &[RuleOf<CopyFindings>] = &[cache_displaced::RULE];

/// Bytes that were moved, and bytes of the sources and targets in the page cache. `None` if the
/// kernel does not report them, or keeps the files in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyFindings {
    pub data_bytes: u64,
    pub page_cache_bytes_before: Option<u64>,
    pub page_cache_bytes_after: Option<u64>,
}

impl Judged for CopyFindings {
    const VERB: &'static str = "copy";
}
