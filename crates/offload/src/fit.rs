//! Estimates the rates of a machine's parts from runs measured on it.
//!
//! Each rate is the greatest that any run reached. A part that limited no run may be able to do
//! more; the model is then a lower bound.

use blockstone_base::hint::Hint;
use serde::Deserialize;

use crate::ledger::Ledger;
use crate::model::{Consumed, Machine, Shared};

/// If a cell read less than this share of its scan rate in a run, the hosts limited that run.
const SLOWED: f64 = 0.8;

/// Input of the model for one run: keys of `runs[]` in the documents of `offload`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Measured {
    pub name: String,
    pub seconds: Option<f64>,
    pub hosts: Option<u32>,
    pub cells: Option<u32>,
    pub disk_bytes: Option<f64>,
    pub wire_bytes: Option<f64>,
    pub returned_bytes: Option<f64>,
    pub returned_of_read: Option<f64>,
    pub host_cpu_s: Option<f64>,
    pub cell_cpu_s: Option<f64>,
    /// Processors shared by cells and hosts.
    pub processors: Option<u32>,
}

/// A run as seen by the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    pub name: String,
    pub hosts: u32,
    pub cells: u32,
    pub read_bytes_per_s: f64,
    pub returned: f64,
    /// Processor time of all parts per byte read, in seconds.
    pub cpu_s_per_byte: Option<f64>,
}

#[derive(Clone, Debug, thiserror::Error, PartialEq, Hint)]
pub enum FitError {
    #[error("no run has a time, bytes read and bytes on the wire")]
    #[hint("a run that was not timed says nothing of rates")]
    NoRun,
    #[error("run {run:?}: {key} is {value}")]
    #[hint("it must be a number above zero")]
    Value { run: String, key: &'static str, value: f64 },
}

impl From<&Ledger> for Measured {
    fn from(ledger: &Ledger) -> Self {
        Self {
            name: ledger.name.clone(),
            seconds: ledger.seconds,
            hosts: ledger.hosts,
            cells: ledger.cells,
            disk_bytes: Some(ledger.read_bytes as f64),
            wire_bytes: ledger.wire_bytes.map(|it| it as f64),
            returned_bytes: ledger.returned_bytes.map(|it| it as f64),
            returned_of_read: ledger.returned_of_read(),
            host_cpu_s: ledger.host_cpu_s,
            cell_cpu_s: ledger.cell_cpu_s,
            processors: None,
        }
    }
}

impl Measured {
    /// `None` if the run was not timed or its bytes were not counted.
    fn fitted(&self, cells: u32) -> Result<Option<Fitted>, FitError> {
        let (Some(seconds), Some(read)) = (self.seconds, self.disk_bytes) else { return Ok(None) };
        let returned =
            self.returned_of_read.or_else(|| Some(self.wire_bytes.or(self.returned_bytes)? / read));
        let Some(returned) = returned else { return Ok(None) };
        let values = [("seconds", seconds), ("disk_bytes", read), ("returned_of_read", returned)];
        if let Some((key, value)) =
            values.into_iter().find(|(_, it)| !(it.is_finite() && *it > 0.0))
        {
            return Err(FitError::Value { run: self.name.clone(), key, value });
        }
        let cpu = match (self.host_cpu_s, self.cell_cpu_s) {
            (Some(host), Some(cell)) => Some((host + cell) / read),
            _ => None,
        };
        Ok(Some(Fitted {
            name: self.name.clone(),
            hosts: self.hosts.unwrap_or(1).max(1),
            cells: self.cells.unwrap_or(cells).max(1),
            read_bytes_per_s: read / seconds,
            returned,
            cpu_s_per_byte: cpu.filter(|it| it.is_finite() && *it > 0.0),
        }))
    }
}

/// Returns a machine of `cells` cells fitted to these runs, and the runs it was fitted to. A run
/// without a number of cells is assumed to have used all of them.
pub fn fit(
    runs: &[Measured],
    cells: u32,
    processors: Option<u32>,
    returned: Option<f64>,
) -> Result<(Machine, Vec<Fitted>), FitError> {
    let fitted: Vec<Option<Fitted>> =
        runs.iter().map(|run| run.fitted(cells)).collect::<Result<_, _>>()?;
    let fitted: Vec<Fitted> = fitted.into_iter().flatten().collect();
    if fitted.is_empty() {
        return Err(FitError::NoRun);
    }
    let per_cell = |run: &Fitted| run.read_bytes_per_s / f64::from(run.cells);
    let scan_rate = fitted.iter().map(per_cell).fold(0.0, f64::max);
    let mut consume: Vec<Consumed> = Vec::new();
    // A run in which cells read at nearly their best rate says nothing about what hosts can take.
    for run in fitted.iter().filter(|run| per_cell(run) < SLOWED * scan_rate) {
        let bytes_per_s = run.read_bytes_per_s * run.returned / f64::from(run.hosts);
        match consume.iter_mut().find(|it| it.hosts == run.hosts) {
            Some(known) => known.bytes_per_s = known.bytes_per_s.max(bytes_per_s),
            None => consume.push(Consumed { hosts: run.hosts, bytes_per_s }),
        }
    }
    consume.sort_by_key(|it| it.hosts);
    let processors = processors.or(runs.iter().find_map(|run| run.processors));
    let returned = returned.unwrap_or_else(|| most_returned(&fitted));
    let shared = processors
        .filter(|it| *it > 0)
        .and_then(|processors| Some(Shared { processors, s_per_byte: cost(&fitted, returned)? }));
    let machine =
        Machine { cells, scan_rate: Some(scan_rate), consume, shared, ..Machine::default() };
    Ok((machine, fitted))
}

/// Returns the greatest fraction of the bytes read that any run sent over the wire.
pub fn most_returned(runs: &[Fitted]) -> f64 {
    runs.iter().map(|run| run.returned).fold(0.0, f64::max)
}

/// Processor time per byte of the run with the nearest returned fraction.
fn cost(runs: &[Fitted], returned: f64) -> Option<f64> {
    let distance = |run: &Fitted| (run.returned / returned).ln().abs();
    let known = runs.iter().filter(|run| run.cpu_s_per_byte.is_some());
    known.min_by(|a, b| distance(a).total_cmp(&distance(b)))?.cpu_s_per_byte
}
