//! Reads files with counters of runs into ledgers.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use blockstone_base::text::shown;
use blockstone_base::units::Bytes;
use blockstone_import::{ImportError, Interval, Names};
use blockstone_offload::fit::Measured;
use blockstone_offload::{Counters, Ledger, Unit, counters, of_statistics};

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
        bail!(
            "read counters in {}: the files say their units\nhint: leave out --unit",
            unit.name()
        );
    }
    Ok(())
}

/// Reads a file, compressed or not.
pub fn text(path: &Path) -> Result<String> {
    input::report(path, BYTES_MAX).map_err(|error| {
        let name = shown(path);
        anyhow!("read {name}: {error}\nhint: name a report of a database, or a CSV of counters")
    })
}

pub fn read(path: &Path, unit: Option<Unit>) -> Result<Read> {
    read_text(path, &text(path)?, unit)
}

fn read_text(path: &Path, text: &str, unit: Option<Unit>) -> Result<Read> {
    let name = shown(path);
    let head = &text[..text.floor_char_boundary(16 << 10)];
    if !blockstone_import::recognises(head) {
        let counters = counters::read(text, unit.unwrap_or(Unit::Bytes))
            .map_err(|error| anyhow!("read {name}: {error}"))?;
        let is_unit_used = !counters.has_units;
        return Ok(Read { counters, notes: Vec::new(), is_unit_used });
    }
    let report = blockstone_import::read(&name, text, Names::Kept);
    let report = report.map_err(|error| match error {
        ImportError::NoLoad { .. } => anyhow!("read {name}: {error}"),
        _ => anyhow!("read {name}: {error}\nhint: name an AWR report or a CSV of counters"),
    })?;
    let known = report
        .intervals
        .iter()
        .filter_map(|interval| ledger(&run_name(&report.database.name, interval), interval));
    let ledgers: Vec<Ledger> = known.collect();
    if ledgers.is_empty() {
        bail!(
            "read {name}: it has no counters of bytes read\n\
             hint: a report of 11.2 or later has them among the instance activity statistics"
        );
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

/// Returns the measured runs of a document of `offload` or of a file that `read` accepts, and
/// whether their bytes are in the unit that was requested.
pub fn measured(path: &Path, unit: Option<Unit>) -> Result<(Vec<Measured>, bool)> {
    let text = text(path)?;
    if !text.trim_start().starts_with('{') {
        let read = read_text(path, &text, unit)?;
        let runs = read.counters.ledgers.iter().map(Measured::from).collect();
        return Ok((runs, read.is_unit_used));
    }
    let document: Document = serde_json::from_str(&text).map_err(|error| {
        anyhow!(
            "read {}: {error}\nhint: name the document that blockstone offload account --json \
             prints",
            shown(path)
        )
    })?;
    Ok((document.runs, false))
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
