//! Each rule for the findings of `check direct` passes, fails and is inconclusive.

use blockstone_base::Capability;
use blockstone_base::load::SyncFlag;
use blockstone_base::rule::judge;
use blockstone_base::verdict::Outcome;
use blockstone_check::direct::findings::{
    Cell, Class, DirectFindings, OpenFile, Opened, Operation, Shape,
};

use crate::verbs::check::rules::DIRECT;

fn nothing() -> DirectFindings {
    DirectFindings {
        subject: "/data".to_owned(),
        file_system: "ext4".to_owned(),
        mount_options: "rw".to_owned(),
        statx: Some("nothing".to_owned()),
        kernel: Capability::Full,
        cells: Vec::new(),
        files: Vec::new(),
        submitters: Vec::new(),
        submissions_unmeasured: None,
        submission_setting: None,
        unseen_files: 0,
        observed_s: 0.0,
        unfinished: false,
        signal: None,
    }
}

/// Findings for a path on which overwrites of 512 bytes have this class.
fn path(class: Class, promised: Option<bool>) -> DirectFindings {
    let cell = |shape, class, promised| Cell {
        operation: Operation::Overwrite,
        shape,
        class,
        evidence: String::new(),
        requests: 32,
        error: None,
        promised,
        added_pages: Some(0),
        direct_ios: Some(32),
        before_cached_bytes: Some(0),
        after_cached_bytes: Some(0),
        charged_ratio: Some(1.0),
    };
    let block = cell(Shape::Block, Class::Direct, promised.filter(|_| false));
    DirectFindings { cells: vec![block, cell(Shape::Sector, class, promised)], ..nothing() }
}

fn process(opened: Opened, requested: Option<Opened>, class: Class) -> DirectFindings {
    let file = OpenFile {
        path: "/data/base/1".to_owned(),
        file_type: "data".to_owned(),
        descriptors: 1,
        opened,
        sync: SyncFlag::None,
        requested,
        setting: requested.map(|_| "debug_io_direct=data".to_owned()),
        requested_sync: None,
        class,
        evidence: String::new(),
        size_bytes: 8192,
        cached_bytes: Some(0),
        dirty_bytes: Some(0),
        requests: Some(10),
        cached_share: Some(1.0),
    };
    DirectFindings { files: vec![file], statx: None, ..nothing() }
}

#[track_caller]
fn outcome(rule: &str, findings: &DirectFindings) -> Outcome {
    let verdicts = judge(DIRECT, findings);
    let verdict = verdicts.iter().find(|verdict| verdict.rule == rule).unwrap();
    assert_eq!(verdict.outcome == Outcome::Fail, !verdict.concerns.is_empty(), "{verdict:?}");
    verdict.outcome
}

#[test]
fn every_rule_on_direct_io_passes_fails_and_is_left_open() {
    let (direct, buffered) = (Opened::Direct, Opened::Buffered);
    let cases = [
        (
            "not-direct",
            [
                path(Class::Direct, Some(true)),
                path(Class::Dropped, Some(true)),
                path(Class::Unknown, Some(true)),
            ],
        ),
        (
            "alignment-refused",
            [
                path(Class::Direct, Some(true)),
                path(Class::Refused, Some(true)),
                path(Class::Refused, None),
            ],
        ),
        (
            "flags-contradict-settings",
            [
                process(direct, Some(direct), Class::Direct),
                process(buffered, Some(direct), Class::Buffered),
                process(direct, None, Class::Direct),
            ],
        ),
    ];
    for rule in DIRECT {
        assert!(cases.iter().any(|(id, _)| *id == rule.about.id), "{}", rule.about.id);
    }
    for (id, findings) in &cases {
        let expected = [Outcome::Pass, Outcome::Fail, Outcome::Inconclusive];
        for (findings, expected) in findings.iter().zip(expected) {
            assert_eq!(outcome(id, findings), expected, "{id}: {findings:?}");
        }
    }
}

#[test]
fn what_statx_does_not_promise_is_not_expected_to_be_direct() {
    let rule = "not-direct";
    assert_eq!(outcome(rule, &path(Class::Buffered, Some(false))), Outcome::Pass);
    assert_eq!(outcome(rule, &path(Class::Buffered, None)), Outcome::Pass, "512 bytes");
    assert_eq!(outcome(rule, &nothing()), Outcome::Inconclusive);
    let mut whole = path(Class::Direct, None);
    whole.cells[0].class = Class::Dropped;
    assert_eq!(outcome(rule, &whole), Outcome::Fail, "whole blocks are");
    whole.cells[0].class = Class::Memory;
    assert_eq!(outcome(rule, &whole), Outcome::Fail, "no storage is reached");
    whole.cells[0].class = Class::Refused;
    assert_eq!(outcome(rule, &whole), Outcome::Inconclusive, "nothing was accepted");
}

#[test]
fn open_files_are_judged_by_their_effect() {
    let (direct, buffered) = (Opened::Direct, Opened::Buffered);
    let rule = "not-direct";
    assert_eq!(outcome(rule, &process(direct, None, Class::Direct)), Outcome::Pass);
    let through = process(direct, None, Class::Dropped);
    assert_eq!(outcome(rule, &through), Outcome::Fail);
    let verdict = &judge(DIRECT, &through)[0];
    assert!(verdict.evidence.contains("100 % of their requests"), "{verdict:?}");
    assert_eq!(outcome(rule, &process(direct, None, Class::Unknown)), Outcome::Inconclusive);
    let mut idle = process(direct, None, Class::Unknown);
    idle.files[0].requests = Some(0);
    idle.files.extend(process(direct, None, Class::Direct).files);
    assert_eq!(outcome(rule, &idle), Outcome::Pass, "an idle file shows nothing");
    let by_choice = process(buffered, None, Class::Buffered);
    assert_eq!(outcome(rule, &by_choice), Outcome::Inconclusive, "nothing asked to bypass it");
}
