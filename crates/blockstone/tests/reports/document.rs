//! Validates the documents against their schemas.

use blockstone_cli::reports::documents;
use blockstone_report::render::json::document as rendered;
use serde_json::{Value, json};

use crate::fixture::Fixture;

pub fn schema(name: &str) -> jsonschema::Validator {
    let document = documents().find(|document| document.name == name).unwrap();
    jsonschema::validator_for(&document.schema()).unwrap()
}

pub fn check(name: &str, document: &Value) {
    // Scripts read text, so it is the text that has to be valid.
    let document: Value = serde_json::from_str(&document.to_string()).unwrap();
    let errors: Vec<String> = schema(name)
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

fn document(fixture: &Fixture) -> Value {
    let report = blockstone_cli::reports::calibration(&fixture.recording, &fixture.findings);
    rendered(&report.unwrap())
}

#[test]
fn clean_condemned_and_interrupted_documents_keep_to_the_schema() {
    for fixture in Fixture::all() {
        check("calibrate", &document(&fixture));
    }
}

#[test]
fn the_schema_refuses_what_is_not_a_calibration() {
    let good = document(&Fixture::clean());
    let validator = schema("calibrate");
    for (pointer, bad) in [
        ("/schema", json!("blockstone.calibrate/1")),
        ("/figures/max_iops/value", json!("79,650")),
        ("/figures/max_iops/low", json!([1.0])),
        ("/figures/max_iops", json!(null)),
        ("/verdicts/0/outcome", json!("maybe")),
        ("/tables/rates/0/iops", json!(null)),
        ("/end", json!({ "state": "interrupted" })),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = bad;
        assert!(!validator.is_valid(&document), "{pointer} must be refused");
    }
    let mut document = good;
    document["figures"].as_object_mut().unwrap().remove("max_mbps");
    assert!(!validator.is_valid(&document), "a missing figure must be refused");
}

#[test]
fn figures_are_numbers_beside_their_interval() {
    let document = document(&Fixture::clean());
    assert_eq!(document["schema"], "blockstone.calibrate/2");
    assert_eq!(document["trustworthy"], true);
    // This figure is only available with --cpu.
    let without_cpu = |name: &&str| *name != "visits_per_core_s";
    for name in blockstone_judge::summary::NAMES.into_iter().filter(without_cpu) {
        let value = document["figures"][name]["value"].as_f64().unwrap_or_else(|| panic!("{name}"));
        let figure = &document["figures"][name];
        let (low, high) = (figure["low"].as_f64().unwrap(), figure["high"].as_f64().unwrap());
        assert!(low <= value && value <= high, "{name}: {low} {value} {high}");
    }
    assert_eq!(document["figures"]["max_iops"]["value"].as_f64(), Some(79_650.0));
}

#[test]
fn a_condemned_figure_has_no_value_and_the_number_stands_apart() {
    let document = document(&Fixture::condemned());
    assert_eq!(document["trustworthy"], false);
    let figure = &document["figures"]["max_iops"];
    assert!(["value", "low", "high"].iter().all(|key| figure.get(key).is_none()), "{figure:#}");
    assert_eq!(figure["condemned"]["value"], 79_650.0);
    assert_eq!(figure["condemned_by"], json!(["memory-test"]));
    assert_eq!(document["verdicts"][0]["rule"], "memory-test");
    assert_eq!(document["verdicts"][0]["outcome"], "fail");
}

#[test]
fn an_unmeasured_figure_says_so() {
    let document = document(&Fixture::interrupted());
    let commit = &document["figures"]["commit_latency_ns_p50"];
    assert_eq!(commit, &json!({ "unmeasured": "nothing happened" }));
    assert_eq!(document["end"], json!({ "state": "interrupted", "signal": "SIGINT" }));
}

#[test]
fn an_end_that_is_not_finite_is_left_out() {
    let mut fixture = Fixture::clean();
    fixture.findings.summary[0].1.estimate.high = f64::INFINITY;
    fixture.findings.points[0].iops.high = f64::INFINITY;
    let document = document(&fixture);
    check("calibrate", &document);
    let figure = &document["figures"]["max_iops"];
    assert!(figure["low"].is_number() && figure.get("high").is_none(), "{figure:#}");
}
