//! The documents of `flash` in version 1, for scripts that were written for it. They will be
//! removed with the next release.

use serde_json::{Map, Value as Json, json};

use crate::earlier::{null, null_nothing, rename, rows};

type Keys = Map<String, Json>;

const SECOND_NS: f64 = 1e9;

/// Figures of a simulation that were columns of the table `figures`.
const FIGURES: [&str; 16] = [
    "device",
    "over_provisioning",
    "spare_factor",
    "effective_spare",
    "iops_fresh",
    "iops_steady",
    "iops_steady_analytic",
    "wa",
    "wa_analytic",
    "wa_error_percent",
    "cliff_drive_fills",
    "cliff_drive_fills_analytic",
    "engine",
    "blocks",
    "block_bytes",
    "elapsed_ns",
];

/// Figures that were keys of `summary`.
const SUMMARY: [&str; 12] = [
    "wa",
    "wa_analytic",
    "wa_error",
    "over_provisioning",
    "spare_factor",
    "effective_spare",
    "iops_fresh",
    "iops_steady",
    "iops_steady_analytic",
    "cliff_drive_fills",
    "cliff_drive_fills_analytic",
    "is_settled",
];

pub fn cliff(document: Keys) -> Keys {
    let mut row = row(&document, "cliff");
    rename(&mut row, "wa_analytic", "wa");
    rename(&mut row, "time_to_cliff_ns", "seconds_to_cliff");
    row.get_mut("seconds_to_cliff").into_iter().for_each(|time| scale(time, 1.0 / SECOND_NS));
    let outcome = match row["outcome"].as_str() {
        Some("no cliff" | "not established") => "never",
        Some("cliff") => "at",
        _ => "too-slow",
    };
    row.insert("outcome".to_owned(), outcome.into());
    let plain = nulls(&row);
    let seconds = plain["seconds_to_cliff"].as_f64();
    let shared = ["effective_spare", "iops_fresh", "iops_steady", "cliff_drive_fills", "outcome"];
    let mut summary = some(&plain, &shared);
    summary.extend(keys(json!({
        "wa": null,
        "wa_analytic": plain["wa"],
        "hours_to_cliff": seconds.map(|seconds| seconds / 3600.0),
        "cliff_after_s": seconds.filter(|_| outcome == "at"),
    })));
    let tables = json!({ "cliff": [unknown(row)] });
    own(json!({ "summary": summary, "cliff": plain, "tables": tables }), document)
}

pub fn fit(document: Keys) -> Keys {
    let mut row = row(&document, "fit");
    let plain = nulls(&row);
    let shared =
        ["wa", "effective_spare", "cliff_drive_fills", "is_settled", "drive_fills_missing"];
    let summary = some(&plain, &shared);
    for flag in ["fell", "is_settled"] {
        let word = if row[flag] == true { "yes" } else { "no" };
        row.insert(flag.to_owned(), word.into());
    }
    let tables = json!({ "fit": [unknown(row)] });
    own(json!({ "summary": summary, "fit": plain, "tables": tables }), document)
}

pub fn life(document: Keys) -> Keys {
    let row = row(&document, "life");
    let summary = some(&row, &["wa", "years"]);
    let tables = json!({ "life": [&row] });
    own(json!({ "summary": summary, "life": row, "tables": tables }), document)
}

pub fn explain(document: Keys) -> Keys {
    let steps = rows(&document, "steps");
    let blocks = rows(&document, "blocks");
    let mut stories: Vec<Json> = Vec::new();
    for step in &steps {
        let is_of = |row: &&Keys| row["story"] == step["story"] && row["step"] == step["step"];
        let cell = |word: &str| word.parse().map_or_else(|_| json!(word), |page: u8| json!(page));
        let blocks = blocks.iter().filter(is_of);
        let blocks = blocks.map(|row| row["pages"].as_str().unwrap_or_default());
        let blocks = blocks.map(|words| words.split(' ').map(cell).collect::<Vec<Json>>());
        let mut shown = step.clone();
        shown.retain(|key, _| key != "story" && key != "step");
        shown.insert("blocks".to_owned(), blocks.collect::<Vec<_>>().into());
        if step["step"] == 1 {
            stories.push(json!({ "title": step["story"], "steps": [] }));
        }
        let story = stories.last_mut().and_then(|story| story["steps"].as_array_mut());
        if let Some(steps) = story {
            steps.push(json!(shown));
        }
    }
    own(json!({ "stories": stories, "tables": { "steps": steps } }), document)
}

