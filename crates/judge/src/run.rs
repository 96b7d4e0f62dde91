//! Findings of a workload run: load profile, database time and its waits, I/O by role and disk,
//! latencies, the headline figures and the verdicts on them.

mod blocked;
mod bulk_write;
mod io;
mod latency;
mod ledger;
mod noise;
mod parts;
mod profile;
mod scan;
mod statements;
mod summary;
mod time;
mod transactions;
mod united;
mod window;

use blockstone_base::histogram::least_samples;
use blockstone_base::stats::Estimate;
use blockstone_base::table::Spread;
use blockstone_base::verdict::Verdict;
use blockstone_figures::{History, simultaneous};
use blockstone_record::manifest::{Figure, Manifest, Stop};
use blockstone_record::{RecordError, Recording};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Findings;
pub use blocked::Blocked;
pub use bulk_write::{BulkCost, BulkStep, BulkWrite, ENOUGH_TABLES, Pace};
pub(crate) use ledger::has_server;
pub use ledger::{LedgerCell, LedgerRow};
pub(crate) use noise::mode as noise_mode;
pub use noise::{Noise, NoiseEffect, NoiseLatency};
pub use parts::{latency_parts, parts};
pub use scan::{Scan, ScanEffect, ScanPoint, ScanSpread, Waited};
pub use statements::{ScanStatements, ScanUnmeasured, ScanWait};
pub use summary::{ABOUT as ABOUT_FIGURES, NAMES as FIGURES};
pub use time::{Outside, of_server};
pub use transactions::{TransactionCost, TransactionKind, Transactions};
pub(crate) use window::RunWindow;

/// All findings of one run. Everything is counted from edge to edge of one window: the only one;
/// the quiet one if noise was added in a second; in a matrix of scans, the one with the most bytes
/// a second.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct RunFindings {
    /// Label of the window's phase; empty if the run did not get that far.
    #[serde(skip)]
    pub label: String,
    /// Length of the window; zero if the run did not get that far.
    #[serde(skip)]
    pub window_ns: u64,
    /// Whether these are the findings of a part of the window, which list what did not happen in it
    /// as zero.
    #[serde(skip)]
    pub is_part: bool,
    /// Number of sessions that ran.
    #[serde(skip)]
    pub sessions: u64,
    /// Reason why the window closed.
    #[serde(skip)]
    pub stop: Option<Stop>,
    /// Headline figures by name, in the order in which they should be read.
    #[serde(skip)]
    pub summary: Vec<(String, Figure)>,
    /// Work of the database, per second and per transaction.
    pub load_profile: Vec<ProfileRow>,
    /// Breakdown of the sessions' time; null for a target that does not report it.
    pub db_time: Option<DbTime>,
    /// Wait events of the sessions by descending time, then those of the background processes.
    pub waits: Vec<Wait>,
    /// Time of the sessions by wait class, descending.
    pub classes: Vec<WaitClass>,
    /// I/O of the database by the role of the process that sent it.
    pub roles: Vec<Transfers>,
    /// I/O as claimed by the database, charged to its processes, and done by the device.
    pub ledger: Vec<LedgerRow>,
    /// I/O sent to each disk of the disk group; mirrored writes count on each.
    pub disks: Vec<Transfers>,
    /// The transactions of an order-entry mix; `None` for any other run.
    #[serde(skip)]
    pub transactions: Option<Transactions>,
    /// The tables of a bulk write; `None` for any other run.
    #[serde(skip)]
    pub bulk_write: Option<BulkWrite>,
    /// Latencies by operation, then by event.
    pub latencies: Vec<Percentiles>,
    /// Little's law: sessions, rates and latencies checked against each other.
    pub littles_law: Vec<LittlesLaw>,
    /// Figures relative to a calibration of the same path; empty without one.
    pub efficiency: Vec<Efficiency>,
    /// The points of a direct-path matrix and what they show; `None` for any other run.
    #[serde(skip)]
    pub scan: Option<Scan>,
    /// Work of scanning statements in the window; `None` for any other run.
    #[serde(skip)]
    pub statements: Option<ScanStatements>,
    /// Effect of added noise on the sessions; `None` without noise.
    #[serde(skip)]
    pub noise: Option<Noise>,
    /// One verdict for each rule that applies to runs, in the order of the registry.
    #[serde(skip)]
    pub verdicts: Vec<Verdict>,
}

/// One line of the load profile.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProfileRow {
    /// Stable name, for scripts.
    pub name: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// Unit of the counter: `count`, `bytes`, or `ns` (then 1 s of it per second is 1e9).
    #[schemars(extend("enum" = ["count", "bytes", "ns"]))]
    pub unit: &'static str,
    /// Units per second.
    pub per_s: Estimate,
    /// Units per transaction; null without a commit.
    pub per_transaction: Option<f64>,
}

