//! Copies that were bad or missing.

use blockstone_base::units::thousands;
use blockstone_base::verdict::Weight;

use super::{Judgement, RunCase, RunRule, read_figures, time};

pub(super) const RULE: RunRule = RunRule {
    id: "degraded",
    weight: Weight::Warns,
    doc: "A disk that was away, reads that a mirror answered, and bad copies that were rewritten \
          from a good one.",
    threshold: "Any time without a disk, one read or one block.",
    cause: "A disk of the group failed, was taken away or returned wrong data.",
    next: "Look at the disks, and at the events of the recording; rates are those of fewer disks.",
    check,
};

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
