//! Targets of a workload: databases, real or miniature, with schemas of rows, one row per block,
//! and sessions that select, update and scan them.
//!
//! A [`Target`] is opened from a [`TargetSpec`] through the [`registry`], filled with
//! [`Target::load`], and accessed by [`TargetSession`]s, one per thread. It reports its work as
//! cumulative counters in the series of [`blockstone_base::database`]. It knows nothing of
//! schedules, windows or recordings.
//!
//! A database with other users is only monitored: see [`monitor`].
//!
//! To add a target: one file, one line in `registry.rs`; the contract suite then runs on it.
//!
//! ```
//! use std::ops::ControlFlow;
//! use blockstone_servers::{Operation, TargetSpec, registry};
//!
//! let spec = TargetSpec { schemas: 2, rows: 1000, ..TargetSpec::default() };
//! let go_on = &mut |_| ControlFlow::Continue(());
//! let target = (registry::find("null")?.open)(&spec, go_on)?;
//! target.load(go_on)?;
//! let mut session = target.session(0)?;
//! let executed = session.execute(&Operation::Select { schema: 1, first_key: 10, rows: 64 })?;
//! assert_eq!(executed.rows, 64);
//! # drop(session);
//! # target.shutdown()?;
//! # Ok::<(), blockstone_servers::TargetError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod cells;
pub mod family;
mod instance;
pub mod live;
mod mariadb;
pub mod monitor;
mod null;
mod options;
mod postgres;
pub mod registry;
mod spec;
mod sql;
mod sqlite;
pub mod subset;
mod target;
mod unmeasured;

pub use blockstone_instance::{RedoStress, SCAN_READ_MAX};
pub use family::IoRefused;
pub use options::{DatabaseOptions, Io, Redundancy, TornProtection, one_of};
pub use spec::{Kept, Place, TargetSpec};
pub use sql::Member;
pub use sql::border::without_panics;
pub use sql::error::SqlError;
pub use sql::host::without_password;
pub use sql::password;
pub use sql::patience::hang_up;
pub use sql::server::SCRATCH;
pub use target::{
    Canceller, Demand, Description, DirectScan, Executed, Latencies, Loading, Operation, Progress,
    ReadSize, ScanHow, Scans, Statement, TableStep, Target, TargetError, TargetSession, unless,
};
