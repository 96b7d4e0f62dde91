//! Rates that moved while they were measured.

use blockstone_base::verdict::Weight;

use super::{Judgement, RunCase, RunRule, percent};

pub(super) const RULE: RunRule = RunRule {
    id: "unsteady",
    weight: Weight::Warns,
    doc: "A rate that kept moving inside the window.",
    threshold: "A 95 % interval wider than ±10 % of the reads, writes, commits or operations a \
                second, where at least 1,000 of them completed.",
    cause: "A device that changes its state (garbage collection, write cache filling, thermal \
            limits), checkpoints that are few in the window, or a neighbour that comes and goes.",
    next: "Use a longer --run-time, and look at the rates over time in the report.",
    check,
};

const MOVEMENT_MAX: f64 = 0.10;
const ENOUGH: u64 = 1_000;
const RATES: [&str; 4] = ["read_iops", "write_iops", "commits_per_s", "operations_per_s"];

fn check(case: &RunCase) -> Judgement {
    let enough = |name: &&'static str| {
        let estimate = case.findings.figure(name)?.estimate;
        (estimate.samples >= ENOUGH).then(move || (*name, estimate.relative_half_width()))
    };
    let widths: Vec<(&str, f64)> = RATES.iter().filter_map(enough).collect();
    let text = |rates: &[(&str, f64)]| {
        let parts = rates.iter().map(|(name, width)| format!("{name} ±{}", percent(*width)));
        parts.collect::<Vec<_>>().join(", ")
    };
    let moved: Vec<(&str, f64)> =
        widths.iter().copied().filter(|(_, width)| *width > MOVEMENT_MAX).collect();
    if widths.is_empty() {
        Judgement::inconclusive("too few I/Os in the window")
    } else if moved.is_empty() {
        Judgement::pass(text(&widths))
    } else {
        Judgement::fail(text(&moved), moved.iter().map(|(name, _)| (*name).to_owned()).collect())
    }
}
