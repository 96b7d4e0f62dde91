//! The documents of `offload` in version 1, for scripts that were written for it. They will be
//! removed with the next release.

use blockstone_report::percent;
use blockstone_report::render::json::keys;
use serde_json::{Map, Value as Json, json};

use crate::earlier::{null, null_nothing, rename, rows};

type Keys = Map<String, Json>;

/// Columns of the table `runs` in version 1.
const RUNS: [&str; 10] = [
    "run",
    "time_ns",
    "hosts",
    "disk_bytes",
    "eligible_bytes",
    "returned_bytes",
    "wire_bytes",
    "saved_of_all",
    "read_bytes_per_s",
    "wire_bytes_per_s",
];

/// Columns of the table `engines` in version 1.
const ENGINES: [&str; 11] = [
    "query",
    "filtered_by",
    "cells",
    "elapsed_ns",
    "bound_by",
    "read_bytes",
    "received_bytes",
    "received_of_read",
    "wire_bytes",
    "host_cpu_ns",
    "cell_cpu_ns",
];

/// Columns of the table `evidence` that were keys of a run.
const EVIDENCE: [&str; 5] =
    ["interface_bytes", "resent_bytes", "hit_bytes", "file_bytes", "storage_bytes"];

/// Columns of the model that its lists did not have.
const ADDED: [&str; 3] = ["wire_bytes_per_s", "size_ns", "hosts_whole"];

pub fn account(mut document: Keys) -> Keys {
    let mut usual = rows(&document, "usual").into_iter();
    let mut runs = rows(&document, "runs");
    for run in &mut runs {
        let is_divided = run["returned_bytes"].is_u64() && run["eligible_bytes"].as_u64() > Some(0);
        let ratio = if is_divided { usual.next() } else { None }.unwrap_or_default();
        let of = |key: &str| ratio.get(key).cloned();
        run.retain(|key, _| !key.ends_with("_per_s"));
        run.values_mut().for_each(null);
        run.insert("returned_of_eligible".to_owned(), json!(of("returned_of_eligible")));
        run.insert("condemned_by".to_owned(), of("condemned_by").unwrap_or(json!([])));
        rename(run, "run", "name");
        seconds(run, "time_ns", "seconds");
        seconds(run, "host_cpu_ns", "host_cpu_s");
        seconds(run, "cell_cpu_ns", "cell_cpu_s");
    }
    document.remove("end");
    document.insert("runs".to_owned(), json!(runs));
    for row in table(&mut document, "runs") {
        row.retain(|key, _| RUNS.contains(&key.as_str()));
        rename(row, "time_ns", "elapsed_ns");
    }
    table(&mut document, "links").for_each(|row| rename(row, "time_ns", "elapsed_ns"));
    null_nothing(&mut document);
    document
}

pub fn model(mut document: Keys) -> Keys {
    document.retain(|key, _| !["end", "verdicts"].contains(&key.as_str()));
    document.values_mut().for_each(null);
    for name in ["points", "crossings", "gains", "selectivity"] {
        let mut list = rows(&document, name);
        for row in &mut list {
            row.retain(|key, _| !ADDED.contains(&key.as_str()));
        }
        document.insert(name.to_owned(), json!(list));
    }
    table(&mut document, "crossings").for_each(|row| words(row, "hosts", |it| format!("{it:.2}")));
    null_nothing(&mut document);
    document
}

