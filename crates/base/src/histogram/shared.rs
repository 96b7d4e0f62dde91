//! One histogram that many threads record into without waiting for each other.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{HIGHEST_NS, LatencyHistogram};

/// Values up to here have one bucket each; beyond, each doubling has half as many buckets.
const LINEAR: u64 = 256;
const HALF: usize = LINEAR as usize / 2;
const BUCKETS: usize = index(HIGHEST_NS) + 1;

/// Latencies that many threads record and one collects from time to time: a few nanoseconds per
/// latency, and 37 KiB however many threads there are. It has the buckets of [`LatencyHistogram`],
/// so nothing is lost in the conversion.
pub struct SharedHistogram {
    buckets: Box<[AtomicU64]>,
    beyond: AtomicU64,
    sum_ns: AtomicU64,
}

impl Default for SharedHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl SharedHistogram {
    pub fn new() -> Self {
        let buckets = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self { buckets, beyond: AtomicU64::new(0), sum_ns: AtomicU64::new(0) }
    }

    #[inline]
    pub fn record(&self, latency_ns: u64) {
        if latency_ns > HIGHEST_NS {
            self.beyond.fetch_add(1, Ordering::Relaxed);
        }
        self.buckets[index(latency_ns.min(HIGHEST_NS))].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(latency_ns, Ordering::Relaxed);
    }

    /// Returns what was recorded since the previous call. A latency that is recorded concurrently
    /// is in this result or the next, once.
    pub fn take(&self) -> LatencyHistogram {
        let mut taken = LatencyHistogram::new();
        for (index, bucket) in self.buckets.iter().enumerate() {
            if bucket.load(Ordering::Relaxed) > 0 {
                let count = bucket.swap(0, Ordering::Relaxed);
                taken.inner.saturating_record_n(lowest(index), count);
            }
        }
        taken.beyond = self.beyond.swap(0, Ordering::Relaxed);
        taken.sum_ns = self.sum_ns.swap(0, Ordering::Relaxed).into();
        taken
    }
}

impl fmt::Debug for SharedHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedHistogram").field("sum_ns", &self.sum_ns).finish_non_exhaustive()
    }
}

const fn index(value: u64) -> usize {
    if value < LINEAR {
        return value as usize;
    }
    let doublings = (value.ilog2() - LINEAR.ilog2() + 1) as usize;
    doublings * HALF + (value >> doublings) as usize
}

/// Returns the lowest value of a bucket.
const fn lowest(index: usize) -> u64 {
    if index < LINEAR as usize {
        return index as u64;
    }
    let doublings = (index - HALF) / HALF;
    ((index - doublings * HALF) as u64) << doublings
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn many_threads_lose_nothing_and_agree_with_one(
            values in proptest::collection::vec(0..3 * HIGHEST_NS, 1..200), small in 0_u64..100_000,
        ) {
            let values: Vec<u64> = values.into_iter().chain([0, small, 255, 256, 257]).collect();
            let (shared, mut alone) = (SharedHistogram::new(), LatencyHistogram::new());
            for &value in &values {
                alone.record(value);
            }
            std::thread::scope(|scope| {
                for half in values.chunks(values.len().div_ceil(2)) {
                    scope.spawn(|| half.iter().for_each(|&value| shared.record(value)));
                }
            });
            let taken = shared.take();
            prop_assert_eq!(taken.count(), alone.count());
            prop_assert_eq!((taken.sum_ns(), taken.beyond()), (alone.sum_ns(), alone.beyond()));
            let buckets: Vec<_> = taken.buckets().collect();
            prop_assert_eq!(buckets, alone.buckets().collect::<Vec<_>>());
            prop_assert_eq!(shared.take().count(), 0, "what was taken is gone");
        }
    }
}
