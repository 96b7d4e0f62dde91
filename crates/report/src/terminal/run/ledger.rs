//! The three accounts of a window side by side.

use blockstone_base::column::Unmeasured;
use blockstone_base::units::{Bytes, thousands};
use blockstone_judge::RunFindings;
use blockstone_judge::run::{LedgerCell, LedgerRow};

use super::{Columns, Style, heading};
use crate::format::percent;

/// The ledger.
pub fn lines(findings: &RunFindings, style: &Style) -> Vec<String> {
    if findings.ledger.is_empty() {
        return Vec::new();
    }
    let mut columns = Columns::new(2);
    columns.numbers(heading(style, &["ledger", "claimed", "process", "device", "÷ claimed"]));
    for row in &findings.ledger {
        let cells = [&row.claimed, &row.process, &row.device].map(|cell| text(cell, row.unit));
        let mut line = vec![row.what.to_owned()];
        line.extend(cells);
        line.push(style.dim(&share(row)));
        columns.numbers(line);
    }
    columns.lines()
}

/// A number, or in a word why there is none.
pub(crate) fn text(cell: &LedgerCell, unit: &str) -> String {
    match cell {
        LedgerCell::Value(value) if unit == "bytes" => Bytes(*value).to_string(),
        LedgerCell::Value(value) => thousands(*value as i64),
        LedgerCell::Unmeasured(why) => reason(why).0.to_owned(),
    }
}

/// Why a cell has no number: in a word, and in full.
pub(crate) fn reason(why: &Unmeasured) -> (&'static str, &str) {
    match why {
        Unmeasured::Off(why) => ("off", why),
        Unmeasured::NotInVersion(why) => ("not in this version", why),
        Unmeasured::NotPermitted(why) => ("not permitted", why),
    }
}

/// What the processes were charged for of what was claimed.
pub(crate) fn share(row: &LedgerRow) -> String {
    match (row.claimed.value(), row.process.value()) {
        (Some(claimed), Some(process)) if claimed > 0 => percent(process as f64 / claimed as f64),
        _ => String::new(),
    }
}
