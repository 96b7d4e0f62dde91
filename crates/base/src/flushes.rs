//! How long flushes take by what was written before them. A cache that is volatile has to write
//! that out, which takes the longer the more it is.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::{self, Estimate};
use crate::units::Bytes;

/// One flush and what was written before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flush {
    pub unflushed_bytes: u64,
    pub flush_ns: u64,
}

/// How long flushes take by what was written before them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlushSlope {
    /// One for each number of bytes, ascending.
    pub sizes: Vec<FlushTime>,
    /// Nanoseconds by which a flush takes longer for each mebibyte written before it.
    pub ns_per_mib: Estimate,
}

/// Flushes after as many bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlushTime {
    /// Bytes written before each, past the page cache.
    pub unflushed_bytes: u64,
    /// Median time of a flush.
    pub flush_ns_p50: Estimate,
    /// The shortest.
    pub flush_ns_min: u64,
    /// The longest.
    pub flush_ns_max: u64,
}

/// Fewest flushes after each number of bytes, below which no median has an interval.
const ENOUGH: usize = 6;

/// `None` with too few flushes.
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
    /// Flushes after the fewest and after the most bytes.
    pub fn ends(&self) -> Option<(&FlushTime, &FlushTime)> {
        self.sizes.first().zip(self.sizes.last())
    }

    /// By how much the median flush takes longer after the most bytes than after the fewest, where
    /// it is certain that it does.
    pub fn grows_by_ns(&self) -> Option<f64> {
        let (least, most) = self.ends()?;
        let more_ns = most.flush_ns_p50.value - least.flush_ns_p50.value;
        (self.ns_per_mib.low > 0.0 && more_ns > 0.0).then_some(more_ns)
    }
}
