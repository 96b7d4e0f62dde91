//! Submits block I/O and times every operation: engines behind one small trait, the loop that
//! drives them from many threads, pacing, and block content that is verified on reading.
//!
//! This crate knows nothing of phases, recordings, verdicts or terminals: it is given a [`Load`],
//! runs it, and returns counters and histograms. Time comes from the engine, so that the simulated
//! engine can control it.
//!
//! The main types are [`Load`] and the [`Running`] that [`start`] returns.
//!
//! ```
//! use std::time::Duration;
//! use blockstone_base::{Access, LoadSpec, Op, Pacing};
//! use blockstone_engine::{Length, Load, Medium, start};
//!
//! let spec = LoadSpec {
//!     engine: "null".into(),
//!     op: Op::Read,
//!     read_pct: None,
//!     access: Access::Random,
//!     block_bytes: 8192,
//!     workers: 2,
//!     depth_per_worker: 1,
//!     span_bytes: 1 << 20,
//!     offset_bytes: 0,
//!     sync: None,
//!     flush_alone: false,
//!     direct: true,
//!     pacing: Pacing::Closed,
//!     seed: 1,
//! };
//! let load = Load { length: Length::Operations(1000), ..Load::new(spec, Medium::Nothing) };
//! let outcome = start(load)?.wait(Duration::from_secs(5));
//! assert_eq!(outcome.totals.completed_ops, 2000);
//! # Ok::<(), blockstone_engine::EngineError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod content;
mod disk;
mod driver;
mod engine;
mod ledger;
mod load;
pub mod null;
mod operations;
pub mod pacing;
mod pattern;
pub mod psync;
pub mod registry;
mod request;
pub mod sim;
pub mod stamp;
pub mod stream;
pub mod stripes;
pub mod uring;
mod worker;

pub use content::{Check, Content, Mismatch, NoContent, Stamped};
pub use driver::{Outcome, Running, start};
pub use engine::{Engine, EngineError, Medium, Setup};
pub use ledger::{Share, TimedHistogram, Totals};
pub use load::{Length, Load};
pub use request::{Completion, Request, RequestOp, Wait};
pub use sim::{SimDisk, SimSpec};
pub use stripes::Stripes;
