//! Reads files with counters of runs into ledgers.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use blockstone_base::text::shown;
use blockstone_base::units::Bytes;
use blockstone_import::{HEAD_BYTES, ImportError, Interval, Names};
use blockstone_offload::fit::Measured;
use blockstone_offload::{Counters, Ledger, Unit, counters, of_statistics};

use serde::Deserialize as _;
use serde_json::{Map, Value as Json, json};

use crate::earlier::{null, rename, rows};
use crate::failure::{Failure, with_hint_of};
use crate::input;

/// Larger files are not reports.
const BYTES_MAX: Bytes = Bytes::mib(64);
const SECOND_NS: f64 = 1e9;

/// The ledgers of a file.
pub struct Read {
    pub counters: Counters,
    pub notes: Vec<String>,
    /// Whether its bytes are in the unit that was requested.
    pub is_unit_used: bool,
}

/// Refuses a unit that has no effect.
pub fn check_unit(unit: Option<Unit>, is_used: bool) -> Result<()> {
    if let Some(unit) = unit.filter(|_| !is_used) {
        bail!(Failure::new(
            format!("read counters in {}: the files say their units", unit.name()),
            "leave out --unit"
        ));
    }
    Ok(())
}

/// Reads a file, compressed or not.
pub fn text(path: &Path) -> Result<String> {
    input::report(path, BYTES_MAX).map_err(|error| {
        let hint = "name a report of a database, or a CSV of counters";
        anyhow!(input::failure(&format!("read {}", shown(path)), &error, hint))
    })
}

pub fn read(path: &Path, unit: Option<Unit>) -> Result<Read> {
    read_text(path, &text(path)?, unit)
}

fn read_text(path: &Path, text: &str, unit: Option<Unit>) -> Result<Read> {
    let name = shown(path);
    let head = &text[..text.floor_char_boundary(HEAD_BYTES)];
    if !blockstone_import::recognises(head) {
        let counters = counters::read(text, unit.unwrap_or(Unit::Bytes))
            .map_err(|error| with_hint_of(&error, format!("read {name}: {error}")))?;
        let is_unit_used = !counters.has_units;
        return Ok(Read { counters, notes: Vec::new(), is_unit_used });
    }
    let report = blockstone_import::read(&name, text, Names::Kept);
    let report = report.map_err(|error| match error {
        ImportError::Refused { .. } => with_hint_of(&error, format!("read {name}: {error}")),
        _ => anyhow!(Failure::new(
            format!("read {name}: {error}"),
            "name an AWR report or a CSV of counters"
        )),
    })?;
    let known = report
        .intervals
        .iter()
        .filter_map(|interval| ledger(&run_name(&report.database.name, interval), interval));
    let ledgers: Vec<Ledger> = known.collect();
    if ledgers.is_empty() {
        bail!(Failure::new(
            format!("read {name}: it has no counters of bytes read"),
            "a report of 11.2 or later has them among the instance activity statistics"
        ));
    }
    let mut notes: Vec<String> = Vec::new();
    notes.extend(report.notes.iter().map(|note| format!("{name}: {note}")));
    let counters = Counters { ledgers, ..Counters::default() };
    Ok(Read { counters, notes, is_unit_used: false })
}

/// The runs of a document of `offload`, as far as the model needs them.
#[derive(serde::Deserialize)]
struct Document {
    runs: Vec<Measured>,
}

/// Keys of a run, and those that they were in version 1.
const KEYS: [(&str, &str); 5] = [
    ("run", "name"),
    ("received_of_read", "returned_of_read"),
    ("time_ns", "seconds"),
    ("host_cpu_ns", "host_cpu_s"),
    ("cell_cpu_ns", "cell_cpu_s"),
];

/// Reads the runs of a document of version 1, or of the tables of version 2.
fn runs(text: &str) -> serde_json::Result<Vec<Measured>> {
    let mut document: Map<String, Json> = serde_json::from_str(text)?;
    if document.get("version").and_then(Json::as_u64).is_none_or(|version| version < 2) {
        return Document::deserialize(Json::Object(document)).map(|it| it.runs);
    }
    document.values_mut().for_each(null);
    let mut runs = [rows(&document, "runs"), rows(&document, "engines")].concat();
    for run in &mut runs {
        run.values_mut().for_each(null);
        for (new, old) in KEYS {
            if let Some(ns) = run.get_mut(new).filter(|it| it.is_number() && new.ends_with("_ns")) {
                *ns = json!(ns.as_f64().map(|ns| ns / SECOND_NS));
            }
            rename(run, new, old);
        }
        run.extend(document.get("processors").map(|it| ("processors".to_owned(), it.clone())));
    }
    Vec::deserialize(json!(runs))
}

