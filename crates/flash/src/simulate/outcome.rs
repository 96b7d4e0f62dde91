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
    /// It passes the test of [`settled`].
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

/// The steady-state test of SNIA's performance test specification over five rounds: (a) their range
/// is at most 20 % of their mean, (b) the range of the line fitted through them at most 10 %.
pub fn settled(rounds: &[f64]) -> bool {
    let Some(rounds) = rounds.len().checked_sub(5).map(|from| &rounds[from..]) else {
        return false;
    };
    let mean = rounds.iter().sum::<f64>() / 5.0;
    let range = rounds.iter().fold(f64::MIN, |a, &b| a.max(b))
        - rounds.iter().fold(f64::MAX, |a, &b| a.min(b));
    // Least squares over the rounds −2 … 2: the sum of their squares is 10.
    let slope = rounds.iter().zip(-2_i32..).map(|(y, x)| f64::from(x) * y).sum::<f64>() / 10.0;
    mean > 0.0 && range <= 0.2 * mean && (4.0 * slope).abs() <= 0.1 * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_rounds_are_settled_within_their_bounds() {
        assert!(settled(&[9.0, 100.0, 101.0, 99.0, 100.0, 100.0]), "only the last five count");
        assert!(!settled(&[100.0; 4]), "five are needed");
        assert!(!settled(&[100.0, 100.0, 85.0, 100.0, 110.0]), "the range is above 20 %");
        assert!(!settled(&[100.0, 103.0, 106.0, 109.0, 112.0]), "a trend above 10 %");
        assert!(!settled(&[0.0; 5]) && !settled(&[f64::NAN; 5]));
    }
}
