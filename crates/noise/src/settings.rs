//! What the user asked for, with every default filled in.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::RunDir;
use blockstone_workload::noise::NoiseMode;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Directories, in each of which a file is made, and devices.
    pub places: Vec<PathBuf>,
    /// Devices among them, named a second time: their content may be destroyed.
    pub destroy: Vec<PathBuf>,
    pub mode: NoiseMode,
    pub writers: u32,
    /// What each writer goes through.
    pub area: Bytes,
    pub write: Bytes,
    /// How long it takes in all, without laying the areas out; none until a signal.
    pub duration: Option<Nanos>,
    /// The length of a phase, where those without and with noise take turns.
    pub phase: Option<Nanos>,
    /// The address of a database that is watched too.
    pub database: Option<String>,
    pub seed: u64,
    pub argv: Vec<String>,
    /// Where the recording goes: a directory that does not exist or is empty.
    pub recording: RunDir,
}
