//! Operations that failed.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::thousands;
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::{Manifest, Stop};

use super::{CalibrationRule, Case};

const ABOUT: About = About {
    id: "io-errors",
    weight: Weight::Condemns,
    doc: "Operations that returned an error or too few bytes.",
    threshold: "One operation, warm-up included; a phase that could not continue; or an error \
                of the storage between two phases that ended the run, as when the test file is \
                flushed after its layout or its data are sampled.",
    cause: "The device or the path to it failed, or space ran out.",
    next: "See the first error, and the kernel log (dmesg) at the time of the phase.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);

/// Errors that the kernel returns if storage failed, ran out of space, or is gone: EIO, ENXIO,
/// ENODEV, ENOSPC, EROFS, ENODATA, EILSEQ, ETIMEDOUT, EUCLEAN, EREMOTEIO (errno(3)).
const OF_STORAGE: [i32; 10] = [5, 6, 19, 28, 30, 61, 84, 110, 117, 121];

/// Returns the error that ended the run, if it is one of the storage.
fn ended_by(manifest: &Manifest) -> Option<&str> {
    let ((error, _), errno) = (manifest.end.failure()?, manifest.end.errno()?);
    OF_STORAGE.contains(&errno).then_some(error)
}

fn check(case: &Case) -> Judgement {
    let failed_ops: u64 = case.windows.iter().map(|window| window.checks.failed_ops).sum();
    let phases = || case.manifest.phases.iter().enumerate().filter(|(_, p)| p.load.is_some());
    let mut labels = Vec::new();
    let mut first = None;
    for (index, phase) in phases() {
        let counted = case.windows.iter().find(|window| window.phase == index);
        let failed = counted.is_some_and(|window| window.checks.failed_ops > 0)
            || phase.first_error.is_some()
            || phase.stop == Stop::Failed;
        if failed {
            let why = phase.first_error.as_deref().unwrap_or("the error was not recorded");
            first.get_or_insert_with(|| format!("first in {}: {why}", phase.label));
            labels.push(phase.label.clone());
        }
    }
    if let (None, Some(error)) = (&first, ended_by(case.manifest)) {
        return Judgement::fail(format!("between two phases: {error}"), Vec::new());
    }
    match first {
        Some(first) => Judgement::fail(
            format!("{} operations failed; {first}", thousands(failed_ops as i64)),
            labels,
        ),
        None if phases().next().is_none() => Judgement::inconclusive("no load was applied"),
        None => Judgement::pass("no operation failed"),
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::Outcome;
    use blockstone_record::manifest::End;

    use crate::testing::Fixture;

    #[test]
    fn an_error_of_the_storage_between_phases_is_found_and_another_end_is_not_one() {
        let ended = |error: &str, errno| {
            let mut fixture = Fixture::healthy();
            fixture.manifest.end = End::Failed { error: error.to_owned(), hint: None, errno };
            fixture.verdict("io-errors")
        };
        let text = "sample /dev/loop2: Input/output error (os error 5)\nhint: see dmesg";
        for errno in [Some(5), None] {
            let verdict = ended(text, errno);
            assert!(verdict.condemns(), "a manifest without the number has the text: {verdict:?}");
            assert!(verdict.evidence.ends_with("Input/output error (os error 5)"), "{verdict:?}");
        }
        assert!(ended("lire /dev/x : erreur d'E/S", Some(5)).condemns(), "whatever its words");
        assert_eq!(ended("run: 3 workers did not return", None).outcome, Outcome::Pass);
        assert_eq!(ended("open x: Permission denied", Some(13)).outcome, Outcome::Pass);
        assert_eq!(Fixture::healthy().verdict("io-errors").outcome, Outcome::Pass);
    }

    #[test]
    fn an_error_in_a_phase_condemns_its_figures() {
        let mut fixture = Fixture::healthy();
        fixture.window_mut("cache-map/64M").checks.failed_ops = 1;
        let verdict = fixture.verdict("io-errors");
        assert!(verdict.condemns() && verdict.evidence.contains("cache-map/64M"), "{verdict:?}");
    }
}
