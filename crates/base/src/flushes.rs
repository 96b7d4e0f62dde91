//! Flush times by the amount written before the flush. A volatile cache has to write that amount
//! out, which takes longer the more there is.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::{self, Estimate};
use crate::units::Bytes;

/// One flush and the amount written before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flush {
    pub unflushed_bytes: u64,
    pub flush_ns: u64,
}

/// Flush times by the amount written before the flush.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlushSlope {
    /// One entry for each number of bytes, ascending.
    pub sizes: Vec<FlushTime>,
    /// Additional nanoseconds per flush for each mebibyte written before it.
    pub ns_per_mib: Estimate,
}

/// Flushes after the same number of bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlushTime {
    /// Bytes written before each flush, past the page cache.
    pub unflushed_bytes: u64,
    /// Median flush time in nanoseconds.
    pub flush_ns_p50: Estimate,
    /// Shortest flush time in nanoseconds.
    pub flush_ns_min: u64,
    /// Longest flush time in nanoseconds.
    pub flush_ns_max: u64,
}

/// Fewest flushes after each number of bytes: with fewer, the median has no interval.
const ENOUGH: usize = 6;

/// Computes the slope; `None` with too few flushes.
pub fn slope(flushes: &[Flush]) -> Option<FlushSlope> {
    let mut by_size: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for flush in flushes {
        by_size.entry(flush.unflushed_bytes).or_default().push(flush.flush_ns);
    }
    if by_size.values().any(|times| times.len() < ENOUGH) {
        return None;
    }
    let times = by_size.iter().filter_map(|(&unflushed_bytes, times)| {
        let numbers: Vec<f64> = times.iter().map(|&ns| ns as f64).collect();
        Some(FlushTime {
            unflushed_bytes,
            flush_ns_p50: stats::median_of(&numbers)?,
            flush_ns_min: times.iter().copied().min()?,
            flush_ns_max: times.iter().copied().max()?,
        })
    });
    let mebibytes = |bytes: u64| bytes as f64 / Bytes::mib(1).get() as f64;
    let points: Vec<(f64, f64)> = flushes
        .iter()
        .map(|flush| (mebibytes(flush.unflushed_bytes), flush.flush_ns as f64))
        .collect();
    Some(FlushSlope { sizes: times.collect(), ns_per_mib: stats::slope(&points)? })
}

impl FlushSlope {
    /// Returns the flushes after the fewest and after the most bytes.
    pub fn ends(&self) -> Option<(&FlushTime, &FlushTime)> {
        self.sizes.first().zip(self.sizes.last())
    }

    /// Returns by how much longer the median flush takes after the most bytes than after the
    /// fewest, if it certainly does.
    pub fn grows_by_ns(&self) -> Option<f64> {
        let (least, most) = self.ends()?;
        let more_ns = most.flush_ns_p50.value - least.flush_ns_p50.value;
        (self.ns_per_mib.low > 0.0 && more_ns > 0.0).then_some(more_ns)
    }
}