pub fn sweep(document: Keys) -> Keys {
    let (mut points, mut wear) = (rows(&document, "points"), rows(&document, "wear"));
    let varies = |rows: &[Keys], key: &str, plain: &Json| rows.iter().any(|row| row[key] != *plain);
    let off = json!({ "unmeasured": "off" });
    let levels = varies(&wear, "levelling", &off);
    let plain = points.iter().zip(&wear).map(|(point, wear)| {
        let mut point = nulls(point);
        error(&mut point);
        let keys = ["levelling", "erases_least", "erases_mean", "erases_most", "levelled_share"];
        point.extend(nulls(&some(wear, &keys)));
        point
    });
    let plain: Vec<Keys> = plain.collect();
    for (key, usual) in [("reserve_blocks", json!(1)), ("bad_blocks", json!(0))] {
        if !varies(&points, key, &usual) {
            for point in &mut points {
                point.remove(key);
            }
        }
    }
    for row in &mut wear {
        let word = row["levelling"].as_u64().map_or("none".to_owned(), |erases| erases.to_string());
        row.insert("levelling".to_owned(), word.into());
    }
    let mut tables = json!({ "points": points });
    if levels {
        tables["wear"] = json!(wear);
    }
    own(json!({ "seed": seed(&document), "points": plain, "tables": tables }), document)
}

pub fn sim(document: Keys) -> Keys {
    let figures = rows(&document, "figures");
    let devices = figures.iter().map(|row| row["device"].as_str().unwrap_or_default());
    let devices: Vec<&str> = devices.collect();
    let mut earlier = simulation(&document, devices.first().copied().unwrap_or_default());
    if let Some(&other) = devices.get(1) {
        let mut beside = simulation(&document, other);
        beside.insert("schema".to_owned(), "blockstone.flash-sim/1".into());
        beside.insert("tool_version".to_owned(), document["tool_version"].clone());
        earlier.insert(other.to_owned(), beside.into());
    }
    earlier.insert("tables".to_owned(), tables_of_sim(&document));
    own(earlier.into(), document)
}

/// Returns the keys of one simulated device.
fn simulation(document: &Keys, device: &str) -> Keys {
    let of = |table: &str| -> Vec<Keys> {
        let mut rows = rows(document, table);
        rows.retain(|row| row["device"] == device);
        for row in &mut rows {
            row.remove("device");
        }
        rows
    };
    let mut figures = nulls(&of("figures").into_iter().next().unwrap_or_default());
    error(&mut figures);
    let mut latency = keys(json!({ "read": null, "write": null }));
    for mut row in of("latencies") {
        let Some(Json::String(direction)) = row.remove("direction") else { continue };
        rename(&mut row, "requests", "count");
        latency.insert(direction, nulls(&row).into());
    }
    let mut pages = of("pages").into_iter().map(|mut row| {
        row.remove("when");
        row
    });
    let (steady, all) = (pages.next(), pages.next());
    let erases = of("erases").into_iter().map(|row| json!([row["erases"], row["blocks"]]));
    let erases: Vec<Json> = erases.collect();
    let points: Vec<Keys> = of("over-time").iter().map(point).collect();
    let mut earlier = some(
        &figures,
        &[
            "engine",
            "digest",
            "elapsed_ns",
            "throttled_writes",
            "waiting_writes",
            "memory_bytes",
            "unmapped_reads",
            "ended_by",
        ],
    );
    earlier.extend(some(document, &["load", "scale"]));
    earlier.extend(keys(json!({
        "seed": seed(document),
        "summary": some(&figures, &SUMMARY),
        "latency": latency,
        "pages": { "steady": steady, "all": all },
        "steady": {
            "from_drive_fills": figures["steady_from_drive_fills"],
            "duration_ns": figures["steady_ns"],
        },
        "device": device_of(document, &figures),
        "erases": erases,
        "points": points,
        "trace": trace(document),
    })));
    earlier
}

