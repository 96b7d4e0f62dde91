//! The distribution of latencies as a line.

use blockstone_base::LatencyHistogram;
use blockstone_base::histogram::least_samples;
use blockstone_report::chart::Point;

/// Points of a line for each power of ten.
const STEPS: i32 = 8;

/// Latency against 1/(1−q), up to the last quantile that the number of samples supports.
pub fn quantiles(histogram: &LatencyHistogram) -> Vec<Point> {
    let beyond = (0..).map(|step| 10_f64.powf(f64::from(step) / f64::from(STEPS)));
    let bounded = |beyond: f64| histogram.count() >= least_samples(1.0 - 1.0 / beyond);
    let beyond = beyond.take_while(|beyond| bounded(*beyond));
    let point = |x: f64| {
        let ns = histogram.quantile_ns(1.0 - 1.0 / x).max(1) as f64;
        (x, Some(ns)).into()
    };
    beyond.map(point).collect()
}
