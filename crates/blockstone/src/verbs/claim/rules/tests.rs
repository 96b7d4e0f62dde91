//! Each rule for claims passes, fails and is inconclusive.

use blockstone_base::link::LinkKind;

use super::*;
use crate::verbs::claim::stated::{Disks, Flow, Kind, Path, RATE, Span, Speed};

fn claim(rate: f64, gigabit_links: u32) -> Claim {
    let link = Speed::Of(LinkKind::FibreChannel { gigabits: 1.0 });
    let links = vec![Path { count: gigabit_links, link }];
    Claim { links, ..of_rate(rate) }
}

fn of_rate(rate: f64) -> Claim {
    let rate = Flow { of: Kind::default(), span: Span::of(rate), is_listed: false };
    Claim { rates: vec![rate], ..Claim::default() }
}

/// For each rule, a claim that passes, one that fails and one that is inconclusive.
fn cases() -> Vec<(&'static str, [Claim; 3])> {
    let span = |value| Some(Span::of(value));
    let large = Claim { data_bytes: span(40e9), memory_bytes: span(16e9), ..claim(90e6, 1) };
    let small = Claim { data_bytes: span(31e9), ..large.clone() };
    let stated = |rate| Claim { moved_bytes: span(1e9), time_s: span(10.0), ..of_rate(rate) };
    let spindles = |rate| Claim {
        disks: Some(Disks { count: 10.0, rotating: true, rpm: None }),
        ..of_rate(rate)
    };
    vec![
        ("memory-test", [large, small, claim(90e6, 1)]),
        ("above-link", [claim(90e6, 1), claim(108e6, 1), Claim { links: vec![], ..claim(1e6, 1) }]),
        ("contradiction", [stated(105e6), stated(300e6), of_rate(1e9)]),
        ("above-disk", [spindles(2.9e9), spindles(3.1e9), of_rate(1e9)]),
        ("wrong-unit", [stated(100e6), stated(800e6), of_rate(1e9)]),
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
            let is_rate = verdict.concerns.iter().any(|concern| concern == RATE);
            assert_eq!(verdict.condemns(), is_rate, "{id}");
        }
    }
}

#[test]
fn memory_and_units_explain_what_is_above_the_link() {
    let answer = |claim: &Claim| answer(claim).0;
    let span = |value| Some(Span::of(value));
    let memory = Claim { data_bytes: span(1e9), memory_bytes: span(16e9), ..claim(1.2e9, 2) };
    assert_eq!(answer(&memory), Answer::Memory);
    assert_eq!(answer(&Claim { direct: true, ..memory }), Answer::AboveLink);
    assert_eq!(answer(&claim(1e9, 1)), Answer::WrongUnit);
    assert_eq!(answer(&claim(450e6, 4)), Answer::AboveLink);
    assert_eq!(answer(&claim(412e6, 4)), Answer::Possible);
    let twice = Claim { moved_bytes: span(512e6), time_s: span(2.0), ..claim(1e9, 0) };
    assert_eq!(answer(&Claim { links: vec![], ..twice }), Answer::Contradiction);
    assert_eq!(answer(&of_rate(1e9)), Answer::Unknown);
    assert_eq!(answer(&Claim::default()), Answer::Unknown);
}
