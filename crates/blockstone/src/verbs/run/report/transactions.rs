//! The transactions of order entry.

use blockstone_base::Estimate;
use blockstone_base::row;
use blockstone_base::table::{
    Heading, Measure, Merge, Table, column, count, happened, share, text, time,
};
use blockstone_base::units::thousands;
use blockstone_judge::run::{TransactionCost, TransactionKind, Transactions};
use blockstone_report::{Detail, Section};

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

const KINDS: &[Heading] = &[
    text("transaction", "transaction", "The kind of transaction."),
    count("count", "count", "Completed in the window."),
    share("ratio", "of all", "Its share of all transactions."),
    count("per_s", "per second", "Completed a second."),
    time("ns_mean", "mean", "Mean response time."),
    time("ns_p50", "p50", "Half take no longer."),
    time("ns_p90", "p90", "90 % take no longer."),
    time("ns_p99", "p99", "99 % take no longer."),
    count("rows_mean", "rows", "Rows that one visited, on average."),
    count("failed", "failed", "Ended with an error."),
];

fn kinds(transactions: &Transactions) -> Table {
    let row = |kind: &TransactionKind| {
        let [p50, p90, p99] = [kind.ns_p50, kind.ns_p90, kind.ns_p99]
            .map(|known| happened(known.map(Estimate::without_interval)));
        let (per_s, mean) = (happened(kind.per_s), happened(kind.ns_mean));
        let (rows, failed) = (happened(kind.rows_mean), kind.failed);
        row![kind.name, kind.count, kind.ratio, per_s, mean, p50, p90, p99, rows, failed]
    };
    let rows = transactions.kinds.iter().map(row);
    let mut table = Table::new("transactions", "Transactions", KINDS).with(rows);
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

const COSTS: &[Heading] = &[
    text("what", "", "What is counted, as in the load profile."),
    column("per_transaction", "per transaction", Measure::OfRow, Merge::Never, "Of one."),
];

fn costs(transactions: &Transactions) -> Table {
    let row =
        |cost: &TransactionCost| row![cost.title, cost.per_transaction].of(measure(cost.unit));
    let rows = transactions.costs.iter().map(row);
    Table::new("transaction-cost", "Cost of a transaction", COSTS).with(rows)
}
