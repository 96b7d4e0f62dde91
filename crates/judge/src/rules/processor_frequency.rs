//! Processors that have to wake up, or run slowly, when a request of a single waiting reader
//! completes.

use std::collections::BTreeMap;

use blockstone_base::identity::{IdleState, Processors};
use blockstone_base::load::Op;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Group;

use super::{CalibrationRule, Case, labels, percent, time, virtualised};
use crate::findings::Point;

const ABOUT: About = About {
    id: "processor-frequency",
    weight: Weight::Warns,
    doc: "The latency of a single reader or writer contains the time that a processor took to \
          leave a deep idle state, or was taken at a low frequency: another setting of the machine \
          gives another latency on the same storage.",
    threshold: "Judged on points with one operation in flight. Idle states: the exit latencies \
                that the driver states (/sys/devices/system/cpu/cpu*/cpuidle), weighted by the \
                entries into each state in the window, are at least 10 % of the median latency; \
                where entries were not counted, or were fewer than the operations, the rule \
                passes if even the deepest state that is not disabled is below 10 %. Frequency: \
                the governor is not performance and the fastest processor ran below 60 % of the \
                highest frequency allowed when the window closed, or less than 60 % of what the \
                processor can do is allowed. Entries are those of all processors that the process \
                may use; the shares of a large machine that is idle otherwise are less certain. \
                Inconclusive without idle states, and on a guest: what the hypervisor's \
                processors do cannot be seen.",
    cause: "Power saving: deep idle states (C-states) or a governor that keeps the frequency low.",
    next: "Measure again with cpupower idle-set -D 10 (disables states with more than 10 µs) or a \
           program that holds /dev/cpu_dma_latency open, and with cpupower frequency-set -g \
           performance; use the same settings in production or expect the higher latency.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);

const EXIT_SHARE_MIN: f64 = 0.10;
const FREQUENCY_LOW: f64 = 0.60;

fn check(case: &Case) -> Judgement {
    let Some(processors) = &case.manifest.host.processors else {
        return Judgement::inconclusive("idle states and frequencies were not recorded");
    };
    let singles: Vec<&Point> = case.storage_points().filter(|point| is_single(point)).collect();
    let Some(fastest) = singles.iter().min_by(|a, b| median(a).total_cmp(&median(b))) else {
        return Judgement::inconclusive("no load had one operation in flight");
    };
    let mut found = Vec::new();
    let mut seen = Vec::new();
    let mut open = Vec::new();
    match idle(case, processors, &singles) {
        Idle::Costs(text) => found.push(text),
        Idle::Cheap(text) => seen.push(text),
        Idle::Open(text) => open.push(text),
    }
    match frequency(case, processors, fastest) {
        Some((true, text)) => found.push(text),
        Some((false, text)) => seen.push(text),
        None => {}
    }
    if !found.is_empty() {
        return Judgement::fail(found.join("; "), labels(singles));
    }
    open.extend(virtualised(case.manifest));
    if !open.is_empty() {
        open.extend(seen);
        return Judgement::inconclusive(open.join("; "));
    }
    Judgement::pass(seen.join("; "))
}

/// Returns whether a point has one operation in flight, commits excluded.
fn is_single(point: &Point) -> bool {
    let groups = [Group::RandomRead, Group::RandomWrite, Group::Reference];
    point.load.in_flight() == 1 && point.load.op != Op::Commit && groups.contains(&point.group)
}

fn median(point: &Point) -> f64 {
    point.latency.ns_p50.value
}

enum Idle {
    Costs(String),
    Cheap(String),
    Open(String),
}

fn idle(case: &Case, processors: &Processors, singles: &[&Point]) -> Idle {
    let enabled = || processors.idle_states.iter().filter(|state| !state.disabled);
    let Some(deepest) = enabled().max_by_key(|state| state.exit_latency_ns) else {
        return Idle::Open("no idle states are visible".to_owned());
    };
    let driver = processors.idle_driver.as_deref().unwrap_or("an unknown driver");
    let mut worst: Option<(f64, String)> = None;
    let mut uncounted = 0;
    for point in singles {
        let p50 = median(point);
        let Some((exit_ns, name)) = mean_exit(case, &processors.idle_states, &point.label) else {
            uncounted += 1;
            continue;
        };
        let share = exit_ns / p50;
        let text = format!(
            "{}: the idle states that were entered ({name} most) take {} to leave, {} of the \
             median latency of {} ({driver})",
            point.label,
            time(exit_ns),
            percent(share),
            time(p50)
        );
        if worst.as_ref().is_none_or(|(most, _)| share > *most) {
            worst = Some((share, text));
        }
    }
    let least = singles.iter().map(|point| median(point)).fold(f64::MAX, f64::min);
    let deepest_share = deepest.exit_latency_ns as f64 / least;
    match worst {
        Some((share, text)) if share >= EXIT_SHARE_MIN => Idle::Costs(text),
        Some((_, text)) if uncounted == 0 => Idle::Cheap(text),
        _ if deepest_share < EXIT_SHARE_MIN => Idle::Cheap(format!(
            "the deepest idle state ({}) takes {} to leave, {} of the median latency",
            deepest.name,
            time(deepest.exit_latency_ns as f64),
            percent(deepest_share)
        )),
        _ => Idle::Open(format!(
            "the deepest idle state ({}) takes {} to leave, {} of the median latency; how often it \
             was entered is not known",
            deepest.name,
            time(deepest.exit_latency_ns as f64),
            percent(deepest_share)
        )),
    }
}

/// Returns the mean exit latency of the idle states entered in the windows of a point, and the
/// state that was entered most. `None` if there were more operations than entries, so that a
/// processor did not go idle for each.
fn mean_exit(case: &Case, states: &[IdleState], label: &str) -> Option<(f64, String)> {
    let exit_ns: BTreeMap<&str, u64> =
        states.iter().map(|state| (state.name.as_str(), state.exit_latency_ns)).collect();
    let mut entries: BTreeMap<&str, u64> = BTreeMap::new();
    let mut operations = 0;
    for window in case.windows_of(label) {
        for used in &case.phase(window).processors.as_ref()?.idle {
            *entries.entry(used.state.as_str()).or_insert(0) += used.entries;
        }
        operations += window.completed_ops();
    }
    let all: u64 = entries.values().sum();
    if all == 0 || all < operations {
        return None;
    }
    let sum: f64 = entries
        .iter()
        .map(|(state, count)| *count as f64 * exit_ns.get(state).copied().unwrap_or(0) as f64)
        .sum();
    let most = entries.iter().max_by_key(|(_, count)| **count)?;
    Some((sum / all as f64, (*most.0).to_owned()))
}

/// Returns whether the frequency was low, and its description. `None` if it is not visible.
fn frequency(case: &Case, processors: &Processors, point: &Point) -> Option<(bool, String)> {
    let governor = processors.frequency_governor.as_deref()?;
    let allowed = processors.frequency_hz_max?;
    let able = processors.hardware_hz_max.unwrap_or(allowed).max(1);
    let capped = allowed as f64 / able as f64;
    if capped < FREQUENCY_LOW {
        return Some((
            true,
            format!(
                "frequencies up to {} are allowed, {} of what the processor can do",
                gigahertz(allowed),
                percent(capped)
            ),
        ));
    }
    let windows = case.windows_of(&point.label);
    let of_window = |window: &&crate::window::Window| {
        case.phase(window).processors.as_ref()?.frequency_hz_fastest
    };
    let Some(fastest) = windows.iter().filter_map(of_window).max() else {
        return Some((false, format!("governor {governor}")));
    };
    let share = fastest as f64 / allowed.max(1) as f64;
    let text = format!(
        "governor {governor}: the fastest processor ran at {} of {} ({}) at {}",
        gigahertz(fastest),
        gigahertz(allowed),
        percent(share),
        point.label
    );
    Some((governor != "performance" && share < FREQUENCY_LOW, text))
}

fn gigahertz(hertz: u64) -> String {
    format!("{:.2} GHz", hertz as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use blockstone_base::identity::{IdleUse, ProcessorUse};
    use blockstone_base::verdict::{Outcome, Verdict};

    use super::*;
    use crate::testing::Fixture;

    /// A healthy disk whose single reader has a median of about 125 µs, on a processor with these
    /// idle states (name, exit latency in µs, entries per operation).
    fn on(states: &[(&str, u64, f64)]) -> Fixture {
        let mut fixture = Fixture::healthy();
        let processors = fixture.manifest.host.processors.as_mut().unwrap();
        processors.idle_states = states
            .iter()
            .map(|&(name, micros, _)| IdleState {
                name: name.to_owned(),
                exit_latency_ns: micros * 1000,
                disabled: false,
            })
            .collect();
        for window in &fixture.windows {
            let operations = window.completed_ops() as f64;
            let used = |&(name, _, each): &(&str, u64, f64)| IdleUse {
                state: name.to_owned(),
                entries: (operations * each) as u64,
                time_ns: 0,
            };
            let idle = states.iter().map(used).collect();
            let used = ProcessorUse { idle, ..ProcessorUse::default() };
            fixture.manifest.phases[window.phase].processors = Some(used);
        }
        fixture
    }

    fn judged(fixture: &Fixture) -> Verdict {
        fixture.verdict("processor-frequency")
    }

    #[test]
    fn deep_idle_states_that_were_entered_are_put_down_to_the_latency() {
        let verdict = judged(&on(&[("POLL", 0, 0.1), ("C1", 2, 0.2), ("C6", 133, 1.5)]));
        assert!(verdict.warns(), "{}", verdict.evidence);
        assert!(verdict.evidence.contains("C6 most"), "{}", verdict.evidence);
        assert!(verdict.concerns.contains(&"read_latency_ns_p50".to_owned()));
        assert!(!verdict.concerns.contains(&"max_iops".to_owned()), "{:?}", verdict.concerns);
    }

    #[test]
    fn the_same_states_pass_if_they_were_not_entered_or_are_switched_off() {
        let rare = judged(&on(&[("POLL", 0, 0.1), ("C1", 2, 1.5), ("C6", 133, 0.005)]));
        assert_eq!(rare.outcome, Outcome::Pass, "{}", rare.evidence);
        let mut fixture = on(&[("POLL", 0, 0.0), ("C1", 2, 0.0), ("C6", 133, 0.0)]);
        let open = judged(&fixture);
        assert_eq!(open.outcome, Outcome::Inconclusive, "{}", open.evidence);
        assert!(open.evidence.contains("how often"), "{}", open.evidence);
        fixture.manifest.host.processors.as_mut().unwrap().idle_states[2].disabled = true;
        assert_eq!(judged(&fixture).outcome, Outcome::Pass);
    }

    #[test]
    fn a_low_frequency_is_a_warning_unless_the_governor_asks_for_the_highest() {
        let at = |governor: &str, hertz: u64, allowed: u64| {
            let mut fixture = Fixture::healthy();
            let processors = fixture.manifest.host.processors.as_mut().unwrap();
            processors.frequency_governor = Some(governor.into());
            (processors.frequency_hz_max, processors.hardware_hz_max) =
                (Some(allowed), Some(3_500_000_000));
            for phase in &mut fixture.manifest.phases {
                phase.processors.as_mut().unwrap().frequency_hz_fastest = Some(hertz);
            }
            judged(&fixture)
        };
        let low = at("powersave", 1_200_000_000, 3_500_000_000);
        assert!(low.warns() && low.evidence.contains("1.20 GHz of 3.50 GHz"), "{}", low.evidence);
        assert_eq!(at("powersave", 3_400_000_000, 3_500_000_000).outcome, Outcome::Pass);
        assert_eq!(at("performance", 1_200_000_000, 3_500_000_000).outcome, Outcome::Pass);
        let capped = at("performance", 1_200_000_000, 1_200_000_000);
        assert!(capped.warns() && capped.evidence.contains("allowed"), "{}", capped.evidence);
    }

    #[test]
    fn a_guest_and_an_older_recording_stay_open() {
        let mut fixture = on(&[("POLL", 0, 0.5), ("haltpoll idle", 1, 1.0)]);
        fixture.manifest.host.hypervisor = Some("KVM".into());
        let guest = judged(&fixture);
        assert_eq!(guest.outcome, Outcome::Inconclusive);
        assert!(guest.evidence.contains("KVM"), "{}", guest.evidence);
        fixture.manifest.host.processors = None;
        assert_eq!(judged(&fixture).outcome, Outcome::Inconclusive);
    }
}