fn device_of(document: &Keys, figures: &Keys) -> Keys {
    let mut times =
        some(document, &["read_ns", "erase_ns", "transfer_ns", "suspend", "suspend_ns", "planes"]);
    let programs = rows(document, "program-times").into_iter();
    let programs: Vec<Json> = programs.map(|row| row["program_ns"].clone()).collect();
    times.insert("program_ns".to_owned(), programs.into());
    let mut device = some(
        document,
        &[
            "raw_bytes",
            "visible_bytes",
            "page_bytes",
            "pages_per_block",
            "channels",
            "dies_per_channel",
            "policy",
            "reserve_blocks",
            "placement",
        ],
    );
    device.insert("times".to_owned(), times.into());
    device.insert("collection".to_owned(), figures["collection"].clone());
    device.insert("blocks_simulated".to_owned(), figures["blocks"].clone());
    device
}

/// Returns a point of the run, whose latencies were objects of their own.
fn point(row: &Keys) -> Keys {
    let row = nulls(row);
    let keys = ["t_ns", "drive_fills", "iops", "write_iops", "wa", "free_blocks"];
    let mut point = some(&row, &keys);
    for (side, count) in [("read", "reads"), ("write", "writes")] {
        let mut latency = Map::new();
        for (key, value) in &row {
            if let Some(key) = key.strip_prefix(side).and_then(|key| key.strip_prefix("_latency")) {
                latency.insert(format!("latency{key}"), value.clone());
            }
        }
        latency.insert("count".to_owned(), row[count].clone());
        let latency = if row[count] == 0 { Json::Null } else { latency.into() };
        point.insert(side.to_owned(), latency);
    }
    point
}

fn trace(document: &Keys) -> Json {
    if !document["trace_format"].is_string() {
        return Json::Null;
    }
    json!({
        "format": document["trace_format"],
        "lines": document["trace_lines"],
        "requests": document["trace_requests"],
        "bad_lines": document["trace_bad_lines"],
        "bad": rows(document, "bad-lines"),
    })
}

fn tables_of_sim(document: &Keys) -> Json {
    let mut document = document.clone();
    null_nothing(&mut document);
    let Some(Json::Object(mut tables)) = document.remove("tables") else { return Json::Null };
    let named = ["programs", "latencies", "figures", "over-time", "bad-lines"];
    tables.retain(|name, _| named.contains(&name.as_str()));
    for (name, table) in &mut tables {
        for row in table.as_array_mut().into_iter().flatten().filter_map(Json::as_object_mut) {
            match name.as_str() {
                "figures" => row.retain(|key, _| FIGURES.contains(&&**key)),
                "over-time" => row.retain(|key, _| {
                    !key.contains("_latency") && key != "reads" && key != "writes"
                        || key.ends_with("_p99")
                }),
                _ => {}
            }
            if row.get("device").is_some_and(|device| device == "") {
                row.remove("device");
            }
        }
    }
    tables.into()
}

/// Returns the keys of every document of version 1 with these of its own.
fn own(own: Json, mut document: Keys) -> Keys {
    document.retain(|key, _| key == "tool_version");
    document.extend(keys(own));
    document
}

fn keys(object: Json) -> Keys {
    match object {
        Json::Object(keys) => keys,
        _ => Map::new(),
    }
}

/// Returns the only row of a table.
fn row(document: &Keys, table: &str) -> Keys {
    rows(document, table).into_iter().next().unwrap_or_default()
}

fn some(keys: &Keys, wanted: &[&str]) -> Keys {
    let some = wanted.iter().filter_map(|&key| Some((key.to_owned(), keys.get(key)?.clone())));
    some.collect()
}

fn nulls(row: &Keys) -> Keys {
    let mut row = row.clone();
    row.values_mut().for_each(null);
    row
}

/// Returns a row of a table in which everything that is missing is unknown.
fn unknown(mut row: Keys) -> Keys {
    for value in row.values_mut().filter(|value| value.get("unmeasured").is_some()) {
        *value = json!({ "unmeasured": "unknown" });
    }
    row
}

/// Converts the error of a row from percent.
fn error(row: &mut Keys) {
    rename(row, "wa_error_percent", "wa_error");
    row.get_mut("wa_error").into_iter().for_each(|error| scale(error, 0.01));
}

fn scale(value: &mut Json, by: f64) {
    if let Some(number) = value.as_f64() {
        *value = json!(number * by);
    }
}

fn seed(document: &Keys) -> Option<u64> {
    document["seed"].as_str()?.parse().ok()
}
