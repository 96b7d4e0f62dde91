//! The document of `copy` in version 1, for scripts that were written for it. It will be removed
//! with the next release.

use serde_json::{Map, Value as Json, json};

use crate::earlier::{null, null_nothing, rename, rows, seconds};

/// Tables of version 1. Those added later were lists under keys of their own.
const TABLES: [&str; 5] = ["files", "evidence", "page-cache", "against", "database"];

pub fn keys(mut document: Map<String, Json>) -> Map<String, Json> {
    document.values_mut().for_each(null);
    seconds(&mut document);
    for (key, table) in
        [("reasons", "reasons"), ("failed", "failed"), ("not_carried", "not-carried")]
    {
        document.insert(key.to_owned(), json!(rows(&document, table)));
    }
    let mut databases = rows(&document, "database").into_iter().map(|mut keys| {
        keys.remove("while");
        keys.values_mut().for_each(null);
        keys
    });
    document.insert("database_alone".to_owned(), json!(databases.next()));
    let mut against = rows(&document, "against");
    for round in &mut against {
        round.values_mut().for_each(null);
        seconds(round);
        for when in ["before", "after"] {
            rename(round, &format!("files_{when}_bytes"), &format!("page_cache_bytes_{when}"));
            rename(round, &format!("all_{when}_bytes"), &format!("all_page_cache_bytes_{when}"));
        }
        let got = databases.next().filter(|got| got.values().any(Json::is_number));
        round.insert("database".to_owned(), json!(got));
    }
    document.insert("against".to_owned(), json!(against));
    null_nothing(&mut document);
    if let Some(Json::Object(tables)) = document.get_mut("tables") {
        tables.retain(|name, _| TABLES.contains(&name.as_str()));
    }
    document
}
