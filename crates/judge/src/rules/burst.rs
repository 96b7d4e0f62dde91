//! Burst credit that ran out during the measurement.

use blockstone_base::load::Pacing;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::stats;
use blockstone_base::units::thousands;
use blockstone_base::verdict::Weight;
use blockstone_figures::rate;
use blockstone_record::manifest::{Group, Manifest};

use super::{
    CalibrationRule, Case, RunCase, RunRule, all_figures, beyond_sight, labels, megabytes,
};
use crate::derive;
use crate::window::{Window, by_label};

const ABOUT: About = About {
    id: "burst",
    weight: Weight::Warns,
    doc: "A rate that fell in one step and stayed down: burst credits ran out, and only the lower \
          rate can be sustained.",
    threshold: "One step down by a factor of at least 1.5 between two levels that are each steady \
                within 15 %, or by a factor of at least 3 if within 30 %: inside a \
                window (three slices of 200 ms or more on either side), or between repeats of one \
                point (three or more). It is not a burst if a later window of the same kind is \
                25 % faster again, if the processor time of other processes rose by 10 % of the \
                total, or if the lower rate would have kept the bucket full. \
                Without a step the rule is inconclusive where a hypervisor, controller or array \
                may grant more credit than the measurement used. The size of the bucket is the \
                work completed until the step, less what was refilled at the lower rate. In a run: \
                the requests of the first device in slices of a second, if the operations a second \
                fell by a factor of 1.25 or more with them.",
    cause: "The burst credits of a cloud volume or hypervisor ran out; for writes, the SLC cache \
            of an SSD that fills up looks the same.",
    next: "Use the rate after the step for sizing; measure longer (--full) to see whether it \
           falls again.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

/// Factors of a step, and how steady either level must be for one.
const STEPS: [(f64, f64); 2] = [(1.5, 0.15), (3.0, 0.30)];
/// A cgroup throttle releases every 100 ms: slices of twice that always hold a release.
const SLICE_NS: u64 = 200_000_000;
const SLICES_PER_SIDE: usize = 3;
const RETURNED_RATIO: f64 = 1.25;
const FOREIGN_RISE: f64 = 0.10;
/// The rate of sessions that wait and compute varies more than that of a load generator.
const RUN_SLICE_NS: u64 = 1_000_000_000;
const OPERATIONS_FELL: f64 = 1.25;

struct Step {
    label: String,
    t_ns: u64,
    before: f64,
    after: f64,
}

fn check(case: &Case) -> Judgement {
    let windows: Vec<&Window> = case
        .storage_windows()
        .filter(|w| case.phase(w).load.as_ref().is_some_and(|l| l.pacing == Pacing::Closed))
        // A layout may come after a full write cache, an append after a full journal: neither is
        // repeated. Preconditioning is meant to make the device slower.
        .filter(|w| {
            let group = case.phase(w).group;
            !matches!(group, Group::Matrix | Group::Layout | Group::Precondition)
        })
        .collect();
    let slices = |window: &Window| coarse(&window.ops_track(), SLICE_NS);
    let long = windows.iter().filter(|w| slices(w).len() > 2 * SLICES_PER_SIDE).count();
    let repeats = by_label(case.manifest, windows.iter().copied());
    let repeated = repeats.iter().filter(|r| r.len() >= 3).count();
    if long + repeated == 0 {
        return Judgement::inconclusive(
            "no window was long enough and no point repeated often enough to show a step",
        );
    }
    let within = windows.iter().find_map(|w| within(&case.phase(w).label, &slices(w)));
    let step = within.or_else(|| repeats.iter().find_map(|r| between(case, r)));
    let burst = step
        .filter(|step| !came_back(case, &windows, step))
        .and_then(|step| Some((bucket(case, &windows, &step)?, step)));
    let Some((bucket, step)) = burst else {
        let seconds = windows.iter().map(|w| w.duration_ns()).sum::<u64>() as f64 / 1e9;
        let seen = format!(
            "no step down in {long} long windows and {repeated} repeated points, {seconds:.0} s in \
             all"
        );
        return match beyond_sight(case.manifest) {
            Some(between) => Judgement::inconclusive(format!(
                "{seen}; a larger bucket is not excluded: {between}"
            )),
            None => Judgement::pass(seen),
        };
    };
    let evidence = format!(
        "{}: {} IOPS before {:.1} s, {} IOPS after; {bucket}",
        step.label,
        thousands(step.before.round() as i64),
        step.t_ns as f64 / 1e9,
        thousands(step.after.round() as i64),
    );
    Judgement::fail(
        evidence,
        labels(case.storage_points().filter(|p| {
            case.point(&step.label).is_some_and(|stepped| stepped.load.op == p.load.op)
        })),
    )
}

/// Returns (end of slice, rate) over slices of at least `slice_ns`.
pub(super) fn coarse(track: &[(u64, u64)], slice_ns: u64) -> Vec<(u64, f64)> {
    let mut out = Vec::new();
    let Some(mut from) = track.first() else { return out };
    for tick in track {
        if tick.0 >= from.0 + slice_ns {
            let rate = tick.1.saturating_sub(from.1) as f64 * 1e9 / (tick.0 - from.0) as f64;
            out.push((tick.0, rate));
            from = tick;
        }
    }
    out
}

/// Returns the split of a window's slices that leaves the least variance on either side, if it is a
/// step. The slice that contains the step belongs to neither side.
fn within(label: &str, slices: &[(u64, f64)]) -> Option<Step> {
    let rates: Vec<f64> = slices.iter().map(|slice| slice.1).collect();
    let last = rates.len().checked_sub(SLICES_PER_SIDE + 1)?;
    let unexplained = |at: &usize| squares(&rates[..*at]) + squares(&rates[at + 1..]);
    let at = (SLICES_PER_SIDE..=last).min_by(|a, b| unexplained(a).total_cmp(&unexplained(b)))?;
    step(label.to_owned(), &rates[..at], &rates[at + 1..], slices[at].0)
}

fn between(case: &Case, same: &[&Window]) -> Option<Step> {
    if same.len() < 3 {
        return None;
    }
    let rates: Vec<f64> = same
        .iter()
        .map(|window| rate(&window.rated_ops()).map(|rate| rate.value))
        .collect::<Result<_, _>>()
        .ok()?;
    let foreign = |windows| derive::foreign(windows).map_or(0.0, |foreign| foreign.busy_ratio);
    (1..rates.len())
        .filter(|&at| foreign(&same[at..]) <= foreign(&same[..at]) + FOREIGN_RISE)
        .find_map(|at| {
            let t_ns = same[at].ticks.first()?.t_ns;
            step(case.phase(same[at]).label.clone(), &rates[..at], &rates[at..], t_ns)
        })
}

fn step(label: String, before: &[f64], after: &[f64], t_ns: u64) -> Option<Step> {
    let [spread, spread_after] = [before, after].map(stats::coefficient_of_variation);
    let level = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let (high, low) = (level(before), level(after));
    let is_step =
        |(factor, most): (f64, f64)| high >= factor * low && spread.max(spread_after) <= most;
    let stepped = low > 0.0 && STEPS.into_iter().any(is_step);
    stepped.then_some(Step { label, t_ns, before: high, after: low })
}

fn squares(rates: &[f64]) -> f64 {
    let level = rates.iter().sum::<f64>() / rates.len() as f64;
    rates.iter().map(|rate| (rate - level).powi(2)).sum()
}

/// Returns whether a later window with at least as much in flight was clearly faster than the lower
/// rate.
fn came_back(case: &Case, windows: &[&Window], step: &Step) -> bool {
    let load = |window: &Window| case.phase(window).load.as_ref();
    let Some(stepped) = windows.iter().find(|w| case.phase(w).label == step.label) else {
        return false;
    };
    let Some(stepped) = load(stepped) else { return false };
    windows
        .iter()
        .filter(|window| window.ticks.first().is_some_and(|tick| tick.t_ns > step.t_ns))
        .filter(|window| {
            load(window).is_some_and(|load| {
                load.op == stepped.op
                    && load.sync == stepped.sync
                    && load.block_bytes == stepped.block_bytes
                    && load.in_flight() >= stepped.in_flight()
            })
        })
        .filter_map(|window| rate(&window.rated_ops()).ok())
        .any(|rate| rate.value > step.after * RETURNED_RATIO)
}

/// Describes what was completed in the step's direction before the step, less the refill at the
/// lower rate. `None` if the refill exceeded it, because then no bucket can have run empty.
fn bucket(case: &Case, windows: &[&Window], step: &Step) -> Option<String> {
    let op = case.point(&step.label).map(|point| point.load.op);
    let (mut ops, mut bytes, mut began_ns) = (0, 0, step.t_ns);
    for window in windows {
        let phase = case.phase(window);
        if phase.load.as_ref().map(|load| load.op) != op || phase.start_ns >= step.t_ns {
            continue;
        }
        let until = window.ticks.iter().take_while(|tick| tick.t_ns <= step.t_ns).last();
        ops += until.map_or(0, |tick| tick.ops);
        bytes += until.map_or(0, |tick| tick.bytes);
        began_ns = began_ns.min(phase.start_ns);
    }
    let refilled = step.after * (step.t_ns - began_ns) as f64 / 1e9;
    let credit = ops as f64 - refilled;
    (credit > 0.0).then(|| {
        format!(
            "bucket about {} I/Os ({})",
            thousands(credit.round() as i64),
            megabytes((bytes as f64 * credit / ops as f64) as u64)
        )
    })
}

fn check_run(case: &RunCase) -> Judgement {
    let window = case.window;
    let Some(device) = case.manifest.target.devices.first() else {
        return Judgement::inconclusive("no device beneath the data is known");
    };
    let track = |column| window.track("block", &device.name, column).ok();
    let operations = window.track_of_all("operation", "completed_ops").ok();
    let (Some(reads), Some(writes), Some(operations)) =
        (track("read_ios"), track("write_ios"), operations)
    else {
        return Judgement::inconclusive("requests and operations were not measured over time");
    };
    let requests: Vec<(u64, u64)> =
        reads.iter().zip(&writes).map(|(read, write)| (read.0, read.1 + write.1)).collect();
    let slices = coarse(&requests, RUN_SLICE_NS);
    if slices.len() <= 2 * SLICES_PER_SIDE {
        return Judgement::inconclusive("the window was too short to show a step");
    }
    let seen = format!("no step down in {:.0} s", window.seconds());
    let Some(step) = within(&window.phase.label, &slices) else {
        return unless_larger(case.manifest, seen);
    };
    let fell = ratio_at(&operations, step.t_ns).is_some_and(|fell| fell >= OPERATIONS_FELL);
    let foreign = |from_ns, to_ns| {
        let part = window.between(from_ns, to_ns).machine();
        derive::foreign(&[&part]).map_or(0.0, |foreign| foreign.busy_ratio)
    };
    let rise = foreign(step.t_ns, window.to_ns) - foreign(window.from_ns, step.t_ns);
    if !fell || rise > FOREIGN_RISE {
        return unless_larger(case.manifest, seen);
    }
    let credit = (step.before - step.after) * (step.t_ns - window.from_ns) as f64 / 1e9;
    let evidence = format!(
        "{}: {} requests a second for {:.0} s, then {}; bucket of {} requests or more",
        device.name,
        thousands(step.before.round() as i64),
        (step.t_ns - window.from_ns) as f64 / 1e9,
        thousands(step.after.round() as i64),
        thousands(credit.round() as i64)
    );
    Judgement::fail(evidence, all_figures())
        .advising("Use a longer --for, and the rates after the step (report, over time).")
}

/// Returns the rate before ÷ the rate after an instant of a track.
fn ratio_at(track: &[(u64, u64)], t_ns: u64) -> Option<f64> {
    let (first, last) = (track.first()?, track.last()?);
    let split = track.iter().find(|tick| tick.0 >= t_ns)?;
    let rate = |from: &(u64, u64), to: &(u64, u64)| {
        to.1.saturating_sub(from.1) as f64 / to.0.saturating_sub(from.0).max(1) as f64
    };
    Some(rate(first, split) / rate(split, last).max(f64::MIN_POSITIVE))
}

/// Returns a pass, unless there may be more credit than the measurement used.
fn unless_larger(manifest: &Manifest, seen: String) -> Judgement {
    match beyond_sight(manifest) {
        Some(between) => {
            Judgement::inconclusive(format!("{seen}; a larger bucket is not excluded: {between}"))
        }
        None => Judgement::pass(seen),
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::load::Op;
    use blockstone_base::verdict::Outcome;
    use blockstone_record::manifest::Group;

    use crate::testing::{Behaviour, Fixture, load};

    fn repeats(rates: &[f64]) -> Fixture {
        let mut fixture = Fixture::empty();
        for &rate in rates {
            let behaviour = Behaviour::natural(rate, 1e9 / rate);
            fixture.add("reference", Group::Reference, load(Op::Read, "psync", 1), &behaviour);
        }
        fixture
    }

    #[test]
    fn a_step_between_repeats_gives_rates_and_bucket() {
        let verdict = repeats(&[10_000.0, 10_000.0, 2_000.0, 2_000.0]).verdict("burst");
        assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
        for part in ["before", "IOPS after", "bucket about"] {
            assert!(verdict.evidence.contains(part), "{}", verdict.evidence);
        }
    }

    #[test]
    fn a_large_step_between_levels_that_wander_is_one() {
        for (rates, outcome) in [
            ([14_000.0, 20_000.0, 2_000.0, 2_000.0], Outcome::Fail),
            ([14_000.0, 20_000.0, 8_000.0, 8_000.0], Outcome::Pass),
            ([9_000.0, 27_000.0, 2_000.0, 2_000.0], Outcome::Pass),
        ] {
            let verdict = repeats(&rates).verdict("burst");
            assert_eq!(verdict.outcome, outcome, "{rates:?}: {}", verdict.evidence);
        }
    }

    #[test]
    fn a_step_inside_a_window_gives_the_bucket_within_a_tenth() {
        let mut fixture = Fixture::empty();
        let mut slices = vec![9_000.0; 40];
        slices.extend([3_000.0; 40]);
        let behaviour = Behaviour { slices, ..Behaviour::natural(6_000.0, 1e6) };
        fixture.add("confirm/max-iops", Group::Confirm, load(Op::Read, "uring", 16), &behaviour);
        let verdict = fixture.verdict("burst");
        assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
        let text = verdict.evidence.split_once("bucket about ").unwrap().1;
        let bucket: f64 = text.split(' ').next().unwrap().replace(',', "").parse().unwrap();
        // (9,000 − 3,000) a second for 2 s; during the warm-up of 0.25 s there was only refill.
        assert!((bucket / 11_350.0 - 1.0).abs() < 0.1, "{}", verdict.evidence);
    }

    #[test]
    fn a_dip_a_decline_and_a_rise_are_no_credit() {
        for rates in [
            &[10_000.0, 3_000.0, 10_000.0, 10_000.0][..],
            &[10_000.0, 8_500.0, 7_000.0, 5_500.0],
            &[3_000.0, 10_000.0, 10_000.0],
        ] {
            let verdict = repeats(rates).verdict("burst");
            assert_eq!(verdict.outcome, Outcome::Pass, "{rates:?}: {}", verdict.evidence);
        }
    }

    #[test]
    fn a_neighbour_that_arrived_explains_a_step() {
        let mut fixture = repeats(&[10_000.0, 10_000.0, 2_000.0, 2_000.0]);
        for window in &mut fixture.windows[2..] {
            window.host.set("cpu_user_ns", 1_000_000_000);
        }
        assert_eq!(fixture.verdict("burst").outcome, Outcome::Pass);
    }

    #[test]
    fn credit_that_lasted_is_excluded_on_a_local_disk_only() {
        let mut fixture = repeats(&[10_000.0, 10_000.0, 10_000.0]);
        assert_eq!(fixture.verdict("burst").outcome, Outcome::Pass);
        fixture.manifest.host.hypervisor = Some("KVM".into());
        let verdict = fixture.verdict("burst");
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{}", verdict.evidence);
        assert!(verdict.evidence.contains("KVM"), "{}", verdict.evidence);
    }
}