/// Returns the measured runs of a document of `offload` or of a file that `read` accepts, and
/// whether their bytes are in the unit that was requested.
pub fn measured(path: &Path, unit: Option<Unit>) -> Result<(Vec<Measured>, bool)> {
    let text = text(path)?;
    if !text.trim_start().starts_with('{') {
        let read = read_text(path, &text, unit)?;
        let runs = read.counters.ledgers.iter().map(Measured::from).collect();
        return Ok((runs, read.is_unit_used));
    }
    let runs = runs(&text).map_err(|error| {
        anyhow!(Failure::new(
            format!("read {}: {error}", shown(path)),
            "name the document that blockstone offload account --json prints"
        ))
    })?;
    Ok((runs, false))
}

fn run_name(database: &str, interval: &Interval) -> String {
    let instance = &interval.instance;
    let mut name = database.to_owned();
    if let Some(number) = instance.number {
        name = format!("{name} instance {number}");
    }
    if let Some((begin, end)) = interval.snapshots {
        name = format!("{name} {begin}–{end}");
    }
    name
}

fn ledger(name: &str, interval: &Interval) -> Option<Ledger> {
    let mut ledger = of_statistics(name, &interval.statistics)?;
    let totals = &interval.totals;
    ledger.seconds = totals.get("elapsed_ns").map(|ns| ns / SECOND_NS);
    ledger.hosts = interval.instance.number.map(|_| 1);
    ledger.host_cpu_s = ledger.host_cpu_s.or(totals.get("cpu_ns").map(|ns| ns / SECOND_NS));
    // Only for one instance: a report of a cluster does not say how many processors each has.
    let processors = totals.get("processors").filter(|_| ledger.hosts == Some(1));
    ledger.host_processors = processors.map(|it| it as u32);
    Some(ledger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_reads_documents_of_either_version() {
        let account = Measured {
            name: "scan".to_owned(),
            seconds: Some(2.5),
            disk_bytes: Some(1000.0),
            returned_of_read: Some(0.25),
            cell_cpu_s: Some(0.5),
            ..Measured::default()
        };
        let earlier = json!({ "version": 1, "runs": [{
            "name": "scan", "seconds": 2.5, "hosts": null, "disk_bytes": 1000,
            "returned_of_read": 0.25, "host_cpu_s": null, "cell_cpu_s": 0.5,
        }]});
        let unknown = json!({ "unmeasured": "unknown" });
        let newest = json!({ "version": 2, "tables": { "runs": [{
            "run": "scan", "time_ns": 2_500_000_000_u64, "hosts": unknown, "disk_bytes": 1000,
            "returned_of_read": 0.25, "host_cpu_ns": unknown, "cell_cpu_ns": 500_000_000,
        }]}});
        for document in [earlier, newest] {
            let read = runs(&document.to_string()).unwrap();
            assert_eq!(read, std::slice::from_ref(&account), "{document}");
        }
        let measured = Measured { processors: Some(2), cells: Some(3), ..account };
        let earlier = json!({ "version": 1, "processors": 2, "runs": [{
            "name": "scan", "seconds": 2.5, "cells": 3, "disk_bytes": 1000, "processors": 2,
            "returned_of_read": 0.25, "cell_cpu_s": 0.5,
        }]});
        let newest = json!({ "version": 2, "processors": 2, "tables": { "engines": [{
            "run": "scan", "time_ns": 2_500_000_000_u64, "cells": 3, "disk_bytes": 1000,
            "received_of_read": 0.25, "host_cpu_ns": unknown, "cell_cpu_ns": 500_000_000,
        }]}});
        for document in [earlier, newest] {
            let read = runs(&document.to_string()).unwrap();
            assert_eq!(read, std::slice::from_ref(&measured), "{document}");
        }
        for document in [json!({}), json!({ "version": 1 })] {
            assert!(runs(&document.to_string()).is_err(), "{document}");
        }
        let odd = json!({ "version": 2, "tables": { "runs": [{ "time_ns": "long" }]}});
        assert!(runs(&odd.to_string()).is_err());
    }
}
