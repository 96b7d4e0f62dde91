//! Returned ÷ eligible in runs in which little was eligible.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::percent;
use blockstone_base::verdict::Weight;

use super::{OffloadFindings, OffloadRun};

const ELIGIBLE_MIN: f64 = 0.2;
/// Maximum number of runs that the evidence names.
const NAMED: usize = 5;

const ABOUT: About = About {
    id: "ratio-misleading",
    weight: Weight::Condemns,
    doc: "The ratio of bytes returned to bytes eligible says how well storage filters what it \
          may filter. Where it may filter little, the ratio says nothing of what was saved: 2 % \
          returned of 5 % eligible saves 5 % of the bytes, not 98 %.",
    threshold: "Less than 20 % of the bytes of a run were eligible.",
    cause: "Most reads are no full scans by direct path: single blocks through the cache, undo, \
            backups, or statements that the storage cannot filter.",
    next: "Use what was saved of all bytes. Find the statements that read most and see whether \
           their plans can be offloaded.",
};

pub(super) const RULE: RuleOf<OffloadFindings> = RuleOf::new(&ABOUT, check);

fn check(findings: &OffloadFindings) -> Judgement {
    let has_ratio = |run: &&OffloadRun| run.returned_bytes.is_some() && run.read_bytes > 0;
    let eligible = |run: &OffloadRun| run.eligible_bytes.filter(|it| *it > 0);
    let known = findings.runs.iter().filter(has_ratio);
    let known = known
        .filter_map(|run| Some((run.name.clone(), eligible(run)? as f64 / run.read_bytes as f64)));
    let known: Vec<(String, f64)> = known.collect();
    let least = known.iter().map(|(_, share)| *share).min_by(f64::total_cmp);
    let Some(least) = least else {
        return Judgement::inconclusive("no run has bytes eligible and returned");
    };
    let little: Vec<&(String, f64)> = known.iter().filter(|(_, it)| *it < ELIGIBLE_MIN).collect();
    let evidence = if little.is_empty() {
        format!("{} of the bytes were eligible at least", percent(least))
    } else {
        let named = little.iter().take(NAMED);
        let named: Vec<String> =
            named.map(|(name, share)| format!("{} of {name}", percent(*share))).collect();
        format!("eligible: {} ({} of {} runs)", named.join(", "), little.len(), known.len())
    };
    let concerns = little.iter().map(|(name, _)| name.clone()).collect();
    Judgement::decide(!little.is_empty(), evidence, concerns)
}
