//! The document of `claim` in version 1, for scripts that were written for it. It will be removed
//! with the next release.

use serde_json::{Map, Value as Json, json};

use crate::earlier::{null, rename, rows};

/// Keys of the table `figures`, and what they are now.
const FIGURES: [(&str, &str); 9] = [
    ("outcome", "outcome"),
    ("rate", "rate_bytes_per_s"),
    ("link", "link_bytes_per_s"),
    ("link_share", "link_ratio"),
    ("iops", "iops"),
    ("data", "data_bytes"),
    ("moved", "moved_bytes"),
    ("time", "time_ns"),
    ("memory", "memory_bytes"),
];

/// Keys that did not stand under `claim`.
const COMMON: [&str; 4] = ["tool_version", "outcome", "verdicts", "tables"];

pub fn keys(mut document: Map<String, Json>) -> Map<String, Json> {
    let figures = FIGURES.map(|(old, new)| (old.to_owned(), document[new].clone()));
    let links: Vec<Json> = rows(&document, "links").iter().map(|row| row["link"].clone()).collect();
    document.values_mut().for_each(null);
    document.retain(|key, _| !["schema", "version", "end", "link_ratio"].contains(&&**key));
    document.insert("tables".to_owned(), json!({ "figures": [Map::from_iter(figures)] }));
    let (common, mut claim): (Map<_, _>, Map<_, _>) =
        document.into_iter().partition(|(key, _)| COMMON.contains(&key.as_str()));
    for (new, old) in [("latency_ns", "latency_s"), ("time_ns", "time_s")] {
        rename(&mut claim, new, old);
        claim[old] = json!(claim[old].as_f64().map(|ns| ns / 1e9));
    }
    claim.insert("links".to_owned(), json!(links));
    common.into_iter().chain([("claim".to_owned(), json!(claim))]).collect()
}
