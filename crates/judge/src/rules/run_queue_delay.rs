//! Commits and sessions that waited for a processor.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Group;

use super::{CalibrationRule, Case, RunCase, RunRule, labels, percent, time};
use crate::findings::Point;

const ABOUT: About = About {
    id: "run-queue-delay",
    weight: Weight::Warns,
    doc: "Commits, or sessions of a run, that spent much of their time ready to run but without a \
          processor.",
    threshold: "Run-queue time (/proc/PID/schedstat) of at least 25 % of the mean commit latency \
                of one committer. A commit needs two or three context switches, which take some \
                microseconds on idle processors; on busy ones, commits were measured to be 15 to \
                30 times slower. In a run: at least 25 % of the database time is run-queue time, \
                including that inside waits, so that I/O latencies include time not spent in the \
                storage.",
    cause: "The processors are busy: other processes are running, or there are too few processors \
            for the load.",
    next: "Stop other processes, pin the log writer or raise its priority, or add processors; \
           commits are not waiting for the storage.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

const SHARE_MAX: f64 = 0.25;

fn check(case: &Case) -> Judgement {
    // With more committers, the delay of one is hidden behind the others' flushes.
    let single = |point: &&Point| point.load.in_flight() == 1;
    let shares: Vec<(&Point, f64, f64)> = case
        .group(Group::Commit)
        .filter(single)
        .filter_map(|point| {
            let waited_ns = point.cpu.run_queue_ns_per_io?;
            Some((point, waited_ns, waited_ns / point.latency.ns_mean.value.max(1.0)))
        })
        .collect();
    let Some(&(worst, waited_ns, share)) = shares.iter().max_by(|a, b| a.2.total_cmp(&b.2)) else {
        return Judgement::inconclusive(if case.group(Group::Commit).next().is_none() {
            "no commit was measured"
        } else {
            "run-queue time was not measured for a single committer"
        });
    };
    let evidence = format!(
        "{}: {} of {} mean latency ({}) in the run queue",
        worst.label,
        time(waited_ns),
        time(worst.latency.ns_mean.value),
        percent(share)
    );
    let slow = labels(shares.iter().filter(|(_, _, share)| *share >= SHARE_MAX).map(|s| s.0));
    Judgement::decide(!slow.is_empty(), evidence, slow)
}

fn check_run(case: &RunCase) -> Judgement {
    let waited = case.window.grown("event", "session/run queue", "time_ns");
    let (Ok(waited), Some(db_time)) = (waited, &case.findings.db_time) else {
        return Judgement::inconclusive("the run queue was not measured");
    };
    let share = waited as f64 / db_time.db_time_ns as f64;
    let evidence = format!("{} of the database time in the run queue", percent(share));
    let figures = ["read_latency_ns_mean", "read_latency_ns_p50", "read_latency_ns_p99"]
        .into_iter()
        .chain(["commit_latency_ns_mean", "commit_latency_ns_p50", "commit_latency_ns_p99"]);
    let figures = figures.map(str::to_owned).collect();
    Judgement::decide(share >= SHARE_MAX, evidence, figures)
        .caused_by("More sessions than the processors can run, or other processes.")
        .advising(
            "Use fewer sessions or more processors; the latencies are those of an overloaded \
             machine.",
        )
}
