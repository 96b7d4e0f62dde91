//! Latency histograms: every I/O is recorded, the error is at most 1 %, nothing under one hour
//! is clamped, and the few durations beyond are counted as such.

mod shared;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

pub use shared::SharedHistogram;

use crate::stats::Estimate;

/// The highest latency that is recorded exactly, in nanoseconds: 2 hours.
pub const HIGHEST_NS: u64 = 7_200_000_000_000;

/// A histogram of nanoseconds with two significant digits (a bucket is at most 1/128 wide).
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyHistogram {
    inner: Histogram<u64>,
    beyond: u64,
    sum_ns: u128,
}

#[derive(Debug, thiserror::Error)]
#[error("decode histogram: {why}\nhint: the bytes are not an HdrHistogram V2 encoding")]
pub struct DecodeError {
    why: String,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty histogram, about 40 KiB.
    ///
    /// # Panics
    /// Never: the bounds are constants that the library accepts.
    pub fn new() -> Self {
        let inner = Histogram::new_with_bounds(1, HIGHEST_NS, 2)
            .expect("constant bounds are within what HdrHistogram accepts");
        Self { inner, beyond: 0, sum_ns: 0 }
    }

    /// Records one latency. Longer than [`HIGHEST_NS`] counts there and in [`Self::beyond`].
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.sum_ns += u128::from(latency_ns);
        if latency_ns > HIGHEST_NS {
            self.beyond += 1;
        }
        self.inner.saturating_record(latency_ns.min(HIGHEST_NS));
    }

    /// Adds all of `other`.
    ///
    /// # Panics
    /// Never: both sides have the same bounds.
    pub fn merge(&mut self, other: &Self) {
        self.inner.add(&other.inner).expect("histograms share one set of bounds");
        self.beyond += other.beyond;
        self.sum_ns += other.sum_ns;
    }

    pub fn clear(&mut self) {
        self.inner.reset();
        self.beyond = 0;
        self.sum_ns = 0;
    }

    pub fn count(&self) -> u64 {
        self.inner.len()
    }

    /// How many latencies were longer than [`HIGHEST_NS`].
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// The exact sum of all latencies, in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The mean in nanoseconds, exact; zero when empty.
    pub fn mean_ns(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum_ns as f64 / self.count() as f64 }
    }

    /// The latency below which the fraction `quantile` (0 to 1) of the samples lie.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.inner.value_at_quantile(quantile)
    }

    /// The longest latency, to the width of its bucket.
    pub fn max_ns(&self) -> u64 {
        self.inner.max()
    }

    /// The shortest latency, to the width of its bucket.
    pub fn min_ns(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.inner.min() }
    }

    /// Distribution-free interval of a quantile at 95 %: the order statistics
    /// n·q ± 1.96·√(n·q·(1−q)) (Conover, Practical Nonparametric Statistics, 3.2). It takes the
    /// samples as independent.
    pub fn quantile_interval_ns(&self, quantile: f64) -> (u64, u64) {
        let n = self.count() as f64;
        if n == 0.0 {
            return (0, 0);
        }
        let half = 1.96 * (n * quantile * (1.0 - quantile)).sqrt();
        let at = |rank: f64| self.quantile_ns((rank / n).clamp(0.0, 1.0));
        (at(n * quantile - half), at(n * quantile + half))
    }

    /// A quantile with its interval, over `duration_ns`.
    pub fn quantile(&self, quantile: f64, duration_ns: u64) -> Estimate {
        let value = self.quantile_ns(quantile) as f64;
        let (low, high) = self.quantile_interval_ns(quantile);
        let (low, high) = ((low as f64).min(value), (high as f64).max(value));
        Estimate { value, low, high, samples: self.count(), duration_ns }
    }

    /// Occupied buckets as (highest latency of the bucket in ns, count), in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.inner.iter_recorded().map(|b| (b.value_iterated_to(), b.count_since_last_iteration()))
    }

    /// The HdrHistogram V2 encoding.
    ///
    /// # Panics
    /// Never: writing to memory cannot fail.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.inner, &mut bytes)
            .expect("a histogram with constant bounds can be encoded into memory");
        bytes
    }

    /// Reads an HdrHistogram V2 encoding; `sum_ns` and `beyond` are kept beside it in a recording
    /// because the encoding itself rounds them away.
    ///
    /// # Errors
    /// When the bytes are no V2 encoding or have other bounds.
    pub fn decode(bytes: &[u8], sum_ns: u128, beyond: u64) -> Result<Self, DecodeError> {
        let mut cursor = bytes;
        let decoded: Histogram<u64> = Deserializer::new()
            .deserialize(&mut cursor)
            .map_err(|e| DecodeError { why: e.to_string() })?;
        let mut out = Self::new();
        out.inner.add(&decoded).map_err(|e| DecodeError { why: e.to_string() })?;
        out.sum_ns = sum_ns;
        out.beyond = beyond;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn error_is_at_most_one_percent(latency_ns in 1_u64..3_600_000_000_000) {
            let mut histogram = LatencyHistogram::new();
            histogram.record(latency_ns);
            let seen = histogram.quantile_ns(0.5) as f64;
            prop_assert!((seen - latency_ns as f64).abs() <= latency_ns as f64 * 0.01);
        }

        #[test]
        fn encoding_round_trips(values in proptest::collection::vec(0_u64..10_u64.pow(13), 0..50)) {
            let mut histogram = LatencyHistogram::new();
            for &v in &values {
                histogram.record(v);
            }
            let back = LatencyHistogram::decode(
                &histogram.encode(), histogram.sum_ns(), histogram.beyond());
            prop_assert_eq!(back.unwrap(), histogram);
        }
    }

    #[test]
    fn one_hour_is_not_clamped_and_three_are_counted() {
        let mut histogram = LatencyHistogram::new();
        histogram.record(3_600_000_000_000);
        assert_eq!(histogram.beyond(), 0);
        assert!(histogram.max_ns() >= 3_600_000_000_000);
        histogram.record(3 * 3_600_000_000_000);
        assert_eq!((histogram.count(), histogram.beyond()), (2, 1));
    }

    #[test]
    fn quantile_interval_holds_the_true_median() {
        let mut rng = crate::rng::Rng::new(5, 0);
        let mut hits = 0;
        for _ in 0..200 {
            let mut histogram = LatencyHistogram::new();
            (0..1000).for_each(|_| histogram.record(1_000_000 + rng.below(1_000_000)));
            let (low, high) = histogram.quantile_interval_ns(0.5);
            hits += u32::from(low <= 1_500_000 && 1_500_000 <= high);
        }
        assert!(hits >= 180, "{hits} of 200 intervals hold the median");
    }
}
