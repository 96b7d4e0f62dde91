//! The user's settings, with every default filled in.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::RunDir;
use blockstone_workload::noise::NoiseMode;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Devices, and directories in which a file is created.
    pub places: Vec<PathBuf>,
    /// Those of the devices that were named a second time: their content may be destroyed.
    pub destroy: Vec<PathBuf>,
    pub mode: NoiseMode,
    pub writers: u32,
    /// Size of the area that each writer cycles through.
    pub area: Bytes,
    pub write: Bytes,
    /// Total length, not counting the layout of the areas; `None` to run until a signal.
    pub duration: Option<Nanos>,
    /// Length of a phase, if phases without and with noise alternate.
    pub phase: Option<Nanos>,
    /// Address of a database that is watched too.
    pub database: Option<String>,
    pub seed: u64,
    pub argv: Vec<String>,
    /// Directory of the recording, which must be empty or not exist.
    pub recording: RunDir,
}
