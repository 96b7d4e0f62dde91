//! Parts of a disk's file that were never allocated.

use super::{Judgement, RunCase, RunRule, read_figures};
use crate::rules::hole;

pub(super) const RULE: RunRule = RunRule {
    id: hole::RULE.id,
    weight: hole::RULE.weight,
    doc: "A disk's file with holes once it is loaded: reads of them are answered without \
          I/O.",
    threshold: hole::RULE.threshold,
    cause: "A file system that keeps zeros as holes, or an error in this tool.",
    next: "Please report it with the recording: the disks are written in full before a load.",
    check,
};

fn check(case: &RunCase) -> Judgement {
    let judged = case.disk_files(hole::of);
    Judgement { points: read_figures(), ..judged }
}
