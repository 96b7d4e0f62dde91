//! A report as one JSON document: `schema`, `version`, its single figures, the other keys of its
//! verb, and every table under the keys of its columns.

pub mod schema;

use std::fmt::Write as _;

use blockstone_base::hint::told;
use blockstone_base::table::{Missing, Table, Value};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::terminal::is_obeyed;
use crate::expected::EXPECTATIONS;
use crate::report::Report;

/// Returns the document in its newest version.
pub fn document(report: &Report) -> Json {
    let mut document = begin(report, report.version);
    let mut tables = tables(report.tables_of_document());
    document.insert("tool_version".to_owned(), json!(report.tool_version()));
    document.insert("end".to_owned(), json!(report.end));
    document.insert("verdicts".to_owned(), json!(report.verdicts));
    let mut scalars = json!(report.scalars);
    for part in [&mut scalars, &mut tables] {
        explain_nulls(part);
    }
    if !report.notes.is_empty() {
        document.insert(NOTES.to_owned(), json!(report.notes));
    }
    let scalars = scalars.get_mut(0).and_then(Json::as_object_mut).map(std::mem::take);
    document.extend(scalars.into_iter().flatten());
    let mut objects = report.document.clone();
    leave_out_nulls(&mut objects);
    document.extend(objects);
    if !report.expectations.is_empty() {
        document.insert(EXPECTATIONS.to_owned(), json!(report.expectations));
    }
    document.insert(tables_key(report).to_owned(), tables);
    Json::Object(document)
}

/// Key of the notes that people read: files that were not read, figures that are missing, and why.
const NOTES: &str = "notes";

fn tables_key(report: &Report) -> &'static str {
    report.tables_key.unwrap_or(schema::TABLES)
}

fn begin(report: &Report, version: u32) -> Map<String, Json> {
    Map::from_iter([
        ("schema".to_owned(), schema::title(&report.verb, version).into()),
        ("version".to_owned(), version.into()),
    ])
}

fn tables<'a>(tables: impl Iterator<Item = &'a Table>) -> Json {
    Json::Object(tables.map(|table| (table.name.to_string(), json!(table))).collect())
}

/// A key that only an [`Estimate`](blockstone_base::stats::Estimate) has in a table.
const OF_ESTIMATES: &str = "duration_ns";

/// Returns the document in the version before the newest.
pub fn earlier(report: &Report) -> Json {
    let mut document = keys_of_earlier(report);
    for end in ["/end", "/recording/end"] {
        document.pointer_mut(end).into_iter().for_each(join_hint);
    }
    document
}

/// Puts the hint of an error below it, where version 1 had it.
fn join_hint(end: &mut Json) {
    let hint = end.as_object_mut().and_then(|end| end.remove("hint"));
    if let (Some(Json::String(hint)), Some(error)) = (hint, end["error"].as_str()) {
        end["error"] = told(error, Some(&hint)).into();
    }
}

fn keys_of_earlier(report: &Report) -> Json {
    if !report.first.is_empty() {
        let mut document = begin(report, 1);
        document.extend(report.first.clone());
        let first: Vec<Table> = report.tables_for_people().map(without_plain_intervals).collect();
        document.insert(tables_key(report).to_owned(), tables(first.iter()));
        return Json::Object(document);
    }
    match (report.earlier, document(report)) {
        (Some(earlier), mut newest @ Json::Object(_)) => {
            show_open_ends(&mut newest);
            newest.as_object_mut().and_then(|document| document.remove(NOTES));
            let mut document = earlier(keys(newest));
            let version = report.version - 1;
            document.insert("schema".to_owned(), schema::title(&report.verb, version).into());
            document.insert("version".to_owned(), version.into());
            Json::Object(document)
        }
        (_, newest) => newest,
    }
}

/// Returns a table as version 1 had it, in which such columns were single numbers.
fn without_plain_intervals(table: &Table) -> Table {
    let mut table = table.clone();
    for row in &mut table.rows {
        for (cell, column) in row.cells.iter_mut().zip(&*table.columns) {
            if let Value::Estimate(estimate) = cell
                && column.is_plain
            {
                *cell = estimate.without_interval();
            }
        }
    }
    table
}

/// Replaces null by a reason. A cell is null if nothing happened that a number could describe, or
/// if the number is not finite. An interval that is open at one end has no key for that end.
pub fn explain_nulls(part: &mut Json) {
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

/// Removes keys without a value: an object of version 2 has the keys that apply to it.
fn leave_out_nulls(object: &mut Map<String, Json>) {
    object.retain(|_, value| !value.is_null());
    for value in object.values_mut() {
        let mut parts = vec![value];
        while let Some(part) = parts.pop() {
            match part {
                Json::Array(list) => parts.extend(list),
                Json::Object(object) => leave_out_nulls(object),
                _ => {}
            }
        }
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
