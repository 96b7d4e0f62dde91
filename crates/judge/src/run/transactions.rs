//! The transactions of an order-entry mix: how many of each kind, how long they took, and the cost
//! of one.

use blockstone_base::database::TRANSACTIONS;
use blockstone_base::stats::Estimate;
use schemars::JsonSchema;
use serde::Serialize;

use super::window::RunWindow;
use super::{Percentiles, ProfileRow};

/// All transactions of a window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Transactions {
    /// Kinds of transactions, in the order of the mix.
    pub kinds: Vec<TransactionKind>,
    /// Transactions that the database rolled back (deadlock, serialisation failure, busy) and that
    /// were sent again; null if the target does not count or know them.
    pub retries: Option<u64>,
    /// Costs of a transaction of the mix, over all of its kinds.
    pub costs: Vec<TransactionCost>,
}

/// One kind of transaction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TransactionKind {
    /// Name of the kind.
    pub name: &'static str,
    /// Transactions completed in the window.
    pub count: u64,
    /// Transactions out of 100 that are requested to be of this kind.
    pub asked_pct: Option<u32>,
    /// Share of all transactions that completed.
    pub ratio: f64,
    /// Transactions completed a second.
    pub per_s: Option<Estimate>,
    /// Transactions that ended with an error.
    pub failed: u64,
    /// Mean number of rows that one visited.
    pub rows_mean: Option<f64>,
    /// Mean response time from the intended start, in nanoseconds; null if none completed, as are
    /// the quantiles.
    pub ns_mean: Option<f64>,
    pub ns_p50: Option<Estimate>,
    pub ns_p90: Option<Estimate>,
    pub ns_p99: Option<Estimate>,
}

/// Cost of one transaction in one resource.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TransactionCost {
    /// Name as in the load profile.
    pub name: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// Unit of the cost.
    pub unit: &'static str,
    /// Cost per completed transaction.
    pub per_transaction: f64,
}

/// Rows of the load profile that are costs of a transaction.
const COSTS: [&str; 9] = [
    "db_time_ns",
    "db_cpu_ns",
    "logical_reads",
    "physical_reads",
    "read_requests",
    "write_requests",
    "write_bytes",
    "redo_bytes",
    "redo_writes",
];

/// Returns `None` for a window in which the sessions sent no transactions of the mix.
pub fn derive(
    window: &RunWindow,
    latencies: &[Percentiles],
    profile: &[ProfileRow],
) -> Option<Transactions> {
    let grown = |kind, column| window.grown("operation", kind, column);
    let all: u64 =
        TRANSACTIONS.iter().map(|kind| grown(kind, "completed_ops")).sum::<Result<_, _>>().ok()?;
    let asked = window.parameters().transaction_pct.unwrap_or_default();
    let kind = |&name: &&'static str| {
        let count = grown(name, "completed_ops").unwrap_or(0);
        let found = latencies.iter().find(|row| row.role.is_empty() && row.name == name);
        let [p50, p90, p99, ..] = found.map_or([None; 5], |row| row.quantiles().map(|(_, it)| it));
        TransactionKind {
            name,
            count,
            asked_pct: asked.get(name).copied(),
            ratio: count as f64 / all.max(1) as f64,
            per_s: window.rate("operation", name, "completed_ops").ok(),
            failed: grown(name, "failed_ops").unwrap_or(0),
            rows_mean: (count > 0)
                .then(|| grown(name, "rows").ok().map(|rows| rows as f64 / count as f64))
                .flatten(),
            ns_mean: found.map(|row| row.ns_mean),
            ns_p50: p50,
            ns_p90: p90,
            ns_p99: p99,
        }
    };
    let per_s = all as f64 / window.seconds();
    let cost = |name: &&str| {
        let row = profile.iter().find(|row| row.name == *name)?;
        let per_transaction = row.per_s.value / per_s;
        let ProfileRow { name, title, unit, .. } = *row;
        (all > 0).then_some(TransactionCost { name, title, unit, per_transaction })
    };
    Some(Transactions {
        kinds: TRANSACTIONS.iter().map(kind).collect(),
        retries: window.grown("sql", "", "retries").ok(),
        costs: COSTS.iter().filter_map(cost).collect(),
    })
}
