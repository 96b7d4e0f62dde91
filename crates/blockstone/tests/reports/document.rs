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
        ("/schema", json!("blockstone.calibrate/2")),
        ("/summary/max_iops", json!("79,650")),
        ("/summary/max_iops_interval", json!([1.0])),
        ("/verdicts/0/outcome", json!("maybe")),
        ("/points/0/latency/ns_p50", json!(null)),
        ("/recording/end", json!({ "state": "interrupted" })),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = bad;
        assert!(!validator.is_valid(&document), "{pointer} must be refused");
    }
    let mut document = good;
    document["summary"].as_object_mut().unwrap().remove("max_mbps");
    assert!(!validator.is_valid(&document), "a missing figure must be refused");
}

#[test]
fn figures_are_plain_numbers_beside_their_interval() {
    let document = document(&Fixture::clean());
    assert_eq!(document["schema"], "blockstone.calibrate/1");
    assert_eq!(document["trustworthy"], true);
    // This figure is only available with --cpu.
    let without_cpu = |name: &&str| *name != "visits_per_core_s";
    for name in blockstone_judge::summary::NAMES.into_iter().filter(without_cpu) {
        let value = document["summary"][name].as_f64().unwrap_or_else(|| panic!("{name}"));
        let interval = &document["summary"][format!("{name}_interval")];
        let (low, high) = (interval[0].as_f64().unwrap(), interval[1].as_f64().unwrap());
        assert!(low <= value && value <= high, "{name}: {low} {value} {high}");
    }
    assert_eq!(document["summary"]["max_iops"].as_f64(), Some(79_650.0));
    assert_eq!(document["condemned"], json!({}));
}

#[test]
fn a_condemned_figure_is_null_and_its_value_stands_apart() {
    let document = document(&Fixture::condemned());
    assert_eq!(document["trustworthy"], false);
    assert_eq!(document["summary"]["max_iops"], Value::Null);
    assert_eq!(document["summary"]["max_iops_interval"], Value::Null);
    let condemned = &document["condemned"]["max_iops"];
    assert_eq!(condemned, &json!({ "value": 79_650.0, "by": ["memory-test"] }));
    assert_eq!(document["verdicts"][0]["rule"], "memory-test");
    assert_eq!(document["verdicts"][0]["outcome"], "fail");
}

#[test]
fn an_unmeasured_figure_is_null_and_not_missing() {
    let document = document(&Fixture::interrupted());
    let commit = document["summary"].get("commit_latency_ns_p50");
    assert_eq!(commit, Some(&Value::Null));
    assert_eq!(document["recording"]["end"], json!({ "state": "interrupted", "signal": "SIGINT" }));
}

#[test]
fn a_number_that_is_not_finite_is_null() {
    let mut fixture = Fixture::clean();
    fixture.findings.summary[0].1.estimate.high = f64::INFINITY;
    fixture.findings.points[0].iops.high = f64::INFINITY;
    let document = document(&fixture);
    check("calibrate", &document);
    assert_eq!(document["summary"]["max_iops_interval"][1], Value::Null);
}
