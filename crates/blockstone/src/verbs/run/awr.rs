//! The line that SLOB's users keep in their spreadsheets: the columns of its `awr_info`, one line
//! per run.

use anyhow::{Result, anyhow};
use blockstone_base::table::Value;
use blockstone_base::units::thousands;
use blockstone_judge::RunFindings;
use blockstone_record::Recording;
use blockstone_record::parameters::RunParameters;
use blockstone_report::Report;

use crate::failure::Failure;

/// Name of the table of these columns.
pub const TABLE: &str = "awr-info";

/// Returns the columns of a report: headings and values as one line each, with `|` between them.
/// Fails if it is not the report of a run.
pub fn lines(report: &Report) -> Result<String> {
    let table = report.tables().find(|table| table.name == TABLE).ok_or_else(|| {
        anyhow!(Failure::new(
            format!("print awr_info of {}: it was made by `{}`", report.recording, report.verb),
            "only the recording of a run has these columns"
        ))
    })?;
    let line = |column: usize| {
        let texts = table.rows.iter().map(|row| match &row[column] {
            Value::Text(text) => text.as_str(),
            _ => "",
        });
        texts.collect::<Vec<_>>().join("|") + "\n"
    };
    Ok(line(0) + &line(1))
}

/// Returns name and value of each column; rates are per second, latencies in microseconds. A column
/// without a measurement is empty; `DFPR_LAT` always is, since the instance does not do db file
/// parallel read.
pub fn columns(recording: &Recording, findings: &RunFindings) -> Vec<(&'static str, String)> {
    let profile = |name: &str| findings.load_profile.iter().find(|row| row.name == name);
    let rate = |name: &str, factor: f64, digits: usize| {
        let row = profile(name);
        row.map(|row| format!("{:.digits$}", row.per_s.value * factor)).unwrap_or_default()
    };
    let latency = |event: &str| {
        let found = findings.waits.iter().find(|wait| wait.event == event && wait.count > 0);
        found.and_then(|wait| wait.ns_mean).map(|ns| format!("{:.0}", ns / 1e3)).unwrap_or_default()
    };
    let name = recording.dir.file_name().map(|name| name.to_string_lossy().into_owned());
    let sessions = recording.manifest.parameters::<RunParameters>().sessions;
    let sessions = sessions.map_or(findings.sessions, u64::from);
    let top = findings.waits.iter().find(|wait| wait.db_time_ratio.is_some());
    let top = top.map(|wait| {
        let percent = wait.db_time_ratio.unwrap_or(0.0) * 100.0;
        let count = thousands(wait.count as i64);
        format!("{} {count} {percent:.1}%", wait.event)
    });
    vec![
        ("FILE", name.unwrap_or_default()),
        ("SESSIONS", sessions.to_string()),
        ("ELAPSED", format!("{:.0}", findings.window_ns as f64 / 1e9)),
        ("DB CPU", rate("db_cpu_ns", 1e-9, 2)),
        ("DB Tm", rate("db_time_ns", 1e-9, 2)),
        ("EXECUTES", rate("executes", 1.0, 0)),
        ("LIO", rate("logical_reads", 1.0, 0)),
        ("PREADS", rate("physical_reads", 1.0, 0)),
        ("READ_MBS", rate("read_bytes", 1e-6, 1)),
        ("PWRITES", rate("physical_writes", 1.0, 0)),
        ("WRITE_MBS", rate("write_bytes", 1e-6, 1)),
        ("REDO_MBS", rate("redo_bytes", 1e-6, 2)),
        ("DFSR_LAT", latency("db file sequential read")),
        ("DPR_LAT", latency("direct path read")),
        ("DFPR_LAT", String::new()),
        ("DFPW_LAT", latency("db file parallel write")),
        ("LFPW_LAT", latency("log file parallel write")),
        ("TOP WAIT", top.unwrap_or_default()),
    ]
}
