//! What the user asked for.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::RunDir;
use blockstone_target::{Io, Redundancy, TornProtection};
use blockstone_workload::Wanted;
use blockstone_workload::noise::NoiseMode;

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where the target keeps its data.
    pub disks: Vec<DiskSetting>,
    /// Block devices among them, named a second time: their content may be destroyed.
    pub destroy: Vec<PathBuf>,
    /// The target: its name in the registry, and its address if it has one, `name:address`.
    pub target: String,
    pub target_settings: Vec<(String, String)>,
    pub programs: Option<PathBuf>,
    /// What is sent; options not given get defaults that suit the storage.
    pub wanted: Wanted,
    /// How long a window is, where no number of loops ends it.
    pub run_time: Nanos,
    /// Transactions of order entry in place of single statements.
    pub order_entry: bool,
    /// Tables made of existing rows in place of single statements.
    pub bulk_write: bool,
    /// The direct-path matrix in place of what is wanted.
    pub scan: Option<ScanMatrix>,
    /// Noise writers, in a second window.
    pub noise: Option<NoiseSetting>,
    pub block: Bytes,
    pub cache: Bytes,
    /// The most page cache of the database.
    pub page_cache: Option<Bytes>,
    /// How the database reads and writes its files; none leaves that to the target.
    pub io: Option<Io>,
    pub database_writers: u32,
    pub redundancy: Redundancy,
    pub allocation_unit: Bytes,
    pub torn_protection: TornProtection,
    /// Size of each redo log; none derives it from the size of the data.
    pub redo: Option<Bytes>,
    /// Speed of the link to the storage; none asks the kernel.
    pub link_mb_per_s: Option<f64>,
    pub keep: bool,
    /// Open what was kept even when damage has lost commits of it.
    pub accept_loss: bool,
    /// Seed of all random choices and data, unless `wanted` has one.
    pub seed: u64,
    pub argv: Vec<String>,
    /// Where the recording goes: a directory that does not exist or is empty.
    pub recording: RunDir,
}

/// Noise beside the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseSetting {
    pub writers: u32,
    pub mode: NoiseMode,
    /// What each writer goes through; none lets the free space decide.
    pub area: Option<Bytes>,
    pub write: Bytes,
}

/// Sessions that share one scan: every size of read with every number of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanMatrix {
    /// Blocks of a read; none measures the usual ones.
    pub multiblock: Option<Vec<u32>>,
    pub parallel: Vec<u32>,
    /// Reads that each session keeps outstanding, past the buffer cache; none keeps the usual.
    pub slots: Option<u32>,
    /// Processor time that evaluating a row takes, past the buffer cache; there is one in a block.
    pub row_cost: Option<Nanos>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSetting {
    /// A directory, in which a file is made, or a block device.
    pub path: PathBuf,
    /// Disks that fail together; none makes each disk a group of its own.
    pub failure_group: Option<String>,
}
