//! The rules for a need for hardware, and for a run that is compared with it.

mod prediction_held;
mod source_saturated;
#[cfg(test)]
mod tests;

use blockstone_base::rule::{Judged, RuleOf};
use blockstone_base::stats::Estimate;

/// In the order in which their verdicts are listed.
pub const ALL: &[RuleOf<NeedFindings>] = &[source_saturated::RULE, prediction_held::RULE];

/// How the load was distributed over time, and what a run of it did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NeedFindings {
    pub intervals: u64,
    pub seconds: f64,
    /// The share of the time within 1 % of the maximum of what reached the disks.
    pub at_max_share: Option<f64>,
    /// A run that was held against the need.
    pub run: Option<RunOfNeed>,
}

/// What a run did of what was predicted. Requests are those of the database.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunOfNeed {
    pub predicted_iops: Estimate,
    /// None where the run does not know it.
    pub iops: Option<Estimate>,
    pub wanted_latency_ns_p99: Option<f64>,
    /// Between the p99 of the two measured loads next to it.
    pub predicted_latency_ns_p99: Option<(f64, f64)>,
    pub latency_ns_p99: Option<Estimate>,
}

impl Judged for NeedFindings {
    const VERB: &'static str = "size";
}
