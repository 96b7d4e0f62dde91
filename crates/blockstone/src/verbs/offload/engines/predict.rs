//! Predictions for the run with the most cells, by the model fitted on runs with fewer.

use blockstone_offload::fit::{Measured, fit};
use blockstone_pushdown::cells::Ran;
use schemars::JsonSchema;
use serde::Serialize;

use super::counted::{ledger, processors};

/// A prediction and the later measurement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Prediction {
    pub query: &'static str,
    pub pushdown: bool,
    pub cells: u32,
    /// Numbers of cells of the runs that the model was fitted on.
    pub fitted_on: Vec<u32>,
    pub predicted_s: f64,
    pub measured_s: f64,
    /// Predicted ÷ measured − 1.
    pub error: f64,
    /// The part that binds according to the model.
    pub binding: &'static str,
}

/// Converts a run for the model.
pub fn measured(ran: &Ran) -> Measured {
    let ledger = ledger(ran);
    let read = ledger.read_bytes.max(1) as f64;
    Measured {
        // Everything received from the cells, filtered or not.
        returned_of_read: Some(ran.moved.received_bytes as f64 / read),
        processors: processors(),
        ..Measured::from(&ledger)
    }
}

/// Returns a prediction for each query that was run on three numbers of cells or more.
pub fn predictions(runs: &[Ran]) -> Vec<Prediction> {
    let Some(most) = runs.iter().map(|ran| ran.cells).max() else { return Vec::new() };
    let last = runs.iter().filter(|ran| ran.cells == most);
    last.filter_map(|ran| predict(ran, runs)).collect()
}

fn predict(ran: &Ran, runs: &[Ran]) -> Option<Prediction> {
    let same = |it: &&Ran| (it.query, it.pushdown) == (ran.query, ran.pushdown);
    let fewer: Vec<&Ran> = runs.iter().filter(same).filter(|it| it.cells < ran.cells).collect();
    if fewer.len() < 2 {
        return None;
    }
    let known: Vec<Measured> = fewer.iter().map(|ran| measured(ran)).collect();
    let processors = known[0].processors;
    let (machine, fitted) = fit(&known, ran.cells, processors, None).ok()?;
    let returned = fitted.iter().map(|run| run.returned).fold(0.0, f64::max);
    let bound = machine.bound(1.0, returned)?;
    let read = ledger(ran).read_bytes as f64;
    let predicted_s = read / bound.bytes_per_s;
    Some(Prediction {
        query: ran.query.name(),
        pushdown: ran.pushdown,
        cells: ran.cells,
        fitted_on: fewer.iter().map(|ran| ran.cells).collect(),
        predicted_s,
        measured_s: ran.moved.seconds,
        error: predicted_s / ran.moved.seconds - 1.0,
        binding: bound.binding.name(),
    })
}
