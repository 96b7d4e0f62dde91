//! What a workload run says once it is derived: load profile, database time and its waits, I/O by
//! role and disk, latencies, the headline figures and the verdicts on them.

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

/// All findings of one run. Everything counts from edge to edge of a window: the only one; the
/// quiet one where noise was added in a second; of a matrix of scans the one with most bytes a
/// second.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct RunFindings {
    /// Label of the window's phase; empty when the run did not come that far.
    #[serde(skip)]
    pub label: String,
    /// Length of the window; zero when the run did not come that far.
    #[serde(skip)]
    pub window_ns: u64,
    /// Whether these are of a part of the window: what did not happen in it is listed as zero.
    #[serde(skip)]
    pub is_part: bool,
    /// Sessions that ran.
    #[serde(skip)]
    pub sessions: u64,
    /// Why the window closed.
    #[serde(skip)]
    pub stop: Option<Stop>,
    /// Headline figures by name, in the order in which they should be read.
    #[serde(skip)]
    pub summary: Vec<(String, Figure)>,
    /// What the database did, per second and per transaction.
    pub load_profile: Vec<ProfileRow>,
    /// Where the sessions spent their time; none for a target that does not say.
    pub db_time: Option<DbTime>,
    /// Events of the sessions by descending time, then those of the background processes.
    pub waits: Vec<Wait>,
    /// Time of the sessions by class of wait, descending.
    pub classes: Vec<WaitClass>,
    /// I/O of the database by the process that sent it.
    pub roles: Vec<Transfers>,
    /// Claimed by the database, charged to its processes, done by the device.
    pub ledger: Vec<LedgerRow>,
    /// I/O as each disk of the disk group was sent it; mirrored writes count on each.
    pub disks: Vec<Transfers>,
    /// The transactions of an order-entry mix; none of any other run.
    #[serde(skip)]
    pub transactions: Option<Transactions>,
    /// The tables of a bulk write; none of any other run.
    #[serde(skip)]
    pub bulk_write: Option<BulkWrite>,
    /// Latencies by operation, then by event.
    pub latencies: Vec<Percentiles>,
    /// Sessions, rates and latencies against each other.
    pub littles_law: Vec<LittlesLaw>,
    /// Against a calibration of the same path; empty without one.
    pub efficiency: Vec<Efficiency>,
    /// The points of a direct-path matrix and what they show; none of any other run.
    #[serde(skip)]
    pub scan: Option<Scan>,
    /// What statements that scan did in the window; none of any other run.
    #[serde(skip)]
    pub statements: Option<ScanStatements>,
    /// What noise beside the sessions did to them; none where there was none.
    #[serde(skip)]
    pub noise: Option<Noise>,
    /// One for each rule that applies to runs, in the order of the registry.
    #[serde(skip)]
    pub verdicts: Vec<Verdict>,
}

/// One line of the load profile.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProfileRow {
    /// Stable name, for scripts.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// What is counted: `count`, `bytes`, or `ns` (then a second of it a second is 1e9).
    #[schemars(extend("enum" = ["count", "bytes", "ns"]))]
    pub unit: &'static str,
    /// Per second.
    pub per_s: Estimate,
    /// Per transaction; none without a commit.
    pub per_transaction: Option<f64>,
}

/// The sessions' database time as a tree: all parts add up to `db_time_ns`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct DbTime {
    /// Wall time inside the calls of sessions.
    pub db_time_ns: u64,
    /// Processor time outside of waits, by its share in a sample.
    pub cpu_ns: u64,
    /// Ready to run, without a processor, outside of waits, likewise.
    pub run_queue_ns: u64,
    /// Time in wait events, that of a server's calls on the way, and `blocked_ns`.
    pub waits_ns: u64,
    /// Of it, time in which a server did not work for the call: on the way, or with the client.
    /// None where samples do not say.
    pub network_ns: Option<u64>,
    /// Of it, time in which threads of a server were blocked without any event of the server, as
    /// the kernel shows it. None where it does not.
    pub blocked_ns: Option<u64>,
    /// The parts of `blocked_ns`, which are listed with the events.
    #[serde(skip)]
    pub blocked: Vec<Blocked>,
    /// What blocked outside of any event; below zero when waits are counted twice.
    pub remainder_ns: f64,
    /// The remainder as a share of the whole.
    pub remainder_ratio: f64,
    /// All processor time of sessions, inside waits too: what a physical read costs is there.
    pub session_cpu_ns: u64,
    /// All time of sessions in the run queue, inside waits too.
    pub session_run_queue_ns: u64,
    /// Processor time inside waits, or outside of any call: the rest of it.
    pub cpu_in_waits_ns: u64,
    /// Run queue inside waits, likewise.
    pub run_queue_in_waits_ns: u64,
    /// Processor time of the background processes.
    pub background_cpu_ns: u64,
    /// Database time a second: sessions that were inside a call on average.
    pub average_active_sessions: f64,
}

