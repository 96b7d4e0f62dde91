//! Data that storage could shrink.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::{DataSample, FileEvidence};

use super::{CalibrationRule, Case, RunCase, RunRule, all_figures, labels, percent};

const ABOUT: About = About {
    id: "compressible",
    weight: Weight::Condemns,
    doc: "Zeros, repetitions or compressible data in the file, on the disks of a run or in the \
          files of its database: storage that compresses or deduplicates serves them without \
          moving the data.",
    threshold: "The information in a seeded sample: its size after LZ4 on each block, without \
                duplicate blocks. Below 25 % of the sample the rule condemns (zeros: less than 1 \
                %); below 90 % it only warns, because data of real databases have 30 to 80 %, and \
                for storage that does not compress they are valid. Data written by Blockstone \
                have 100 %.",
    cause: "The file holds zeros or patterns, for example from dd if=/dev/zero or an empty \
            tablespace.",
    next: "Measure a directory, so that blockstone creates an incompressible file; or note that \
           the results do not apply to storage that compresses.",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| case.of_each_target(check));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

const CONDEMNED_BELOW_RATIO: f64 = 0.25;
const WARNED_BELOW_RATIO: f64 = 0.90;

fn check(case: &Case) -> Judgement {
    let Some(file) = &case.manifest.file else {
        return Judgement::inconclusive("no data were sampled");
    };
    of(file).at(labels(case.storage_points()))
}

fn check_run(case: &RunCase) -> Judgement {
    let judgement = case.content(of).at(all_figures());
    if case.window.parameters().obfuscate.is_some_and(|share| share < 1.0) {
        return judgement
            .caused_by(
                "--obfuscate below 1 fills rows with compressible data, as in real databases.",
            )
            .advising(
                "Omit --obfuscate, or note that the results do not apply to storage that \
                 compresses.",
            );
    }
    judgement
        .caused_by(
            "The database leaves parts of its pages empty or alike: PostgreSQL does if a row does \
             not fill a page.",
        )
        .advising(
            "If the storage neither compresses nor deduplicates, nothing: the results apply. If \
             it does, measure it with `blockstone calibrate DIR`, whose data cannot be compressed.",
        )
}

/// Judges a file; the caller names the points concerned.
pub(super) fn of(file: &FileEvidence) -> Judgement {
    let sample = file.sample.as_ref();
    let Some(sample) = sample.filter(|sample| sample.sampled_bytes > 0) else {
        return Judgement::inconclusive("no data were sampled");
    };
    let of = |bytes: u64| bytes as f64 / sample.sampled_bytes as f64;
    let left = information_ratio(sample);
    let evidence = format!(
        "{} of the sample is information: LZ4 leaves {}, {} are zeros, {} occur twice",
        percent(left),
        percent(of(sample.lz4_bytes)),
        percent(of(sample.zero_bytes)),
        percent(of(sample.duplicate_bytes))
    );
    if left >= WARNED_BELOW_RATIO {
        return Judgement::pass(evidence);
    }
    let failed = Judgement::fail(evidence, Vec::new());
    if left < CONDEMNED_BELOW_RATIO { failed } else { failed.weighing(Weight::Warns) }
}

/// Returns the share of the sampled bytes that remains. LZ4 and duplicates may both count the same
/// block; the product of what each leaves treats them as independent, and never counts a saving
/// twice.
fn information_ratio(sample: &DataSample) -> f64 {
    let of = |bytes: u64| (bytes as f64 / sample.sampled_bytes as f64).min(1.0);
    of(sample.lz4_bytes) * (1.0 - of(sample.duplicate_bytes))
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::{Outcome, Weight};

    use crate::testing::Fixture;

    #[test]
    fn a_real_database_file_warns_and_zeros_condemn() {
        let judged = |lz4: u64, duplicates: u64| {
            let mut fixture = Fixture::healthy();
            let sample = fixture.manifest.file.as_mut().unwrap().sample.as_mut().unwrap();
            sample.lz4_bytes = sample.sampled_bytes * lz4 / 100;
            sample.duplicate_bytes = sample.sampled_bytes * duplicates / 100;
            let verdict = fixture.verdict("compressible");
            (verdict.outcome, verdict.weight)
        };
        assert_eq!(judged(100, 0), (Outcome::Pass, Weight::Condemns));
        assert_eq!(judged(45, 1), (Outcome::Fail, Weight::Warns));
        assert_eq!(judged(100, 99), (Outcome::Fail, Weight::Condemns));
        assert_eq!(judged(1, 0), (Outcome::Fail, Weight::Condemns));
    }
}