/// The sessions' database time as a tree: all parts add up to `db_time_ns`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct DbTime {
    /// Wall time inside calls of sessions, in nanoseconds.
    pub db_time_ns: u64,
    /// Processor time outside of waits, in nanoseconds, estimated from its share of the samples.
    pub cpu_ns: u64,
    /// Time outside of waits ready to run but without a processor, in nanoseconds, likewise.
    pub run_queue_ns: u64,
    /// Time in wait events, in nanoseconds; includes `network_ns` and `blocked_ns`.
    pub waits_ns: u64,
    /// Part of `waits_ns` in which a server did not work for the call: in transit, or with the
    /// client. Null if samples do not show it.
    pub network_ns: Option<u64>,
    /// Part of `waits_ns` in which threads of a server were blocked without any event of the
    /// server, as the kernel shows it. Null if it does not.
    pub blocked_ns: Option<u64>,
    /// The parts of `blocked_ns`, which are listed with the events.
    #[serde(skip)]
    pub blocked: Vec<Blocked>,
    /// Time blocked outside of any event, in nanoseconds; negative if waits are counted twice.
    pub remainder_ns: f64,
    /// Remainder ÷ database time.
    pub remainder_ratio: f64,
    /// All processor time of sessions, in nanoseconds, also inside waits: the processor cost of a
    /// physical read is counted there.
    pub session_cpu_ns: u64,
    /// All time of sessions in the run queue, in nanoseconds, also inside waits.
    pub session_run_queue_ns: u64,
    /// Processor time inside waits or outside of any call: the rest of `session_cpu_ns`.
    pub cpu_in_waits_ns: u64,
    /// Run-queue time inside waits or outside of any call, likewise.
    pub run_queue_in_waits_ns: u64,
    /// Processor time of the background processes, in nanoseconds.
    pub background_cpu_ns: u64,
    /// Database time per second: the mean number of sessions inside a call.
    pub average_active_sessions: f64,
}

/// A wait event of one role.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Wait {
    /// Name of the event as DBAs know it; `CPU` and `run queue` are events too.
    pub event: String,
    /// Role that waited: `session`, `dbwr`, `lgwr`, `ckpt`.
    pub role: String,
    /// Wait class of the event.
    pub class: &'static str,
    /// Number of waits that ended; zero for CPU and run queue.
    pub count: u64,
    /// Time in the event, in nanoseconds.
    pub time_ns: u64,
    /// Mean time of a wait, in nanoseconds; null without a wait.
    pub ns_mean: Option<f64>,
    /// Share of the database time; null for background processes, which are not in it.
    pub db_time_ratio: Option<f64>,
    /// Mean number of the role's processes that were in it.
    pub average_active: f64,
}

/// Time of the sessions in one wait class.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WaitClass {
    /// Name of the wait class.
    pub class: &'static str,
    /// Time in the class, in nanoseconds.
    pub time_ns: u64,
    /// Share of the database time.
    pub db_time_ratio: f64,
    /// Mean number of sessions that were in it.
    pub average_active_sessions: f64,
}

/// I/O of one role or one disk.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Transfers {
    /// Name of the role or disk.
    pub name: String,
    /// Read requests.
    pub reads: Transfer,
    /// Write requests.
    pub writes: Transfer,
}

/// Requests in one direction.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Transfer {
    /// Number of requests completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Requests a second; null if too few ticks support it.
    pub iops: Option<Estimate>,
    /// Mean size in bytes: if above the block size, neighbouring blocks were merged.
    pub bytes_mean: Option<f64>,
    /// Mean time of a request, in nanoseconds.
    pub service_ns_mean: Option<f64>,
}

/// Latencies of an operation or an event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Percentiles {
    /// Operation (`select`, `update`, `scan`), transaction of order entry, step of a bulk write, or
    /// event.
    pub name: String,
    /// Role of the event; empty for an operation.
    pub role: String,
    pub count: u64,
    pub ns_mean: f64,
    pub ns_p50: Estimate,
    pub ns_p90: Estimate,
    pub ns_p99: Estimate,
    pub ns_p999: Estimate,
    pub ns_p9999: Estimate,
    pub ns_max: u64,
    /// All latencies, for quantiles over several parts of a window.
    #[serde(skip)]
    pub spread: Spread,
    /// Operations that had not ended at the window's end: a quantile that they decide is a lower
    /// bound, and the high end of its interval is null. Null for events, and in recordings of older
    /// versions.
    pub unfinished: Option<u64>,
}

impl Percentiles {
    /// Returns the quantiles as shares and estimates, in order. A quantile is `None` if there
    /// are too few samples to bound it.
    pub fn quantiles(&self) -> [(f64, Option<Estimate>); 5] {
        let all = [
            (0.5, self.ns_p50),
            (0.9, self.ns_p90),
            (0.99, self.ns_p99),
            (0.999, self.ns_p999),
            (0.9999, self.ns_p9999),
        ];
        let known = |share| self.count >= least_samples(share);
        all.map(|(share, estimate)| (share, known(share).then_some(estimate)))
    }
}

