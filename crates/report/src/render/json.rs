//! A report as one JSON document: `schema`, `version`, the keys of its verb, and every table under
//! the keys of its columns.

pub mod schema;

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::terminal::is_obeyed;
use crate::report::Report;

pub fn document(report: &Report) -> Json {
    let mut document = Map::new();
    let schema = schema::title(&report.verb, report.version);
    document.insert("schema".to_owned(), schema.into());
    document.insert("version".to_owned(), report.version.into());
    document.extend(report.document.clone());
    let tables = report.tables().map(|table| (table.name.to_string(), json!(table)));
    let key = report.tables_key.unwrap_or(schema::TABLES);
    document.insert(key.to_owned(), Json::Object(tables.collect()));
    Json::Object(document)
}

/// The document, indented, ending in a newline. What a terminal would obey, and marks that change
/// the direction of a text, stand in it as escapes of JSON.
pub fn text(report: &Report) -> String {
    escaped(format!("{:#}\n", document(report)))
}

fn escaped(text: String) -> String {
    if !text.contains(is_obeyed) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_obeyed(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// The keys of a verb: those of an object; of anything else none.
///
/// # Panics
/// Never: documents have string keys and plain values; a number that is not finite becomes null.
pub fn keys(document: impl Serialize) -> Map<String, Json> {
    match json!(document) {
        Json::Object(keys) => keys,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_an_escape_and_the_same_text() {
        let value = json!({ "a\u{9b}": "x\u{1b}[2J\u{7f}\u{202e}\t\u{1f4be}" });
        let text = escaped(format!("{value:#}\n"));
        assert!(!text.contains(is_obeyed) && text.contains("\\u202e\\t\u{1f4be}"), "{text}");
        assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), value);
    }
}
