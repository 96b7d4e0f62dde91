//! The documents of `trace` in version 1, for scripts that were written for them. They go with the
//! next release.

use std::collections::HashMap;

use blockstone_base::units::format_ns;
use serde_json::{Map, Value as Json, json};

use super::rows::{OTHERS, indentation};
use crate::earlier::{null, null_nothing, rename, rows};

type Keys = Map<String, Json>;

/// Maximum number of rows in a table.
const ROWS_MAX: usize = 500;
/// Tables of version 2 alone.
const ADDED: [&str; 8] = [
    "statement-histograms",
    "session-components",
    "session-histograms",
    "texts",
    "not-in-log",
    "notes",
    "sides",
    "profiles",
];

pub fn keys(mut document: Keys) -> Keys {
    document.values_mut().for_each(null);
    for (new, old) in [
        ("span_ns", "span_seconds"),
        ("response_ns", "response_seconds"),
        ("unaccounted_ns", "unaccounted_seconds"),
    ] {
        seconds(&mut document, new, old);
    }
    let profile = profiles(&document, "profile", "histograms", "").remove("");
    document.insert("profile".to_owned(), json!(profile.unwrap_or_default()));
    for (key, table) in [("not_in_log", "not-in-log"), ("row_sources", "row-sources")] {
        document.insert(key.to_owned(), json!(rows(&document, table)));
    }
    for source in objects(document.get_mut("row_sources")) {
        row_source(source);
    }
    for (key, table, column) in [
        ("by_file", "files", "file"),
        ("by_blocks", "blocks", "blocks_a_call"),
        ("by_object", "objects", "object"),
    ] {
        let rows: Vec<Json> = rows(&document, table).iter().map(|row| by(row, column)).collect();
        document.insert(key.to_owned(), json!(rows));
    }
    let notes: Vec<Json> =
        rows(&document, "notes").into_iter().filter_map(|mut row| row.remove("note")).collect();
    document.insert("notes".to_owned(), json!(notes));
    document.insert("sessions".to_owned(), json!(sessions(&document)));
    document.insert("statements".to_owned(), json!(statements(&document)));
    if let Some(Json::Object(all)) = document.get_mut("tables") {
        tables(all);
    }
    null_nothing(&mut document);
    document
}

pub fn against(mut document: Keys) -> Keys {
    document.retain(|key, _| key != "end" && key != "verdicts");
    let mut profiles = profiles(&document, "profiles", "histograms", "side");
    for mut side in rows(&document, "sides") {
        side.values_mut().for_each(null);
        let name = text(&side, "side");
        side.remove("side");
        for what in ["span", "response", "unaccounted"] {
            seconds(&mut side, &format!("{what}_ns"), &format!("{what}_seconds"));
        }
        let profile = profiles.remove(&name).unwrap_or_default();
        side.insert("profile".to_owned(), json!(profile));
        document.insert(name.to_lowercase(), json!(side));
    }
    if let Some(Json::Object(tables)) = document.get_mut("tables") {
        tables.retain(|name, _| name != "histograms" && !ADDED.contains(&name.as_str()));
        if let Some(Json::Array(statements)) = tables.get_mut("statements") {
            statements.truncate(ROWS_MAX);
        }
    }
    null_nothing(&mut document);
    document
}

fn objects(list: Option<&mut Json>) -> impl Iterator<Item = &mut Keys> {
    let list = list.and_then(Json::as_array_mut).into_iter().flatten();
    list.filter_map(Json::as_object_mut)
}

fn text(keys: &Keys, key: &str) -> String {
    keys.get(key).and_then(Json::as_str).unwrap_or_default().to_owned()
}

/// Replaces a time in nanoseconds by one in seconds, with the precision that the log has.
fn seconds(keys: &mut Keys, new: &str, old: &str) {
    if let Some(ns) = keys.remove(new) {
        let seconds = ns.as_f64().map(|ns| (ns / 1e9 * 1e9).round() / 1e9);
        keys.insert(old.to_owned(), json!(seconds));
    }
}

/// Returns the rows of a table by the text of a column, or all of them by an empty text.
fn grouped(document: &Keys, table: &str, column: &str) -> HashMap<String, Vec<Keys>> {
    let mut groups: HashMap<String, Vec<Keys>> = HashMap::new();
    for mut row in rows(document, table) {
        row.values_mut().for_each(null);
        let key = text(&row, column);
        row.remove(column);
        groups.entry(key).or_default().push(row);
    }
    groups
}

/// Returns the components in a table, with their histograms, by the text of a column.
fn profiles(
    document: &Keys,
    table: &str,
    histograms: &str,
    column: &str,
) -> HashMap<String, Vec<Keys>> {
    let buckets = grouped(document, histograms, column);
    let mut profiles = grouped(document, table, column);
    for (key, rows) in &mut profiles {
        // Components that the log does not contain have no time.
        rows.retain(|row| row["time_ns"].is_number());
        for row in rows {
            let own = buckets.get(key).into_iter().flatten();
            let own = own.filter(|bucket| bucket["component"] == row["component"]);
            let histogram: Vec<Keys> = own.cloned().map(bucket).collect();
            row.insert("histogram".to_owned(), json!(histogram));
            row.retain(|key, _| key != "share" && key != "time_ns_mean");
            if row["uncertain_ns"].is_null() {
                row.insert("uncertain_ns".to_owned(), json!(0.0));
            }
            seconds(row, "time_ns", "seconds");
            seconds(row, "time_ns_max", "max_seconds");
            seconds(row, "uncertain_ns", "uncertain_seconds");
        }
    }
    profiles
}

