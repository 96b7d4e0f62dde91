//! Verdicts of a scan: what the ratio rests on, and which estimates would have been wrong.

use blockstone_base::units::{Bytes, three_digits};
use blockstone_base::{Outcome, Verdict, Weight};

use super::{Class, FileNote, Findings, file_name};
use crate::counter::Counter;

/// The rules, as documentation lists them: id, what it looks for, its threshold.
pub const RULES: &[(&str, &str, &str)] = &[
    (
        "never-used-blocks",
        "Most blocks were never used by their database: the ratio is that of empty space, and \
         falls as data are loaded.",
        "Half of the blocks are zeros or formatted and empty.",
    ),
    (
        "compressible-filler",
        "Used blocks compress far better than real rows do: they are test filler.",
        "Used contents compress to an eighth of their size or less. Real tables compress to a half \
         or a third.",
    ),
    (
        "block-sampling",
        "A sample of one block in 100 would give another ratio: it has the first of two equal \
         blocks, and hardly ever the second.",
        "The ratio of the sample differs from the one found by more than a tenth.",
    ),
    (
        "shifted-copy",
        "A file holds what another does, but between its blocks: deduplication of fixed blocks \
         finds nothing.",
        "5 % of a file match another at a distance that is not a multiple of 4 KiB.",
    ),
];

/// The figures that each rule is about.
const CONCERNS: [&[&str]; 4] = [
    &["dedup_ratio", "compression_ratio", "reduction_ratio"],
    &["compression_ratio", "reduction_ratio"],
    &["dedup_ratio"],
    &["dedup_ratio"],
];

const NEVER_USED_PART: f64 = 0.5;
const FILLER_RATIO: f64 = 8.0;
/// Fewer contents are a file's beginning, not its data.
const FILLER_CONTENTS_MIN: usize = 100;
const SAMPLE_DIFFERENCE: f64 = 0.1;
/// With fewer blocks drawn, the sample says nothing about samples.
const SAMPLE_BLOCKS_MIN: u64 = 30;

/// All rules applied.
pub(super) fn all(findings: &Findings, files: &[FileNote], counter: &Counter) -> Vec<Verdict> {
    vec![
        never_used(findings),
        filler(findings),
        block_sampling(findings),
        shifted(findings, files, counter),
    ]
}

fn verdict(rule: usize, outcome: Outcome, evidence: String, says: (&str, &str)) -> Verdict {
    let (cause, next) = if outcome == Outcome::Fail { says } else { ("", "") };
    Verdict {
        rule: RULES[rule].0.to_owned(),
        outcome,
        weight: Weight::Warns,
        concerns: CONCERNS[rule].iter().map(|&figure| figure.to_owned()).collect(),
        evidence,
        cause: cause.to_owned(),
        next: next.to_owned(),
    }
}

fn outcome(failed: bool) -> Outcome {
    if failed { Outcome::Fail } else { Outcome::Pass }
}

fn never_used(findings: &Findings) -> Verdict {
    let usage = &findings.usage;
    let part = usage.never_used_part();
    let mut evidence = format!(
        "{} % of the blocks were never used: {} of zeros, {} formatted and empty",
        three_digits(part * 100.0),
        three_digits(usage.zero_blocks),
        three_digits(usage.formatted_blocks)
    );
    if let (Some(ratio), Some(bytes)) = (usage.used_reduction_ratio(), usage.bytes_when_full) {
        use std::fmt::Write;
        let full = Bytes(bytes as u64);
        let _ = write!(
            evidence,
            "; used ones reduce {ratio:.2}:1, and files full of them would take {full}"
        );
    }
    let next = "Size the array by the ratio of used blocks, or load data first and scan again.";
    let cause = "Files were created at their full size, or much was deleted and not reused.";
    verdict(0, outcome(part >= NEVER_USED_PART), evidence, (cause, next))
}

fn filler(findings: &Findings) -> Verdict {
    let says = (
        "Test data: columns of one repeated character, as load generators write them.",
        "Scan files of the real database; an array will not reach this ratio with them.",
    );
    let compressed = findings.primary().contents_compressed;
    let ratio = findings.usage.used_compression_ratio;
    let Some(ratio) = ratio.filter(|_| compressed >= FILLER_CONTENTS_MIN) else {
        let evidence = format!("{compressed} contents were compressed, which is too few to judge");
        return verdict(1, Outcome::Inconclusive, evidence, says);
    };
    let finest =
        findings.compression.iter().filter(|c| c.class == Class::All && c.granule_bytes == 512);
    let best = finest.map(|c| c.ratio).fold(ratio, f64::max);
    let evidence = format!("used contents compress {ratio:.2}:1, all of them {best:.2}:1 at best");
    verdict(1, outcome(ratio >= FILLER_RATIO), evidence, says)
}

fn block_sampling(findings: &Findings) -> Verdict {
    let says = (
        "Of two equal blocks, a sample of one in 100 draws both one time in 10,000.",
        "Never estimate deduplication from sampled blocks; a share of all contents can be.",
    );
    let sample = findings.block_sample.filter(|sample| sample.blocks >= SAMPLE_BLOCKS_MIN);
    let (Some(sample), Some(ratio)) = (sample, findings.primary().dedup_ratio) else {
        let evidence = "too few blocks to draw a sample of them".to_owned();
        return verdict(2, Outcome::Inconclusive, evidence, says);
    };
    let evidence = format!(
        "a sample of {:.1} % of the blocks would have given {:.2}:1; the ratio is {:.2}:1",
        sample.part * 100.0,
        sample.dedup_ratio,
        ratio.value
    );
    let differs = (sample.dedup_ratio / ratio.value - 1.0).abs() > SAMPLE_DIFFERENCE;
    verdict(2, outcome(differs), evidence, says)
}

fn shifted(findings: &Findings, files: &[FileNote], counter: &Counter) -> Verdict {
    let says = (
        "A header before the data, another partition start, or a tape or backup format.",
        "Align the copy to 4 KiB, or let the array see the original.",
    );
    if !counter.plan().chunks {
        return verdict(3, Outcome::Inconclusive, "chunks were not counted".to_owned(), says);
    }
    let Some(shift) = findings.shifts.first() else {
        let evidence = "no file holds another one between its blocks".to_owned();
        return verdict(3, Outcome::Pass, evidence, says);
    };
    let evidence = format!(
        "{} holds {} of {} shifted by {} bytes ({} % of it); chunks repeat {:.2}:1",
        file_name(files, shift.displacement.copy),
        Bytes(shift.bytes),
        file_name(files, shift.displacement.original),
        shift.displacement.shift_bytes,
        three_digits(shift.part_of_copy * 100.0),
        findings.chunk_ratio.unwrap_or(1.0)
    );
    verdict(3, Outcome::Fail, evidence, says)
}
