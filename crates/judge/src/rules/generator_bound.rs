//! Rates that were limited by the load generator, not by the storage.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::three_digits;
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Group;
use blockstone_record::parameters::RunParameters;

use super::{CalibrationRule, Case, RunCase, RunRule, all_figures, percent};
use crate::findings::Point;

const ABOUT: About = About {
    id: "generator-bound",
    weight: Weight::Warns,
    doc: "A rate that is limited by the processor time of this process: the storage can do more, \
          and the number is a lower bound.",
    threshold: "User and system time of this process is at least 90 % of the processors that the \
                load can use (one per thread, at most those allowed); or the rate per worker is \
                more than half of that of the null engine, so that the tool's own cost is half of \
                each I/O. In a run: 90 % of the processors allowed, or of one per session if the \
                database works in processes of its own.",
    cause: "Too few processors for the rate: the I/O path of the kernel and the load generator \
            use all of them.",
    next: "Read the number as a lower bound; give the process more processors, or use io_uring, \
           which costs less per I/O.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

const CPU_RATIO_MAX: f64 = 0.90;
const NULL_RATIO_MAX: f64 = 0.50;
const RUN_NEXT: &str = "Read the rates as lower bounds; use more processors or fewer sessions.";

fn check(case: &Case) -> Judgement {
    let null_per_worker = case
        .group(Group::Overhead)
        .map(|point| point.iops.value / f64::from(point.load.workers.max(1)))
        .reduce(f64::max);
    let mut worst = (0.0, String::new());
    let mut found = Vec::new();
    let (mut judged, mut blind) = (false, None);
    for point in case.headlines() {
        let cpu = cpu_ratio(case, point).map(|ratio| {
            (
                ratio / CPU_RATIO_MAX,
                format!("{}: {} of its processors busy", point.label, percent(ratio)),
            )
        });
        if cpu.is_none() {
            blind = Some(&point.label);
        }
        let null = null_per_worker.filter(|&rate| rate > 0.0).map(|null| {
            let ratio = point.iops.value / f64::from(point.load.workers.max(1)) / null;
            let text = format!("{}: {} of the null engine's rate", point.label, percent(ratio));
            (ratio / NULL_RATIO_MAX, text)
        });
        for (severity, text) in cpu.into_iter().chain(null) {
            judged = true;
            if severity >= 1.0 && !found.contains(&point.label) {
                found.push(point.label.clone());
            }
            if severity >= worst.0 {
                worst = (severity, text);
            }
        }
    }
    match (judged, blind, found.is_empty()) {
        (false, ..) => Judgement::inconclusive(
            "neither the processor time of this process nor the null engine was measured",
        ),
        (true, Some(label), true) => Judgement::inconclusive(format!(
            "{}; the processor time of this process was not measured at {label}",
            worst.1
        )),
        (true, None, true) => Judgement::pass(worst.1),
        (true, _, false) => Judgement::fail(worst.1, found),
    }
}

fn check_run(case: &RunCase) -> Judgement {
    let grown = |column| case.window.grown("process", "", column);
    let (Ok(user_ns), Ok(system_ns)) = (grown("cpu_user_ns"), grown("cpu_system_ns")) else {
        return Judgement::inconclusive("the processor time of this process was not measured");
    };
    let allowed = f64::from(case.manifest.host.cpus_allowed_milli) / 1000.0;
    if allowed <= 0.0 {
        return Judgement::inconclusive("how many processors are allowed is not known");
    }
    let apart = case.manifest.parameters::<RunParameters>().is_apart();
    let usable = if apart { allowed.min(case.window.sessions().max(1) as f64) } else { allowed };
    let used = (user_ns + system_ns) as f64 / case.window.duration_ns().max(1) as f64;
    let evidence = format!(
        "{} of {} processors busy with {}",
        percent(used / usable),
        three_digits(usable),
        if apart { "the sessions of this process" } else { "this process" }
    );
    Judgement::decide(used / usable >= CPU_RATIO_MAX, evidence, all_figures()).advising(RUN_NEXT)
}

/// Returns the processor time of this process ÷ that of the processors its load can fill.
fn cpu_ratio(case: &Case, point: &Point) -> Option<f64> {
    let per_io = point.cpu.user_ns_per_io? + point.cpu.system_ns_per_io?;
    let used = per_io * point.iops.value / 1e9;
    let allowed = f64::from(case.manifest.host.cpus_allowed_milli) / 1000.0;
    if allowed <= 0.0 {
        return None;
    }
    let background = point.background.as_ref().map_or(0, |(load, _)| load.workers);
    let threads = f64::from((point.load.workers + background).max(1));
    // A request that io_uring cannot start without waiting is handled by a kernel thread of this
    // process: in that case more processors are in use than the load has threads.
    let usable = if used > threads * 1.1 { allowed } else { threads.min(allowed) };
    Some(used / usable)
}

#[cfg(test)]
mod tests {
    use blockstone_base::load::{LoadSpec, Op};
    use blockstone_base::verdict::Outcome;
    use blockstone_record::manifest::Group;

    use crate::testing::{Behaviour, Fixture, load};

    fn judged(null_iops: f64, iops: f64, engine: &str, in_flight: u32, cpu_ns: f64) -> Outcome {
        let mut fixture = Fixture::empty();
        let null = LoadSpec { engine: "null".into(), ..load(Op::Read, "psync", 1) };
        fixture.add("overhead/null", Group::Overhead, null, &Behaviour::natural(null_iops, 200.0));
        let behaviour = Behaviour { cpu_ns: (0.0, cpu_ns), ..Behaviour::natural(iops, 1e9 / iops) };
        let spec = load(Op::Read, engine, in_flight);
        fixture.add("random-read/x", Group::RandomRead, spec, &behaviour);
        fixture.verdict("generator-bound").outcome
    }

    #[test]
    fn one_thread_is_bound_by_one_processor_and_two_by_two() {
        // 100,000 I/Os a second at 9.5 µs each fill 95 % of one processor in a machine of two.
        assert_eq!(judged(4e6, 100e3, "uring", 64, 9_500.0), Outcome::Fail);
        assert_eq!(judged(4e6, 100e3, "psync", 2, 9_500.0), Outcome::Pass);
        assert_eq!(judged(4e6, 100e3, "psync", 64, 19_000.0), Outcome::Fail);
    }

    #[test]
    fn half_of_the_null_rate_is_the_tools_own_cost() {
        assert_eq!(judged(4e6, 1_900e3, "uring", 64, 100.0), Outcome::Pass);
        assert_eq!(judged(4e6, 2_100e3, "uring", 64, 100.0), Outcome::Fail);
    }

    #[test]
    fn without_processor_time_the_null_engine_alone_passes_nothing() {
        let mut fixture = Fixture::healthy();
        fixture.windows.iter_mut().for_each(|w| w.process = FromIterator::from_iter([]));
        let verdict = fixture.verdict("generator-bound");
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{}", verdict.evidence);
        assert!(verdict.evidence.contains("was not measured"), "{}", verdict.evidence);
    }
}
