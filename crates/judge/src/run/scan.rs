//! The direct-path matrix: for every point the time that its reads took, and next to it what the
//! wait interface of a database reports of the same reads. A session that keeps several reads
//! outstanding waits only if the next one has not returned yet. So a database that times waits
//! knows nothing of the reads that returned in time, and only the remainder of the others: neither
//! the number nor the length of its waits is that of the reads.

use blockstone_base::database::DIRECT_READ;
use blockstone_base::histogram::LatencyHistogram;
use blockstone_base::stats::{self, Estimate};
use blockstone_figures::simultaneous;
use blockstone_record::LatencyClock;
use blockstone_record::manifest::{Figure, Stop};
use schemars::JsonSchema;
use serde::Serialize;

use super::time::SESSION;
use super::window::RunWindow;
use super::{RunFindings, ScanStatements};

/// Wait event of reads past the cache.
const WAIT: &str = "session/direct path read";

/// A whole matrix.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Points in the order in which they were measured.
    pub points: Vec<ScanPoint>,
    /// Few sessions compared with many, for each size of read.
    pub effects: Vec<ScanEffect>,
    /// Differences between the sizes of reads, for each number of sessions.
    pub spreads: Vec<ScanSpread>,
    /// Labels of windows in which a counter was read too rarely for a rate.
    pub without_rate: Vec<String>,
}

/// One size of read with one number of sessions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScanPoint {
    /// Label of the point's phase.
    pub label: String,
    /// Blocks of a read; for a database, the maximum. Null if they cannot be chosen.
    pub multiblock: Option<u64>,
    /// Bytes of a read; for a database, the maximum. Null if they cannot be chosen.
    pub read_bytes: Option<u64>,
    /// Number of sessions.
    pub parallel: u32,
    /// Reads that each session may keep outstanding; null for a database, which decides this
    /// itself.
    pub slots: Option<u32>,
    /// Length of the window, in nanoseconds.
    pub window_ns: u64,
    /// Reason why the window closed.
    pub stop: Stop,
    /// Decimal megabytes a second.
    pub mb_per_s: Estimate,
    /// Reads a second. This and all fields up to `waits` are null for a database, which does not
    /// report how long each read took.
    pub iops: Option<Estimate>,
    /// Number of reads in the window.
    pub ios: Option<u64>,
    /// Total time of all reads, in nanoseconds.
    pub io_ns: Option<u64>,
    /// Mean time of a read, in nanoseconds.
    pub io_ns_mean: Option<Estimate>,
    /// Median time of a read, in nanoseconds.
    pub io_ns_p50: Option<Estimate>,
    /// 99th percentile of the time of a read, in nanoseconds.
    pub io_ns_p99: Option<Estimate>,
    /// Mean number of reads outstanding.
    pub outstanding: Option<f64>,
    /// The same reads as the wait interface reports them.
    pub waits: Option<Waited>,
    /// Work of a database's statements; null for the miniature instance.
    pub statements: Option<ScanStatements>,
    /// Rules that condemn this point; empty if it stands.
    pub condemned_by: Vec<String>,
}

/// The reads of a point as waits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Waited {
    /// Number of waits.
    pub count: u64,
    /// Total time in waits, in nanoseconds.
    pub time_ns: u64,
    /// Mean time of a wait, in nanoseconds; null without a wait.
    pub ns_mean: Option<f64>,
    /// Median time of a wait, in nanoseconds.
    pub ns_p50: Option<u64>,
    /// 99th percentile of the time of a wait, in nanoseconds.
    pub ns_p99: Option<u64>,
    /// Waits ÷ reads.
    pub count_ratio: f64,
    /// Mean wait ÷ mean read.
    pub mean_ratio: Option<f64>,
    /// Time in waits ÷ time of reads.
    pub time_ratio: f64,
}

/// Change of the figures for the same bytes when more sessions read them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScanEffect {
    /// Blocks of a read; null where they cannot be chosen.
    pub multiblock: Option<u64>,
    /// Number of sessions before.
    pub from_parallel: u32,
    /// Number of sessions after.
    pub to_parallel: u32,
    /// Bytes a second, after ÷ before.
    pub mb_per_s: Option<Estimate>,
    /// Mean time of a read, after ÷ before.
    pub io_ns_mean: Option<Estimate>,
    /// Number of waits for each byte, after ÷ before.
    pub waits: Option<f64>,
    /// Mean time of a wait, after ÷ before.
    pub wait_ns_mean: Option<f64>,
    /// Time in waits for each byte, after ÷ before.
    pub wait_time: Option<f64>,
}

/// Difference between the sizes of reads.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScanSpread {
    /// Number of sessions.
    pub parallel: u32,
    /// Bytes a second of the fastest size ÷ that of the slowest, with the interval of Tukey's
    /// studentized range: a difference is established if its lower end is above 1.
    pub ratio: Estimate,
    /// Blocks of a read of the fastest size.
    pub fastest_multiblock: Option<u64>,
    /// Blocks of a read of the slowest size.
    pub slowest_multiblock: Option<u64>,
}

