//! Runs whose plans did not ask the storage to filter.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::percent;
use blockstone_base::verdict::Weight;

use super::OffloadFindings;

const ELIGIBLE_MIN: f64 = 0.01;

const ABOUT: About = About {
    id: "not-offloaded",
    weight: Weight::Warns,
    doc: "The plan of a run left the storage nothing to filter: all bytes crossed the wire, and \
          hosts filtered them.",
    threshold: "Less than 1 % of the bytes that a run read were eligible. Inconclusive where \
                eligible bytes are not counted.",
    cause: "The plan reads through an index or the cache of the database; the condition has a \
            function that the storage does not know; or offloading is switched off.",
    next: "Look at the plan: TABLE ACCESS STORAGE FULL with a storage() predicate, or Remote SQL \
           with the condition in it. Check cell_offload_processing, or that the functions of the \
           condition are immutable and known to the other side.",
};

pub(super) const RULE: RuleOf<OffloadFindings> = RuleOf::new(&ABOUT, check);

fn check(findings: &OffloadFindings) -> Judgement {
    let known = findings.runs.iter().filter(|run| run.read_bytes > 0).filter_map(|run| {
        Some((run.name.clone(), run.eligible_bytes? as f64 / run.read_bytes as f64))
    });
    let known: Vec<(String, f64)> = known.collect();
    if known.is_empty() {
        return Judgement::inconclusive("no run counts eligible bytes");
    }
    let without: Vec<String> =
        known.iter().filter(|(_, it)| *it < ELIGIBLE_MIN).map(|(name, _)| name.clone()).collect();
    let evidence = match without.first() {
        None => {
            let least = known.iter().map(|(_, share)| *share).fold(1.0, f64::min);
            format!("{} of the bytes were eligible at least", percent(least))
        }
        Some(first) => {
            let share = known.iter().find(|(name, _)| name == first).map_or(0.0, |it| it.1);
            let others = match without.len() {
                1 => String::new(),
                count => format!(" (one of {count} runs)"),
            };
            format!("{first}: {} of its bytes were eligible{others}", percent(share))
        }
    };
    Judgement::decide(!without.is_empty(), evidence, without)
}
