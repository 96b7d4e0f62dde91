//! The vocabulary of Blockstone: quantities, clocks, random numbers, distributions, latency
//! histograms, estimates with their confidence, capabilities and verdicts.
//!
//! Pure: this crate performs no I/O, knows no operating system and no file format. Every other
//! crate speaks in its types, so that a rate is always a rate, a byte always a byte, and a number
//! never travels without the sample it came from.
//!
//! ```
//! use blockstone_base::{units::Bytes, stats};
//!
//! let block: Bytes = "8K".parse().unwrap();
//! assert_eq!(block.get(), 8192);
//!
//! // 1,000 completions a second, seen at ten ticks: the rate comes with its interval.
//! let ticks: Vec<(u64, u64)> = (0..=10).map(|i| (i * 100_000_000, i * 100)).collect();
//! let rate = stats::rate_per_s(&ticks).unwrap();
//! assert!((rate.value - 1000.0).abs() < 1e-6);
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

extern crate self as blockstone_base;

pub mod capability;
pub mod clock;
pub mod column;
pub mod csv;
pub mod database;
mod declare;
pub mod dist;
pub mod flushes;
pub mod hint;
pub mod histogram;
pub mod identity;
pub mod link;
pub mod load;
pub mod rng;
pub mod rule;
pub mod stats;
pub mod table;
pub mod text;
pub mod units;
pub mod verdict;

pub use capability::Capability;
pub use column::{Column, Kind, Schema, Unit};
pub use histogram::LatencyHistogram;
pub use load::{Access, LoadSpec, Op, Pacing, SyncMethod};
pub use stats::Estimate;
pub use table::{Heading, Known, Measure, Merge, Missing, Row, Shape, Table, Value};
pub use units::{Bytes, Nanos};
pub use verdict::{Outcome, Verdict, Weight};