impl ScanSpread {
    pub fn is_established(&self) -> bool {
        self.ratio.low > 1.0
    }
}

impl Scan {
    /// Returns the point with the most bytes a second, with the interval of the best of all. A
    /// condemned point is chosen only if no other stands.
    pub fn fastest(&self) -> Option<(&ScanPoint, Estimate)> {
        let key = |point: &ScanPoint| (point.condemned_by.is_empty(), point.mb_per_s.value);
        let point = self.points.iter().max_by(|a, b| {
            let (a, b) = (key(a), key(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })?;
        Some((point, simultaneous::chosen_from(self.points.len(), 1, point.mb_per_s)))
    }

    /// Returns rates and latencies of all points, to be compared with those of another run.
    pub(super) fn figures(&self) -> impl Iterator<Item = (String, Figure)> {
        self.points.iter().flat_map(|point| {
            let statements = point.statements.as_ref();
            let figures = [
                ("mb_per_s", "MB/s", Some(point.mb_per_s)),
                ("io_ns_mean", "ns", point.io_ns_mean),
                ("io_ns_p50", "ns", point.io_ns_p50),
                ("io_ns_p99", "ns", point.io_ns_p99),
                ("rows_per_s", "rows/s", statements.and_then(|it| it.rows_per_s)),
                ("cpu_ns_per_row", "ns", statements.and_then(|it| it.cpu_ns_per_row)),
            ];
            let known = figures.into_iter().filter_map(|(name, unit, it)| Some((name, unit, it?)));
            known.map(|(name, unit, estimate)| {
                let figure = Figure {
                    title: point.label.clone(),
                    unit: unit.to_owned(),
                    estimate,
                    phase: point.label.clone(),
                    condemned_by: point.condemned_by.clone(),
                };
                (format!("{}/{name}", point.label), figure)
            })
        })
    }
}

/// Derives the matrix, `None` for any other run.
pub(super) fn derive(windows: &[RunWindow], each: &[RunFindings]) -> Option<Scan> {
    let (mut points, mut without_rate) = (Vec::new(), Vec::new());
    for (window, findings) in windows.iter().zip(each).filter(|(window, _)| window.scans()) {
        match point(window, findings) {
            Some(point) => points.push(point),
            None => without_rate.push(window.phase.label.clone()),
        }
    }
    (!points.is_empty()).then(|| Scan {
        effects: effects(&points),
        spreads: spreads(&points),
        points,
        without_rate,
    })
}

/// Returns the figure of a window that states the rate of its scan.
pub(super) fn rate(findings: &RunFindings) -> Option<&Figure> {
    findings.figure("scan_read_mbps").or_else(|| findings.figure("read_mbps"))
}

/// Returns a point of statements: their reads are not known one by one.
fn of_statements(window: &RunWindow, findings: &RunFindings) -> Option<ScanPoint> {
    let (load, statements) = (window.phase.load.as_ref()?, findings.statements.clone()?);
    let parameters = window.parameters();
    let read_bytes = parameters.scan_multiblock.map(|_| load.block_bytes);
    let block_bytes = parameters.block_bytes?.get().max(1);
    Some(ScanPoint {
        label: window.phase.label.clone(),
        multiblock: read_bytes.map(|bytes| bytes / block_bytes),
        read_bytes,
        parallel: load.workers,
        slots: None,
        window_ns: window.duration_ns(),
        stop: window.phase.stop,
        mb_per_s: statements.mb_per_s,
        iops: None,
        ios: None,
        io_ns: None,
        io_ns_mean: None,
        io_ns_p50: None,
        io_ns_p99: None,
        outstanding: None,
        waits: None,
        condemned_by: rate(findings)?.condemned_by.clone(),
        statements: Some(statements),
    })
}

fn point(window: &RunWindow, findings: &RunFindings) -> Option<ScanPoint> {
    if findings.statements.is_some() {
        return of_statements(window, findings);
    }
    let load = window.phase.load.as_ref()?;
    let rate = |column| window.rate("role", SESSION, column).ok();
    let (reads_per_s, mb_per_s) = (rate("read_ios")?, rate("read_bytes")?.scaled(1e-6));
    let grown = |column| window.grown("role", SESSION, column).ok();
    let (ios, bytes, io_ns) = (grown("read_ios")?, grown("read_bytes")?, grown("read_ns")?);
    let track = |column| window.track("role", SESSION, column).ok();
    let mean = window.slope(&track("read_ns")?, &track("read_ios")?).ok()?;
    let histogram = window.histogram(DIRECT_READ, LatencyClock::Submitted)?;
    let seconds = window.seconds_of(DIRECT_READ, LatencyClock::Submitted);
    let quantile = |q| histogram.quantile(q, &seconds, window.duration_ns());
    let of_figure = findings.figure("read_mbps").map(|figure| figure.condemned_by.clone());
    Some(ScanPoint {
        label: window.phase.label.clone(),
        multiblock: Some(load.block_bytes / window.parameters().block_bytes?.get().max(1)),
        read_bytes: Some(bytes.checked_div(ios)?),
        parallel: load.workers,
        slots: Some(load.depth_per_worker),
        window_ns: window.duration_ns(),
        stop: window.phase.stop,
        // Bytes are not samples: the reads that moved them are.
        mb_per_s: Estimate { samples: reads_per_s.samples, ..mb_per_s },
        iops: Some(reads_per_s),
        ios: Some(ios),
        io_ns: Some(io_ns),
        io_ns_mean: Some(Estimate { samples: ios, ..mean }),
        io_ns_p50: Some(quantile(0.5)),
        io_ns_p99: Some(quantile(0.99)),
        outstanding: Some(io_ns as f64 / window.duration_ns() as f64),
        waits: Some(waited(window, ios, io_ns)),
        statements: None,
        condemned_by: of_figure.unwrap_or_default(),
    })
}

fn waited(window: &RunWindow, ios: u64, io_ns: u64) -> Waited {
    let grown = |column| window.grown("event", WAIT, column).unwrap_or(0);
    let (count, time_ns) = (grown("waits"), grown("time_ns"));
    let ns_mean = (count > 0).then(|| time_ns as f64 / count as f64);
    let histogram = window.histogram(WAIT, LatencyClock::Submitted);
    let quantile = |q| histogram.and_then(|h: &LatencyHistogram| h.bounded_quantile_ns(q));
    let io_ns_mean = io_ns as f64 / ios.max(1) as f64;
    Waited {
        count,
        time_ns,
        ns_mean,
        ns_p50: quantile(0.5),
        ns_p99: quantile(0.99),
        count_ratio: count as f64 / ios.max(1) as f64,
        mean_ratio: ns_mean.map(|mean| mean / io_ns_mean),
        time_ratio: time_ns as f64 / io_ns.max(1) as f64,
    }
}

/// Compares the fewest with the most sessions.
fn effects(points: &[ScanPoint]) -> Vec<ScanEffect> {
    let mut sizes: Vec<Option<u64>> = points.iter().map(|point| point.multiblock).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let of = |&multiblock: &Option<u64>| {
        let same = points.iter().filter(move |point| point.multiblock == multiblock);
        let from = same.clone().min_by_key(|point| point.parallel)?;
        let to = same.max_by_key(|point| point.parallel)?;
        if from.parallel == to.parallel {
            return None;
        }
        let per_byte = |amount: u64, point: &ScanPoint| {
            Some(amount as f64 / (point.ios? as f64 * point.read_bytes? as f64))
        };
        let ratio = |before: f64, after: f64| (before > 0.0).then(|| after / before);
        let amount = |of: fn(&Waited) -> u64| {
            let per_byte = |point: &ScanPoint| per_byte(of(point.waits.as_ref()?), point);
            ratio(per_byte(from)?, per_byte(to)?)
        };
        let wait_ns = |point: &ScanPoint| point.waits.as_ref()?.ns_mean;
        let read_ns = from.io_ns_mean.zip(to.io_ns_mean);
        Some(ScanEffect {
            multiblock,
            from_parallel: from.parallel,
            to_parallel: to.parallel,
            mb_per_s: stats::ratio(&from.mb_per_s, &to.mb_per_s),
            io_ns_mean: read_ns.and_then(|(from, to)| stats::ratio(&from, &to)),
            waits: amount(|waits| waits.count),
            wait_ns_mean: wait_ns(from).zip(wait_ns(to)).and_then(|(a, b)| ratio(a, b)),
            wait_time: amount(|waits| waits.time_ns),
        })
    };
    sizes.iter().filter_map(of).collect()
}

fn spreads(points: &[ScanPoint]) -> Vec<ScanSpread> {
    let mut sessions: Vec<u32> = points.iter().map(|point| point.parallel).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let of = |&parallel: &u32| {
        let same = points.iter().filter(move |point| point.parallel == parallel);
        let rate = |point: &&ScanPoint| point.mb_per_s.value;
        let fastest = same.clone().max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
        let slowest = same.clone().min_by(|a, b| rate(a).total_cmp(&rate(b)))?;
        let sizes = same.count();
        if fastest.multiblock == slowest.multiblock {
            return None;
        }
        Some(ScanSpread {
            parallel,
            ratio: simultaneous::ratio_of_extremes(sizes, &slowest.mb_per_s, &fastest.mb_per_s)?,
            fastest_multiblock: fastest.multiblock,
            slowest_multiblock: slowest.multiblock,
        })
    };
    sessions.iter().filter_map(of).collect()
}
