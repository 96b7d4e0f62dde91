//! What is watched, and how.

use std::path::PathBuf;

use blockstone_base::units::Nanos;
use blockstone_probe::Roles;

#[derive(Clone, Debug)]
pub struct Settings {
    /// The command line, for the manifest.
    pub argv: Vec<String>,
    /// Time between two ticks.
    pub interval: Nanos,
    /// How much of the past is kept in memory.
    pub keep: Nanos,
    /// Which processes are watched, and as what.
    pub roles: Roles,
    /// Where it is recorded, if it is.
    pub record: Option<Destination>,
    /// The address of a database that is watched too.
    pub database: Option<String>,
    /// Time between two samples of its sessions.
    pub samples: Nanos,
    /// How far the kernel is asked to count I/O by role and file.
    pub kernel: Kernel,
    /// Samples a second of what each processor executes; none at all without.
    pub profile_per_second: Option<u32>,
}

/// How far the kernel is asked to count I/O by role and file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Not at all.
    Off,
    /// Requests to devices.
    Requests,
    /// These and the system calls of the watched processes.
    Calls,
}

/// Where a recording goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// A directory that does not exist or is empty.
    pub dir: PathBuf,
    /// The identity that it was given.
    pub id: String,
}