/// Little's law: the mean number in the system is throughput × time in the system.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LittlesLaw {
    /// Completions that are counted: `operations` or `physical reads`.
    pub what: &'static str,
    /// Number of sessions.
    pub sessions: u64,
    /// Completions a second.
    pub per_s: f64,
    /// Sessions ÷ completions a second, less the think time, in nanoseconds.
    pub expected_ns: f64,
    /// Mean latency as measured, in nanoseconds.
    pub measured_ns: f64,
    /// Measured ÷ expected latency.
    pub ratio: f64,
}

/// A figure of this run relative to the calibration of the same storage.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Efficiency {
    /// Name of the figure of this run.
    pub figure: &'static str,
    /// Title of that figure, for people.
    pub title: String,
    /// Name of the figure of the calibration.
    pub calibrated_figure: &'static str,
    /// Title of that figure, for people.
    pub calibrated_title: String,
    /// Id of the calibration.
    pub calibration: String,
    /// Value in the calibration.
    pub calibrated: Estimate,
    /// Unit of both figures.
    pub unit: String,
    /// This run ÷ calibration.
    pub ratio: Estimate,
}

impl RunFindings {
    /// Returns whether no verdict condemns any number. If false, the run ends with exit code 3.
    pub fn trustworthy(&self) -> bool {
        !self.verdicts.iter().any(Verdict::condemns)
    }

    /// Converts to findings that can be compared: figures and verdicts. Only rates and latencies
    /// can be faster or slower; other figures are left out.
    pub fn comparable(self) -> Findings {
        let rates = |(_, figure): &(String, Figure)| {
            figure.unit == "ns" || figure.unit.ends_with("/s") || figure.unit == "IOPS"
        };
        let beside = self.scan.iter().flat_map(Scan::figures);
        let noisy = self.noise.iter().flat_map(Noise::figures);
        let beside: Vec<_> = beside.chain(noisy).collect();
        Findings {
            points: Vec::new(),
            summary: self.summary.into_iter().chain(beside).filter(rates).collect(),
            verdicts: self.verdicts,
            drift_ratio: None,
            flush_slope: None,
            buffered_write: None,
            cached_visits: None,
            precondition: None,
        }
    }

    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.summary.iter().find(|(known, _)| known == name).map(|(_, figure)| figure)
    }
}

/// Derives the findings of each window of a run, judges them with `judge`, and combines them.
pub(crate) fn find(
    recording: &Recording,
    calibration: Option<&Manifest>,
    judge: impl Fn(&RunWindow, &mut RunFindings),
) -> Result<RunFindings, RecordError> {
    let history = History::read_probes(recording, |probe| window::PROBES.contains(&probe))?;
    let windows = RunWindow::all(&recording.manifest, &history);
    let mut each: Vec<RunFindings> =
        windows.iter().map(|window| derived(window, calibration)).collect();
    for (window, findings) in windows.iter().zip(&mut each) {
        judge(window, findings);
    }
    let scan = scan::derive(&windows, &each);
    let noise = noise::derive(&windows, &each);
    let fastest = |(_, a): &(usize, f64), (_, b): &(usize, f64)| a.total_cmp(b);
    let rates = windows.iter().enumerate().filter(|(_, window)| window.scans());
    let rates: Vec<(usize, f64)> =
        rates.filter_map(|(at, _)| Some((at, scan::rate(&each[at])?.estimate.value))).collect();
    let main = rates.iter().copied().max_by(fastest).map_or(0, |(at, _)| at);
    let verdicts = united::united(&each, main);
    let mut findings =
        if each.is_empty() { RunFindings::default() } else { each.swap_remove(main) };
    for (_, figure) in &mut findings.summary {
        figure.estimate = simultaneous::chosen_from(rates.len(), 1, figure.estimate);
    }
    findings.efficiency = summary::efficiency(&findings.summary, calibration);
    (findings.scan, findings.noise, findings.verdicts) = (scan, noise, verdicts);
    Ok(findings)
}

fn derived(window: &RunWindow, calibration: Option<&Manifest>) -> RunFindings {
    let mut findings = counted(window, time::db_time(window));
    findings.latencies = latency::percentiles(window);
    findings.transactions =
        transactions::derive(window, &findings.latencies, &findings.load_profile);
    findings.bulk_write = bulk_write::derive(window, &findings.latencies);
    findings.statements = statements::derive(window, &findings);
    findings.summary = summary::figures(window, &findings);
    findings.efficiency = summary::efficiency(&findings.summary, calibration);
    findings
}

/// Returns the findings that rest on counters alone, which any part of a window has too.
fn counted(window: &RunWindow, db_time: Option<DbTime>) -> RunFindings {
    let waits = time::waits(window, db_time.as_ref());
    RunFindings {
        label: window.phase.label.clone(),
        window_ns: window.duration_ns(),
        is_part: window.is_part(),
        sessions: window.sessions(),
        stop: Some(window.phase.stop),
        load_profile: profile::rows(window),
        classes: time::classes(window, &waits, db_time.as_ref()),
        db_time,
        waits,
        roles: io::transfers(window, "role"),
        disks: io::transfers(window, "disk"),
        ledger: ledger::rows(window),
        littles_law: latency::littles_law(window),
        ..RunFindings::default()
    }
}
