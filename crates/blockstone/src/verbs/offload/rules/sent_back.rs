//! Rows that storage sent unfiltered because its processors were busy.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::percent;
use blockstone_base::verdict::Weight;

use super::OffloadFindings;

const SENT_BACK_MAX: f64 = 0.01;

const ABOUT: About = About {
    id: "sent-back",
    weight: Weight::Warns,
    doc: "The storage was asked to filter, but sent blocks as they were: its processors were the \
          busier side. These bytes count as eligible and cross the wire all the same.",
    threshold: "1 % of the eligible bytes of a run or more. Inconclusive where it is not counted.",
    cause: "The processors of the storage are the bottleneck: compressed units to unpack, \
            expensive conditions, or many scans at once.",
    next: "Add cells, or filter less at a time: a resource plan limits the scans at once. Rates \
           of such a run are those of hosts that filter.",
};

pub(super) const RULE: RuleOf<OffloadFindings> = RuleOf::new(&ABOUT, check);

fn check(findings: &OffloadFindings) -> Judgement {
    let known = findings.runs.iter().filter_map(|run| {
        let eligible = run.eligible_bytes.filter(|it| *it > 0)?;
        Some((run.name.clone(), run.balanced_bytes? as f64 / eligible as f64))
    });
    let known: Vec<(String, f64)> = known.collect();
    let Some((name, most)) = known.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Judgement::inconclusive("no run counts bytes sent back to balance processors");
    };
    let evidence = format!("{} of the eligible bytes of {name}", percent(*most));
    let failed = known.iter().filter(|(_, it)| *it >= SENT_BACK_MAX);
    let failed: Vec<String> = failed.map(|(name, _)| name.clone()).collect();
    Judgement::decide(!failed.is_empty(), evidence, failed)
}
