//! Parts of the file that were allocated but never written.

use blockstone_base::capability::Capability;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::FileEvidence;

use super::hole::{ABSENT_RATIO_MAX, WRITTEN_BEFORE};
use super::{CalibrationRule, Case, RunCase, RunRule, labels, megabytes, percent, read_figures};

const ABOUT: About = About {
    id: "unwritten",
    weight: Weight::Condemns,
    doc: "A preallocated file (in a run, a disk file that still has unwritten extents after \
          loading): reads of unwritten extents return zeros without any I/O.",
    threshold: "More than 1 % of the file's bytes lie in extents that FIEMAP flags unwritten. At 1 \
                % the rate is at most 1 % too high.",
    cause: "The file was created with fallocate(1) or posix_fallocate(3) and not written since.",
    next: "Measure a directory, so that blockstone creates its own file, or write the whole file \
           once.",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| case.of_each_target(check));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

fn check(case: &Case) -> Judgement {
    let Some(file) = &case.manifest.file else {
        return Judgement::inconclusive("no file was examined");
    };
    of(file).at(labels(case.reads()))
}

fn check_run(case: &RunCase) -> Judgement {
    case.disk_files(of)
        .at(read_figures())
        .caused_by(
            "A file system that acknowledges writes it has not allocated yet, or an error in this \
             tool.",
        )
        .advising(WRITTEN_BEFORE)
}

/// Judges a file; the caller names the points concerned.
fn of(file: &FileEvidence) -> Judgement {
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
    Judgement::decide(ratio > ABSENT_RATIO_MAX, evidence, Vec::new())
}
