//! Scans by statements of a database: what they read, the cost of a row, and what they waited for.

use blockstone_base::column::Unmeasured;
use blockstone_base::stats::{self, Estimate};
use blockstone_figures::rate;
use schemars::JsonSchema;
use serde::Serialize;

use super::time::SESSION;
use super::window::RunWindow;
use super::{RunFindings, ledger};

/// Work of statements that scan, and its cost.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScanStatements {
    /// Statements that ended in the window.
    pub count: u64,
    /// Decimal megabytes a second that the processes of the database read, including from the page
    /// cache.
    #[serde(skip)]
    pub mb_per_s: Estimate,
    /// Bytes behind `mb_per_s`.
    #[serde(skip)]
    pub bytes: u64,
    /// Rows a second, each in a block of its own, by the time of the statements. Null if too few
    /// ended in the window.
    pub rows_per_s: Option<Estimate>,
    /// Processor time of the database for each row, including in the kernel, in nanoseconds.
    pub cpu_ns_per_row: Option<Estimate>,
    /// Decimal megabytes a second that the device read, for all processes.
    pub device_mb_per_s: Option<Estimate>,
    /// Mean size of a read of the device, in bytes.
    pub device_read_bytes_mean: Option<f64>,
    /// Mean time of a read of the device, in nanoseconds.
    pub device_read_ns_mean: Option<f64>,
    /// Mean size of a read as the database counts them, in bytes: `PostgreSQL` 16 and 17 count
    /// pages.
    pub read_bytes_mean: Option<f64>,
    /// Waits of the sessions as the database reports them, or the kernel if the database does not,
    /// by descending time.
    pub waits: Vec<ScanWait>,
    /// Reasons why other numbers are null.
    pub unmeasured: Vec<ScanUnmeasured>,
}

/// A wait event of the sessions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScanWait {
    /// Name of the event in the database.
    pub event: String,
    /// Wait class of the event.
    pub class: &'static str,
    /// Time in the event, in nanoseconds.
    pub time_ns: u64,
    /// Share of the time of the statements.
    pub db_time_ratio: f64,
}

/// Numbers that were not measured.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScanUnmeasured {
    /// Keys of the numbers.
    pub what: String,
    /// Reason why they were not measured.
    pub why: Unmeasured,
}

impl ScanStatements {
    /// Returns the share of the time of the statements in waits for reads, `None` if no wait is
    /// known.
    pub fn read_wait_ratio(&self) -> Option<f64> {
        let reads = self.waits.iter().filter(|wait| wait.class == "User I/O");
        (!self.waits.is_empty()).then(|| reads.map(|wait| wait.db_time_ratio).sum())
    }
}

/// Returns `None` for any other run.
pub fn derive(window: &RunWindow, findings: &RunFindings) -> Option<ScanStatements> {
    if !window.scans() || !ledger::has_server(window) {
        return None;
    }
    let (bytes, mb_per_s) = read(window)?;
    let operations = |column| window.track("operation", "scan", column).ok();
    let each = operations("rows").zip(operations("service_ns_sum"));
    let each = each.and_then(|(rows, ns)| window.slope(&rows, &ns).ok());
    let count = window.grown("operation", "scan", "completed_ops").unwrap_or(0);
    let rows_per_s = each.map(|rows| Estimate {
        samples: window.grown("operation", "scan", "rows").unwrap_or(0),
        ..rows.scaled(window.sessions() as f64 * 1e9)
    });
    let cpu = rate_of_all(window, "server", "cpu_ns");
    let cpu_ns_per_row = rows_per_s.zip(cpu).and_then(|(rows, cpu)| stats::ratio(&rows, &cpu));
    let device = window.manifest.target.devices.first().map(|device| device.name.as_str());
    let device_rate = device.and_then(|name| window.rate("block", name, "read_bytes").ok());
    let mean = |probe: &str, objects: &[&str], sum: &str| {
        let grown = |column: &str| -> Option<u64> {
            objects.iter().map(|object| window.grown(probe, object, column).ok()).sum()
        };
        let (sum, ios) = (grown(sum)?, grown("read_ios").filter(|ios| *ios > 0)?);
        Some(sum as f64 / ios as f64)
    };
    let devices: Vec<&str> = device.into_iter().collect();
    let roles = window.objects("role");
    let read_bytes_mean = if roles.is_empty() { None } else { mean("role", &roles, "read_bytes") };
    Some(ScanStatements {
        count,
        mb_per_s,
        bytes,
        rows_per_s,
        cpu_ns_per_row,
        device_mb_per_s: device_rate.map(|rate| rate.scaled(1e-6)),
        device_read_bytes_mean: device.and_then(|_| mean("block", &devices, "read_bytes")),
        device_read_ns_mean: device.and_then(|_| mean("block", &devices, "read_ns")),
        read_bytes_mean,
        waits: waits(findings),
        unmeasured: unmeasured(window, read_bytes_mean.is_none()),
    })
}

