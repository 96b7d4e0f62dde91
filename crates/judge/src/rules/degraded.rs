//! Copies that were bad or missing.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::thousands;
use blockstone_base::verdict::Weight;

use super::{RunCase, RunRule, read_figures, time};

const ABOUT: About = About {
    id: "degraded",
    weight: Weight::Warns,
    doc: "A disk that was offline, reads that were served by a mirror copy, or bad copies that \
          were repaired from a good one.",
    threshold: "Any time without a disk, one read or one block.",
    cause: "A disk of the group failed, was removed or returned wrong data.",
    next: "Check the disks and the events of the recording; the rates are those of fewer disks.",
};

pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check);

fn check(case: &RunCase) -> Judgement {
    let statistic = |column| case.window.statistic(column);
    let (Ok(reads), Ok(repaired)) = (statistic("degraded_reads"), statistic("blocks_repaired"))
    else {
        return Judgement::inconclusive("the target does not count reads from mirrors");
    };
    let away: Vec<String> = case
        .window
        .objects("disk")
        .into_iter()
        .filter_map(|disk| {
            let ns = case.window.grown("disk", disk, "offline_ns").ok().filter(|&ns| ns > 0)?;
            Some(format!("disk {disk} was away for {}, ", time(ns as f64)))
        })
        .collect();
    if reads + repaired == 0 && away.is_empty() {
        return Judgement::pass("every disk was there, and primary copies answered every read");
    }
    let (reads, repaired) = (thousands(reads as i64), thousands(repaired as i64));
    let away = away.concat();
    let evidence = format!("{away}{reads} reads answered by a mirror, {repaired} blocks repaired");
    Judgement::fail(evidence, read_figures())
}
