//! The load profile: what a database did, a second and a transaction.

use blockstone_base::column::Unit;
use blockstone_figures::{Interval, Known, Missing, ratio, sum};

use crate::table::{Count, Merge, Shape, Value, View, column, count, text};

pub const VIEW: View = View {
    name: "load",
    title: "Load profile",
    doc: "Activity of the database per second and per transaction: calls, reads, writes, redo.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("statistic", "statistic", "The statistic, with its unit if it is not a count."),
        count("per_s", "per second", "Amount per second; for a time, average active sessions."),
        column(
            "per_transaction",
            "per transaction",
            Count,
            Merge::Per { part: "per_s", within: "" },
            "Amount per commit or rollback.",
        ),
    ],
    rows,
};

const PROBE: &str = "instance";

/// What it consists of: the series, the column, and what DBAs call it.
const STATISTICS: [(&str, &str, &str); 34] = [
    (PROBE, "db_time_ns", "DB time (s)"),
    ("database", "idle_in_transaction_ns", "idle in transaction (s)"),
    (PROBE, "logical_reads", "logical reads (blocks)"),
    (PROBE, "block_changes", "block changes"),
    (PROBE, "physical_reads", "physical reads (blocks)"),
    ("database", "read_ns", "read time (s)"),
    (PROBE, "physical_writes", "physical writes (blocks)"),
    ("database", "write_ns", "write time (s)"),
    (PROBE, "redo_bytes", "redo (bytes)"),
    ("database", "redo_records", "redo records"),
    ("sql", "full_page_images", "full-page images"),
    (PROBE, "redo_writes", "redo writes"),
    ("database", "redo_flushes", "redo flushes"),
    ("sql", "flushes", "flushes"),
    ("database", "statements", "statements"),
    (PROBE, "commits", "commits"),
    ("database", "rollbacks", "rollbacks"),
    ("database", "logons", "logons"),
    ("database", "rows_read", "rows read"),
    ("database", "rows_fetched", "rows fetched"),
    ("database", "rows_sent", "rows sent"),
    ("database", "rows_inserted", "rows inserted"),
    ("database", "rows_updated", "rows updated"),
    ("database", "rows_deleted", "rows deleted"),
    ("database", "temp_files", "temporary files"),
    ("database", "temp_bytes", "temporary (bytes)"),
    ("database", "row_lock_waits", "row lock waits"),
    ("database", "row_lock_ns", "row lock time (s)"),
    ("database", "deadlocks", "deadlocks"),
    (PROBE, "single_block_reads", "single-block reads"),
    (PROBE, "multiblock_reads", "multiblock reads"),
    (PROBE, "direct_reads", "direct path reads"),
    (PROBE, "log_switches", "log switches"),
    ("sql", "maintenance_runs", "maintenance runs"),
];

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    if interval.objects(PROBE).is_empty() {
        return Vec::new();
    }
    let transactions = transactions(interval);
    let row = |(probe, column, name): &(&str, &str, &str)| {
        let columns = interval.columns(probe);
        let time = columns.iter().any(|c| c.name == *column && c.unit == Unit::Nanoseconds);
        let scale = if time { 1e-9 } else { 1.0 };
        let moved = interval.moved(probe, "", column).map(|moved| moved * scale);
        // What this database never counts or never reported has no line.
        let is_silent = moved == Err(Missing::Unknown) && interval.objects(probe).is_empty();
        let never = is_silent || moved == Err(Missing::NotInVersion);
        (!never).then(|| {
            vec![
                Value::from(*name),
                moved.map(|moved| moved / interval.seconds()).into(),
                ratio(moved, transactions).into(),
            ]
        })
    };
    let mut rows: Vec<Vec<Value>> = STATISTICS.iter().filter_map(row).collect();
    let charged = [("DB CPU (s)", true), ("background CPU (s)", false)];
    let charged = charged.into_iter().filter_map(|(name, of_sessions)| {
        let ns = cpu_ns(interval, of_sessions)?;
        let per_transaction = ratio(Ok(ns / 1e9), transactions);
        Some(vec![Value::from(name), Value::Number(ns / interval.ns()), per_transaction.into()])
    });
    // Below the time of the database, which it is a part of.
    rows.splice(1.min(rows.len())..1.min(rows.len()), charged.collect::<Vec<_>>());
    rows
}

/// Processor time of sessions, or of all others; none where it is not measured.
fn cpu_ns(interval: &Interval<'_>, of_sessions: bool) -> Option<f64> {
    let objects = interval.objects("event").into_iter();
    let is_meant = |object: &&str| match object.strip_suffix("/CPU") {
        Some(role) => (role == "session") == of_sessions,
        None => false,
    };
    let known = objects.filter(is_meant).map(|object| interval.moved("event", object, "time_ns"));
    known.filter_map(Result::ok).reduce(|one, other| one + other)
}

/// Commits and, where the database counts them, rollbacks.
pub(super) fn transactions(interval: &Interval<'_>) -> Known {
    let commits = interval.moved(PROBE, "", "commits");
    let rollbacks = interval.moved("database", "", "rollbacks").or(Ok(0.0));
    sum([commits, rollbacks])
}
