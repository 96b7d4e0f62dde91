//! A report as one JSON document: `schema`, `version`, the keys of its verb, and every table under
//! the keys of its columns.

use blockstone_base::table::{Missing, Row, Table, Value};
use serde_json::{Map, Value as Json, json};

use crate::report::Report;

pub fn document(report: &Report) -> Json {
    let mut document = Map::new();
    let schema = format!("blockstone.{}/{}", report.verb, report.version);
    document.insert("schema".to_owned(), schema.into());
    document.insert("version".to_owned(), report.version.into());
    document.extend(report.document.clone());
    let tables = report.tables().map(|table| (table.name.to_string(), rows(table)));
    let key = report.tables_key.unwrap_or("tables");
    document.insert(key.to_owned(), Json::Object(tables.collect()));
    Json::Object(document)
}

/// The document, indented, ending in a newline.
///
/// # Panics
/// Never: keys are strings.
pub fn text(report: &Report) -> String {
    let text = serde_json::to_string_pretty(&document(report)).expect("keys are strings");
    text + "\n"
}

fn rows(table: &Table) -> Json {
    table.rows.iter().map(|row| self::row(table, row)).collect()
}

fn row(table: &Table, row: &Row) -> Json {
    let cells = table.columns.iter().zip(&row.cells);
    let mut cells: Map<String, Json> =
        cells.map(|(column, value)| (column.key.to_string(), cell(value))).collect();
    if !row.condemned_by.is_empty() {
        cells.insert("condemned_by".to_owned(), json!(row.condemned_by));
    }
    Json::Object(cells)
}

/// What is null did not happen; what could not be measured says why.
fn cell(value: &Value) -> Json {
    match value {
        Value::Number(number) => json!(number),
        Value::Estimate(estimate) => json!(estimate),
        Value::Text(text) => json!(text),
        Value::Missing(Missing::Nothing) => Json::Null,
        Value::Missing(missing) => json!({ "unmeasured": missing.word() }),
    }
}
