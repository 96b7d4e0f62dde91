//! The rules for runs on storage that filters pass, fail and are inconclusive.

use blockstone_base::verdict::Outcome;

use super::*;

const GIB: u64 = 1 << 30;

fn run(name: &str, eligible: u64, returned: u64) -> OffloadRun {
    OffloadRun {
        name: name.to_owned(),
        read_bytes: 1000 * GIB,
        eligible_bytes: Some(eligible * GIB),
        returned_bytes: Some(returned * GIB),
        wire_bytes: Some(returned * GIB),
        ..OffloadRun::default()
    }
}

fn timed(name: &str, hosts: u32, returned: u64, seconds: f64) -> OffloadRun {
    OffloadRun { hosts: Some(hosts), seconds: Some(seconds), ..run(name, 1000, returned) }
}

fn judged(rule: &str, runs: Vec<OffloadRun>) -> Verdict {
    let verdicts = judge_runs(&OffloadFindings { runs });
    verdicts.into_iter().find(|verdict| verdict.rule == rule).unwrap()
}

#[test]
fn nothing_is_judged_of_no_runs() {
    assert!(judge_runs(&OffloadFindings::default()).is_empty());
}

#[test]
fn a_ratio_of_little_that_is_eligible_is_condemned() {
    let rule = "ratio-misleading";
    assert_eq!(judged(rule, vec![run("a", 200, 20)]).outcome, Outcome::Pass);
    let failed = judged(rule, vec![run("a", 900, 20), run("b", 199, 2)]);
    assert!(failed.condemns(), "{failed:?}");
    assert_eq!(failed.concerns, ["b"]);
    assert!(failed.evidence.contains("of b (1 of 2 runs)"), "{failed:?}");
    let unknown = OffloadRun { returned_bytes: None, ..run("a", 100, 0) };
    assert_eq!(judged(rule, vec![unknown]).outcome, Outcome::Inconclusive);
    // The ratio is undefined if nothing is eligible.
    assert_eq!(judged(rule, vec![run("a", 0, 0)]).outcome, Outcome::Inconclusive);
}

#[test]
fn a_plan_that_leaves_nothing_to_filter_is_warned_of() {
    let rule = "not-offloaded";
    assert_eq!(judged(rule, vec![run("a", 10, 1)]).outcome, Outcome::Pass);
    let failed = judged(rule, vec![run("a", 10, 1), run("b", 9, 1), run("c", 0, 0)]);
    assert!(failed.warns() && failed.concerns == ["b", "c"], "{failed:?}");
    let unknown = OffloadRun { eligible_bytes: None, ..run("a", 1, 1) };
    assert_eq!(judged(rule, vec![unknown]).outcome, Outcome::Inconclusive);
}

#[test]
fn rows_sent_back_by_busy_cells_are_warned_of() {
    let rule = "sent-back";
    let back = |gib: u64| OffloadRun { balanced_bytes: Some(gib * GIB), ..run("a", 1000, 100) };
    assert_eq!(judged(rule, vec![back(9)]).outcome, Outcome::Pass);
    assert!(judged(rule, vec![back(10)]).warns());
    assert_eq!(judged(rule, vec![run("a", 1000, 100)]).outcome, Outcome::Inconclusive);
}

#[test]
fn sockets_that_count_other_bytes_than_their_interface_condemn_a_run() {
    let rule = "wire-disagrees";
    let over =
        |interface: u64| OffloadRun { interface_bytes: Some(interface), ..run("a", 1000, 1) };
    assert_eq!(judged(rule, vec![over(GIB), over(GIB * 1004 / 1000)]).outcome, Outcome::Pass);
    let failed = judged(rule, vec![over(GIB), over(GIB * 1006 / 1000)]);
    assert!(failed.condemns() && failed.concerns == ["a"], "{failed:?}");
    assert_eq!(judged(rule, vec![run("a", 1000, 1)]).outcome, Outcome::Inconclusive);
    // One or two more headers are a large share of very little.
    let count = |wire| OffloadRun { wire_bytes: Some(wire), ..over(1_100) };
    assert_eq!(judged(rule, vec![count(1_168)]).outcome, Outcome::Pass);
    assert!(judged(rule, vec![count(1_400)]).condemns());
}

#[test]
fn a_run_that_uses_little_of_its_link_waits_for_its_host() {
    let rule = "bound-by-host";
    let filtered = || timed("filtered", 1, 2, 100.0);
    let all =
        |link: Option<f64>| OffloadRun { link_bytes_per_s: link, ..timed("all", 1, 940, 1700.0) };
    let failed = judged(rule, vec![filtered(), all(Some(1.6e9))]);
    assert!(failed.warns() && failed.concerns == ["all"], "{failed:?}");
    // A saturated link is what binds.
    assert_eq!(judged(rule, vec![filtered(), all(Some(0.6e9))]).outcome, Outcome::Pass);
    assert_eq!(judged(rule, vec![filtered(), all(None)]).outcome, Outcome::Inconclusive);
    assert_eq!(judged(rule, vec![filtered()]).outcome, Outcome::Inconclusive);
    // Runs on other tables are not comparable.
    let other = OffloadRun { read_bytes: 500 * GIB, ..all(Some(1.6e9)) };
    assert_eq!(judged(rule, vec![filtered(), other]).outcome, Outcome::Inconclusive);
}

#[test]
fn without_a_link_more_hosts_that_are_faster_show_it() {
    let rule = "bound-by-host";
    let runs = |with_four: f64| {
        vec![
            timed("filtered", 1, 2, 100.0),
            timed("one", 1, 940, 1700.0),
            timed("four", 4, 940, with_four),
        ]
    };
    let failed = judged(rule, runs(425.0));
    assert!(failed.concerns.contains(&"one".to_owned()), "{failed:?}");
    // More hosts do not help: something else binds.
    let passed = judged(rule, runs(1690.0));
    assert!(!passed.concerns.contains(&"one".to_owned()), "{passed:?}");
}

#[test]
fn processor_time_says_which_part_bound_a_run() {
    let rule = "bound-by-host";
    let busy = |host_cpu_s: f64, cell_cpu_s: f64| OffloadRun {
        host_cpu_s: Some(host_cpu_s),
        host_processors: Some(1),
        cell_cpu_s: Some(cell_cpu_s),
        cell_processors: Some(4),
        ..timed("run", 1, 100, 10.0)
    };
    let failed = judged(rule, vec![busy(9.0, 4.0)]);
    assert!(failed.warns() && failed.concerns == ["run"], "{failed:?}");
    let said = "run: hosts computed for 90 % of its time, cells were busy for 10 %";
    assert_eq!(failed.evidence, said);
    // Cells bind, shared processors bind, the link binds, or nothing is busy computing.
    let shared = OffloadRun { shared_processors: Some(2), ..busy(9.0, 10.0) };
    let linked = OffloadRun { link_bytes_per_s: Some(1.1 * 10.0 * GIB as f64), ..busy(6.0, 4.0) };
    for run in [busy(6.0, 30.0), shared, linked, busy(0.4, 1.0)] {
        assert_eq!(judged(rule, vec![run.clone()]).outcome, Outcome::Pass, "{run:?}");
    }
    // Hosts alone: a low share is enough to pass, a high one is not enough to fail.
    let alone = |host_cpu_s: f64| OffloadRun { cell_cpu_s: None, ..busy(host_cpu_s, 0.0) };
    assert_eq!(judged(rule, vec![alone(2.0)]).outcome, Outcome::Pass);
    assert_eq!(judged(rule, vec![alone(9.0)]).outcome, Outcome::Inconclusive);
}
