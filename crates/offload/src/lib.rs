//! The real savings of storage that filters rows: a ledger of bytes, and the balance of cells,
//! links and hosts.
//!
//! [`counters`] reads tables of counters; a [`Ledger`] accounts for the bytes of one run. A
//! [`model`] predicts throughput by number of hosts, and the part that limits it; [`fit`] estimates
//! its rates from measured runs. The crate does no I/O and reads no clock.
//!
//! ```
//! use blockstone_offload::{Unit, counters};
//!
//! let csv = "run,time,instance,statistic,value\n\
//!     scan,0,1,physical read total bytes,0\n\
//!     scan,0,1,cell physical IO bytes eligible for predicate offload,0\n\
//!     scan,0,1,cell physical IO interconnect bytes,0\n\
//!     scan,10,1,physical read total bytes,1000\n\
//!     scan,10,1,cell physical IO bytes eligible for predicate offload,900\n\
//!     scan,10,1,cell physical IO interconnect bytes,109\n";
//! let read = counters::read(csv, Unit::Bytes)?;
//! let scan = &read.ledgers[0];
//! assert_eq!((scan.seconds, scan.not_eligible_bytes()), (Some(10.0), Some(100)));
//! # Ok::<(), blockstone_offload::CountersError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod assign;
pub mod counters;
mod error;
pub mod fit;
pub mod ledger;
mod listing;
pub mod model;
mod snapshot;
mod statistics;
mod unit;

pub use assign::{Assigned, Candidate, Share};
pub use counters::Counters;
pub use error::CountersError;
pub use ledger::{Copies, Ledger, Refusal};
pub use statistics::of_statistics;
pub use unit::Unit;
