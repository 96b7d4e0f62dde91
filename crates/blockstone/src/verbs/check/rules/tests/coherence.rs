//! The rule for the findings of `check coherence` passes, fails, warns and is inconclusive.

use blockstone_base::rule::judge;
use blockstone_base::verdict::{Outcome, Verdict};
use blockstone_check::coherence::findings::{Cell, Class, CoherenceFindings, WitnessOperation};

use crate::verbs::check::rules::COHERENCE;

fn found(classes: &[Class]) -> CoherenceFindings {
    let operation = |operation: &str, rank, version, start_ns| WitnessOperation {
        rank,
        operation: operation.to_owned(),
        subject: "block 0".to_owned(),
        version,
        start_ns,
        end_ns: Some(start_ns + 1_000_000),
    };
    let cell = |class: &Class| Cell {
        case: format!("ping-pong/buffered/{}", class.name()),
        class: *class,
        evidence: "v2 was not read".to_owned(),
        operations: 10,
        stale: 1,
        error: None,
        lag_ns_p50: None,
        lag_ns_p99: None,
        lag_ns_max: None,
        witness: Some([operation("write", 0, 2, 1_000_000), operation("read", 1, 1, 203_000_000)]),
    };
    CoherenceFindings {
        subject: "/a and /b".to_owned(),
        ranks: vec!["/a".to_owned(), "/b".to_owned()],
        clock_bound_ns: 0,
        patience_ns: 1,
        cells: classes.iter().map(cell).collect(),
        notes: Vec::new(),
        unfinished: false,
        signal: None,
    }
}

fn verdict(classes: &[Class]) -> Verdict {
    let verdicts = judge(COHERENCE, &found(classes));
    assert_eq!(verdicts.len(), 1);
    verdicts.into_iter().next().unwrap()
}

#[test]
fn every_rule_on_coherence_passes_fails_and_is_left_open() {
    assert_eq!(verdict(&[Class::Linearizable, Class::Unknown]).outcome, Outcome::Pass);
    assert_eq!(verdict(&[]).outcome, Outcome::Inconclusive);
    assert_eq!(verdict(&[Class::Unknown]).outcome, Outcome::Inconclusive);
    let failed = verdict(&[Class::Linearizable, Class::Reopen, Class::Never]);
    assert!(failed.condemns(), "{failed:?}");
    assert_eq!(failed.concerns, ["ping-pong/buffered/reopen", "ping-pong/buffered/never"]);
    let evidence = &failed.evidence;
    assert!(evidence.contains("write of v2 at rank 0 ended at 2 ms"), "{evidence}");
    assert!(evidence.contains("read of v1 at rank 1 started at 203 ms"), "{evidence}");
    assert!(verdict(&[Class::Timer]).condemns());
    assert!(verdict(&[Class::Torn, Class::Never]).next.contains("only one rank"));
}

#[test]
fn what_nfs_promises_is_a_warning() {
    for class in [Class::Reopen, Class::Sequential] {
        let verdict = verdict(&[Class::Linearizable, class]);
        assert!(verdict.warns(), "{verdict:?}");
    }
}
