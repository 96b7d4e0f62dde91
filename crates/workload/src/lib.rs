//! The workload sent to a database: the SLOB method, trivial statements at the most physical I/O a
//! processor can drive. After Kevin Closson's SLOB, whose parameters keep their names here.
//!
//! [`Parameters`] describe what is sent, [`Schedule`] turns them and a seed into each session's
//! operations, [`start`] runs the sessions on any [`Target`](blockstone_servers::Target), and
//! [`noise`] writes alongside them. This crate knows no target by name and records nothing: the
//! caller reads its counters.
//!
//! ```
//! use blockstone_workload::{Parameters, Schedule};
//!
//! let rows_per_schema = 10_000;
//! let parameters = Parameters { update_pct: 25, rows_per_schema, ..Parameters::default() };
//! let updates = Schedule::new(&parameters, 0).take(100).filter(|step| step.updates()).count();
//! assert_eq!(updates, 25);
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod conf;
mod counters;
pub mod noise;
pub mod order_entry;
mod parameters;
mod run;
mod schedule;
mod session;
mod wanted;

pub use counters::{KINDS, KindTotals, SessionLatencies, Totals};
pub use parameters::{Every, Hotspot, ParameterError, Parameters, Population, Scale, Think};
pub use run::{Outcome, Running, WorkloadError, start};
pub use schedule::{Schedule, Step, Work, checksum};
pub use wanted::{Defaults, HotspotWanted, Wanted};
