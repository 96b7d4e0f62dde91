//! Rules for checks of what storage promises; the findings that they judge are defined in the crate
//! `check`.

mod alignment_refused;
mod appends_lost;
mod cached_metadata;
mod flags_contradict_settings;
mod incoherent;
mod lost_after_cut;
mod lying_flush;
mod not_direct;
#[cfg(test)]
mod tests;
mod writers_wait;

use blockstone_base::rule::{self, Listed, RuleOf, judge};
use blockstone_base::verdict::Verdict;
use blockstone_check::coherence::findings::CoherenceFindings;
use blockstone_check::direct::findings::DirectFindings;
use blockstone_check::durability::findings::DurabilityFindings;
use blockstone_check::metadata::findings::MetadataFindings;
use blockstone_check::order::findings::OrderFindings;

pub const DIRECT: &[RuleOf<DirectFindings>] =
    &[not_direct::RULE, flags_contradict_settings::RULE, alignment_refused::RULE];

pub const METADATA: &[RuleOf<MetadataFindings>] = &[cached_metadata::RULE];

pub const COHERENCE: &[RuleOf<CoherenceFindings>] = &[incoherent::RULE];

pub const DURABILITY: &[RuleOf<DurabilityFindings>] = &[lying_flush::RULE, lost_after_cut::RULE];

pub const ORDER: &[RuleOf<OrderFindings>] = &[writers_wait::RULE, appends_lost::RULE];

/// Returns the verdicts on the order of writes; none if nothing was tried.
pub fn judge_order(findings: &OrderFindings) -> Vec<Verdict> {
    if findings.cells.is_empty() { Vec::new() } else { judge(ORDER, findings) }
}

/// Lists the rules of all checks.
pub fn listed() -> Vec<Listed> {
    let paths = rule::listed(DIRECT).chain(rule::listed(ORDER)).chain(rule::listed(COHERENCE));
    paths.chain(rule::listed(METADATA)).chain(rule::listed(DURABILITY)).collect()
}
