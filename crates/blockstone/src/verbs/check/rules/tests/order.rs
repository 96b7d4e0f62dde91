//! The rule for the findings of `check write-order` passes, fails and is inconclusive.

use blockstone_base::Capability;
use blockstone_base::verdict::Outcome;
use blockstone_check::order::findings::{Cell, Class, Mode, OrderFindings, Side};

use crate::verbs::check::rules::judge_order;

fn found(classes: &[Class]) -> OrderFindings {
    let cell = |(&mode, &class): (&Mode, &Class)| Cell {
        mode,
        writers: 4,
        class,
        evidence: String::new(),
        error: None,
        one_file: Side { lock_time_share: Some(0.708), ..Side::default() },
        own_files: Some(Side::default()),
        waited_in: Vec::new(),
        held_in: Vec::new(),
    };
    OrderFindings {
        subject: "/data".to_owned(),
        file_system: "ext4".to_owned(),
        is_device: false,
        is_buffered: false,
        mount_options: "rw".to_owned(),
        writers: 4,
        kernel: Capability::Full,
        not_tried: None,
        cells: Mode::ALL.iter().zip(classes).map(cell).collect(),
        unfinished: false,
        signal: None,
    }
}

#[test]
fn writers_that_wait_are_a_warning_with_what_to_do() {
    use Class::{Refused, Scales, Serialises, Unknown};
    let judged = |classes: &[Class]| {
        let verdicts = judge_order(&found(classes));
        verdicts.into_iter().find(|verdict| verdict.rule == "writers-wait").unwrap()
    };
    let failed = judged(&[Scales, Unknown, Serialises, Serialises]);
    assert!(failed.warns() && failed.next.contains("XFS"), "{failed:?}");
    assert_eq!(failed.concerns, ["hole", "append"]);
    assert_eq!(failed.evidence, "2 of 4 modes: hole, append; up to 71 % of the time is waiting");
    assert_eq!(judged(&[Scales, Scales, Refused]).outcome, Outcome::Pass);
    assert_eq!(judged(&[Scales, Unknown]).outcome, Outcome::Inconclusive);
    assert_eq!(judged(&[Refused]).outcome, Outcome::Inconclusive);
    assert!(judge_order(&found(&[])).is_empty(), "nothing was tried");
}

#[test]
fn appends_that_overwrite_each_other_are_a_warning() {
    let judged = |requests, lost| {
        let mut findings = found(&[Class::Scales; 4]);
        let appends = findings.cells.iter_mut().find(|cell| cell.mode == Mode::Append).unwrap();
        appends.one_file = Side { requests, lost, ..appends.one_file };
        let verdicts = judge_order(&findings);
        verdicts.into_iter().find(|verdict| verdict.rule == "appends-lost").unwrap()
    };
    let failed = judged(1000, 740);
    assert!(failed.warns(), "{failed:?}");
    assert_eq!(failed.evidence, "740 of 1000 appends (74 %) are missing from the file");
    assert_eq!(failed.concerns, ["append"]);
    assert_eq!(judged(1000, 0).outcome, Outcome::Pass);
    assert_eq!(judged(0, 0).outcome, Outcome::Inconclusive, "they are refused");
}
