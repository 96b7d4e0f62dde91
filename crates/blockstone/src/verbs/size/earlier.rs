//! The document of `size` in version 1, for scripts that were written for it. It will be removed
//! with the next release.

use blockstone_base::units::format_ns;
use blockstone_size::need::QUANTITIES;
use serde_json::{Map, Value as Json, json};

use super::rows::OF_STORAGE;
use crate::earlier::{null, null_nothing, rename};

type Keys = Map<String, Json>;

const SECOND_NS: f64 = 1e9;
/// Bytes of a decimal megabyte.
const MB: f64 = 1e6;

/// Tables that were lists under keys of their own.
const LISTS: [&str; 2] = ["packed", "unchecked"];

pub fn keys(mut document: Keys) -> Keys {
    document.values_mut().for_each(null);
    null_nothing(&mut document);
    let ceilings = rows(&document, "ceilings").into_iter().map(|mut row| {
        rename(&mut row, "ceiling", "name");
        row
    });
    let packed = rows(&document, "packed").into_iter().map(|mut row| {
        rename(&mut row, "units_exact", "exact");
        row
    });
    let unchecked = rows(&document, "unchecked").into_iter().map(|row| row["ceiling"].clone());
    let mut earlier = Map::from_iter([
        ("sources".to_owned(), rows(&document, "sources").iter().map(source).collect()),
        ("need".to_owned(), need(&document)),
        ("consolidation".to_owned(), consolidation(&document)),
        ("ceilings".to_owned(), ceilings.collect()),
        (
            "answer".to_owned(),
            json!({
                "unit": document["unit"],
                "units": document["units"],
                "packed": packed.collect::<Vec<_>>(),
                "unchecked": unchecked.collect::<Vec<_>>(),
            }),
        ),
        ("verified".to_owned(), verified(&document)),
    ]);
    tables(&mut document);
    document.retain(|key, _| ["tool_version", "verdicts", "drive", "tables"].contains(&&**key));
    earlier.extend(document);
    earlier
}

/// Returns the rows of a table, whose cells are null if they were not measured.
fn rows(document: &Keys, table: &str) -> Vec<Keys> {
    let mut rows = crate::earlier::rows(document, table);
    rows.iter_mut().flat_map(Map::values_mut).for_each(null);
    rows
}

/// Divides a number, which may be null.
fn per(number: &Json, by: f64) -> Json {
    json!(number.as_f64().map(|number| number / by))
}

fn source(row: &Keys) -> Json {
    json!({
        "name": row["name"],
        "begin": row["begin"],
        "seconds": per(&row["length_ns"], SECOND_NS),
        "reads_per_s": row["reads_per_s"],
        "writes_per_s": row["writes_per_s"],
        "read_mbps": per(&row["read_bytes_per_s"], MB),
        "write_mbps": per(&row["write_bytes_per_s"], MB),
        "redo_mbps": per(&row["redo_bytes_per_s"], MB),
    })
}

fn need(document: &Keys) -> Json {
    let is_stated = document["percentile"] == "stated";
    let (storage, others): (Vec<_>, Vec<_>) =
        rows(document, "need").into_iter().partition(|row| row["quantity"] == OF_STORAGE);
    let storage = json!(storage.first());
    let interval = |percentile: &str| {
        let found = &storage[percentile];
        json!(found.is_object().then(|| [&found["low"], &found["high"]]))
    };
    let quantities = others.iter().filter(|_| !is_stated).map(|row| {
        let known = QUANTITIES.iter().find(|it| row["quantity"] == it.name);
        json!({
            "name": known.map(|it| it.key),
            "p50": row["p50"]["value"],
            "p95": row["p95"]["value"],
            "p99": row["p99"]["value"],
            "max": row["max"],
        })
    });
    let averaging = ["averaging_ns_min", "averaging_ns_max"];
    let averaging = averaging.map(|key| per(&document[key], SECOND_NS));
    let growth = json!({
        "weeks": document["growth_weeks"],
        "per_week": document["growth_iops_per_week"],
        "after": document["grown_iops_p95"],
    });
    json!({
        "penalty": document["penalty"],
        "percentile": document["percentile"],
        "reads_per_s": document["reads_per_s"],
        "writes_per_s": document["writes_per_s"],
        "averaging_seconds": (!is_stated).then_some(averaging),
        "intervals": document["intervals"],
        "partial_intervals": document["partial_intervals"],
        "hardware_iops": {
            "p50": storage["p50"]["value"],
            "p95": storage["p95"]["value"],
            "p99": storage["p99"]["value"],
            "max": storage["max"],
            "p95_weighted": document["hardware_iops_p95_weighted"],
            "p50_interval": interval("p50"),
            "p95_interval": interval("p95"),
            "p99_interval": interval("p99"),
            "most": document["most_hardware_iops"],
            "at_max_share": document["at_max_share"],
        },
        "quantities": quantities.collect::<Vec<_>>(),
        "growth": (!growth["weeks"].is_null()).then_some(growth),
        "no_growth": document["no_growth"],
    })
}

fn consolidation(document: &Keys) -> Json {
    let part = |row: Keys| {
        json!({
            "name": row["name"],
            "peak": row["peak_iops"],
            "at_peak": row["at_peak_iops"],
        })
    };
    let parts: Vec<Json> = rows(document, "consolidation").into_iter().map(part).collect();
    let of = document["consolidation"].as_str();
    json!(of.map(|of| json!({
        "of": of,
        "sum_of_peaks": document["sum_of_peaks_iops"],
        "peak_of_sums": document["peak_of_sums_iops"],
        "at": document["peak_of_sums_at"],
        "sum_of_most": document["sum_of_most_iops"],
        "parts": parts,
    })))
}

fn verified(document: &Keys) -> Json {
    let rows = rows(document, "run-against-need");
    let [requests, p99, curve @ ..] = rows.as_slice() else { return Json::Null };
    let curve = curve.first();
    let curve = curve
        .map(|it| [json!(it["predicted_low"].as_f64().unwrap_or(0.0)), it["predicted"].clone()]);
    json!({
        "predicted_iops": requests["predicted"],
        "iops": requests["measured"],
        "wanted_latency_ns_p99": p99["predicted"],
        "predicted_latency_ns_p99": curve,
        "latency_ns_p99": p99["measured"],
    })
}

fn tables(document: &mut Keys) {
    let Some(Json::Object(tables)) = document.get_mut("tables") else { return };
    tables.retain(|name, _| !LISTS.contains(&name.as_str()));
    for (name, table) in tables {
        let rows = table.as_array_mut().into_iter().flatten().filter_map(Json::as_object_mut);
        for row in rows {
            match name.as_str() {
                "ceilings" | "machine" => {
                    let binds = if row["binding"] == true { "binds" } else { "" };
                    row.insert("binding".to_owned(), binds.into());
                }
                "changes" => rename(row, "ceiling", "binding"),
                "run-against-need" => range(row),
                _ => {}
            }
        }
    }
}

/// Writes a range that was predicted as a text.
fn range(row: &mut Keys) {
    let low = row.remove("predicted_low").and_then(|it| it.as_f64());
    if row["figure"] == "p99 of a read, by the curve" {
        let from = low.map_or_else(|| "up to".to_owned(), |low| format_ns(low) + " to");
        let high = format_ns(row["predicted"].as_f64().unwrap_or_default());
        row.insert("predicted".to_owned(), format!("{from} {high}").into());
    }
}
