//! Sessions that waited for a processor.

use blockstone_base::verdict::Weight;

use super::{Judgement, RunCase, RunRule, percent};

pub(super) const RULE: RunRule = RunRule {
    id: "run-queue-delay",
    weight: Weight::Warns,
    doc: "Sessions that to a good part were ready to run while no processor was free.",
    threshold: "At least 25 % of the database time in the run queue, inside waits too: then \
                latencies of I/O hold time that the storage did not take.",
    cause: "More sessions than the processors serve, or other processes.",
    next: "Use fewer sessions or more processors; read latencies as those of a busy machine.",
    check,
};

const SHARE_MAX: f64 = 0.25;

fn check(case: &RunCase) -> Judgement {
    let waited = case.window.grown("event", "session/run queue", "time_ns");
    let (Ok(waited), Some(db_time)) = (waited, &case.findings.db_time) else {
        return Judgement::inconclusive("the run queue was not measured");
    };
    let share = waited as f64 / db_time.db_time_ns as f64;
    let evidence = format!("{} of the database time in the run queue", percent(share));
    if share < SHARE_MAX {
        return Judgement::pass(evidence);
    }
    let figures = ["read_latency_ns_mean", "read_latency_ns_p50", "read_latency_ns_p99"]
        .into_iter()
        .chain(["commit_latency_ns_mean", "commit_latency_ns_p50", "commit_latency_ns_p99"]);
    Judgement::fail(evidence, figures.map(str::to_owned).collect())
}
