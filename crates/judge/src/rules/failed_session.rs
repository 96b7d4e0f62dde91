//! Sessions that failed.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::thousands;
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Stop;

use super::{RunCase, RunRule, all_figures};

const ABOUT: About = About {
    id: "failed-session",
    weight: Weight::Condemns,
    doc: "A session whose operation returned an error: the remaining sessions are not the \
          requested load.",
    threshold: "One operation or one session.",
    cause: "The database or the storage beneath it returned an error.",
    next: "See the first error, and the kernel log (dmesg) at that time.",
};

pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check);

fn check(case: &RunCase) -> Judgement {
    let phase = case.window.phase;
    let failed = case.window.grown_of_all("operation", "failed_ops").ok();
    if failed == Some(0) && phase.first_error.is_none() && phase.stop != Stop::Failed {
        return Judgement::pass("no operation failed");
    }
    match (failed, phase.first_error.as_deref()) {
        (None, None) if phase.stop != Stop::Failed => {
            Judgement::inconclusive("failed operations were not counted")
        }
        (failed, error) => {
            let why = error.unwrap_or("the error was not recorded");
            let count = thousands(failed.unwrap_or(0) as i64);
            let evidence = format!("{count} operations failed in the window; first: {why}");
            Judgement::fail(evidence, all_figures())
        }
    }
}
