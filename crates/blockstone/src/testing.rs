//! What tests of reports share: documents against their checked-in schemas.

use std::path::Path;

use serde_json::Value;

pub fn schema(name: &str) -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// Checks a document against the schema that it names.
pub fn keeps_to_its_schema(document: &Value) {
    // Scripts read text, so the text is what has to be valid.
    let document: Value = serde_json::from_str(&document.to_string()).unwrap();
    let name = document["schema"].as_str().and_then(|name| name.strip_prefix("blockstone."));
    let file = format!("{}.json", name.unwrap().replace('/', "-"));
    let errors: Vec<String> = schema(&file)
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}
