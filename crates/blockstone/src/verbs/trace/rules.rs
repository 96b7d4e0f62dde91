//! The rules for a trace of statements: what it contains.

#[cfg(test)]
mod tests;
mod trace_truncated;
mod unaccounted_time;

use blockstone_base::rule::{Judged, RuleOf};

/// In the order in which their verdicts are listed.
pub const ALL: &[RuleOf<TraceFindings>] = &[trace_truncated::RULE, unaccounted_time::RULE];

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TraceFindings {
    /// Response time that the profile divides.
    pub response_ns: f64,
    /// What no component explains; none where the log does not have processor time, or no
    /// components at all: then the remainder is no fault.
    pub unaccounted_ns: Option<f64>,
    /// How uncertain clock ticks make the sum of the components.
    pub uncertain_ns: f64,
    /// Files that end inside a line or a call, or that could not be read to their end.
    pub cut_files: u64,
    pub skipped_lines: u64,
    pub lines: u64,
}

impl Judged for TraceFindings {
    const VERB: &'static str = "trace";
}
