//! Latency and rate that contradict each other.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;

use super::{RunCase, RunRule, percent, time};

const ABOUT: About = About {
    id: "littles-law",
    weight: Weight::Warns,
    doc: "In a closed loop, sessions ÷ operations per second, less the think time, must equal the \
          mean latency (J. D. C. Little, 1961).",
    threshold: "More than 5 % apart: sessions spent time outside of operations.",
    cause: "Sessions that could not run between two operations (too few processors), or \
            operations so long that few ended in the window.",
    next: "Use a longer --for or fewer sessions.",
};

pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check);

const APART_MAX: f64 = 0.05;

fn check(case: &RunCase) -> Judgement {
    let Some(law) = case.findings.littles_law.first() else {
        return Judgement::inconclusive(if case.window.scans() {
            "the reads of a scan overlap, so the law does not apply to its sessions"
        } else if case.window.writes_tables() {
            "the window cuts tables in two, so their number is not exact enough"
        } else {
            "the sessions did not run in a closed loop"
        });
    };
    let evidence = format!(
        "{} sessions ÷ {:.0} {}/s = {}, measured {} ({})",
        law.sessions,
        law.per_s,
        law.what,
        time(law.expected_ns),
        time(law.measured_ns),
        percent(law.ratio)
    );
    let is_apart = (law.ratio - 1.0).abs() > APART_MAX;
    Judgement::decide(is_apart, evidence, vec!["operations_per_s".to_owned()])
}
