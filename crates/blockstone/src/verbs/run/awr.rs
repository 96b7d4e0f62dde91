//! The line that SLOB's users keep in their spreadsheets: the columns of its `awr_info`, one line a
//! run.

use anyhow::{Result, anyhow};
use blockstone_base::units::thousands;
use blockstone_judge::RunFindings;
use blockstone_record::Recording;
use blockstone_record::parameters::RunParameters;
use blockstone_report::Report;

/// The columns, rates per second and latencies in microseconds.
const COLUMNS: [&str; 18] = [
    "FILE",
    "SESSIONS",
    "ELAPSED",
    "DB CPU",
    "DB Tm",
    "EXECUTES",
    "LIO",
    "PREADS",
    "READ_MBS",
    "PWRITES",
    "WRITE_MBS",
    "REDO_MBS",
    "DFSR_LAT",
    "DPR_LAT",
    "DFPR_LAT",
    "DFPW_LAT",
    "LFPW_LAT",
    "TOP WAIT",
];

/// Heading and values, each a line with `|` between the columns. A column without a measurement is
/// empty; `DFPR_LAT` always is, for the instance has no db file parallel read.
pub fn awr_info(recording: &Recording, findings: &RunFindings) -> String {
    let values: Vec<String> =
        columns(recording, findings).into_iter().map(|(_, value)| value).collect();
    format!("{}\n{}\n", COLUMNS.join("|"), values.join("|"))
}

/// The two lines of a report.
///
/// # Errors
/// When it is not that of a run.
pub fn of(report: &Report) -> Result<&str> {
    report.document.get("awr_info").and_then(|text| text.as_str()).ok_or_else(|| {
        anyhow!(
            "print awr_info of {}: it was made by `{}`\n\
             hint: only the recording of a run has these columns",
            report.recording,
            report.verb
        )
    })
}

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
    let values = [
        name.unwrap_or_default(),
        sessions.to_string(),
        format!("{:.0}", findings.window_ns as f64 / 1e9),
        rate("db_cpu_ns", 1e-9, 2),
        rate("db_time_ns", 1e-9, 2),
        rate("executes", 1.0, 0),
        rate("logical_reads", 1.0, 0),
        rate("physical_reads", 1.0, 0),
        rate("read_bytes", 1e-6, 1),
        rate("physical_writes", 1.0, 0),
        rate("write_bytes", 1e-6, 1),
        rate("redo_bytes", 1e-6, 2),
        latency("db file sequential read"),
        latency("direct path read"),
        String::new(),
        latency("db file parallel write"),
        latency("log file parallel write"),
        top.map(|wait| {
            let percent = wait.db_time_ratio.unwrap_or(0.0) * 100.0;
            let count = thousands(wait.count as i64);
            format!("{} {count} {percent:.1}%", wait.event)
        })
        .unwrap_or_default(),
    ];
    COLUMNS.into_iter().zip(values).collect()
}
