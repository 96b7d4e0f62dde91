//! A calibration on screen. `UPDATE_EXPECTED=1 cargo test -p blockstone --test reports` writes the
//! expected texts; read the difference before committing it.

use std::path::Path;

use blockstone_report::Report;
use blockstone_report::render::json;
use blockstone_report::render::terminal::{Style, text};

use crate::fixture::Fixture;

const PLAIN: Style = Style { color: false, width: 100 };
const COLOR: Style = Style { color: true, width: 100 };

pub fn expect(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports/expected").join(name);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{name} changed; it is now\n{text}\nand was\n{expected}");
}

fn screen(fixture: &Fixture, style: Style) -> String {
    let report = blockstone_cli::reports::calibration(&fixture.recording, &fixture.findings);
    let recording = "blockstone-runs/20261121-205700-calibrate-k3v9qz".to_owned();
    text(&Report { recording, ..report.unwrap() }, false, &style)
}

#[test]
fn a_clean_run_fills_one_screen() {
    let text = screen(&Fixture::clean(), PLAIN);
    assert!(text.lines().count() <= 45, "{} lines", text.lines().count());
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "wider than the terminal: {line}");
    }
    expect("clean.txt", &text);
}

#[test]
fn what_was_written_before_it_is_said_and_drawn() {
    let fixture = Fixture::preconditioned();
    expect("preconditioned.txt", &screen(&fixture, PLAIN));
    let report = blockstone_cli::reports::calibration(&fixture.recording, &fixture.findings);
    let report = report.unwrap();
    let document = json::document(&report);
    assert_eq!(document["tables"]["precondition-rounds"].as_array().unwrap().len(), 8);
    assert_eq!(document["precondition_settled"], true);
    let first = json::earlier(&report);
    assert_eq!(first["precondition"]["rounds"].as_array().unwrap().len(), 8);
    assert_eq!(first["precondition"]["settled"], true);
}

#[test]
fn a_mix_stands_beside_what_follows_from_reads_and_writes_alone() {
    let fixture = Fixture::mixed();
    expect("mixed.txt", &screen(&fixture, PLAIN));
    let report = blockstone_cli::reports::calibration(&fixture.recording, &fixture.findings);
    let report = report.unwrap();
    let document = json::document(&report);
    let mixes = document["tables"]["mixes"].as_array().unwrap();
    let names: Vec<&str> = mixes.iter().map(|mix| mix["mix"].as_str().unwrap()).collect();
    assert_eq!(names, ["100:0", "0:100", "70:30"]);
    let first = &json::earlier(&report)["mixes"][0];
    assert_eq!((&first["read_pct"], &first["in_flight"]), (&70.into(), &16.into()));
    let number = |key: &str| mixes[2][key]["value"].as_f64().unwrap();
    // 1 ÷ (0.7 ÷ 79,300 + 0.3 ÷ 99,100), and 79,300 ÷ 0.7.
    assert!((number("formula_iops") - 84_357.0).abs() < 1.0, "{mixes:#?}");
    assert!((number("separate_iops") - 113_286.0).abs() < 1.0, "{mixes:#?}");
}

#[test]
fn colours_change_nothing_but_the_emphasis() {
    let plain = screen(&Fixture::clean(), PLAIN);
    let colored = screen(&Fixture::clean(), COLOR);
    expect("clean-color.txt", &colored);
    assert_eq!(without_escapes(&colored), plain);
}

#[test]
fn a_condemned_number_is_struck_through_and_never_the_headline() {
    let clean = screen(&Fixture::clean(), PLAIN);
    let plain = screen(&Fixture::condemned(), PLAIN);
    let headline = clean.lines().next().unwrap().split(": ").nth(1).unwrap();
    assert!(headline.contains("IOPS"));
    let first = plain.lines().next().unwrap();
    assert!(first.ends_with(": no headline, condemned by memory-test"), "{first}");
    for number in headline.split(" · ") {
        assert!(!first.contains(number));
        for line in plain.lines().filter(|line| line.contains(number)) {
            assert!(line.contains(&format!("~~{number}~~")), "{line}");
        }
    }
    assert!(plain.contains("condemned: memory-test"));
    expect("condemned.txt", &plain);
    let colored = screen(&Fixture::condemned(), COLOR);
    assert!(colored.contains("\x1b[9m79,650 IOPS\x1b[29m"));
    expect("condemned-color.txt", &colored);
}

#[test]
fn an_interrupted_run_says_so_and_shows_what_it_has() {
    let text = screen(&Fixture::interrupted(), PLAIN);
    assert!(text.lines().nth(1).unwrap().contains("Interrupted by SIGINT"));
    expect("interrupted.txt", &text);
}

#[test]
fn a_narrow_terminal_is_not_overrun() {
    let text = screen(&Fixture::clean(), Style { color: false, width: 80 });
    for line in text.lines().filter(|line| !line.contains("blockstone-runs/")) {
        assert!(line.chars().count() <= 80, "wider than the terminal: {line}");
    }
    expect("narrow.txt", &text);
}

#[test]
fn nothing_measured_is_said_too() {
    let mut fixture = Fixture::interrupted();
    fixture.findings.points.clear();
    fixture.findings.summary.clear();
    fixture.findings.verdicts.clear();
    let text = screen(&fixture, PLAIN);
    assert!(text.starts_with("/u02/oradata: no headline: the run ended before it was measured\n"));
}

fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        out.push_str(part.split_once('m').unwrap().1);
    }
    out
}