pub fn engines(mut document: Keys) -> Keys {
    document.remove("end");
    document.values_mut().for_each(null);
    let (mut runs, rounds) = (rows(&document, "engines"), rows(&document, "rounds"));
    let (evidence, plans) = (rows(&document, "evidence"), rows(&document, "plans"));
    let mut predictions = rows(&document, "predicted");
    for it in &mut predictions {
        let is_fitted = |run: &&Keys| {
            ["query", "pushdown"].iter().all(|key| run[*key] == it[*key])
                && run["cells"].as_u64() < it["cells"].as_u64()
        };
        let cells: Vec<Json> =
            runs.iter().filter(is_fitted).map(|run| run["cells"].clone()).collect();
        it.insert("fitted_on".to_owned(), json!(cells));
        seconds(it, "predicted_ns", "predicted_s");
        seconds(it, "measured_ns", "measured_s");
    }
    for ((run, counted), plan) in runs.iter_mut().zip(evidence).zip(plans) {
        let own = rounds.iter().filter(|round| round["run"] == run["run"]);
        let own: Vec<Json> = own.map(|round| in_seconds(&round["time_ns"])).collect();
        run.extend(counted.into_iter().filter(|(key, _)| EVIDENCE.contains(&key.as_str())));
        run.values_mut().for_each(null);
        run.retain(|key, _| !["filtered_by", "condemned_columns"].contains(&key.as_str()));
        run.entry("condemned_by").or_insert(json!([]));
        run.extend(keys(json!({
            "hosts": 1,
            "mirror_copies": null,
            "processors": document["processors"],
            "remote_sql": plan["remote"],
            "seconds_of_rounds": own,
        })));
        rename(run, "run", "name");
        rename(run, "hit_bytes", "buffer_hit_bytes");
        rename(run, "received_of_read", "returned_of_read");
        seconds(run, "time_ns", "seconds");
        seconds(run, "host_cpu_ns", "host_cpu_s");
        seconds(run, "cell_cpu_ns", "cell_cpu_s");
    }
    seed(&mut document, "seed_of_rows");
    document.insert("runs".to_owned(), json!(runs));
    document.insert("predictions".to_owned(), json!(predictions));
    for row in table(&mut document, "engines") {
        let percent = row["bound_share"].as_f64().map(percent).unwrap_or_default();
        let bound = row["bound_by"].as_str().unwrap_or_default();
        let bound = format!("{bound} {percent}").trim().to_owned();
        row.insert("bound_by".to_owned(), bound.into());
        rename(row, "time_ns", "elapsed_ns");
        rename(row, "disk_bytes", "read_bytes");
        row.retain(|key, _| ENGINES.contains(&key.as_str()));
    }
    for row in table(&mut document, "predicted") {
        if row.remove("pushdown") == Some(json!(false)) {
            let query = format!("{} without pushdown", row["query"].as_str().unwrap_or_default());
            row.insert("query".to_owned(), query.into());
        }
        words(row, "error", |share| format!("{:+.1} %", share * 100.0));
    }
    if let Some(Json::Object(tables)) = document.get_mut("tables") {
        tables.remove("rounds");
    }
    null_nothing(&mut document);
    document
}

pub fn generate(mut document: Keys) -> Keys {
    document.retain(|key, _| !["end", "verdicts"].contains(&key.as_str()));
    rename(&mut document, "file_bytes", "bytes");
    seed(&mut document, "seed");
    document
}

fn seed(document: &mut Keys, old: &str) {
    let seed = document.remove("seed");
    let seed = seed.as_ref().and_then(Json::as_str).and_then(|digits| digits.parse::<u64>().ok());
    document.insert(old.to_owned(), json!(seed));
}

/// Returns the rows of a table, to be changed.
fn table<'a>(document: &'a mut Keys, name: &str) -> impl Iterator<Item = &'a mut Keys> {
    let rows = document.get_mut("tables").and_then(|tables| tables.get_mut(name)?.as_array_mut());
    rows.into_iter().flatten().filter_map(Json::as_object_mut)
}

/// Replaces a time in nanoseconds by one in seconds.
fn seconds(keys: &mut Keys, new: &str, old: &str) {
    rename(keys, new, old);
    if let Some(time) = keys.get_mut(old) {
        *time = in_seconds(time);
    }
}

fn in_seconds(time_ns: &Json) -> Json {
    json!(time_ns.as_f64().map(|ns| ns / 1e9))
}

/// Replaces a number by its text.
fn words(keys: &mut Keys, key: &str, words: impl Fn(f64) -> String) {
    if let Some(value) = keys.get_mut(key)
        && let Some(number) = value.as_f64()
    {
        *value = words(number).into();
    }
}
