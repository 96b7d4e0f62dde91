//! The rules on traces of statements pass, fail and are inconclusive.

use blockstone_base::rule::judge;
use blockstone_base::verdict::Outcome;

use super::*;

fn outcome(rule: &str, findings: &TraceFindings) -> Outcome {
    let verdicts = judge(ALL, findings);
    assert_eq!(verdicts.len(), 2);
    verdicts.into_iter().find(|verdict| verdict.rule == rule).unwrap().outcome
}

#[test]
fn time_that_ticks_do_not_explain_is_a_warning() {
    let of = |unaccounted_ns, uncertain_ns| {
        let findings = TraceFindings {
            response_ns: 1e9,
            unaccounted_ns,
            uncertain_ns,
            ..TraceFindings::default()
        };
        outcome("unaccounted-time", &findings)
    };
    assert_eq!(of(Some(2e8), 1e7), Outcome::Fail);
    assert_eq!(of(Some(-2e8), 1e7), Outcome::Fail);
    assert_eq!(of(Some(2e8), 3e8), Outcome::Pass, "ticks explain it");
    assert_eq!(of(Some(9e7), 0.0), Outcome::Pass);
    assert_eq!(of(None, 0.0), Outcome::Inconclusive);
}

#[test]
fn what_was_cut_is_a_warning() {
    let of = |cut_files, skipped_lines| {
        let findings =
            TraceFindings { cut_files, skipped_lines, lines: 1000, ..TraceFindings::default() };
        outcome("trace-truncated", &findings)
    };
    assert_eq!(of(0, 5), Outcome::Pass);
    assert_eq!(of(1, 0), Outcome::Fail);
    assert_eq!(of(0, 11), Outcome::Fail);
}
