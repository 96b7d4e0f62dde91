//! The documents against their checked-in schemas.

use std::path::Path;

use blockstone_judge::compare;
use blockstone_report::json;
use serde_json::Value;

use crate::terminal::two;

pub fn schema(name: &str) -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

pub fn check(name: &str, document: &Value) {
    // Scripts read text, so the text is what has to be valid.
    let document: Value = serde_json::from_str(&document.to_string()).unwrap();
    let errors: Vec<String> = schema(name)
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn a_comparison_keeps_to_its_schema() {
    let (a, b) = two();
    let comparison =
        compare((&a.recording.manifest, &a.findings), (&b.recording.manifest, &b.findings));
    let document = json::compare_json(&comparison);
    check("compare-1.json", &document);
    let rows = document["rows"].as_array().unwrap().len() as u64;
    let counts = document["counts"].as_object().unwrap().values();
    assert_eq!(counts.map(|n| n.as_u64().unwrap()).sum::<u64>(), rows);
    assert!(document["counts"]["slower"].as_u64().unwrap() >= 2);
}
