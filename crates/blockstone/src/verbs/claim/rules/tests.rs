//! Each rule for claims passes, fails and is inconclusive.

use blockstone_base::link::LinkKind;

use super::*;
use crate::verbs::claim::stated::{Path, RATE, Speed};

fn claim(rate: f64, gigabit_links: u32) -> Claim {
    let link = Speed::Of(LinkKind::FibreChannel { gigabits: 1.0 });
    let links = vec![Path { count: gigabit_links, link }];
    Claim { rate: Some(rate), links, ..Claim::default() }
}

/// For each rule, a claim that passes, one that fails and one that is inconclusive.
fn cases() -> Vec<(&'static str, [Claim; 3])> {
    let large = Claim { data_bytes: Some(40e9), memory_bytes: Some(16e9), ..claim(90e6, 1) };
    let small = Claim { data_bytes: Some(31e9), ..large.clone() };
    let stated = |rate| Claim {
        rate: Some(rate),
        moved_bytes: Some(1e9),
        time_s: Some(10.0),
        ..Claim::default()
    };
    vec![
        ("memory-test", [large, small, claim(90e6, 1)]),
        ("above-link", [claim(90e6, 1), claim(108e6, 1), Claim { links: vec![], ..claim(1e6, 1) }]),
        (
            "contradiction",
            [stated(105e6), stated(300e6), Claim { rate: Some(1e9), ..Claim::default() }],
        ),
        (
            "wrong-unit",
            [stated(100e6), stated(800e6), Claim { rate: Some(1e9), ..Claim::default() }],
        ),
    ]
}

#[test]
fn every_rule_on_claims_passes_fails_and_is_left_open() {
    let cases = cases();
    for rule in ALL {
        assert!(cases.iter().any(|(id, _)| *id == rule.about.id), "{}", rule.about.id);
    }
    for (id, claims) in cases {
        let outcomes = [Outcome::Pass, Outcome::Fail, Outcome::Inconclusive];
        for (claim, expected) in claims.iter().zip(outcomes) {
            let verdicts = judge(ALL, claim);
            let verdict = verdicts.iter().find(|verdict| verdict.rule == id).unwrap();
            assert_eq!(verdict.outcome, expected, "{id}: {}", verdict.evidence);
            assert_eq!(verdict.condemns(), verdict.concerns == [RATE], "{id}");
        }
    }
}

#[test]
fn memory_and_units_explain_what_is_above_the_link() {
    let answer = |claim: &Claim| answer(claim).0;
    let memory = Claim { data_bytes: Some(1e9), memory_bytes: Some(16e9), ..claim(1.2e9, 2) };
    assert_eq!(answer(&memory), Answer::Memory);
    assert_eq!(answer(&Claim { direct: true, ..memory }), Answer::AboveLink);
    assert_eq!(answer(&claim(1e9, 1)), Answer::WrongUnit);
    assert_eq!(answer(&claim(450e6, 4)), Answer::AboveLink);
    assert_eq!(answer(&claim(412e6, 4)), Answer::Possible);
    let twice = Claim { moved_bytes: Some(512e6), time_s: Some(2.0), ..claim(1e9, 0) };
    assert_eq!(answer(&Claim { links: vec![], ..twice }), Answer::Contradiction);
    assert_eq!(answer(&Claim { rate: Some(1e9), ..Claim::default() }), Answer::Unknown);
    assert_eq!(answer(&Claim::default()), Answer::Unknown);
}
