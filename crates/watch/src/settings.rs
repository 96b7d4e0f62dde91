//! Settings of a watch.

use std::path::PathBuf;

use blockstone_base::units::Nanos;
use blockstone_probe::Roles;
use blockstone_probe::active_set::Device;

#[derive(Clone, Debug)]
pub struct Settings {
    pub argv: Vec<String>,
    pub interval: Nanos,
    /// Length of the history kept in memory.
    pub keep: Nanos,
    pub roles: Roles,
    pub record: Option<Destination>,
    /// The addresses of databases.
    pub databases: Vec<String>,
    /// Time between two samples of their sessions.
    pub samples: Nanos,
    pub kernel: Kernel,
    /// Samples per second of the code that each processor executes; `None` turns sampling off.
    pub profile_per_second: Option<u32>,
    /// Devices whose active data set is tracked; `None` for off, an empty list for all devices.
    pub active_set: Option<Vec<Device>>,
}

/// Kernel counts by role and file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    Off,
    Requests,
    /// Requests to devices, and system calls of the watched processes.
    Calls,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// A directory that does not exist or is empty.
    pub dir: PathBuf,
    pub id: String,
    /// Length of the past that stays in the recording; `None` keeps all.
    pub keep: Option<Nanos>,
}
