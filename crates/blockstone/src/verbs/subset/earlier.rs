//! The document of `subset` in version 1, for scripts that were written for it. It goes with the
//! next release.

use serde_json::{Map, Value as Json, json};

use super::rows::CHOSEN;
use crate::earlier::{null, null_nothing, rename, rows, seconds};

pub fn keys(mut document: Map<String, Json>) -> Map<String, Json> {
    document.values_mut().for_each(null);
    document.remove("end");
    seconds(&mut document);
    let why = rows(&document, "why");
    let mut tables = rows(&document, "tables");
    for table in &mut tables {
        table.values_mut().for_each(null);
        table.retain(|key, _| key != "share" && key != "growth");
        let own = || why.iter().filter(|row| row["table"] == table["table"]);
        let chosen =
            own().find(|row| row["reason"] == CHOSEN).map_or(json!(0), |row| row["rows"].clone());
        let needed = own().filter(|row| row["reason"] != CHOSEN);
        let needed = needed.map(|row| json!({ "key": row["reason"], "rows": row["rows"] }));
        let all: Vec<Json> =
            [json!({ "key": null, "rows": chosen })].into_iter().chain(needed).collect();
        table.insert("why".to_owned(), json!(all));
    }
    let mut keys = [rows(&document, "keys"), rows(&document, "keys_alone")].concat();
    for key in &mut keys {
        key.values_mut().for_each(null);
        rename(key, "key", "name");
        key.remove("share");
        for (new, old) in [
            ("expected_share", "expected_orphan_share"),
            ("standard_error_share", "orphan_share_standard_error"),
        ] {
            let value = key.remove(new).unwrap_or_default();
            key.insert(old.to_owned(), value);
        }
    }
    let mut steps = rows(&document, "steps");
    steps.iter_mut().for_each(seconds);
    null_nothing(&mut document);
    if let Some(alone) = document["tables"].get_mut("keys_alone").and_then(Json::as_array_mut) {
        for key in alone.iter_mut().filter_map(Json::as_object_mut) {
            key.remove("standard_error_share");
        }
    }
    rename(&mut document, "tables", "views");
    for (name, rows) in [("tables", tables), ("keys", keys), ("steps", steps)] {
        document.insert(name.to_owned(), json!(rows));
    }
    document
}
