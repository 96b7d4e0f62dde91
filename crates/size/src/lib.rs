//! Sizing: from the measured load to the hardware that it needs.
//!
//! [`observations`] come from a history, whatever its source. [`databases`] groups them into
//! snapshots, over all instances; a [`Need`] holds their percentiles; [`hardware`] compares the
//! need with the capacity of units of hardware, and names the ceiling that binds.
//!
//! This crate must not know any I/O, clock or thread, or how a need is shown.
//!
//! ```
//! use blockstone_size::{Observation, Question, databases, need::Need};
//!
//! let hour = |hour: u32| Observation {
//!     begin_s: f64::from(hour) * 3_600.0,
//!     seconds: 3_600.0,
//!     reads_per_s: Some(f64::from(hour)),
//!     writes_per_s: Some(100.0),
//!     ..Observation::default()
//! };
//! let observed: Vec<Observation> = (0..48).map(hour).collect();
//! let question = Question { penalty: 2.0, filter: Default::default() };
//! let need = Need::of(&databases(&observed), &question).unwrap();
//! assert_eq!(need.hardware_iops.max, Some(247.0));
//! let p95 = need.hardware_iops.p95.unwrap();
//! assert!((p95.value - 244.65).abs() < 1e-9 && p95.is_open_above());
//! assert!(need.hardware_iops.p99.is_none(), "of two days of hours");
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod cluster;
pub mod consolidation;
pub mod growth;
pub mod hardware;
pub mod hours;
pub mod need;
pub mod observation;
pub mod percentile;

pub use cluster::{Database, Snapshot, databases};
pub use consolidation::Consolidation;
pub use need::{Need, Question};
pub use observation::{LeftOut, Observation, Source, left_out, observations};
pub use percentile::Percentiles;
