//! A report as one JSON document: `schema`, `version`, the keys of its verb, and every table under
//! the keys of its columns.

pub mod schema;

use std::fmt::Write as _;

use blockstone_base::table::Missing;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::terminal::is_obeyed;
use crate::report::Report;

/// Returns the document in its newest version.
pub fn document(report: &Report) -> Json {
    let mut document = Map::new();
    let schema = schema::title(&report.verb, report.version);
    document.insert("schema".to_owned(), schema.into());
    document.insert("version".to_owned(), report.version.into());
    let tables = report.tables_of_document().map(|table| (table.name.to_string(), json!(table)));
    let mut tables = Json::Object(tables.collect());
    if report.version > 1 {
        document.insert("tool_version".to_owned(), json!(report.tool_version()));
        document.insert("end".to_owned(), json!(report.end));
        document.insert("verdicts".to_owned(), json!(report.verdicts));
        let mut scalars = json!(report.scalars);
        for part in [&mut scalars, &mut tables] {
            explain_nulls(part);
        }
        document.extend(
            scalars
                .get_mut(0)
                .and_then(Json::as_object_mut)
                .map(std::mem::take)
                .into_iter()
                .flatten(),
        );
    } else {
        document.extend(report.document.clone());
    }
    let key = report.tables_key.unwrap_or(schema::TABLES);
    document.insert(key.to_owned(), tables);
    Json::Object(document)
}

/// A key that only an [`Estimate`](blockstone_base::stats::Estimate) has in a table.
const OF_ESTIMATES: &str = "duration_ns";

/// Returns the document in the version before the newest, or in version 1 if that is the newest.
pub fn earlier(report: &Report) -> Json {
    match (report.earlier, document(report)) {
        (Some(earlier), mut newest @ Json::Object(_)) => {
            show_open_ends(&mut newest);
            let mut document = earlier(keys(newest));
            let version = report.version - 1;
            document.insert("schema".to_owned(), schema::title(&report.verb, version).into());
            document.insert("version".to_owned(), version.into());
            Json::Object(document)
        }
        (_, newest) => newest,
    }
}

/// Replaces null by a reason. A cell is null if nothing happened that a number could describe, or
/// if the number is not finite. An interval that is open at one end has no key for that end.
fn explain_nulls(part: &mut Json) {
    match part {
        Json::Null => *part = json!({ "unmeasured": Missing::Nothing.word() }),
        Json::Object(estimate) if estimate.contains_key(OF_ESTIMATES) => {
            estimate.retain(|_, number| !number.is_null());
        }
        Json::Array(parts) => parts.iter_mut().for_each(explain_nulls),
        Json::Object(parts) => parts.values_mut().for_each(explain_nulls),
        _ => {}
    }
}

/// Gives the keys of open ends back, which are null in version 1.
fn show_open_ends(part: &mut Json) {
    match part {
        Json::Object(estimate) if estimate.contains_key(OF_ESTIMATES) => {
            for end in ["value", "low", "high"] {
                estimate.entry(end).or_insert(Json::Null);
            }
        }
        Json::Array(parts) => parts.iter_mut().for_each(show_open_ends),
        Json::Object(parts) => parts.values_mut().for_each(show_open_ends),
        _ => {}
    }
}

/// A document, indented, ending in a newline. What a terminal would obey, and marks that change
/// the direction of a text, stand in it as escapes of JSON.
pub fn text(document: &Json) -> String {
    escaped(format!("{document:#}\n"))
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

/// Returns the keys of a verb: those of an object, or none of anything else.
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
