//! The load profile: work of the database, per second and per transaction.

use blockstone_base::stats::Estimate;

use super::ProfileRow;
use super::window::RunWindow;

enum Source {
    /// Sum over all objects of a probe.
    All(&'static str, &'static str),
    /// A single object.
    One(&'static str, &'static str, &'static str),
}

use Source::{All, One};

/// Name, title, unit and source of each row, in the order of an AWR report.
const ROWS: [(&str, &str, &str, Source); 19] = [
    ("db_time_ns", "DB time", "ns", All("instance", "db_time_ns")),
    ("db_cpu_ns", "DB CPU", "ns", One("event", "session/CPU", "time_ns")),
    ("redo_bytes", "Redo size", "bytes", All("instance", "redo_bytes")),
    ("logical_reads", "Logical reads (blocks)", "count", All("instance", "logical_reads")),
    ("block_changes", "Block changes", "count", All("instance", "block_changes")),
    ("physical_reads", "Physical reads (blocks)", "count", All("instance", "physical_reads")),
    ("physical_writes", "Physical writes (blocks)", "count", All("instance", "physical_writes")),
    ("read_requests", "Read requests", "count", All("role", "read_ios")),
    ("write_requests", "Write requests", "count", All("role", "write_ios")),
    ("read_bytes", "Read", "bytes", All("role", "read_bytes")),
    ("write_bytes", "Written", "bytes", All("role", "write_bytes")),
    ("redo_writes", "Redo writes", "count", All("instance", "redo_writes")),
    ("redo_written_bytes", "Redo written", "bytes", All("instance", "redo_written_bytes")),
    ("protection_bytes", "Torn-write protection", "bytes", All("instance", "protection_bytes")),
    ("log_switches", "Log switches", "count", All("instance", "log_switches")),
    ("checkpoints", "Checkpoints", "count", All("instance", "checkpoints")),
    ("rows", "Rows", "count", All("operation", "rows")),
    ("executes", "Executes", "count", All("operation", "completed_ops")),
    ("transactions", "Transactions", "count", All("operation", "commits")),
];

pub fn rows(window: &RunWindow) -> Vec<ProfileRow> {
    let commits = window.grown_of_all("operation", "commits").ok().filter(|&commits| commits > 0);
    let operations = window.grown_of_all("operation", "completed_ops").unwrap_or(0);
    let row = |(name, title, unit, source): &(&'static str, &'static str, &'static str, Source)| {
        let (rate, grown) = match source {
            All(probe, column) => {
                (window.rate_of_all(probe, column), window.grown_of_all(probe, column))
            }
            One(probe, object, column) => {
                (window.rate(probe, object, column), window.grown(probe, object, column))
            }
        };
        let per_transaction = commits.zip(grown.ok()).map(|(n, grown)| grown as f64 / n as f64);
        let rate = rate.ok()?;
        // Bytes and nanoseconds are not samples: the operations that moved them are.
        let samples = if *unit == "count" { rate.samples } else { operations };
        let per_s = Estimate { samples, ..rate };
        Some(ProfileRow { name, title, unit, per_s, per_transaction })
    };
    ROWS.iter().filter_map(row).collect()
}
