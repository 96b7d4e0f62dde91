//! Results of a simulation.

use blockstone_base::LatencyHistogram;

use super::Plan;
use crate::ftl::{BlockMap, Config, Full, Totals};

/// Measurements between two points of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// End of the interval, in simulated nanoseconds of the whole device.
    pub t_ns: u64,
    /// Data written by the host so far, in visible capacities.
    pub drive_fills: f64,
    /// Requests per second.
    pub iops: f64,
    /// Write requests per second.
    pub write_iops: f64,
    /// Programs ÷ host pages; `None` without host pages.
    pub wa: Option<f64>,
    pub read: Option<Percentiles>,
    pub write: Option<Percentiles>,
    /// Smallest number of free blocks in any pool of any die.
    pub free_blocks: usize,
    /// Latencies in buckets an eighth of a doubling wide, as (bucket, requests).
    pub heat: Vec<(u16, u64)>,
}

/// Latency percentiles in nanoseconds; `None` if there are too few requests to bound them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentiles {
    /// Number of requests.
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
    /// Time of the frame, in millionths of the visible capacity written.
    pub drive_fills_millionth: u64,
    pub map: BlockMap,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// Start, in visible capacities written.
    pub from_drive_fills: f64,
    /// Length, in simulated nanoseconds.
    pub duration_ns: u64,
    /// Requests per second while any arrived.
    pub iops: f64,
    /// Programs ÷ host pages.
    pub wa: Option<f64>,
    pub totals: Totals,
    pub reads: LatencyHistogram,
    pub writes: LatencyHistogram,
    /// Whether it passes the test of [`stats::settled`](blockstone_base::stats::settled).
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
    /// Requests per second before anything was collected.
    pub iops_fresh: Option<f64>,
    pub steady: Steady,
    /// All work done after the first fill.
    pub totals: Totals,
    /// Data written, in visible capacities, at the [cliff](crate::cliff).
    pub cliff_drive_fills: Option<f64>,
    /// The analytic position of the cliff: spare ÷ visible pages.
    pub cliff_drive_fills_analytic: f64,
    /// Write amplification by formula, if there is one.
    pub wa_analytic: Option<f64>,
    /// Rate by formula from the write amplification seen: see [`Plan::analytic_iops`].
    pub iops_analytic: Option<f64>,
    /// Number of blocks by erase count, ascending.
    pub erases: Vec<(u32, u64)>,
    /// Reads of unmapped pages; the controller answers them.
    pub unmapped_reads: u64,
    /// Writes that waited to be admitted, and those still waiting at the end.
    pub throttled_writes: u64,
    pub waiting_writes: u64,
    /// Simulated time, in nanoseconds.
    pub elapsed_ns: u64,
    pub memory_bytes: u64,
    pub ended_by: Option<Full>,
    /// Digest; equal for equal plans.
    pub digest: u64,
}

impl Outcome {
    /// Spare ÷ all pages that collection can use: excludes bad, reserved and open blocks.
    pub fn effective_spare(&self) -> f64 {
        1.0 - 1.0 / self.config.effective_alpha()
    }

    /// Simulated − analytic write amplification, relative to the analytic.
    pub fn wa_error(&self) -> Option<f64> {
        Some(self.steady.wa? / self.wa_analytic? - 1.0)
    }
}
