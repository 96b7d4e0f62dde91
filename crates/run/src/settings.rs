//! The user's settings.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::RunDir;
use blockstone_servers::{Io, Redundancy, TornProtection};
use blockstone_workload::Wanted;
use blockstone_workload::noise::NoiseMode;

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Disks on which the target keeps its data.
    pub disks: Vec<DiskSetting>,
    /// Block devices among them, named a second time: their content may be destroyed.
    pub destroy: Vec<PathBuf>,
    /// The target: its name in the registry, and its address if it has one, `name:address`.
    pub target: String,
    pub target_settings: Vec<(String, String)>,
    pub programs: Option<PathBuf>,
    /// Requested parameters; those not given get defaults that suit the storage.
    pub wanted: Wanted,
    /// Length of a window, unless a number of loops ends it.
    pub run_time: Nanos,
    /// Whether to send transactions of order entry instead of single statements.
    pub order_entry: bool,
    /// Whether to create tables from existing rows instead of sending single statements.
    pub bulk_write: bool,
    /// The direct-path matrix to measure instead of `wanted`.
    pub scan: Option<ScanMatrix>,
    /// Noise writers, in a second window.
    pub noise: Option<NoiseSetting>,
    pub block: Bytes,
    pub cache: Bytes,
    /// Upper bound on the database's page cache.
    pub page_cache: Option<Bytes>,
    /// How the database reads and writes its files; `None` leaves that to the target.
    pub io: Option<Io>,
    pub database_writers: u32,
    pub redundancy: Redundancy,
    pub allocation_unit: Bytes,
    pub torn_protection: TornProtection,
    /// Size of each redo log; `None` derives it from the size of the data.
    pub redo: Option<Bytes>,
    /// Speed of the link to the storage in MB/s; `None` asks the kernel.
    pub link_mb_per_s: Option<f64>,
    pub keep: bool,
    /// Whether to open kept data even if damage has lost some of its commits.
    pub accept_loss: bool,
    /// Seed of all random choices and data, unless `wanted` has one.
    pub seed: u64,
    pub argv: Vec<String>,
    /// Directory of the recording, which must be empty or not exist.
    pub recording: RunDir,
}

/// Noise alongside the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseSetting {
    pub writers: u32,
    pub mode: NoiseMode,
    /// Area that each writer cycles through; `None` derives it from the free space.
    pub area: Option<Bytes>,
    pub write: Bytes,
}

/// Sessions that share one scan: every read size with every number of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanMatrix {
    /// Blocks per read; `None` measures the default sizes.
    pub multiblock: Option<Vec<u32>>,
    pub parallel: Vec<u32>,
    /// Reads that each session keeps outstanding, past the buffer cache; `None` uses the default.
    pub slots: Option<u32>,
    /// Processor time for evaluating a row, past the buffer cache; a block has one row.
    pub row_cost: Option<Nanos>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSetting {
    /// A directory, in which a file is created, or a block device.
    pub path: PathBuf,
    /// Name shared by disks that fail together; `None` makes each disk its own group.
    pub failure_group: Option<String>,
}
