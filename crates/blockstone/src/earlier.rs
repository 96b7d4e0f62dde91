//! Functions that the documents of earlier versions share. These are converted from the newest
//! ones.

use serde_json::{Map, Value as Json, json};

type Keys = Map<String, Json>;

const SECOND_NS: f64 = 1e9;

/// Replaces a figure that was not measured by null, as version 1 did for a single figure.
pub fn null(value: &mut Json) {
    if value.get("unmeasured").is_some() {
        *value = Json::Null;
    }
}

/// Replaces figures in tables by null if nothing happened, as version 1 did. It kept other reasons.
pub fn null_nothing(document: &mut Keys) {
    let tables = document.get_mut("tables").and_then(Json::as_object_mut).into_iter();
    let rows = tables.flat_map(Map::values_mut).filter_map(Json::as_array_mut).flatten();
    for cell in rows.filter_map(Json::as_object_mut).flat_map(Map::values_mut) {
        if cell["unmeasured"] == "nothing happened" {
            *cell = Json::Null;
        }
    }
}

/// Returns the rows of a table, for a list of version 1.
pub fn rows(document: &Keys, table: &str) -> Vec<Keys> {
    let rows = document.get("tables").and_then(|tables| tables.get(table)?.as_array());
    rows.into_iter().flatten().filter_map(|row| row.as_object().cloned()).collect()
}

pub fn rename(keys: &mut Keys, new: &str, old: &str) {
    if let Some(value) = keys.remove(new) {
        keys.insert(old.to_owned(), value);
    }
}

/// Converts times to seconds, the unit of version 1.
pub fn seconds(keys: &mut Keys) {
    for (new, old) in [("time_ns", "seconds"), ("cpu_ns", "cpu_seconds")] {
        if let Some(value) = keys.remove(new) {
            keys.insert(old.to_owned(), json!(value.as_f64().map(|ns| ns / SECOND_NS)));
        }
    }
}
