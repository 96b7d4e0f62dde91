//! Data that storage could shrink.

use super::{Judgement, RunCase, RunRule, all_figures};
use crate::rules::compressible;

pub(super) const RULE: RunRule = RunRule {
    id: compressible::RULE.id,
    weight: compressible::RULE.weight,
    doc: "Data on the disks, or in the database's files, that storage which compresses or removes \
          duplicates answers for without moving them.",
    threshold: compressible::RULE.threshold,
    cause: "--obfuscate below 1 fills rows with what compresses, as databases do; PostgreSQL \
            leaves the rest of a page empty where a row does not fill it.",
    next: "Leave out --obfuscate, or keep the warning in mind on storage that compresses.",
    check,
};

fn check(case: &RunCase) -> Judgement {
    let judged = case.content(compressible::of);
    Judgement { points: all_figures(), ..judged }
}
