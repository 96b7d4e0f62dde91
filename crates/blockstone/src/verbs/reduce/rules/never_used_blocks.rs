//! Space that no data ever filled.

use std::fmt::Write;

use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::{Bytes, three_digits};
use blockstone_base::verdict::Weight;

use super::{ScanCase, ScanRule};

const ABOUT: About = About {
    id: "never-used-blocks",
    weight: Weight::Warns,
    doc: "Most blocks were never used by their database: the ratio describes empty space, and \
          falls as data are loaded.",
    threshold: "Half of the blocks are zeros or formatted and empty.",
    cause: "Files were created at their full size, or much space was freed and not reused.",
    next: "Size the array by the ratio of the used blocks, or load data and scan again.",
};

pub(super) const RULE: ScanRule = ScanRule::new(&ABOUT, check);

const FIGURES: [&str; 3] = ["dedup_ratio", "compression_ratio", "reduction_ratio"];
const NEVER_USED_PART: f64 = 0.5;

fn check(case: &ScanCase) -> Judgement {
    let figures = FIGURES.map(str::to_owned).into();
    let usage = &case.findings.usage;
    if case.findings.primary().blocks == 0 {
        return Judgement::inconclusive("no block was counted").at(figures);
    }
    let part = usage.never_used_part();
    let mut evidence = format!(
        "{} % of the blocks were never used: {} of zeros, {} formatted and empty",
        three_digits(part * 100.0),
        three_digits(usage.zero_blocks),
        three_digits(usage.formatted_blocks)
    );
    if let (Some(ratio), Some(bytes)) = (usage.used_reduction_ratio(), usage.bytes_when_full) {
        let full = Bytes(bytes as u64);
        let _ = write!(
            evidence,
            "; used ones reduce {ratio:.2}:1, and full files so would take {full}"
        );
    }
    Judgement::decide(part >= NEVER_USED_PART, evidence, Vec::new()).at(figures)
}
