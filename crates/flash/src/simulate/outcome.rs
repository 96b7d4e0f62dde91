//! What came out.

use blockstone_base::LatencyHistogram;

use super::Plan;
use crate::ftl::{BlockMap, Config, Full, Totals};

/// What happened between two points of the run.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Point {
    /// Its end, in simulated nanoseconds of the whole device.
    pub t_ns: u64,
    /// Written by the host until here, in visible capacities.
    pub drive_fills: f64,
    /// Requests a second.
    pub iops: f64,
    /// Write requests a second.
    pub write_iops: f64,
    /// Programs ÷ host pages; none without host pages.
    pub wa: Option<f64>,
    pub read: Option<Percentiles>,
    pub write: Option<Percentiles>,
    /// Fewest free blocks that a die has.
    pub free_blocks: usize,
    /// Latencies in buckets an eighth of a doubling wide, as (bucket, requests).
    #[serde(skip)]
    pub heat: Vec<(u16, u64)>,
}

/// Latency percentiles in nanoseconds; none where too few requests bound them.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Percentiles {
    /// Requests.
    pub count: u64,
    pub latency_ns_mean: f64,
    pub latency_ns_p50: Option<u64>,
    pub latency_ns_p99: Option<u64>,
    pub latency_ns_p999: Option<u64>,
    pub latency_ns_p9999: Option<u64>,
    pub latency_ns_max: u64,
}

impl Percentiles {
    pub fn of(histogram: &LatencyHistogram) -> Option<Self> {
        (histogram.count() > 0).then(|| Self {
            count: histogram.count(),
            latency_ns_mean: histogram.mean_ns(),
            latency_ns_p50: histogram.bounded_quantile_ns(0.5),
            latency_ns_p99: histogram.bounded_quantile_ns(0.99),
            latency_ns_p999: histogram.bounded_quantile_ns(0.999),
            latency_ns_p9999: histogram.bounded_quantile_ns(0.9999),
            latency_ns_max: histogram.max_ns(),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When, in millionths of the visible capacity written.
    pub drive_fills_millionth: u64,
    pub map: BlockMap,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// Where it begins, in visible capacities written.
    pub from_drive_fills: f64,
    /// How long it lasted, in simulated nanoseconds.
    pub duration_ns: u64,
    /// Requests a second while any arrived.
    pub iops: f64,
    /// Programs ÷ host pages.
    pub wa: Option<f64>,
    pub totals: Totals,
    pub reads: LatencyHistogram,
    pub writes: LatencyHistogram,
    /// It passes the test of [`stats::settled`](blockstone_base::stats::settled).
    pub is_settled: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// `exact` or `counts`.
    pub engine: &'static str,
    pub plan: Plan,
    pub config: Config,
    pub points: Vec<Point>,
    pub frames: Vec<Frame>,
    /// Requests a second before anything was collected.
    pub iops_fresh: Option<f64>,
    pub steady: Steady,
    /// All that was done after the first fill.
    pub totals: Totals,
    /// Written, in visible capacities, when a write first had to wait for collection.
    pub cliff_drive_fills: Option<f64>,
    /// The same by arithmetic: spare ÷ visible pages.
    pub cliff_drive_fills_analytic: f64,
    /// Write amplification by formula, where there is one.
    pub wa_analytic: Option<f64>,
    /// By formula from the write amplification seen: see [`Plan::analytic_iops`].
    pub iops_analytic: Option<f64>,
    /// Blocks by their number of erases, ascending.
    pub erases: Vec<(u32, u64)>,
    /// Reads of pages that hold nothing; the controller answers them.
    pub unmapped_reads: u64,
    /// Writes that waited to be admitted, and those that still did at the end.
    pub throttled_writes: u64,
    pub waiting_writes: u64,
    /// Simulated time, in nanoseconds.
    pub elapsed_ns: u64,
    pub memory_bytes: u64,
    pub ended_by: Option<Full>,
    /// The same for the same plan.
    pub digest: u64,
}

impl Outcome {
    /// Spare ÷ all pages that collection can use: without bad, reserved and open blocks.
    pub fn effective_spare(&self) -> f64 {
        1.0 - 1.0 / self.config.effective_alpha()
    }

    /// Simulated − analytic write amplification, as a part of the analytic.
    pub fn wa_error(&self) -> Option<f64> {
        Some(self.steady.wa? / self.wa_analytic? - 1.0)
    }
}
