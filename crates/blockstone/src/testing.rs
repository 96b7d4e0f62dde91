//! Helpers that tests of reports share: documents are checked against their schemas.

use blockstone_base::hint;
use serde_json::Value;

use crate::failure;
use crate::reports::documents;

pub fn schema(name: &str) -> jsonschema::Validator {
    let document = documents().find(|document| document.name == name).unwrap();
    jsonschema::validator_for(&document.schema()).unwrap()
}

/// Checks a document against the schema that it names.
pub fn keeps_to_its_schema(document: &Value) {
    // Scripts read text, so it is the text that has to be valid.
    let document: Value = serde_json::from_str(&document.to_string()).unwrap();
    let name = document["schema"].as_str().and_then(|name| name.strip_prefix("blockstone."));
    let (name, _) = name.unwrap().split_once('/').unwrap();
    let errors: Vec<String> = schema(name)
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Returns an error with its hint on a second line.
pub fn told(error: &anyhow::Error) -> String {
    hint::told(&error.to_string(), failure::hint(error.chain()).as_deref())
}
