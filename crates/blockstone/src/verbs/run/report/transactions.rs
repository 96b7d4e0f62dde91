//! The transactions of order entry.

use blockstone_base::table::{Row, Rows as _, Table, happened};
use blockstone_base::units::thousands;
use blockstone_judge::run::{TransactionCost, TransactionKind, Transactions};
use blockstone_report::{Detail, Section};

use super::rows::{CostRow, TransactionRow};
use super::tables::measure;

/// Returns sections with the transactions and the cost of one.
pub fn sections(transactions: &Transactions) -> [Section; 2] {
    [
        Section::new("transactions", "Transactions").with([kinds(transactions)]).about(
            "Each transaction is timed from its intended start until its commit is durable; one \
             that only reads, until its last row has come.",
        ),
        Section::new("transaction-cost", "Cost of a transaction")
            .with([costs(transactions)])
            .detail(Detail::Screen)
            .about("Over all kinds of the mix: what the window counted ÷ transactions completed."),
    ]
}

fn kinds(transactions: &Transactions) -> Table {
    let row = |kind: &TransactionKind| {
        let [ns_p50, ns_p90, ns_p99] = [kind.ns_p50, kind.ns_p90, kind.ns_p99].map(happened);
        TransactionRow {
            transaction: kind.name,
            count: kind.count,
            ratio: kind.ratio,
            asked_ratio: happened(kind.asked_pct.map(|pct| f64::from(pct) / 100.0)),
            per_s: happened(kind.per_s),
            ns_mean: happened(kind.ns_mean),
            ns_p50,
            ns_p90,
            ns_p99,
            rows_mean: happened(kind.rows_mean),
            failed: kind.failed,
        }
    };
    let rows = transactions.kinds.iter().map(row);
    let mut table = TransactionRow::table("transactions", "Transactions", rows);
    table.notes.push(match transactions.retries {
        Some(retries) => format!(
            "{} transactions were rolled back by the database (deadlock, serialisation failure, \
             busy) and sent again",
            thousands(retries as i64)
        ),
        None => "no transaction is rolled back: the target locks no rows".to_owned(),
    });
    table
}

fn costs(transactions: &Transactions) -> Table {
    let row = |cost: &TransactionCost| {
        let cells = CostRow { what: cost.title, amount: cost.per_transaction.into() };
        Row::from(cells).of(measure(cost.unit))
    };
    let rows = transactions.costs.iter().map(row);
    Table::new("transaction-cost", "Cost of a transaction", CostRow::COLUMNS).with(rows)
}
