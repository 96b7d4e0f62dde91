//! Parts of a disk's file that were allocated but never written.

use super::{Judgement, RunCase, RunRule, read_figures};
use crate::rules::unwritten;

pub(super) const RULE: RunRule = RunRule {
    id: unwritten::RULE.id,
    weight: unwritten::RULE.weight,
    doc: "A disk's file with extents that were never written, once it is loaded: reads of \
          them are answered without I/O.",
    threshold: unwritten::RULE.threshold,
    cause: "A file system that acknowledges writes it has not allocated yet, or an error in \
            this tool.",
    next: "Please report it with the recording: the disks are written in full before a load.",
    check,
};

fn check(case: &RunCase) -> Judgement {
    let judged = case.disk_files(unwritten::of);
    Judgement { points: read_figures(), ..judged }
}
