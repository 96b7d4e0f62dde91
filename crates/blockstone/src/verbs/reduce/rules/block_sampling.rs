//! The ratio that a sample of blocks would have shown.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;

use super::{ScanCase, ScanRule};

const ABOUT: About = About {
    id: "block-sampling",
    weight: Weight::Warns,
    doc: "A sample of one block in 100 would have given a different ratio, because it hardly ever \
          contains both of two equal blocks.",
    threshold: "The ratio of the sample differs from the counted one by more than 10 %.",
    cause: "A sample of one block in 100 contains both of two equal blocks once in 10,000 times.",
    next: "Do not estimate deduplication from sampled blocks; sample distinct contents instead, \
           as this command does.",
};

pub(super) const RULE: ScanRule = ScanRule::new(&ABOUT, check);

const DIFFERENCE_MAX: f64 = 0.1;
/// With fewer blocks drawn, the sample says nothing about sampling.
const BLOCKS_MIN: u64 = 30;

fn check(case: &ScanCase) -> Judgement {
    look(case).at(vec!["dedup_ratio".to_owned()])
}

fn look(case: &ScanCase) -> Judgement {
    let sample = case.findings.block_sample.filter(|sample| sample.blocks >= BLOCKS_MIN);
    let (Some(sample), Some(ratio)) = (sample, case.findings.primary().dedup_ratio) else {
        return Judgement::inconclusive("too few blocks to sample");
    };
    let evidence = format!(
        "a sample of {:.1} % of the blocks would have given {:.2}:1; the ratio is {:.2}:1",
        sample.part * 100.0,
        sample.dedup_ratio,
        ratio.value
    );
    let differs = (sample.dedup_ratio / ratio.value - 1.0).abs() > DIFFERENCE_MAX;
    Judgement::decide(differs, evidence, Vec::new())
}
