//! Recordings of format 1 that an earlier version made (tests/fixtures/recording-1) are read,
//! judged and rendered. Their figures and verdicts change only with the methods of estimation.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::path::PathBuf;

use blockstone_testkit::{Ran, blockstone_binary, run};
use serde_json::Value;

const MEASURED: [&str; 5] = ["calibrate", "run", "scan", "noise", "sqlite"];

fn fixture(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recording-1");
    dir.join(name)
}

fn expected(name: &str) -> Value {
    let text = std::fs::read_to_string(fixture(name).join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn blockstone(arguments: &[&str]) -> Ran {
    run(std::process::Command::new(blockstone_binary()).args(arguments).env("COLUMNS", "100"))
}

fn document(arguments: &[&str]) -> Value {
    let ran = blockstone(arguments);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr))
}

/// Compares all but the last digits: sums may be taken in a different order.
fn assert_alike(found: &Value, expected: &Value, at: &str) {
    match (found, expected) {
        (Value::Number(found), Value::Number(expected)) => {
            let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
            let apart = (found - expected).abs();
            assert!(apart <= 1e-9 * expected.abs(), "{at}: {found} in place of {expected}");
        }
        (Value::Object(found), Value::Object(expected)) => {
            for (key, expected) in expected {
                let found = found.get(key).unwrap_or_else(|| panic!("{at}.{key} is missing"));
                assert_alike(found, expected, &format!("{at}.{key}"));
            }
        }
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{at}");
            for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
                assert_alike(found, expected, &format!("{at}[{index}]"));
            }
        }
        _ => assert_eq!(found, expected, "{at}"),
    }
}

#[test]
fn figures_and_verdicts_of_old_recordings_stay() {
    for name in MEASURED {
        let dir = fixture(name);
        let found = document(&["report", dir.to_str().unwrap(), "--json=1"]);
        let expected = expected(name);
        for part in ["summary", "condemned", "trustworthy"] {
            assert_alike(&found[part], &expected[part], &format!("{name}: {part}"));
        }
        let verdicts = found["verdicts"].as_array().unwrap();
        for (rule, outcome) in expected["verdicts"].as_object().unwrap() {
            let verdict = verdicts.iter().find(|verdict| verdict["rule"] == rule.as_str());
            let verdict = verdict.unwrap_or_else(|| panic!("{name}: no verdict of {rule}"));
            assert_eq!(&verdict["outcome"], outcome, "{name}: {rule}: {}", verdict["evidence"]);
        }
    }
}

#[test]
fn tables_of_an_old_watch_stay() {
    let dir = fixture("watch");
    let found = document(&["watch", "--replay", dir.to_str().unwrap(), "--once", "--json"]);
    assert_alike(&found["views"], &expected("watch")["views"], "views");
}

#[test]
fn old_recordings_have_a_screen_and_a_page() {
    let scratch = tempfile::tempdir().unwrap();
    for name in MEASURED.into_iter().chain(["watch"]) {
        let dir = fixture(name);
        let page = scratch.path().join(format!("{name}.html"));
        let (dir, page) = (dir.to_str().unwrap(), page.to_str().unwrap());
        let text = blockstone(&["report", dir]);
        assert!(text.stdout.lines().count() > 10, "{name}: {}{}", text.stdout, text.stderr);
        blockstone(&["report", dir, "--html", page]);
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>"), "{name}");
        let windowed = blockstone(&["report", dir, "--from", "1s", "--to", "2s"]);
        assert!(windowed.stdout.lines().count() > 10, "{name}: {}", windowed.stderr);
    }
}
