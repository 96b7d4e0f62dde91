//! Parts of the file that were allocated but never written.

use blockstone_base::capability::Capability;
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::FileEvidence;

use super::hole::ABSENT_RATIO_MAX;
use super::{Case, Judgement, Rule, labels, megabytes, percent};

pub(crate) const RULE: Rule = Rule {
    id: "unwritten",
    weight: Weight::Condemns,
    doc: "A preallocated file: reads of extents that were never written are answered with zeros, \
          without any I/O.",
    threshold: "More than 1 % of the file's bytes lie in extents that FIEMAP flags unwritten. At \
                1 % the rate is at most 1 % too high.",
    cause: "The file was made with fallocate(1) or posix_fallocate(3) and not written since.",
    next: "Let blockstone lay out its own file, or write the file once in full.",
    check,
};

fn check(case: &Case) -> Judgement {
    let Some(file) = &case.manifest.file else {
        return Judgement::inconclusive("no file was examined");
    };
    Judgement { points: labels(case.reads()), ..of(file) }
}

/// What a file shows; the points concerned are the caller's to say.
pub(crate) fn of(file: &FileEvidence) -> Judgement {
    if let Capability::Degraded { why } = &file.map.fiemap {
        return Judgement::inconclusive(format!("extents cannot be seen: {why}"));
    }
    let ratio = file.map.unwritten_bytes as f64 / file.map.size_bytes.max(1) as f64;
    let evidence = format!(
        "{} of {} ({}) were never written (FIEMAP)",
        megabytes(file.map.unwritten_bytes),
        megabytes(file.map.size_bytes),
        percent(ratio)
    );
    if ratio > ABSENT_RATIO_MAX {
        Judgement::fail(evidence, Vec::new())
    } else {
        Judgement::pass(evidence)
    }
}
