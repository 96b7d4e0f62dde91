//! Pauses of the measuring program itself.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::ProbeInfo;

use super::{CalibrationRule, Case, labels, percent, time};
use crate::window::Window;

const ABOUT: About = About {
    id: "clock-pause",
    weight: Weight::Warns,
    doc: "The program or the whole machine stood still during a measurement, or ticks were missed: \
          latencies contain the pause, and rates rest on fewer samples than they should.",
    threshold: "In a window, two ticks at least 200 ms and five times the usual distance apart, \
                between which operations completed at less than half of the window's rate: a \
                device that stalls delays no tick, so the program did not run. Or more than 10 % \
                of all ticks of the recording were missed. A pause that the monotonic clock does \
                not count, such as that of a suspended machine, cannot be seen by it: `clock-step` \
                sees that.",
    cause: "A hypervisor that paused or migrated the machine, a stopped process (SIGSTOP, a frozen \
            control group), or processors that were taken away for long.",
    next: "See steal time and the kernel log (clocksource, soft lockup) at that time, and measure \
           again; ticks are missed less often if fewer other processes run.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);

const PAUSE_NS: u64 = 200_000_000;
const USUAL_TIMES: u64 = 5;
const STILL_RATIO: f64 = 0.5;
const MISSED_RATIO_MAX: f64 = 0.10;

fn check(case: &Case) -> Judgement {
    let mut longest = 0;
    let mut seen = Vec::new();
    let mut found = Vec::new();
    let mut judged = 0;
    for window in case.storage_windows() {
        let Some(gap_ns) = longest_gap(window) else { continue };
        judged += 1;
        longest = longest.max(gap_ns);
        if let Some(pause_ns) = pause(window) {
            let label = &case.phase(window).label;
            seen.push(format!("{label}: stood still for {}", time(pause_ns as f64)));
            found.push(label.clone());
        }
    }
    if judged == 0 {
        return Judgement::inconclusive("no window has ticks");
    }
    if let Some((missed, due)) = missed(&case.manifest.probes) {
        let ratio = missed as f64 / due as f64;
        if ratio > MISSED_RATIO_MAX {
            seen.push(format!("{missed} of {due} ticks ({}) were missed", percent(ratio)));
            found = labels(case.storage_points());
        }
    }
    if !seen.is_empty() {
        return Judgement::fail(seen.join("; "), found);
    }
    Judgement::pass(format!(
        "in {judged} windows ticks were at most {} apart",
        time(longest as f64)
    ))
}

/// Returns the ticks that were missed and those that were due, for the probe that missed most.
fn missed(probes: &[ProbeInfo]) -> Option<(u64, u64)> {
    let probe = probes.iter().max_by_key(|probe| probe.missed_ticks)?;
    let due = probe.ticks + probe.missed_ticks;
    (due > 0).then_some((probe.missed_ticks, due))
}

fn gaps(window: &Window) -> impl Iterator<Item = (u64, u64)> {
    window.ticks.windows(2).map(|pair| {
        let ops = pair[1].ops.saturating_sub(pair[0].ops);
        (pair[1].t_ns.saturating_sub(pair[0].t_ns), ops)
    })
}

fn longest_gap(window: &Window) -> Option<u64> {
    gaps(window).map(|(gap_ns, _)| gap_ns).max()
}

/// Returns the longest time between two ticks in which nothing ran.
fn pause(window: &Window) -> Option<u64> {
    let mut usual: Vec<u64> = gaps(window).map(|(gap_ns, _)| gap_ns).collect();
    usual.sort_unstable();
    let usual_ns = *usual.get(usual.len() / 2)?;
    let rate = |ops: u64, ns: u64| ops as f64 / ns.max(1) as f64;
    let usual_rate = rate(window.completed_ops(), window.duration_ns());
    gaps(window)
        .filter(|&(gap_ns, _)| gap_ns >= PAUSE_NS.max(usual_ns.saturating_mul(USUAL_TIMES)))
        .filter(|&(gap_ns, ops)| rate(ops, gap_ns) < usual_rate * STILL_RATIO)
        .map(|(gap_ns, _)| gap_ns)
        .max()
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::{Outcome, Verdict};

    use crate::testing::{Fixture, TICK_NS};

    const POINT: &str = "random-read/psync/x4";

    /// Moves everything from the tenth tick on to a later time; `ops` complete in the gap.
    fn paused(pause_ns: u64, keeps_running: bool) -> Verdict {
        let mut fixture = Fixture::healthy();
        let ticks = &mut fixture.window_mut(POINT).ticks;
        let each = ticks[10].ops - ticks[9].ops;
        let more = if keeps_running { each * pause_ns / TICK_NS } else { 0 };
        for tick in &mut ticks[10..] {
            tick.t_ns += pause_ns;
            tick.ops += more;
        }
        fixture.verdict("clock-pause")
    }

    #[test]
    fn a_pause_is_named_with_its_length() {
        let verdict = paused(1_950_000_000, false);
        assert!(verdict.warns(), "{}", verdict.evidence);
        assert_eq!(verdict.evidence, format!("{POINT}: stood still for 2 s"));
    }

    #[test]
    fn a_late_tick_beside_running_work_and_a_short_delay_are_no_pause() {
        assert_eq!(paused(1_950_000_000, true).outcome, Outcome::Pass);
        assert_eq!(paused(100_000_000, false).outcome, Outcome::Pass);
    }

    #[test]
    fn a_device_that_stalls_delays_no_tick() {
        let mut fixture = Fixture::healthy();
        let ticks = &mut fixture.window_mut(POINT).ticks;
        for at in 5..15 {
            ticks[at].ops = ticks[4].ops;
        }
        assert_eq!(fixture.verdict("clock-pause").outcome, Outcome::Pass);
    }

    #[test]
    fn many_missed_ticks_are_warned_about() {
        let judged = |missed_ticks| {
            let mut fixture = Fixture::healthy();
            let mut load = blockstone_record::testing::probe("load", &[]);
            (load.ticks, load.missed_ticks) = (1_000, missed_ticks);
            fixture.manifest.probes.push(load);
            fixture.verdict("clock-pause")
        };
        assert_eq!(judged(50).outcome, Outcome::Pass);
        let verdict = judged(1_000);
        assert!(verdict.warns() && !verdict.concerns.is_empty(), "{}", verdict.evidence);
        assert!(verdict.evidence.contains("1000 of 2000 ticks (50 %)"), "{}", verdict.evidence);
    }
}
