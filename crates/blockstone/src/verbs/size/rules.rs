//! The rules for a need for hardware, and for a run that is compared with it.

mod prediction_held;
mod source_saturated;
#[cfg(test)]
mod tests;

use blockstone_base::rule::{Judged, RuleOf};
use blockstone_base::stats::Estimate;

/// All rules, in the order in which their verdicts are listed.
pub const ALL: &[RuleOf<NeedFindings>] = &[source_saturated::RULE, prediction_held::RULE];

/// The distribution of the load over time, and the result of a run of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NeedFindings {
    pub intervals: u64,
    pub seconds: f64,
    /// Share of the time within 1 % of the maximum rate that reached the disks.
    pub at_max_share: Option<f64>,
    /// A run that was compared with the need.
    pub run: Option<RunOfNeed>,
}

/// A run compared with its prediction. Requests are those of the database.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunOfNeed {
    pub predicted_iops: Estimate,
    /// `None` if the run does not know it.
    pub iops: Option<Estimate>,
    pub wanted_latency_ns_p99: Option<f64>,
    /// The p99 of the two measured loads next to it, lower and upper.
    pub predicted_latency_ns_p99: Option<(f64, f64)>,
    pub latency_ns_p99: Option<Estimate>,
}

impl Judged for NeedFindings {
    const VERB: &'static str = "size";
}
