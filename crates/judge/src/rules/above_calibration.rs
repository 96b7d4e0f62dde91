//! Rates that this storage does not have.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;

use super::{RunCase, RunRule, percent};
use crate::run::Efficiency;

const ABOUT: About = About {
    id: "above-calibration",
    weight: Weight::Warns,
    doc: "Rates above the maximum that the calibration of the same path measured.",
    threshold: "More than 1.1 × the calibrated figure, with an interval above that figure. A \
                calibration measures the maximum, so a run cannot exceed it by more than the \
                drift of both.",
    cause: "A cache that served this run but not the calibration, or storage that has changed \
            since.",
    next: "Calibrate the path again and compare; see the other verdicts on caches.",
};

pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check);

const ABOVE_MAX: f64 = 1.10;

fn check(case: &RunCase) -> Judgement {
    let rates = || case.findings.efficiency.iter().filter(|row| row.unit != "ns");
    let above = |row: &&Efficiency| row.ratio.value > ABOVE_MAX && row.ratio.low > 1.0;
    let text = |row: &Efficiency| {
        format!("{} is {} of {}", row.figure, percent(row.ratio.value), row.calibrated_figure)
    };
    let found: Vec<_> = rates().filter(above).collect();
    if !found.is_empty() {
        let evidence: Vec<String> = found.iter().map(|row| text(row)).collect();
        let figures = found.iter().map(|row| row.figure.to_owned()).collect();
        return Judgement::fail(evidence.join("; "), figures);
    }
    match rates().max_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value)) {
        Some(most) => Judgement::pass(text(most)),
        None => Judgement::inconclusive("no recorded calibration of this path to compare with"),
    }
}
