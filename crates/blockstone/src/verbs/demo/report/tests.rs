use blockstone_base::verdict::Weight;
use blockstone_record::testing;
use blockstone_report::render::terminal::{self, Style};
use blockstone_report::render::{html, json};
use serde_json::Value;

use super::*;
use crate::exit::Exit;
use crate::finish::exit;
use crate::testing::keeps_to_its_schema;

fn verdict(rule: &str, outcome: Outcome, weight: Weight, concerns: &[&str]) -> Verdict {
    Verdict {
        rule: rule.to_owned(),
        outcome,
        weight,
        concerns: concerns.iter().map(|&name| name.to_owned()).collect(),
        evidence: format!("the evidence of {rule}"),
        cause: String::new(),
        next: String::new(),
    }
}

/// A way with this figure, which these rules condemn.
fn found(way: Way, iops: f64, condemned_by: &[&str]) -> Found {
    let mut verdicts = vec![verdict(EVIDENCE, Outcome::Pass, Weight::Condemns, &[])];
    verdicts.extend(
        condemned_by
            .iter()
            .map(|&rule| verdict(rule, Outcome::Fail, Weight::Condemns, &["max_iops", "max_mbps"])),
    );
    Found {
        way,
        iops: Some(Estimate::around(iops, iops / 50.0, 900, 320_000_000)),
        condemned_by: condemned_by.iter().map(|&rule| rule.to_owned()).collect(),
        verdicts,
        manifest: testing::manifest(),
    }
}

fn capped() -> Found {
    let mut capped = found(Way::Cap { reads_per_s: 1_000 }, 1_000.0, &[]);
    let concerns = ["max_iops", "knee_iops"];
    capped.verdicts.push(verdict("throttled", Outcome::Fail, Weight::Warns, &concerns));
    capped
}

fn shown() -> Vec<Found> {
    vec![
        found(Way::Honest, 10_000.0, &[]),
        found(Way::Sparse, 200_000.0, &["hole", "compressible"]),
        found(Way::PageCache, 300_000.0, &["not-direct"]),
        capped(),
    ]
}

fn report(found: &[Found]) -> Report {
    super::report(Path::new("/data"), found)
}

fn text(report: &Report, width: usize) -> String {
    terminal::text(report, false, &Style { color: false, width })
}

fn document(report: &Report) -> Value {
    let document = json::document(report);
    keeps_to_its_schema(&document);
    document
}

#[test]
fn an_honest_figure_stands_beside_those_that_are_condemned() {
    let report = report(&shown());
    assert_eq!(exit(&report), Exit::Done);
    let text = text(&report, 100);
    for part in [
        "/data: 10,000 honest random reads/s ±2 % · it stands; 2 false figures are condemned, the \
         cap is named",
        "~~200,000~~",
        "condemned: hole, compressible",
        "throttled: the evidence of throttled",
        "hole: the evidence of hole",
        "Without these checks, 300,000 would have been believed (from the page cache): 30 times \
         the honest figure.",
        "blockstone calibrate /data",
    ] {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).contains(part), "{part}: {text}");
    }
    let document = document(&report);
    assert_eq!(document["shown"], true);
    assert_eq!(document["believed_ratio"]["value"], 30.0);
    let cap = &document["tables"]["ways"][3];
    assert_eq!((&cap["way"], &cap["warned_by"]), (&"cap".into(), &"throttled".into()));
    assert_eq!(document["tables"]["ways"][1]["condemned_by"][0], "hole");
    assert!(html::page(&report).unwrap().contains("not-direct"));
}

#[test]
fn a_figure_with_a_wide_interval_is_not_said_to_stand() {
    let mut found = shown();
    found[0].iops = Some(Estimate::around(10_000.0, 15_600.0, 900, 320_000_000).not_negative());
    let report = report(&found);
    assert_eq!((exit(&report), report.headline.tone), (Exit::Done, Tone::Warning));
    let text = text(&report, 400);
    assert!(text.contains("too unsteady to rely on; 2 false figures are condemned"), "{text}");
    assert!(text.contains("is between 0 and 25,600 random reads a second: repeat"), "{text}");
    assert!(!text.contains("times the honest"), "{text}");
}

#[test]
fn a_trap_that_no_rule_notices_is_not_shown() {
    for at in 1..4 {
        let mut found = shown();
        found[at].condemned_by.clear();
        found[at].verdicts.clear();
        let report = report(&found);
        assert_eq!(exit(&report), Exit::NotTrustworthy);
        let missed = format!("not noticed: {}", found[at].way.name());
        assert!(report.headline.text == missed, "{:?}", report.headline);
        assert_eq!(document(&report)["shown"], false);
    }
}

#[test]
fn files_in_memory_have_no_honest_figure() {
    let mut found = shown();
    let given = Way::GivenRate { reads_per_s: 70, why: "no block device lies beneath it".into() };
    found[3] = self::found(given, 70.0, &[MEMORY]);
    found[0] = self::found(Way::Honest, 250_000.0, &[MEMORY, "memory-test"]);
    let report = report(&found);
    assert_eq!(exit(&report), Exit::NotTrustworthy);
    let text = text(&report, 100);
    assert!(text.contains("no figure stands: the files are in memory"), "{text}");
    assert!(text.contains("This file is memory too"), "{text}");
    assert!(text.contains("300,000 would have been believed"), "{text}");
    assert!(text.contains("no block device lies beneath it"), "{text}");
    let document = document(&report);
    assert_eq!(document["honest_iops"]["unmeasured"], "no evidence");
    assert_eq!(document["believed_ratio"]["unmeasured"], "nothing happened");
    assert_eq!(document["verdicts"][1]["concerns"][0], "honest");
}

#[test]
fn a_given_rate_is_noticed_without_a_rule() {
    let mut found = shown();
    let why = "write io.max: Permission denied".to_owned();
    found[3] = self::found(Way::GivenRate { reads_per_s: 1_000, why }, 999.0, &[]);
    let report = report(&found);
    assert_eq!(exit(&report), Exit::Done);
    let text = text(&report, 80);
    assert!(text.contains("given-rate") && !text.contains("cap is named"), "{text}");
    assert!(text.contains("Permission denied"), "{text}");
}

#[test]
fn an_early_end_is_told_and_ends_with_its_code() {
    let mut found = shown();
    found.truncate(2);
    found[1].manifest.end = End::Interrupted { signal: "SIGINT".to_owned() };
    found[1].iops = None;
    found[1].condemned_by.clear();
    let report = report(&found);
    assert_eq!(exit(&report), Exit::Interrupted);
    let text = text(&report, 100);
    assert!(text.contains("ended in 2 of 4 ways") && !text.contains("Next:"), "{text}");
    document(&report);
}

#[test]
fn warnings_of_other_figures_are_left_out() {
    let mut found = shown();
    found[0].verdicts.push(verdict("unsteady", Outcome::Fail, Weight::Warns, &["max_mbps"]));
    found[0].verdicts.push(verdict("unsteady", Outcome::Fail, Weight::Warns, &["max_iops"]));
    let report = report(&found);
    let warned: Vec<_> = report.verdicts.iter().filter(|it| it.warns()).collect();
    assert_eq!(warned.len(), 1);
    assert_eq!(warned[0].concerns, ["honest"]);
    assert_eq!(exit(&report), Exit::Done);
}
