//! Parts of the file that were never allocated.

use blockstone_base::capability::Capability;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::FileEvidence;

use super::{CalibrationRule, Case, RunCase, RunRule, labels, megabytes, percent, read_figures};

const ABOUT: About = About {
    id: "hole",
    weight: Weight::Condemns,
    doc: "A sparse file (in a run, a disk file that still has holes after loading): reads of \
          holes return zeros without any I/O.",
    threshold: "More than 1 % of the bytes of the file have no extent (FIEMAP) or, if the file \
                system does not support FIEMAP, no data (SEEK_DATA). Fewer blocks than bytes \
                (st_blocks) alone do not decide: compression and delayed allocation look the \
                same. At 1 % the rate is at most 1 % too high.",
    cause: "The file was created with truncate(1) or seeks, or holes were punched into it.",
    next: "Measure a directory, so that blockstone creates its own file, or write the whole file \
           once.",
};

pub(super) const CALIBRATION: CalibrationRule =
    CalibrationRule::new(&ABOUT, |case| case.of_each_target(check));
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

/// Largest share of a file that may be missing from its device; see the rule's threshold.
pub(super) const ABSENT_RATIO_MAX: f64 = 0.01;

/// Advice if the disks of a run are not written in full.
pub(super) const WRITTEN_BEFORE: &str =
    "Please report it with the recording: the disks are written in full before a load.";

fn check(case: &Case) -> Judgement {
    let Some(file) = &case.manifest.file else {
        return Judgement::inconclusive(
            "no file was examined; blocks of a device that were never written or were trimmed may \
             be answered without I/O",
        );
    };
    of(file).at(labels(case.reads()))
}

fn check_run(case: &RunCase) -> Judgement {
    case.disk_files(of)
        .at(read_figures())
        .caused_by("A file system that keeps zeros as holes, or an error in this tool.")
        .advising(WRITTEN_BEFORE)
}

/// Judges a file; the caller names the points concerned.
fn of(file: &FileEvidence) -> Judgement {
    let map = &file.map;
    let (hole_bytes, source) = match &map.fiemap {
        Capability::Full => (map.hole_bytes, "FIEMAP"),
        Capability::Degraded { .. } => (map.hole_bytes, "SEEK_DATA"),
    };
    let ratio = hole_bytes as f64 / map.size_bytes.max(1) as f64;
    let evidence = format!(
        "{} of {} ({}) have no block on the device ({source})",
        megabytes(hole_bytes),
        megabytes(map.size_bytes),
        percent(ratio)
    );
    let unallocated = map.size_bytes.saturating_sub(map.allocated_bytes);
    let absent = unallocated as f64 / map.size_bytes.max(1) as f64 > ABSENT_RATIO_MAX;
    if ratio > ABSENT_RATIO_MAX {
        Judgement::fail(evidence, Vec::new())
    } else if absent && !map.fiemap.is_full() {
        // Compression, or a file system that allocates only when it commits (ZFS).
        Judgement::inconclusive(format!(
            "{evidence}, but st_blocks counts {} fewer",
            megabytes(unallocated)
        ))
    } else {
        Judgement::pass(evidence)
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::Outcome;

    use super::*;
    use crate::testing::{Fixture, SPAN};

    #[test]
    fn allocated_blocks_speak_where_fiemap_does_not() {
        let judged = |allocated_bytes| {
            let mut fixture = Fixture::healthy();
            let map = &mut fixture.manifest.file.as_mut().unwrap().map;
            map.fiemap = Capability::degraded("not supported");
            map.allocated_bytes = allocated_bytes;
            fixture.verdict("hole").outcome
        };
        assert_eq!(judged(SPAN + 4096), Outcome::Pass);
        assert_eq!(judged(SPAN / 2), Outcome::Inconclusive);
    }

    #[test]
    fn a_hole_concerns_reads_only() {
        let mut fixture = Fixture::healthy();
        fixture.manifest.file.as_mut().unwrap().map.hole_bytes = SPAN / 50;
        let concerns = fixture.verdict("hole").concerns;
        assert!(concerns.iter().any(|name| name == "max_iops"));
        assert!(!concerns.iter().any(|name| name.contains("write") || name.contains("commit")));
    }
}
