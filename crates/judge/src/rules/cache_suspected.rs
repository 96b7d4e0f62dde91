//! A cache that this machine cannot see: that of a hypervisor, a controller or an array.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::Bytes;
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Group;

use super::{CalibrationRule, Case, RunCase, RunRule, beyond_sight, labels, read_figures, time};
use crate::derive;
use crate::findings::Point;
use crate::window::Window;

const ABOUT: About = About {
    id: "cache-suspected",
    weight: Weight::Warns,
    doc: "A cache outside of this machine: small working sets are much faster than the whole \
          file, or the file is much faster once it has been read.",
    threshold: "The median read latency of a working set is at most 1/1.5 of that of the whole \
                file and its rate at least 1.5 times as high, with separate intervals, and it \
                takes less than 2 ms, which short seeks of a rotating disk do not; the step \
                between two sizes bounds the size of the cache. Or the same for blocks of the \
                whole file that are read again. Neither counts if the reference point moved by as \
                much. Or the whole file has become fast: the first reference window is at least 2 \
                times slower, in median and in rate, than the later two or more, which agree \
                within 10 %, and neither processor time of other processes nor steal explains it. \
                Without a step the rule is inconclusive where a hypervisor, controller or array \
                may have a cache as large as the file, unless the median read of the whole file \
                takes 2 ms or more, as no cache does. In a run: the same of the mean read of the \
                sessions in the first quarter of the window against the last two.",
    cause: "A cache of the hypervisor host, the controller or the array holds some or all of the \
            file.",
    next: "Measure a file several times larger than the suspected cache (--size).",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

/// Point that reads the blocks of the whole file's point a second time.
const RE_READ: &str = "cache-map/re-read";
const FASTER_RATIO: f64 = 1.5;
const FIRST_TOUCH_RATIO: f64 = 2.0;
const AGREEMENT: f64 = 0.10;
/// Answers from a cache take less than half a turn of the fastest rotating disk.
const SEEK_NS: f64 = 2e6;
/// Excess of foreign or stolen time over later windows, as a share of all, that explains a slow
/// first window.
const NOISE_MARGIN: f64 = 0.05;

fn check(case: &Case) -> Judgement {
    if let Some(evidence) = warmed_up(case) {
        return Judgement::fail(evidence, labels(case.reads()));
    }
    let mut map: Vec<&Point> =
        case.group(Group::CacheMap).filter(|point| point.label != RE_READ).collect();
    map.sort_by_key(|point| point.load.span_bytes);
    let [smallest, .., full] = map.as_slice() else {
        return Judgement::inconclusive("fewer than two working sets were measured");
    };
    let p50 = |point: &Point| point.latency.ns_p50;
    // With a throttle, medians depend on chance, so the rate has to agree with them.
    let fast = |point: &&&Point| {
        // A disk seeks less within a small set, but still has to wait for its rotation.
        p50(point).value < SEEK_NS
            && p50(point).value * FASTER_RATIO <= p50(full).value
            && p50(point).high < p50(full).low
            && point.iops.value >= full.iops.value * FASTER_RATIO
            && point.iops.low > full.iops.high
    };
    let again = case.group(Group::CacheMap).find(|point| point.label == RE_READ);
    if let Some(again) = again.filter(|again| fast(&again)) {
        return suspect(
            case,
            format!(
                "median {} for blocks of {} read a first time, {} for the same blocks read again",
                time(p50(full).value),
                Bytes(full.load.span_bytes),
                time(p50(again).value)
            ),
        );
    }
    let fast_count = map.iter().take_while(fast).count();
    let size = |point: &Point| Bytes(point.load.span_bytes);
    if fast_count == 0 {
        let seen = format!(
            "median {} in {} and {} in {}",
            time(p50(smallest).value),
            size(smallest),
            time(p50(full).value),
            size(full)
        );
        return match beyond_sight(case.manifest).filter(|_| p50(full).low < SEEK_NS) {
            Some(between) => Judgement::inconclusive(format!(
                "{seen}; {between}, and a cache there that holds the whole file looks the same"
            )),
            None => Judgement::pass(seen),
        };
    }
    let evidence = format!(
        "median {} in {} but {} in {}: a cache of {} to {}",
        time(p50(map[fast_count - 1]).value),
        size(map[fast_count - 1]),
        time(p50(full).value),
        size(full),
        size(map[fast_count - 1]),
        size(map[fast_count]),
    );
    suspect(case, evidence)
}

/// Suspects a cache. The points of the map were measured one after the other: the change of the
/// machine with the same load in the meantime must be smaller than the difference between them.
fn suspect(case: &Case, evidence: String) -> Judgement {
    if case.moved(FASTER_RATIO - 1.0) {
        return Judgement::inconclusive(format!("{evidence}; but the reference moved as much"));
    }
    Judgement::fail(evidence, labels(case.reads()))
}

/// Returns evidence if the reference shows that reading the file put all of it into a cache.
fn warmed_up(case: &Case) -> Option<String> {
    let reference = case.group(Group::Reference).next()?;
    let windows = case.windows_of(&reference.label);
    let (first, later) = windows.split_first()?;
    let median = |window: &Window| window.histogram.quantile_ns(0.5) as f64;
    let slowest = later.iter().map(|window| median(window)).fold(0.0, f64::max);
    let fastest = later.iter().map(|window| median(window)).fold(f64::MAX, f64::min);
    let agree = later.len() >= 2 && slowest <= fastest * (1.0 + AGREEMENT);
    let noise = |windows: &[&Window]| {
        Some(derive::foreign(windows).ok()?.busy_ratio + derive::steal_ratio(windows).ok()?)
    };
    let unexplained = noise(&[first])? <= noise(later)? + NOISE_MARGIN;
    // With a throttle, medians depend on chance, so the rate has to agree with them.
    let rate =
        |window: &Window| window.completed_ops() as f64 * 1e9 / window.duration_ns().max(1) as f64;
    let dropped = median(first) >= slowest * FIRST_TOUCH_RATIO
        && later.iter().all(|window| rate(window) >= rate(first) * FIRST_TOUCH_RATIO);
    (agree && dropped && unexplained).then(|| {
        format!(
            "{}: median {} at first, {} once the file had been read: all of it is cached",
            reference.label,
            time(median(first)),
            time(slowest)
        )
    })
}

/// The event that times single reads of sessions past the database's cache.
const READ: &str = "session/db file sequential read";
/// Fewest reads in each quarter of a window for which their mean is meaningful.
const ENOUGH_READS: u64 = 1_000;

fn check_run(case: &RunCase) -> Judgement {
    let window = case.window;
    let at = |quarter| window.from_ns + window.duration_ns() * quarter / 4;
    let quarter = |n| window.between(at(n), at(n + 1));
    let mean = |n| {
        let part = quarter(n);
        let reads = part.grown("event", READ, "waits").ok().filter(|&n| n >= ENOUGH_READS)?;
        Some((part.grown("event", READ, "time_ns").ok()? as f64 / reads as f64, reads as f64))
    };
    let (Some(first), Some(third), Some(last)) = (mean(0), mean(2), mean(3)) else {
        return Judgement::inconclusive("too few reads of the sessions were timed");
    };
    let seen = format!(
        "mean read {} in the first quarter of the window, {} in the last",
        time(first.0),
        time(last.0)
    );
    let noise = |n| {
        let part = quarter(n).machine();
        Some(derive::foreign(&[&part]).ok()?.busy_ratio + derive::steal_ratio(&[&part]).ok()?)
    };
    let agree = third.0.max(last.0) <= third.0.min(last.0) * (1.0 + AGREEMENT);
    let dropped = |later: (f64, f64)| {
        first.0 >= later.0 * FIRST_TOUCH_RATIO && later.1 >= first.1 * FIRST_TOUCH_RATIO
    };
    let explained = noise(0).zip(noise(3)).is_none_or(|(then, now)| then > now + NOISE_MARGIN);
    if agree && dropped(third) && dropped(last) && !explained {
        let evidence = format!("{seen}: what was read a first time is cached");
        return Judgement::fail(evidence, read_figures())
            .advising("Use a larger --scale, so that the data do not fit the suspected cache.");
    }
    let median_ns = case.findings.figure("read_latency_ns_p50").map(|figure| figure.estimate.low);
    let of_a_disk = median_ns.is_some_and(|low| low >= SEEK_NS);
    match beyond_sight(case.manifest).filter(|_| !of_a_disk) {
        Some(between) => Judgement::inconclusive(format!(
            "{seen}; {between}, and a cache there that holds all data looks the same"
        )),
        None => Judgement::pass(seen),
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::load::Op;
    use blockstone_base::verdict::{Outcome, Weight};

    use super::*;
    use crate::testing::{Behaviour, Fixture, load, saturating};

    fn first_touch(slow_ns: f64) -> Fixture {
        let mut fixture = Fixture::empty();
        let slow = Behaviour::natural(1e9 / slow_ns, slow_ns);
        fixture.add("reference", Group::Reference, load(Op::Read, "psync", 1), &slow);
        for _ in 0..2 {
            let fast = saturating(80_000.0, 3.2, 1);
            fixture.add("reference", Group::Reference, load(Op::Read, "psync", 1), &fast);
        }
        fixture
    }

    #[test]
    fn a_file_that_became_fast_as_a_whole_is_noticed() {
        let verdict = first_touch(400e3).verdict("cache-suspected");
        assert_eq!((verdict.outcome, verdict.weight), (Outcome::Fail, Weight::Warns));
        assert_eq!(first_touch(50e3).verdict("cache-suspected").outcome, Outcome::Inconclusive);
    }

    #[test]
    fn a_busy_machine_at_first_is_not_taken_for_a_cold_cache() {
        let mut fixture = first_touch(400e3);
        fixture.windows[0].host.set("cpu_user_ns", 1_000_000_000);
        assert_eq!(fixture.verdict("cache-suspected").outcome, Outcome::Inconclusive);
    }

    #[test]
    fn the_map_bounds_the_cache_and_only_warns() {
        let fixture = Fixture::reads_as(|l| match l.in_flight() {
            1 if l.span_bytes <= 64 << 20 => Behaviour::natural(16_000.0, 60e3),
            n => saturating(40_000.0, 8.0, n),
        });
        let verdict = fixture.verdict("cache-suspected");
        assert_eq!((verdict.outcome, verdict.weight), (Outcome::Fail, Weight::Warns));
        assert!(verdict.evidence.ends_with("a cache of 64 MiB to 4 GiB"), "{}", verdict.evidence);
    }

    #[test]
    fn a_cache_as_large_as_the_file_is_excluded_by_a_local_disk_or_by_turns_of_it() {
        let judged = |ceiling: f64, hypervisor: Option<&str>| {
            let mut fixture = Fixture::reads_as(|load| saturating(ceiling, 1.2, load.in_flight()));
            fixture.manifest.host.hypervisor = hypervisor.map(str::to_owned);
            let verdict = fixture.verdict("cache-suspected");
            (verdict.outcome, verdict.evidence)
        };
        assert_eq!(judged(20_000.0, None).0, Outcome::Pass);
        let (outcome, evidence) = judged(20_000.0, Some("KVM"));
        assert_eq!(outcome, Outcome::Inconclusive, "{evidence}");
        assert!(evidence.contains("KVM") && evidence.contains("the whole file"), "{evidence}");
        assert_eq!(judged(200.0, Some("KVM")).0, Outcome::Pass);
    }

    #[test]
    fn short_seeks_of_a_rotating_disk_are_no_cache() {
        let judged = |small_ns: f64| {
            let fixture = Fixture::reads_as(|l| match l.in_flight() {
                1 if l.span_bytes <= 64 << 20 => Behaviour::natural(1e9 / small_ns, small_ns),
                n => saturating(240.0, 2.0, n),
            });
            fixture.verdict("cache-suspected").outcome
        };
        assert_eq!(judged(4e6), Outcome::Pass);
        assert_eq!(judged(200e3), Outcome::Fail);
    }
}
