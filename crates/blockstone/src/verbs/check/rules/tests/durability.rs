//! Each rule for the findings of `check durability` passes, fails and is inconclusive.

use blockstone_base::rule::judge;
use blockstone_base::verdict::Outcome;
use blockstone_check::durability::findings::{
    Class, Cuts, Description, DurabilityFindings, Flushing, Method, Pattern, Stage, Stream,
    StreamFindings, Witnessed,
};

use crate::verbs::check::rules::DURABILITY;

fn found(stage: Stage) -> DurabilityFindings {
    DurabilityFindings {
        stage,
        subject: "/data".to_owned(),
        file_system: "ext4".to_owned(),
        mount_options: "rw".to_owned(),
        barrier_off: None,
        hypervisor: None,
        layers: Vec::new(),
        flushing: None,
        streams: Vec::new(),
        cuts: Cuts::default(),
        witnessed: Vec::new(),
        missed_cuts: 0,
        notes: Vec::new(),
        signal: None,
    }
}

fn flushes(class: Class) -> DurabilityFindings {
    let evidence = "a flush takes 302 µs".to_owned();
    let (slope, write_ns_per_mib, asked_flushes) = (None, None, 60);
    let flushing = Flushing { class, evidence, slope, write_ns_per_mib, asked_flushes };
    DurabilityFindings { flushing: Some(flushing), ..found(Stage::Examined) }
}

fn stream(method: Method, class: Class, lost: u64) -> StreamFindings {
    StreamFindings {
        stream: Stream { method, pattern: Pattern::Overwrite },
        class,
        evidence: format!("{lost} lost"),
        acknowledged: 300,
        checked: 128,
        lost,
        torn: 0,
        misplaced: 0,
        reordered: 0,
        torn_in_flight: 0,
    }
}

fn cut(fsync: (Class, u64), control: (Class, u64)) -> DurabilityFindings {
    let fsync = stream(Method::Fsync, fsync.0, fsync.1);
    let control = stream(Method::DirectNone, control.0, control.1);
    DurabilityFindings { streams: vec![fsync, control], ..found(Stage::Verified) }
}

#[track_caller]
fn outcome(rule: &str, findings: &DurabilityFindings) -> Outcome {
    let verdicts = judge(DURABILITY, findings);
    let verdict = verdicts.iter().find(|verdict| verdict.rule == rule).unwrap();
    assert_eq!(verdict.outcome == Outcome::Fail, !verdict.concerns.is_empty(), "{verdict:?}");
    verdict.outcome
}

#[test]
fn every_rule_on_durability_passes_fails_and_is_left_open() {
    let cases = [
        (
            "lying-flush",
            [flushes(Class::Volatile), flushes(Class::Unflushed), flushes(Class::Flat)],
        ),
        (
            "lost-after-cut",
            [
                cut((Class::Durable, 0), (Class::Lost, 128)),
                cut((Class::Lost, 1), (Class::Lost, 128)),
                cut((Class::Inconclusive, 0), (Class::Inconclusive, 0)),
            ],
        ),
    ];
    for rule in DURABILITY {
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
fn what_the_chain_shows_counts_beside_the_times() {
    let rule = "lying-flush";
    assert_eq!(outcome(rule, &flushes(Class::Memory)), Outcome::Fail);
    let behind = |class| DurabilityFindings { hypervisor: Some("KVM".into()), ..flushes(class) };
    assert_eq!(outcome(rule, &behind(Class::Volatile)), Outcome::Inconclusive);
    let off = Some("nobarrier".to_owned());
    let mounted = DurabilityFindings { barrier_off: off, ..flushes(Class::Flat) };
    assert_eq!(outcome(rule, &mounted), Outcome::Fail);
    assert!(judge(DURABILITY, &found(Stage::Written)).is_empty(), "nothing is known yet");
}

#[test]
fn a_control_that_loses_is_no_fault_and_a_loss_is_one_whatever_the_controls_do() {
    let rule = "lost-after-cut";
    let gentle = cut((Class::Lost, 1), (Class::Inconclusive, 0));
    assert_eq!(outcome(rule, &gentle), Outcome::Fail);
    let nothing = found(Stage::Verified);
    assert_eq!(outcome(rule, &nothing), Outcome::Inconclusive);
}

#[test]
fn a_witness_judges_all_cuts_that_it_knows() {
    let rule = "lost-after-cut";
    let of = |(conclusive, with_loss, inconclusive)| {
        let (host, path) = ("db1".to_owned(), "/data".to_owned());
        let description = Description { host, path, device_bytes: None, streams: Vec::new() };
        let cuts = Cuts { conclusive, with_loss, inconclusive };
        let one = Witnessed { description, acknowledged: 9, cuts };
        DurabilityFindings { witnessed: vec![one.clone(), one], ..found(Stage::Witnessed) }
    };
    assert_eq!(outcome(rule, &of((3, 1, 0))), Outcome::Fail);
    assert_eq!(outcome(rule, &of((3, 0, 1))), Outcome::Pass);
    assert_eq!(outcome(rule, &of((0, 0, 1))), Outcome::Inconclusive);
    assert!(judge(DURABILITY, &of((0, 0, 0))).is_empty(), "no cut, no verdict");
}
