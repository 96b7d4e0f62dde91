//! The document of `check` in version 1, for scripts that were written for it. It will be removed
//! with the next release.

use blockstone_base::units::thousands;
use serde_json::{Map, Value as Json, json};

use crate::earlier::{null, null_nothing, rename, rows};

type Keys = Map<String, Json>;

/// Numbers of the cells of all checks.
const NUMBERS: [&str; 34] = [
    "requests",
    "error",
    "promised",
    "added_pages",
    "direct_ios",
    "before_cached_bytes",
    "after_cached_bytes",
    "charged_ratio",
    "cached_share",
    "ops_per_s",
    "ns_p99",
    "bytes_read",
    "rpcs",
    "stale",
    "lag_ns_p50",
    "lag_ns_p99",
    "lag_ns_max",
    "witness",
    "acknowledged",
    "lost",
    "torn",
    "writers",
    "buffered",
    "lock_time_share",
    "own_lock_time_share",
    "switches_per_request",
    "own_switches_per_request",
    "iops",
    "own_iops",
    "asked_bytes_mean",
    "device_bytes_mean",
    "device_requests",
    "sequential_share",
    "aligned_share",
];

/// Columns that were called differently.
const RENAMED: &[(&str, &str, &str)] = &[
    ("write-order", "switches_per_request", "switches"),
    ("write-order", "own_switches_per_request", "own_switches"),
    ("write-order-cells", "waits_per_request", "waits"),
    ("metadata", "cpu_ns_per_op", "cpu_ns"),
    ("metadata", "read_bytes_per_op", "read_bytes"),
    ("metadata", "write_ios_per_op", "write_ios"),
    ("metadata-details", "read_bytes", "bytes_read"),
];

/// Columns that were keys of cells or files only.
const ADDED: &[(&str, &[&str])] = &[
    ("direct-cells", &["before_cached_bytes"]),
    ("open-file-details", &["requested_sync"]),
    (
        "write-order-cells",
        &["buffered", "class", "switches_per_request", "own_switches_per_request", "lost"],
    ),
    ("coherence-cases", &["error"]),
    ("coherence-others", &["error"]),
];

/// Columns whose missing texts were empty.
const TEXTS: [&str; 16] = [
    "block",
    "sector",
    "memory_512",
    "memory_4",
    "error",
    "requested",
    "setting",
    "held",
    "reopened",
    "direct",
    "mapped",
    "waited_in",
    "held_in",
    "beneath",
    "asked",
    "device",
];

pub fn keys(mut document: Keys) -> Keys {
    let mut answers = rows(&document, "answers");
    let check = document.remove("check").unwrap_or_default();
    if answers.is_empty() {
        let answer = json!({ "check": check, "answer": document["answer"] });
        answers.extend(answer.as_object().cloned());
    }
    let parts: [fn(&Keys) -> Vec<Keys>; 6] =
        [direct, order, coherence, durability, metadata, iosize];
    let cells: Vec<Keys> = parts.iter().flat_map(|cells| cells(&document)).collect();
    let files: Vec<Keys> = files(&document).collect();
    tables(&mut document);
    for (key, list) in [("answers", answers), ("cells", cells), ("files", files)] {
        document.insert(key.to_owned(), json!(list));
    }
    document
}

/// Returns a cell with the numbers of a row.
fn cell(check: &str, case: String, mut row: Keys) -> Keys {
    row.values_mut().for_each(null);
    let mut cell = Keys::from_iter([("check".into(), check.into()), ("case".into(), case.into())]);
    for key in ["class", "evidence", "exit_code"].iter().chain(&NUMBERS) {
        cell.insert((*key).to_owned(), row.remove(*key).unwrap_or_default());
    }
    cell
}

fn word<'a>(row: &'a Keys, key: &str) -> &'a str {
    row.get(key).and_then(Json::as_str).unwrap_or_default()
}

/// Joins the rows of two tables that have the same order.
fn joined(document: &Keys, first: &str, second: &str) -> impl Iterator<Item = Keys> {
    let pairs = rows(document, first).into_iter().zip(rows(document, second));
    pairs.map(|(first, second)| first.into_iter().chain(second).collect())
}

fn direct(document: &Keys) -> Vec<Keys> {
    let cells = rows(document, "direct-cells").into_iter().map(|row| {
        cell("direct", format!("{}/{}", word(&row, "operation"), word(&row, "shape")), row)
    });
    let files = files(document).map(|mut row| {
        rename(&mut row, "cached_bytes", "after_cached_bytes");
        cell("direct", word(&row, "path").to_owned(), row)
    });
    cells.chain(files).collect()
}

fn files(document: &Keys) -> impl Iterator<Item = Keys> {
    joined(document, "open-files", "open-file-details").map(|mut file| {
        file.values_mut().for_each(null);
        rename(&mut file, "file", "path");
        file
    })
}

fn order(document: &Keys) -> Vec<Keys> {
    let shares = ["write-order-writers", "write-order"].map(|table| rows(document, table));
    let shares = shares.into_iter().find(|rows| !rows.is_empty()).unwrap_or_default();
    let cells = shares.into_iter().zip(rows(document, "write-order-cells"));
    let cells = cells.map(|(shares, row)| {
        let row: Keys = shares.into_iter().chain(row).collect();
        cell("write-order", word(&row, "mode").to_owned(), row)
    });
    cells.collect()
}

