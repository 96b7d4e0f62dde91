//! `--expect`: limits on figures, their exit codes, files and `JUnit` XML.

use blockstone_testkit::run;

use super::bad_input::refused;
use super::{Place, keeps_to_its_schema};

#[test]
fn limits_decide_the_exit_code_of_a_measurement_and_of_its_report() {
    let place = Place::beside();
    let xml = place.scratch.path().join("limits.xml");
    let mut command = place.command("run");
    command.args(["--json", "--scale=8M", "--cache=4M", "--run-time=3s", "--update-pct=20"]);
    command.args(["--expect", "operations>=0, commits>=0", "--junit"]).arg(&xml);
    let ran = run(command.arg(place.data()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    keeps_to_its_schema(&document);
    let expectations = document["expectations"].as_array().unwrap();
    assert_eq!(expectations[0]["name"], "operations");
    assert_eq!(expectations[0]["limit"], ">=0");
    assert!(expectations[0]["value"].as_f64() >= expectations[0]["low"].as_f64());
    assert!(expectations.iter().all(|it| it["outcome"] == "pass"), "{expectations:#?}");
    let written = std::fs::read_to_string(&xml).unwrap();
    assert!(written.contains("tests=\"2\" failures=\"0\" errors=\"0\""), "{written}");
    let recording = document["recording"]["path"].as_str().unwrap();
    let page = std::fs::read_to_string(format!("{recording}/report.html")).unwrap();
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words}"));
    assert!(at("operations &gt;= 0") < at("class=\"cards headline\""), "above the figures");

    let limits = place.scratch.path().join("limits.toml");
    for (text, code, outcome) in [
        ("[expect]\noperations = \">=0\"\n[notes]\nof = \"orders\"\n", 0, "pass"),
        ("expect = [\"operations<0\", \"commits>=0\"]\n", 1, "fail"),
        // A run without transactions of order entry.
        ("[expect]\ntransactions = \">=1\"\n", 3, "not-established"),
    ] {
        std::fs::write(&limits, text).unwrap();
        let mut report = place.command("report");
        report.args(["last", "--json", "--expect"]).arg(format!("@{}", limits.display()));
        let ran = run(&mut report);
        assert_eq!(ran.code, Some(code), "{text}: {ran:#?}");
        let document = ran.json();
        keeps_to_its_schema(&document);
        assert_eq!(document["expectations"][0]["outcome"], outcome, "{text}: {document:#}");
    }
}

#[test]
fn a_limit_that_cannot_be_decided_is_refused_before_the_measurement() {
    let place = Place::beside();
    let missing = place.scratch.path().join("missing.toml");
    let bad = place.scratch.path().join("bad.toml");
    std::fs::write(&bad, "[expect]\niops = >=1\n").unwrap();
    let [missing, bad] = [missing, bad].map(|file| format!("@{}", file.display()));
    for (limit, expected) in [
        ("comit.p99<2ms", "calibrate has no figure `comit.p99`"),
        ("commit.p99<2", "has no unit"),
        ("iops>=20,000", "`000`: it compares nothing"),
        ("", "no limit is given"),
        (missing.as_str(), "No such file"),
        (bad.as_str(), "bad.toml, line 2"),
    ] {
        let mut command = place.command("calibrate");
        let what = refused(&place, command.args(["--expect", limit]).arg(place.data()));
        assert!(what.contains(expected), "{limit}: {what}");
    }
    let mut command = place.command("calibrate");
    let what = refused(&place, command.args(["--junit", "x.xml"]).arg(place.data()));
    assert!(what.contains("--expect"), "{what}");
}

#[test]
fn names_are_listed_without_any_argument_of_the_verb() {
    let place = Place::beside();
    for verb in ["calibrate", "copy", "run", "report"] {
        let ran = run(place.command(verb).args(["--expect", "help"]));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{verb}");
        assert!(ran.stdout.contains("commit.p99<2ms"), "{}", ran.stdout);
    }
}
