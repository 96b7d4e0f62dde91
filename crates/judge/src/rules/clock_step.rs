//! Clocks that were set, or a machine that was suspended, during a recording.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::{ClockReading, Manifest};

use super::{CalibrationRule, Case, RunCase, RunRule, all_figures, time};

const ABOUT: About = About {
    id: "clock-step",
    weight: Weight::Warns,
    doc: "The wall clock was set during the recording, or the machine was suspended: time stamps \
          cannot be matched with those of other logs, and what was measured across a suspension \
          contains it.",
    threshold: "`CLOCK_REALTIME` moved against `CLOCK_MONOTONIC` by 0.5 s or more between two \
                readings, beyond what `CLOCK_BOOTTIME` did (the clock was set); or \
                `CLOCK_BOOTTIME` moved against it by as much (the machine was suspended). Read at \
                the start, after each phase and at the end. A clock whose rate is corrected \
                (slewed) does not move against the monotonic one, whose rate is corrected alike; \
                a machine that a hypervisor paused shows only if its clock is set afterwards.",
    cause: "An NTP client that stepped the clock, a clock set by hand, a virtual machine that was \
            resumed or migrated, or a suspended machine.",
    next: "Match other logs by the times from the start of the recording, before and after the \
           step each by itself; measure again without a suspension.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

/// Larger differences hardly ever occur between the logs of machines that keep their clocks by NTP.
const MOVED_NS: u64 = 500_000_000;

fn check(case: &Case) -> Judgement {
    judge(case.manifest, |from_ns, to_ns| {
        let phases = case.manifest.phases.iter();
        let across = phases.filter(|phase| phase.start_ns < to_ns && phase.end_ns > from_ns);
        across.map(|phase| phase.label.clone()).collect()
    })
}

fn check_run(case: &RunCase) -> Judgement {
    judge(case.manifest, |_, _| all_figures())
}

/// `measured` returns what was measured between two instants.
fn judge(manifest: &Manifest, measured: impl Fn(u64, u64) -> Vec<String>) -> Judgement {
    let clocks = &manifest.clocks;
    if clocks.len() < 2 {
        return Judgement::inconclusive("the clocks of the machine were not compared");
    }
    let (mut seen, mut found, mut most_ns) = (Vec::new(), Vec::new(), 0);
    for pair in clocks.windows(2) {
        let (from, to) = (&pair[0], &pair[1]);
        let moved = |of: fn(&ClockReading) -> i64| of(to).saturating_sub(of(from));
        let suspended_ns = moved(|reading| reading.boottime_offset_ns);
        let set_ns = moved(|reading| reading.realtime_offset_ns).saturating_sub(suspended_ns);
        most_ns = most_ns.max(set_ns.unsigned_abs()).max(suspended_ns.unsigned_abs());
        let between = format!("between {} and {} of the recording", at(from), at(to));
        if suspended_ns.unsigned_abs() >= MOVED_NS {
            let length = time(suspended_ns.unsigned_abs() as f64);
            seen.push(format!("suspended for {length} {between}"));
            found.extend(measured(from.t_ns, to.t_ns));
        }
        if set_ns.unsigned_abs() >= MOVED_NS {
            let step = time(set_ns.unsigned_abs() as f64);
            let towards = if set_ns > 0 { "forward" } else { "back" };
            seen.push(format!("the wall clock was set {towards} by {step} {between}"));
        }
    }
    if !seen.is_empty() {
        return Judgement::fail(seen.join("; "), found);
    }
    Judgement::pass(format!(
        "in {} readings the wall clock and the time since boot kept their distance from the \
         monotonic clock within {}",
        clocks.len(),
        time(most_ns as f64)
    ))
}

fn at(reading: &ClockReading) -> String {
    time(reading.t_ns as f64)
}

#[cfg(test)]
mod tests {
    use blockstone_base::verdict::{Outcome, Verdict};
    use blockstone_record::manifest::ClockReading;

    use crate::testing::Fixture;

    const SECOND_NS: i64 = 1_000_000_000;

    /// Three readings; by the second and the third, the clocks have moved by this much.
    fn moved(realtime_ns: i64, boottime_ns: i64) -> Verdict {
        let mut fixture = Fixture::healthy();
        let end_ns = fixture.manifest.phases.last().unwrap().end_ns;
        let reading = |t_ns, after: i64| ClockReading {
            t_ns,
            realtime_offset_ns: 1_795_000_000 * SECOND_NS + after * realtime_ns,
            boottime_offset_ns: 7 + after * boottime_ns,
        };
        fixture.manifest.clocks = vec![reading(0, 0), reading(end_ns / 2, 1), reading(end_ns, 1)];
        fixture.verdict("clock-step")
    }

    #[test]
    fn a_clock_that_is_set_is_named_with_its_step_and_concerns_no_figure() {
        for (step_ns, towards) in [(2 * SECOND_NS, "forward by 2 s"), (-SECOND_NS, "back by 1 s")] {
            let verdict = moved(step_ns, 0);
            assert!(verdict.warns(), "{}", verdict.evidence);
            assert!(verdict.evidence.contains(towards), "{}", verdict.evidence);
            assert!(verdict.concerns.is_empty(), "rates do not depend on the wall clock");
        }
    }

    #[test]
    fn a_suspension_moves_both_clocks_and_concerns_what_was_measured_across_it() {
        let verdict = moved(30 * SECOND_NS, 30 * SECOND_NS);
        assert!(verdict.warns() && !verdict.concerns.is_empty(), "{}", verdict.evidence);
        assert!(verdict.evidence.starts_with("suspended for 30 s"), "{}", verdict.evidence);
        assert!(!verdict.evidence.contains("was set"), "{}", verdict.evidence);
        // The wall clock was set as well, by two seconds.
        let verdict = moved(32 * SECOND_NS, 30 * SECOND_NS);
        assert!(verdict.evidence.contains("set forward by 2 s"), "{}", verdict.evidence);
    }

    #[test]
    fn clocks_that_keep_their_distance_pass_and_unread_ones_are_not_judged() {
        assert_eq!(moved(400_000, 2_000).outcome, Outcome::Pass);
        assert_eq!(moved(SECOND_NS / 2 - 1, 0).outcome, Outcome::Pass);
        let mut fixture = Fixture::healthy();
        fixture.manifest.clocks.clear();
        assert_eq!(fixture.verdict("clock-step").outcome, Outcome::Inconclusive);
    }
}
