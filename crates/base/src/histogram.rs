//! Latency histograms: every I/O is recorded, the error is at most 1 %, nothing under one hour is
//! clamped, and the few durations beyond [`HIGHEST_NS`] are counted as such.

mod quantile;
mod shared;

use crate::hint::Hint;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

pub use quantile::{Buckets, least_samples};
pub use shared::SharedHistogram;

/// The highest latency that is recorded exactly, in nanoseconds: 2 hours.
pub const HIGHEST_NS: u64 = 7_200_000_000_000;

/// A histogram of nanoseconds with two significant digits (a bucket is at most 1/128 wide).
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyHistogram {
    inner: Histogram<u64>,
    beyond: u64,
    sum_ns: u128,
}

#[derive(Debug, thiserror::Error, Hint)]
#[error("decode histogram: {why}")]
#[hint("the bytes are not an HdrHistogram V2 encoding")]
pub struct DecodeError {
    why: String,
}

impl DecodeError {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into() }
    }
}

/// Checks the header, because the library trusts it: it allocates the memory that the header asks
/// for before it reads any counts. `buckets` is the maximum number of counts.
fn check_encoding(bytes: &[u8], buckets: usize) -> Result<(), &'static str> {
    const COOKIE: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();
    /// The longest count: we never write a run of zeros of this length.
    const COUNT_BYTES: usize = 9;
    let (head, counts) = bytes.split_at_checked(40).ok_or("it is shorter than its header")?;
    let bounds = [&1_u64.to_be_bytes()[..], &HIGHEST_NS.to_be_bytes(), &1_f64.to_be_bytes()];
    let ours = [&[0; 4][..], &2_u32.to_be_bytes(), &bounds.concat()].concat();
    if head[..4] != COOKIE {
        return Err("it is of another kind");
    }
    if head[8..] != ours {
        return Err("its bounds are not Blockstone's");
    }
    if head[4..8] != (counts.len() as u32).to_be_bytes() || counts.len() > buckets * COUNT_BYTES {
        return Err("its length is not that of its counts");
    }
    if counts.windows(COUNT_BYTES).any(|bytes| bytes == [0xff; COUNT_BYTES]) {
        return Err("a run of zeros is too long");
    }
    Ok(())
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// Returns an empty histogram, about 40 KiB.
    ///
    /// # Panics
    /// Never: the bounds are constants that the library accepts.
    pub fn new() -> Self {
        let inner = Histogram::new_with_bounds(1, HIGHEST_NS, 2)
            .expect("constant bounds are within what HdrHistogram accepts");
        Self { inner, beyond: 0, sum_ns: 0 }
    }

    /// Records one latency. One longer than [`HIGHEST_NS`] counts there and in [`Self::beyond`].
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

    /// Returns how many latencies were longer than [`HIGHEST_NS`].
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns the exact sum of all latencies, in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Returns the exact mean in nanoseconds; zero if empty.
    pub fn mean_ns(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum_ns as f64 / self.count() as f64 }
    }

    /// Returns the latency below which the fraction `quantile` (0 to 1) of the samples lie.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.inner.value_at_quantile(quantile)
    }

    /// Returns the longest latency, to the width of its bucket.
    pub fn max_ns(&self) -> u64 {
        self.inner.max()
    }

    /// Returns the shortest latency, to the width of its bucket.
    pub fn min_ns(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.inner.min() }
    }

    /// Returns occupied buckets as (highest latency of the bucket in ns, count), in ascending
    /// order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.inner.iter_recorded().map(|b| (b.value_iterated_to(), b.count_since_last_iteration()))
    }

    /// Returns the histogram with these [`Self::buckets`] and this sum of latencies.
    pub fn of_buckets(buckets: impl IntoIterator<Item = (u64, u64)>, sum_ns: u128) -> Self {
        let mut out = Self { sum_ns, ..Self::new() };
        for (ns, count) in buckets {
            out.inner.saturating_record_n(ns.min(HIGHEST_NS), count);
        }
        out
    }

    /// Returns the HdrHistogram V2 encoding.
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

    /// Reads an HdrHistogram V2 encoding; a recording stores `sum_ns` and `beyond` next to it
    /// because the encoding itself rounds them away. Fails if the bytes are not a V2 encoding or
    /// have other bounds.
    pub fn decode(bytes: &[u8], sum_ns: u128, beyond: u64) -> Result<Self, DecodeError> {
        let mut out = Self::new();
        check_encoding(bytes, out.inner.distinct_values()).map_err(DecodeError::new)?;
        let mut cursor = bytes;
        let decoded: Histogram<u64> = Deserializer::new()
            .deserialize(&mut cursor)
            .map_err(|e| DecodeError::new(e.to_string()))?;
        // Sums that exceed 64 bits saturate.
        if decoded.len() == u64::MAX {
            return Err(DecodeError::new("its counts are too high"));
        }
        out.inner.add(&decoded).map_err(|e| DecodeError::new(e.to_string()))?;
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
    fn buckets_make_the_same_histogram() {
        let mut histogram = LatencyHistogram::new();
        for ns in [1, 77, 77, 1_234_567, 3_600_000_000_000] {
            histogram.record(ns);
        }
        let back = LatencyHistogram::of_buckets(histogram.buckets(), histogram.sum_ns());
        for share in [0.0, 0.2, 0.5, 0.7, 0.9, 1.0] {
            assert_eq!(back.quantile_ns(share), histogram.quantile_ns(share));
        }
        let of = |it: &LatencyHistogram| (it.count(), it.max_ns(), it.sum_ns());
        assert_eq!(of(&back), of(&histogram));
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
}
