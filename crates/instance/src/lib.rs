//! The miniature database instance: the work that a database does around an I/O, and nothing else.
//! Disk group, blocks, buffer cache, foreground sessions, database writer, log writer, checkpoint,
//! recovery, and the waits of all of them.
//!
//! This crate knows nothing of workloads, recordings or terminals: callers tell sessions which rows
//! to visit, and counters are cumulative. Disks are files or devices; recovery is tested on disks
//! that lose power (`testing`).
//!
//! The main types are [`Instance`] and [`Session`], in a [`group::DiskGroup`].
//!
//! ```
//! use blockstone_base::Bytes;
//! use blockstone_instance::group::{DiskGroup, DiskSpec, GroupSpec, Redundancy, unwatched};
//! use blockstone_instance::{Instance, InstanceSpec, OpenSpec, RedoStress};
//!
//! let dir = tempfile::tempdir()?;
//! let spec = InstanceSpec {
//!     block: Bytes::kib(8),
//!     schemas: 1,
//!     rows: 1000,
//!     scan_blocks: 0,
//!     redo_logs: 2,
//!     redo: Bytes::mib(1),
//!     seed: 42,
//!     random_percent: 100,
//! };
//! let disks = GroupSpec {
//!     disks: vec![DiskSpec::from(dir.path().to_owned())],
//!     redundancy: Redundancy::External,
//!     allocation_unit: Bytes::mib(1),
//!     direct: false,
//! };
//! let group = DiskGroup::create(&disks, &spec.files()?, &unwatched)?;
//! Instance::create(&spec, &group)?;
//! let small = OpenSpec { cache: Bytes::mib(1), ..OpenSpec::default() };
//! let instance = Instance::open(&group, &small)?;
//! instance.load(1, &mut |_, _| {})?;
//!
//! let mut session = instance.session(0)?;
//! assert_eq!(session.select(0, 100, 64)?, 64);
//! session.update(0, 100, 64, RedoStress::Lite)?;
//! session.commit()?;
//! instance.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod block;
mod cache;
mod checkpoint;
mod control;
pub mod disk;
mod error;
mod files;
pub mod group;
mod health;
mod instance;
mod keeper;
mod layout;
mod log_writer;
mod planted;
mod recovery;
pub mod redo;
mod session;
mod shared;
mod spec;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod turn;
mod verify;
pub mod wait;
mod writer;

pub use error::InstanceError;
pub use instance::{Instance, LoadProgress, Process, Snapshot};
pub use layout::Permutation;
pub use recovery::{LostRedo, Recovery};
pub use redo::Lsn;
pub use session::{RedoStress, Row, SCAN_READ_MAX, Scan, Session};
pub use spec::{InstanceSpec, OpenSpec, TornProtection, WRITERS_MAX};
