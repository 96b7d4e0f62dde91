//! Findings derived from a recording: points with their rates, latencies and evidence, the summary
//! figures, and the verdicts. Reports render this and nothing else.

use blockstone_base::histogram::LatencyHistogram;
use blockstone_base::load::LoadSpec;
use blockstone_base::stats::Estimate;
use blockstone_base::verdict::Verdict;
use blockstone_record::manifest::{Figure, Group, Stop};
use serde::Serialize;

use crate::buffered::BufferedWrite;
use crate::flushes::FlushSlope;
use crate::precondition::Precondition;
use crate::visits::CachedVisits;

/// All findings of one recording.
#[derive(Clone, Debug)]
pub struct Findings {
    /// One for each label, in the order in which they were first measured; repeats are pooled.
    pub points: Vec<Point>,
    /// Headline figures by name, in the order in which they should be read.
    pub summary: Vec<(String, Figure)>,
    /// One for each rule of the registry, in its order.
    pub verdicts: Vec<Verdict>,
    /// Movement of the reference point over the run: (greatest − least) ÷ mean of its windows.
    pub drift_ratio: Option<f64>,
    /// Time of flushes as a function of the bytes written before them; `None` if that was not
    /// measured.
    pub flush_slope: Option<FlushSlope>,
    /// Sequential writes through the page cache; `None` if they were not measured.
    pub buffered_write: Option<BufferedWrite>,
    /// Visits of cached blocks; `None` if they were not measured.
    pub cached_visits: Option<CachedVisits>,
    /// Writes before anything was measured; `None` without preconditioning.
    pub precondition: Option<Precondition>,
}

impl Findings {
    /// Returns whether no verdict condemns any number. If false, the run ends with exit code 3.
    pub fn trustworthy(&self) -> bool {
        self.condemned().next().is_none()
    }

    /// Returns the verdicts that strike numbers through.
    pub fn condemned(&self) -> impl Iterator<Item = &Verdict> {
        self.verdicts.iter().filter(|verdict| verdict.condemns())
    }
}

/// One measured load.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Label of the point, unique in the findings.
    pub label: String,
    /// Question that the point answers.
    pub group: Group,
    /// Load that was measured.
    pub load: LoadSpec,
    /// Load that ran in the background, and its throughput in decimal megabytes a second.
    pub background: Option<(LoadSpec, Estimate)>,
    /// Number of windows pooled.
    pub windows: u32,
    /// Operations a second.
    pub iops: Estimate,
    /// Decimal megabytes a second.
    pub mb_per_s: Estimate,
    /// Latency from the intended start.
    pub latency: Latency,
    /// Processor cost of an I/O.
    pub cpu: CpuCost,
    /// Evidence of other layers about the same window.
    pub evidence: Evidence,
    /// Part of the load that each of several targets had; absent for one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetShare>,
    /// Rate of each tick inside the window(s), operations a second.
    #[serde(skip)]
    pub slices: Vec<f64>,
    /// All latencies of the window(s).
    #[serde(skip)]
    pub histogram: LatencyHistogram,
    /// Reason why the last window closed.
    pub stop: Stop,
    /// Rules that condemn this point; empty if it stands.
    pub condemned_by: Vec<String>,
    /// Rules that warn of this point.
    pub warned_by: Vec<String>,
}

/// The part of a point's load that one of several targets had. The load is spread evenly over them.
#[derive(Clone, Debug, Serialize)]
pub struct TargetShare {
    pub path: String,
    /// Operations a second; null if too few completed.
    pub iops: Option<Estimate>,
    /// Decimal megabytes a second, likewise.
    pub mb_per_s: Option<Estimate>,
    /// Mean latency from the intended start, likewise.
    pub latency_ns_mean: Option<Estimate>,
}

/// Latencies in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    pub ns_mean: Estimate,
    pub ns_p50: Estimate,
    pub ns_p90: Estimate,
    pub ns_p99: Estimate,
    pub ns_p999: Estimate,
    pub ns_p9999: Estimate,
    pub ns_min: u64,
    pub ns_max: u64,
    /// Operations that had not completed at the window's end. Quantiles that these decide are lower
    /// bounds: the high end of their interval is null. Null in recordings of older versions.
    pub unfinished: Option<u64>,
    /// Mean delay of submissions behind their intended start (open loop; zero in a closed loop).
    pub lag_ns_mean: f64,
    /// The longest such delay.
    pub lag_ns_max: u64,
}

/// Processor cost of one I/O in this window; null if it was not measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CpuCost {
    /// User time of this process per I/O.
    pub user_ns_per_io: Option<f64>,
    /// System time of this process per I/O.
    pub system_ns_per_io: Option<f64>,
    /// Voluntary context switches per I/O.
    pub switches_voluntary_per_io: Option<f64>,
    /// Involuntary context switches per I/O.
    pub switches_involuntary_per_io: Option<f64>,
    /// Time that threads of this process were runnable but not running, per I/O.
    pub run_queue_ns_per_io: Option<f64>,
    /// Busy share of all processors, 0 to 1.
    pub host_busy_ratio: Option<f64>,
    /// Busy share of all processors without this process and without interrupts, 0 to 1.
    pub foreign_busy_ratio: Option<f64>,
    /// Share of time in which the hypervisor ran other guests, 0 to 1.
    pub steal_ratio: Option<f64>,
}

/// Evidence of three layers about the same window.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Evidence {
    /// Bytes that the load generator completed.
    pub completed_bytes: u64,
    /// Bytes that the kernel charged to this process as storage I/O (`/proc/self/io`).
    pub process_bytes: Option<u64>,
    /// Whether `process_bytes` is left out because it is more than was written by calls and moved
    /// by disks: the kernel charges whole folios.
    pub process_overcharged: bool,
    /// Pages of the files under load that this process added to the page cache, counted in the
    /// kernel; direct I/O adds none. Null if they were not counted.
    pub added_pages: Option<u64>,
    /// Bytes that the target's top device moved in the load's direction.
    pub device_bytes: Option<u64>,
    /// Requests of that device in the load's direction.
    pub device_ios: Option<u64>,
    /// Cache flushes that reached the chain: the highest count of any of its devices, since the
    /// kernel counts them on whole disks only.
    pub device_flushes: Option<u64>,
    /// Mean time of a request on that device, in nanoseconds.
    pub device_ns_mean: Option<f64>,
    /// Blocks whose stamp was checked.
    pub stamps_verified: u64,
    /// Blocks whose payload was checked.
    pub checksums_verified: u64,
    /// Blocks that did not contain what had been written.
    pub mismatches: u64,
    /// Operations that failed.
    pub failed_ops: u64,
}
