//! The three accounts of a window as a table.

use blockstone_judge::RunFindings;
use blockstone_judge::run::LedgerCell;

use crate::html::table::Table;
use crate::terminal::ledger::{reason, share, text};

/// Claimed, charged, done.
pub fn table(findings: &RunFindings) -> Table {
    let columns = ["", "Claimed", "Process", "Device", "Process ÷ claimed", "Plan"];
    let mut table = Table::of_texts("Claimed, charged and done", &columns);
    for row in &findings.ledger {
        let cell = |cell: &LedgerCell| match cell {
            LedgerCell::Value(_) => text(cell, row.unit),
            LedgerCell::Unmeasured(why) => {
                let (word, full) = reason(why);
                format!("{word}: {full}")
            }
        };
        let plan = row.plan.clone().unwrap_or_default();
        let cells =
            vec![cell(&row.claimed), cell(&row.process), cell(&row.device), share(row), plan];
        table.row(row.what, cells);
    }
    table
}
