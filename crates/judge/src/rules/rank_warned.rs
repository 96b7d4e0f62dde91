//! A rank with warnings.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Manifest;

use super::rank_condemned::named;
use super::{CalibrationRule, RunRule};

const ABOUT: About = About {
    id: "rank-warned",
    weight: Weight::Warns,
    doc: "A rule warned of a figure of a rank.",
    threshold: "Any warning in the recording of a rank.",
    cause: "The rule that is named says what may cause it: `blockstone help RULE`.",
    next: "Look at the recording of that rank by itself: `blockstone report` has the evidence.",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| check(case.manifest));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, |case| check(case.manifest));

fn check(manifest: &Manifest) -> Judgement {
    let Some(merged) = &manifest.merged else { return Judgement::not_applicable() };
    match named(&merged.ranks, |rank| &rank.warned_by) {
        Some(named) => Judgement::fail(named, Vec::new()),
        None => Judgement::pass(format!("none of {} ranks has a warning", merged.ranks.len())),
    }
}
