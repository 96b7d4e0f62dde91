//! Operations that failed.

use blockstone_base::units::thousands;
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Stop;

use super::{Case, Check, Judgement, Rule};

pub(super) const RULE: Rule = Rule {
    id: "io-errors",
    weight: Weight::Condemns,
    doc: "Operations that returned an error or too few bytes.",
    threshold: "One operation, warm-up included; or a phase that could not continue.",
    cause: "The device or the path to it failed, or space ran out.",
    next: "See the first error, and the kernel log (dmesg) at the time of the phase.",
    checks: &[Check::Calibration(check)],
};

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
    match first {
        Some(first) => Judgement::fail(
            format!("{} operations failed; {first}", thousands(failed_ops as i64)),
            labels,
        ),
        None if phases().next().is_none() => Judgement::inconclusive("no load was applied"),
        None => Judgement::pass("no operation failed"),
    }
}
