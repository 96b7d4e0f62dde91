//! Numbers that moved while they were measured.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::stats::Estimate;
use blockstone_base::verdict::Weight;
use blockstone_figures::rate;
use blockstone_record::manifest::{Group, Phase};

use super::{CalibrationRule, Case, RunCase, RunRule, labels, percent, time};
use crate::window::Window;

const ABOUT: About = About {
    id: "unsteady",
    weight: Weight::Warns,
    doc: "A rate that was not stable: a trend or wide variation in the window of a headline \
          figure, a warm-up that never settled, or a reference point that changed over the run.",
    threshold: "A 95 % interval wider than ±10 %; halves of a window that differ by more than 10 % \
                and by more than their intervals; a rate that moved by more than 5 % within the \
                window (Mann's test, 1 %); or windows of the reference that differ by more than \
                10 % of their mean, unless they \
                agree without the time that its reads waited for a processor: then the rule is \
                inconclusive. Windows end early at ±2 %, so 10 % is five times what a steady \
                device needs. In a run: an interval wider than ±10 % of the reads, writes, commits \
                or operations a second, where at least 1,000 of them completed; or a rate that \
                never settled.",
    cause: "A device that changes its state (garbage collection, a write cache that fills up, \
            thermal limits), or intermittent load of others.",
    next: "Use --full for longer windows and repetitions, or measure at a quiet time; the \
           intervals of the summary already include half of the drift.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

const MOVEMENT_MAX: f64 = 0.10;
/// Fewest events behind a rate of a run for which it is judged.
const ENOUGH: u64 = 1_000;
const RATES: [&str; 4] = ["read_iops", "write_iops", "commits_per_s", "operations_per_s"];
const RUN_CAUSE: &str = "\
    A device that changes its state (garbage collection, write cache filling, thermal limits), \
    checkpoints that are few in the window, or a neighbour that comes and goes.";

fn check(case: &Case) -> Judgement {
    let mut found = Vec::new();
    let mut seen = Vec::new();
    let mut widest = 0.0_f64;
    for point in case.headlines() {
        let half_width = point.iops.relative_half_width();
        let windows = case.windows_of(&point.label);
        let unsettled = windows.iter().find_map(|window| never_settled(case.phase(window)));
        let trend = windows.into_iter().find_map(trend);
        widest = widest.max(half_width);
        if half_width > MOVEMENT_MAX {
            seen.push(format!("{}: interval ±{}", point.label, percent(half_width)));
        } else if let Some((first, second)) = trend {
            seen.push(format!(
                "{}: {:.0} IOPS in the first half of the window, {:.0} in the second",
                point.label, first.value, second.value
            ));
        } else if let Some(unsettled) = unsettled {
            seen.push(format!("{}: {unsettled}", point.label));
        } else {
            continue;
        }
        found.push(point.label.clone());
    }
    let moved = case.drift_ratio.filter(|&drift| drift > MOVEMENT_MAX);
    if let Some(drift) = moved.filter(|_| !processors_moved(case)) {
        seen.insert(0, format!("the reference point moved by {} over the run", percent(drift)));
        found = labels(case.storage_points());
    }
    if !seen.is_empty() {
        return Judgement::fail(seen.join("; "), found);
    }
    match case.drift_ratio {
        Some(drift) if drift > MOVEMENT_MAX => Judgement::inconclusive(format!(
            "the reference point moved by {} over the run, by at most {} without its time in the \
             run queue: the processors were busy, not the storage slower",
            percent(drift),
            percent(MOVEMENT_MAX)
        )),
        Some(drift) => Judgement::pass(format!(
            "the reference point moved by {}; the widest interval is ±{}",
            percent(drift),
            percent(widest)
        )),
        None => Judgement::inconclusive(
            "the reference point was not measured twice, so drift is unknown",
        ),
    }
}

/// Returns whether the reference's windows agree once the time that its reads waited for a
/// processor is subtracted.
fn processors_moved(case: &Case) -> bool {
    let reference = |window: &&Window| case.phase(window).group == Group::Reference;
    let storage_ns = |window: &Window| {
        let ops = window.completed_ops().max(1) as f64;
        let waited_ns = window.process.get("run_queue_ns").ok()? as f64;
        Some((window.latency_ns_sum() as f64 - waited_ns) / ops)
    };
    let each: Option<Vec<f64>> = case.windows.iter().filter(reference).map(storage_ns).collect();
    let Some(each) = each.filter(|each| each.iter().all(|&ns| ns > 0.0)) else { return false };
    let (least, most) = each.iter().fold((f64::MAX, 0_f64), |(a, b), &ns| (a.min(ns), b.max(ns)));
    let mean = each.iter().sum::<f64>() / each.len().max(1) as f64;
    (most - least) / mean <= MOVEMENT_MAX
}

/// Returns the rates of a window's halves if they differ by more than they may.
fn trend(window: &Window) -> Option<(Estimate, Estimate)> {
    let ticks = window.ops_track();
    let (first, second) = ticks.split_at(ticks.len() / 2);
    let (first, second) = (rate(first).ok()?, rate(second).ok()?);
    let apart = first.high < second.low || second.high < first.low;
    let level = f64::midpoint(first.value, second.value);
    let moved = (first.value - second.value).abs() > MOVEMENT_MAX * level;
    (apart && moved).then_some((first, second))
}

/// Describes that the rate was moving all the time, if it was.
fn never_settled(phase: &Phase) -> Option<String> {
    let length = time((phase.window_end_ns - phase.start_ns) as f64);
    let never = phase.settled == Some(false);
    never.then(|| format!("the rate did not settle in {length}, warm-up and window"))
}

fn check_run(case: &RunCase) -> Judgement {
    let enough = |name: &&'static str| {
        let estimate = case.findings.figure(name)?.estimate;
        (estimate.samples >= ENOUGH).then(move || (*name, estimate.relative_half_width()))
    };
    let widths: Vec<(&'static str, f64)> = RATES.iter().filter_map(enough).collect();
    let title = |name: &&'static str| case.findings.figure(name).map(|figure| &*figure.title);
    let text = |rates: &[(&'static str, f64)]| {
        let parts = rates
            .iter()
            .map(|(name, width)| format!("{} ±{}", title(name).unwrap_or(name), percent(*width)));
        parts.collect::<Vec<_>>().join(", ")
    };
    let moved: Vec<(&'static str, f64)> =
        widths.iter().copied().filter(|(_, width)| *width > MOVEMENT_MAX).collect();
    let names = |rates: &[(&str, f64)]| rates.iter().map(|(name, _)| (*name).to_owned()).collect();
    let failed = if widths.is_empty() {
        return Judgement::inconclusive("too few I/Os in the window");
    } else if let Some(unsettled) = never_settled(case.window.phase) {
        Judgement::fail(format!("{unsettled}; {}", text(&widths)), names(&widths))
    } else if moved.is_empty() {
        return Judgement::pass(text(&widths));
    } else {
        Judgement::fail(text(&moved), names(&moved))
    };
    failed
        .caused_by(RUN_CAUSE)
        .advising("Use a longer --for, and see the rates over time in the report.")
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::Outcome;

    use blockstone_base::load::Op;
    use blockstone_record::manifest::Group;

    use crate::testing::{Behaviour, Fixture, load};

    #[test]
    fn a_headline_whose_rate_never_settled_is_named() {
        let mut fixture = Fixture::healthy();
        for settled in [None, Some(true)] {
            fixture.manifest.phases.iter_mut().for_each(|phase| phase.settled = settled);
            assert_eq!(fixture.verdict("unsteady").outcome, Outcome::Pass);
        }
        let label = "confirm/max-iops";
        let phases = &mut fixture.manifest.phases;
        phases.iter_mut().find(|phase| phase.label == label).unwrap().settled = Some(false);
        let verdict = fixture.verdict("unsteady");
        assert_eq!(verdict.outcome, Outcome::Fail);
        let said = "confirm/max-iops: the rate did not settle in 1.25 s, warm-up and window";
        assert_eq!(verdict.evidence, said);
        assert!(verdict.concerns.contains(&"max_iops".to_owned()), "{:?}", verdict.concerns);
    }

    #[test]
    fn a_reference_that_waited_for_a_processor_says_nothing_of_the_storage() {
        let reference = |run_queue_ns: f64, rate: f64| {
            let mut fixture = Fixture::healthy();
            let behaviour = Behaviour { run_queue_ns, ..Behaviour::natural(rate, 1e9 / rate) };
            let spec = load(Op::Read, "psync", 1);
            fixture.add("reference", Group::Reference, spec, &behaviour);
            fixture.verdict("unsteady")
        };
        // 40 µs per read elsewhere; here 60 µs, of which 20 µs in the run queue.
        let waited = reference(21_000.0, 16_667.0);
        assert_eq!(waited.outcome, Outcome::Inconclusive, "{}", waited.evidence);
        assert!(waited.evidence.contains("run queue"), "{}", waited.evidence);
        let slow = reference(1_000.0, 16_667.0);
        assert_eq!(slow.outcome, Outcome::Fail, "{}", slow.evidence);
    }
}