fn coherence(document: &Keys) -> Vec<Keys> {
    let witnesses = rows(document, "coherence-witness");
    let cells = rows(document, "coherence-cases").into_iter().map(|mut row| {
        let of = witnesses.iter().filter(|it| it["case"] == row["case"]).cloned();
        let of = of.map(|mut operation| {
            operation.remove("case");
            operation.values_mut().for_each(null);
            operation
        });
        let pair: Vec<Keys> = of.collect();
        row.insert("witness".into(), if pair.is_empty() { Json::Null } else { json!(pair) });
        rename(&mut row, "operations", "requests");
        cell("coherence", word(&row, "case").to_owned(), row)
    });
    cells.collect()
}

fn durability(document: &Keys) -> Vec<Keys> {
    let flush = rows(document, "durability-flush").into_iter();
    let flush = flush.map(|row| cell("durability", "flush".to_owned(), row));
    let streams = rows(document, "durability-streams").into_iter().map(|row| {
        let case = format!("{}/{}", word(&row, "method"), word(&row, "pattern"));
        cell("durability", case, row)
    });
    flush.chain(streams).collect()
}

fn metadata(document: &Keys) -> Vec<Keys> {
    let costs = rows(document, "metadata");
    let cells = rows(document, "metadata-details").into_iter().map(|mut row| {
        let case = metadata_case(&row);
        if let Some(cost) = costs.iter().find(|cost| metadata_case(cost) == case) {
            row.insert("class".into(), cost["class"].clone());
            let rate = cost["ops_per_s"].get("value").cloned();
            row.insert("ops_per_s".into(), rate.unwrap_or_default());
        }
        rename(&mut row, "operations", "requests");
        rename(&mut row, "latency_ns_p99", "ns_p99");
        rename(&mut row, "read_bytes", "bytes_read");
        cell("metadata", case, row)
    });
    let growth = rows(document, "metadata-growth").into_iter();
    let growth =
        growth.map(|row| cell("metadata", format!("growth/{}", word(&row, "operation")), row));
    cells.chain(growth).collect()
}

fn metadata_case(row: &Keys) -> String {
    let operation = word(row, "operation");
    let (operation, cold) =
        operation.strip_suffix("/cold").map_or((operation, ""), |it| (it, "/cold"));
    format!("{operation}/{}/{}{cold}", word(row, "shape"), row["files"])
}

fn iosize(document: &Keys) -> Vec<Keys> {
    let commands = rows(document, "iosize-commands");
    let flows = rows(document, "iosize-flows").into_iter().map(Some).chain(std::iter::repeat(None));
    let cells = rows(document, "iosize-evidence").into_iter().zip(flows).map(|(row, flow)| {
        let mut row: Keys = flow.unwrap_or_default().into_iter().chain(row).collect();
        let file = word(&row, "file").to_owned();
        let case = match word(&row, "direction") {
            "" => file.clone(),
            direction => format!("{file}: {direction}"),
        };
        row.entry("class").or_insert("unknown".into());
        let command = commands.iter().find(|it| it["tool"] == *file || !it["tool"].is_string());
        row.extend(command.map(|it| ("exit_code".to_owned(), it["exit_code"].clone())));
        cell("iosize", case, row)
    });
    cells.collect()
}

/// Gives the tables the keys that they had.
fn tables(document: &mut Keys) {
    null_nothing_but_texts(document);
    let Some(Json::Object(tables)) = document.get_mut("tables") else { return };
    for added in ["answers", "durability-flush", "iosize-evidence"] {
        tables.remove(added);
    }
    let other =
        if tables.contains_key("iosize-tools") { "iosize-flows" } else { "iosize-commands" };
    tables.remove(other);
    for (name, table) in tables {
        for row in table.as_array_mut().into_iter().flatten().filter_map(Json::as_object_mut) {
            for (_, keys) in ADDED.iter().filter(|(table, _)| table == name) {
                row.retain(|key, _| !keys.contains(&key.as_str()));
            }
            for (_, new, old) in RENAMED.iter().filter(|(table, ..)| table == name) {
                rename(row, new, old);
            }
            texts(name, row);
        }
    }
}

/// Replaces missing texts by empty ones, and other figures that describe nothing by null.
fn null_nothing_but_texts(document: &mut Keys) {
    null_nothing(document);
    let tables = document.get_mut("tables").and_then(Json::as_object_mut).into_iter();
    let rows = tables.flat_map(Map::values_mut).filter_map(Json::as_array_mut).flatten();
    for row in rows.filter_map(Json::as_object_mut) {
        for (_, cell) in row.iter_mut().filter(|(key, _)| TEXTS.contains(&key.as_str())) {
            if cell.is_null() {
                *cell = "".into();
            }
        }
    }
}

/// Puts into words what was text.
fn texts(table: &str, row: &mut Keys) {
    match table {
        "direct-cells" => {
            let promised = match row["promised"].as_bool() {
                Some(true) => "allows it",
                Some(false) => "does not",
                None => "says nothing",
            };
            row.insert("promised".into(), promised.into());
        }
        "coherence-witness" => {
            row.insert("rank".into(), row["rank"].to_string().into());
            row.insert("version".into(), format!("v{}", row["version"]).into());
        }
        "durability-chain" => {
            let fua = row["fua"].as_bool().map(|fua| if fua { "yes" } else { "no" });
            row.insert("fua".into(), json!(fua));
        }
        "durability-streams" => {
            let is_control = row.remove("control") == Some(true.into());
            let control = if is_control { " (control)" } else { "" };
            row.insert("method".into(), format!("{}{control}", word(row, "method")).into());
        }
        "metadata" => {
            row.remove("condemned_columns");
            let files = thousands(row["files"].as_i64().unwrap_or_default());
            row.insert("files".into(), files.into());
        }
        "metadata-details" => {
            row.insert("case".into(), metadata_case(row).into());
            for key in ["operation", "shape", "files", "condemned_columns"] {
                row.remove(key);
            }
        }
        _ => {}
    }
}
