//! The rules for a scan: whether its ratios are those of data.

mod block_sampling;
mod compressible_filler;
mod never_used_blocks;
mod shifted_copy;
#[cfg(test)]
mod tests;

use blockstone_base::rule::{Judged, Judgement, Rule};
use blockstone_reduce::findings::{FileNote, Findings};

pub type ScanRule = Rule<fn(&ScanCase) -> Judgement>;

/// All rules, in the order in which their verdicts are listed.
pub const ALL: &[ScanRule] =
    &[never_used_blocks::RULE, compressible_filler::RULE, block_sampling::RULE, shifted_copy::RULE];

pub struct ScanCase<'a> {
    pub findings: &'a Findings,
    pub files: &'a [FileNote],
    /// Whether the scan looked for chunks of variable size.
    pub chunks: bool,
}

impl Judged for ScanCase<'_> {
    const VERB: &'static str = "reduce";
}
