//! The load profile: what the database did, per second and per transaction.

use blockstone_base::stats::Estimate;
use blockstone_figures::{Grown, Missing};

use super::ProfileRow;
use super::window::RunWindow;

/// Where a row's counter is.
enum Source {
    /// A statistic of the database.
    Statistic(&'static str),
    /// A counter of all kinds of operations.
    Operations(&'static str),
    /// A counter of all roles.
    Roles(&'static str),
    /// The time of an event of the sessions.
    SessionTime(&'static str),
}

use Source::{Operations, Roles, SessionTime, Statistic};

/// Name, title, unit and source of each row, in the order of an AWR report.
const ROWS: [(&str, &str, &str, Source); 19] = [
    ("db_time_ns", "DB time", "ns", Statistic("db_time_ns")),
    ("db_cpu_ns", "DB CPU", "ns", SessionTime("CPU")),
    ("redo_bytes", "Redo size", "bytes", Statistic("redo_bytes")),
    ("logical_reads", "Logical reads (blocks)", "count", Statistic("logical_reads")),
    ("block_changes", "Block changes", "count", Statistic("block_changes")),
    ("physical_reads", "Physical reads (blocks)", "count", Statistic("physical_reads")),
    ("physical_writes", "Physical writes (blocks)", "count", Statistic("physical_writes")),
    ("read_requests", "Read requests", "count", Roles("read_ios")),
    ("write_requests", "Write requests", "count", Roles("write_ios")),
    ("read_bytes", "Read", "bytes", Roles("read_bytes")),
    ("write_bytes", "Written", "bytes", Roles("write_bytes")),
    ("redo_writes", "Redo writes", "count", Statistic("redo_writes")),
    ("redo_written_bytes", "Redo written", "bytes", Statistic("redo_written_bytes")),
    ("protection_bytes", "Torn-write protection", "bytes", Statistic("protection_bytes")),
    ("log_switches", "Log switches", "count", Statistic("log_switches")),
    ("checkpoints", "Checkpoints", "count", Statistic("checkpoints")),
    ("rows", "Rows", "count", Operations("rows")),
    ("executes", "Executes", "count", Operations("completed_ops")),
    ("transactions", "Transactions", "count", Operations("commits")),
];

/// The rows that were measured.
pub fn rows(window: &RunWindow) -> Vec<ProfileRow> {
    let commits = window.grown_of_all("operation", "commits").ok().filter(|&commits| commits > 0);
    let operations = window.grown_of_all("operation", "completed_ops").unwrap_or(0);
    let row = |(name, title, unit, source): &(&'static str, &'static str, &'static str, Source)| {
        let (rate, grown) = match source {
            Statistic(column) => of_one(window, ("instance", ""), column),
            Operations(column) => of_all(window, "operation", column),
            Roles(column) => of_all(window, "role", column),
            SessionTime(event) => of_one(window, ("event", &format!("session/{event}")), "time_ns"),
        };
        let per_transaction = commits.zip(grown.ok()).map(|(n, grown)| grown as f64 / n as f64);
        let rate = rate.ok()?;
        // Bytes and nanoseconds are no samples: the operations are that moved them.
        let samples = if *unit == "count" { rate.samples } else { operations };
        let per_s = Estimate { samples, ..rate };
        Some(ProfileRow { name, title, unit, per_s, per_transaction })
    };
    ROWS.iter().filter_map(row).collect()
}

/// The rate of a counter, and by how much it grew.
type Counted = (Result<Estimate, Missing>, Grown);

fn of_one(window: &RunWindow, (probe, object): (&str, &str), column: &str) -> Counted {
    (window.rate(probe, object, column), window.grown(probe, object, column))
}

fn of_all(window: &RunWindow, probe: &str, column: &str) -> Counted {
    (window.rate_of_all(probe, column), window.grown_of_all(probe, column))
}
