//! Ground truth for tests: devices of known limits, files that mislead in a known way, and a count
//! of the tests that a machine could not run.
//!
//! The crate knows nothing of how Blockstone measures: it sets up the environment to be measured
//! and runs the built binary in it. The main types are [`LoopDevice`] (a disk with a cap that the
//! kernel enforces exactly) and [`Need`] (a requirement of a test on the machine). Everything it
//! creates is removed when it goes out of scope, and remains of a killed run at the next use.
//!
//! ```no_run
//! use blockstone_base::Bytes;
//! use blockstone_testkit::{Caps, DeviceSpec, FileSystem, LoopDevice, blockstone_binary, run};
//!
//! # fn main() -> Result<(), blockstone_testkit::TestkitError> {
//! let device = LoopDevice::create(DeviceSpec {
//!     size: Bytes::gib(1),
//!     file_system: Some(FileSystem::Xfs),
//!     caps: Caps { read_iops: Some(437), ..Caps::default() },
//! })?;
//! let mount_point = device.mount_point().expect("a file system was asked for");
//! let ran = run(device.command(blockstone_binary()).arg("calibrate").arg(mount_point));
//! assert_eq!(ran.code, Some(0));
//! # Ok(())
//! # }
//! ```

#![allow(clippy::missing_errors_doc, reason = "the variants of TestkitError say how each can fail")]

pub mod browser;

mod array;
mod attacker;
mod binary;
mod device;
mod error;
mod faulty;
mod file;
mod fuse;
mod guest;
mod hog;
mod lease;
mod mariadb_server;
mod need;
mod nfs;
mod postgres;
mod postgres_server;
mod sleeper;
mod throttle;
mod tool;
mod tree;
mod victims;
mod volatile;
mod zram;

pub use array::DiskArray;
pub use attacker::{Attacker, Bait, Play, Played, STRANGER};
pub use binary::{Ran, blockstone_binary, build, build_as_tested, run};
pub use device::{Backing, DeviceSpec, FileSystem, LoopDevice};
pub use error::TestkitError;
pub use faulty::{Fault, Request};
pub use file::{FileKind, ScratchDir};
pub use fuse::{FuseCache, FuseMounts, FusePages};
pub use guest::{GUEST_KERNEL, GUEST_PROGRAMS, Guest, GuestDisk, Hardware, Power, guest_home};
pub use hog::CpuHog;
pub use lease::unmount;
pub use mariadb_server::MariadbServer;
pub use need::{
    FAST_VARIABLE, Need, REQUIRE_VARIABLE, SKIP_LOG_VARIABLE, TIME_LOG_VARIABLE, allowed,
    note_time, skip, skipped_without,
};
pub use nfs::NfsServer;
pub use postgres::{POSTGRES_VERSIONS, PostgresVersion, postgres_programs};
pub use postgres_server::PostgresServer;
pub use sleeper::Sleeper;
pub use throttle::Caps;
pub use tree::lay_out;
pub use victims::{CANARY, Victims, leaked};
pub use volatile::{VolatileDevice, WriteCache};
pub use zram::ZramDevice;