/// One event of one role.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Wait {
    /// Its name as DBAs know it; `CPU` and `run queue` are events too.
    pub event: String,
    /// Whose: `session`, `dbwr`, `lgwr`, `ckpt`.
    pub role: String,
    /// Its class.
    pub class: &'static str,
    /// Waits that ended; zero for CPU and run queue.
    pub count: u64,
    /// Time in them.
    pub time_ns: u64,
    /// Mean of one wait; none without a wait.
    pub ns_mean: Option<f64>,
    /// Share of the database time; none for background processes, which are not in it.
    pub db_time_ratio: Option<f64>,
    /// Processes of the role that were in it on average.
    pub average_active: f64,
}

/// The sessions' time by class.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WaitClass {
    /// The class.
    pub class: &'static str,
    /// Time in it.
    pub time_ns: u64,
    /// Share of the database time.
    pub db_time_ratio: f64,
    /// Sessions that were in it on average.
    pub average_active_sessions: f64,
}

/// I/O of one role or one disk.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Transfers {
    /// The role or disk.
    pub name: String,
    /// Reads.
    pub reads: Transfer,
    /// Writes.
    pub writes: Transfer,
}

/// Requests in one direction.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Transfer {
    /// Requests completed.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests a second; none when too few ticks support it.
    pub iops: Option<Estimate>,
    /// Mean size in bytes: above the block size, neighbouring blocks were taken together.
    pub bytes_mean: Option<f64>,
    /// Mean time of a request.
    pub service_ns_mean: Option<f64>,
}

/// Latencies of an operation or an event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Percentiles {
    /// `select`, `update`, `scan`, a transaction of order entry, a step of a bulk write, or an
    /// event.
    pub name: String,
    /// The event's role; empty for an operation.
    pub role: String,
    pub count: u64,
    pub ns_mean: f64,
    pub ns_p50: Estimate,
    pub ns_p90: Estimate,
    pub ns_p99: Estimate,
    pub ns_p999: Estimate,
    pub ns_p9999: Estimate,
    pub ns_max: u64,
    /// All of them, for quantiles over several parts of a window.
    #[serde(skip)]
    pub spread: Spread,
    /// Operations that had not ended at the window's end: a quantile that they decide is a lower
    /// bound, and the high end of its interval is null. None for events, and in recordings of older
    /// versions.
    pub unfinished: Option<u64>,
}

impl Percentiles {
    /// The quantiles as shares and estimates, in order. One that so few samples do not bound is
    /// none.
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

/// Little's law: as many customers as throughput × time in the system.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LittlesLaw {
    /// What is counted: `operations` or `physical reads`.
    pub what: &'static str,
    /// Sessions.
    pub sessions: u64,
    /// Completions a second.
    pub per_s: f64,
    /// Sessions ÷ completions a second, less the think time.
    pub expected_ns: f64,
    /// Mean latency as measured.
    pub measured_ns: f64,
    /// Measured ÷ expected.
    pub ratio: f64,
}

/// A figure of this run against the same storage's calibration.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Efficiency {
    /// Figure of this run.
    pub figure: &'static str,
    /// The same for people.
    pub title: String,
    /// Figure of the calibration.
    pub calibrated_figure: &'static str,
    /// The same for people.
    pub calibrated_title: String,
    /// The calibration.
    pub calibration: String,
    /// What was calibrated.
    pub calibrated: Estimate,
    /// Unit of both.
    pub unit: String,
    /// This run ÷ calibration.
    pub ratio: Estimate,
}

impl RunFindings {
    /// Whether no verdict condemns any number. False makes a run end with exit code 3.
    pub fn trustworthy(&self) -> bool {
        !self.verdicts.iter().any(Verdict::condemns)
    }

    /// The same as findings that can be compared: figures and verdicts. What is neither a rate nor
    /// a latency cannot be faster or slower.
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

/// What a run says: each window derived, then judged by `judge`, and all of them united.
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

/// What stands on counters alone, so of any part of a window too.
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