fn bucket(mut bucket: Keys) -> Keys {
    bucket.retain(|key, _| ["below_ns", "calls", "time_ns"].contains(&key.as_str()));
    seconds(&mut bucket, "below_ns", "below_seconds");
    seconds(&mut bucket, "time_ns", "seconds");
    bucket
}

fn row_source(source: &mut Keys) {
    source.values_mut().for_each(null);
    let depth = source["depth"].as_u64().unwrap_or(0) as u32;
    let operation = text(source, "operation").split_off(indentation(depth));
    source.insert("operation".to_owned(), json!(operation));
    seconds(source, "time_ns", "seconds");
    seconds(source, "own_time_ns", "own_seconds");
}

fn by(row: &Keys, column: &str) -> Json {
    let mut row = row.clone();
    row.values_mut().for_each(null);
    let key = text(&row, column);
    let key = (key != OTHERS).then(|| key.parse::<u64>().ok()).flatten();
    seconds(&mut row, "time_ns", "seconds");
    seconds(&mut row, "time_ns_max", "max_seconds");
    json!({
        "event": row["event"],
        "key": key,
        "calls": row["calls"],
        "seconds": row["seconds"],
        "max_seconds": row["max_seconds"],
    })
}

fn sessions(document: &Keys) -> Vec<Keys> {
    let mut profiles = profiles(document, "session-components", "session-histograms", "session");
    let mut sessions = rows(document, "sessions");
    for session in &mut sessions {
        session.values_mut().for_each(null);
        rename(session, "session", "id");
        session.retain(|key, _| ["id", "span_ns", "unaccounted_ns"].contains(&key.as_str()));
        seconds(session, "span_ns", "span_seconds");
        seconds(session, "unaccounted_ns", "unaccounted_seconds");
        let profile = profiles.remove(&text(session, "id")).unwrap_or_default();
        session.insert("profile".to_owned(), json!(profile));
    }
    sessions
}

fn statements(document: &Keys) -> Vec<Keys> {
    let mut profiles = profiles(document, "components", "statement-histograms", "statement");
    let mut calls = grouped(document, "calls", "statement");
    for call in calls.values_mut().flatten() {
        seconds(call, "cpu_ns", "cpu_seconds");
        seconds(call, "elapsed_ns", "elapsed_seconds");
    }
    let mut statements = rows(document, "statements");
    for (statement, whole) in statements.iter_mut().zip(rows(document, "texts")) {
        statement.values_mut().for_each(null);
        statement
            .retain(|key, _| !["share", "time_ns_mean", "first", "text"].contains(&key.as_str()));
        if statement["executions"].is_null() {
            statement.insert("executions".to_owned(), json!(0.0));
        }
        seconds(statement, "time_ns", "seconds");
        let id = text(statement, "id");
        statement.insert("text".to_owned(), json!(text(&whole, "text")));
        statement.insert("components".to_owned(), json!(profiles.remove(&id).unwrap_or_default()));
        statement.insert("calls".to_owned(), json!(calls.remove(&id).unwrap_or_default()));
    }
    statements
}

/// Gives tables the rows and columns of version 1.
fn tables(tables: &mut Keys) {
    tables.retain(|name, _| !ADDED.contains(&name.as_str()));
    let names: Vec<String> = tables.keys().cloned().collect();
    let is_top = |row: &Json| {
        let statement = row["statement"].as_str().unwrap_or_default();
        names.iter().any(|name| name.strip_prefix("row-sources-") == Some(statement))
    };
    for (name, table) in tables.iter_mut() {
        let columns: &[&str] = match name.as_str() {
            "profile" => &["bytes", "blocks"],
            name if name.starts_with("components") => &["bytes", "blocks"],
            "statements" => &["depth"],
            "row-sources" => &["plan", "id", "parent", "depth"],
            _ => &[],
        };
        if let Some(rows) = table.as_array_mut() {
            match name.as_str() {
                "row-sources" => rows.retain(is_top),
                "statements" | "calls" | "sessions" | "files" | "blocks" | "objects" => {
                    rows.truncate(ROWS_MAX);
                }
                _ => {}
            }
        }
        for row in objects(Some(table)) {
            row.retain(|key, _| !columns.contains(&key.as_str()));
            if name.starts_with("calls") {
                rename(row, "calls", "count");
            }
            if let Some(below) = row.get("below_ns").and_then(Json::as_f64)
                && name != "histograms"
            {
                row.remove("below_ns");
                row.insert("below".to_owned(), json!(format_ns(below)));
            }
        }
    }
    tables.retain(|_, table| table.as_array().is_none_or(|rows| !rows.is_empty()));
}
