//! The rules for the content of a trace of statements.

#[cfg(test)]
mod tests;
mod trace_truncated;
mod unaccounted_time;

use blockstone_base::rule::{Judged, RuleOf};

/// All rules, in the order in which their verdicts are listed.
pub const ALL: &[RuleOf<TraceFindings>] = &[trace_truncated::RULE, unaccounted_time::RULE];

/// Input to the rules; times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TraceFindings {
    /// Response time that the profile divides into components.
    pub response_ns: f64,
    /// Time that no component explains; `None` if the log does not have processor time, or no
    /// components at all: then the remainder is not a fault.
    pub unaccounted_ns: Option<f64>,
    /// Uncertainty of the sum of the components due to clock ticks.
    pub uncertain_ns: f64,
    /// Files that end inside a line or a call, or that could not be read to their end.
    pub cut_files: u64,
    pub skipped_lines: u64,
    pub lines: u64,
}

impl Judged for TraceFindings {
    const VERB: &'static str = "trace";
}
