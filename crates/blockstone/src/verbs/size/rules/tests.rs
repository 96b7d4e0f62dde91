//! The rules on a need for hardware, and on a run that is compared with it.

use blockstone_base::rule::judge;
use blockstone_base::verdict::{Outcome, Verdict};

use super::*;

fn judged(findings: &NeedFindings, rule: &str) -> Option<Verdict> {
    judge(ALL, findings).into_iter().find(|it| it.rule == rule)
}

#[test]
fn a_load_that_stays_at_its_maximum_was_cut_off() {
    let outcome = |intervals, share| {
        let found = NeedFindings { intervals, at_max_share: share, ..NeedFindings::default() };
        judged(&found, "source-saturated").unwrap().outcome
    };
    assert_eq!(outcome(200, Some(0.10)), Outcome::Fail);
    assert_eq!(outcome(200, Some(0.005)), Outcome::Pass);
    assert_eq!(outcome(200, Some(0.02)), Outcome::Inconclusive);
    assert_eq!(outcome(24, Some(0.10)), Outcome::Inconclusive);
    assert_eq!(judge(ALL, &NeedFindings::default()), [], "a stated need was not observed");
}

#[test]
fn a_run_holds_a_prediction_or_not() {
    let held_to = |predicted_latency_ns_p99, iops: Option<f64>, p99_ms: Option<(f64, f64)>| {
        let latency = |(low, high): (f64, f64)| Estimate {
            value: f64::midpoint(low, high) * 1e6,
            low: low * 1e6,
            high: high * 1e6,
            samples: 1_000,
            duration_ns: 0,
        };
        let run = RunOfNeed {
            predicted_iops: Estimate::around(1_000.0, 100.0, 200, 0),
            iops: iops.map(|iops| Estimate::around(iops, 10.0, 1, 0)),
            wanted_latency_ns_p99: Some(10e6),
            predicted_latency_ns_p99,
            latency_ns_p99: p99_ms.map(latency),
        };
        let found = NeedFindings { run: Some(run), ..NeedFindings::default() };
        judged(&found, "prediction-held").unwrap()
    };
    let held = |iops, p99| held_to(None, iops, p99);
    let outcome = |iops, p99| held(iops, p99).outcome;
    assert_eq!(outcome(Some(950.0), Some((5.0, 9.0))), Outcome::Pass);
    assert_eq!(outcome(Some(950.0), Some((8.0, 20.0))), Outcome::Inconclusive);
    assert_eq!(outcome(Some(950.0), None), Outcome::Inconclusive);
    assert_eq!(outcome(None, None), Outcome::Inconclusive);
    let slow = held(Some(950.0), Some((20.0, 30.0)));
    assert!(slow.warns() && slow.concerns == ["read_latency_ns_p99"], "{slow:?}");
    let curve = |p99| held_to(Some((2e6, 4e6)), Some(950.0), Some(p99));
    assert_eq!(curve((2.5, 3.0)).outcome, Outcome::Pass);
    assert_eq!(curve((0.5, 1.0)).outcome, Outcome::Pass, "faster than the curve");
    assert_eq!(curve((3.0, 7.0)).outcome, Outcome::Inconclusive);
    let above = curve((5.0, 6.0));
    assert!(above.warns() && above.evidence.ends_with("between 2 ms and 4 ms"), "{above:?}");
    let less = held(Some(437.0), Some((1.0, 2.0)));
    assert!(less.evidence.contains("437 requests/s, predicted 900 – 1,100"), "{less:?}");
    assert_eq!(less.outcome, Outcome::Fail);
}
