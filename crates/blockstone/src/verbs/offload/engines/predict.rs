//! Predictions for the run with the most cells, by the model fitted on runs with fewer.

use blockstone_offload::fit::{Measured, fit};
use blockstone_pushdown::cells::Ran;

use super::counted::{SECOND_NS, ledger, processors};
use super::rows::PredictedRow;

/// Converts a run for the model.
fn measured(ran: &Ran) -> Measured {
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
pub fn predictions(runs: &[Ran]) -> Vec<PredictedRow> {
    let Some(most) = runs.iter().map(|ran| ran.cells).max() else { return Vec::new() };
    let last = runs.iter().filter(|ran| ran.cells == most);
    last.filter_map(|ran| predict(ran, runs)).collect()
}

fn predict(ran: &Ran, runs: &[Ran]) -> Option<PredictedRow> {
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
    Some(PredictedRow {
        query: ran.query.name(),
        pushdown: ran.pushdown,
        cells: ran.cells,
        predicted_ns: predicted_s * SECOND_NS,
        measured_ns: ran.moved.seconds * SECOND_NS,
        error: predicted_s / ran.moved.seconds - 1.0,
        binding: bound.binding.name(),
    })
}