/// Returns the bytes that read calls returned to the processes of the database, and their rate. A
/// database that reads otherwise counts them itself; `PostgreSQL` counts those of a statement once
/// it has ended.
fn read(window: &RunWindow) -> Option<(u64, Estimate)> {
    let returned = window.charged_to_server("requested_read_bytes").unwrap_or(0);
    let counted = window.grown_of_all("role", "read_bytes").unwrap_or(0);
    let (bytes, probe, column) = if returned >= counted / 2 && returned > 0 {
        (returned, "server", "requested_read_bytes")
    } else {
        (counted, "role", "read_bytes")
    };
    Some((bytes, rate_of_all(window, probe, column)?.scaled(1e-6)))
}

/// Returns the rate of a counter that is read less often than every tick, from its own readings
/// alone.
fn rate_of_all(window: &RunWindow, probe: &str, column: &str) -> Option<Estimate> {
    let mut track = window.track_of_all(probe, column).ok()?;
    track.dedup_by_key(|(_, count)| *count);
    rate(&track).or_else(|_| window.rate_of_all(probe, column)).ok()
}

fn waits(findings: &RunFindings) -> Vec<ScanWait> {
    const AT_WORK: [&str; 2] = ["CPU", "Run queue"];
    let waited = findings
        .waits
        .iter()
        .filter(|wait| wait.role == SESSION && wait.time_ns > 0 && !AT_WORK.contains(&wait.class));
    let wait = |wait: &super::Wait| {
        Some(ScanWait {
            event: wait.event.clone(),
            class: wait.class,
            time_ns: wait.time_ns,
            db_time_ratio: wait.db_time_ratio?,
        })
    };
    waited.filter_map(wait).collect()
}

fn unmeasured(window: &RunWindow, no_size: bool) -> Vec<ScanUnmeasured> {
    let never = |text: &str| Unmeasured::NotInVersion(text.to_owned());
    let of = |what: &str, why| ScanUnmeasured { what: what.to_owned(), why };
    let mut all = vec![
        of("slots", never("the database decides how many reads it keeps in flight")),
        of(
            "iops, ios, io_ns, outstanding, waits",
            never("a database does not say what each read of a statement took"),
        ),
    ];
    if window.parameters().scan_multiblock.is_none() {
        all.push(of("multiblock, read_bytes", never("the database has no setting for it")));
    }
    if no_size {
        all.push(of("read_bytes_mean", never("the database does not count its reads")));
    }
    if window.manifest.target.devices.is_empty() {
        let why = "no block device beneath the data can be seen from here".to_owned();
        all.push(of("device_*", Unmeasured::NotPermitted(why)));
    }
    if window.objects("server").is_empty() {
        let why = "the server is on another machine, or does not say which process it is";
        all.push(of("cpu_ns_per_row", Unmeasured::NotPermitted(why.to_owned())));
    }
    all
}
