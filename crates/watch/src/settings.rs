//! The user's settings: options from the command line, and what their addresses and paths name.

use std::path::PathBuf;

use blockstone_base::units::Nanos;
use blockstone_probe::active_set::Device;

use crate::options::WatchOptions;

#[derive(Clone, Debug)]
pub struct Settings {
    pub options: WatchOptions,
    pub argv: Vec<String>,
    /// Length of the history kept in memory.
    pub history: Nanos,
    /// Recording of `--record`.
    pub record: Option<Destination>,
    /// Addresses of the databases of `--db`: of a run, where it can be reached.
    pub databases: Vec<String>,
    /// Whether the view `who` is wanted: all processes count, also if databases are watched, and
    /// what the kernel charges to them is read where I/O is not counted.
    pub who: bool,
    /// Devices of `--active-set`, whose active data set is tracked; `None` for off, an empty list
    /// for all devices.
    pub active_set: Option<Vec<Device>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// A directory that does not exist or is empty.
    pub dir: PathBuf,
    pub id: String,
}
