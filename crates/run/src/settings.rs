//! The user's settings: options from the command line, and everything around them.

use std::path::PathBuf;

use blockstone_base::units::Nanos;
use blockstone_measure::RankSettings;
use blockstone_record::RunDir;
use blockstone_servers::DatabaseOptions;
use blockstone_workload::Wanted;

mod options;

pub use options::{FormOptions, Noise, Profile, StorageOptions};

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
    pub form: FormOptions,
    /// Requested parameters; those not given get defaults that suit the storage.
    pub wanted: Wanted,
    pub database: DatabaseOptions,
    pub storage: StorageOptions,
    /// Seed of all random choices and data, unless `wanted` has one.
    pub seed: u64,
    /// Place of this process among several that apply the load together.
    pub rank: Option<RankSettings>,
    pub argv: Vec<String>,
    /// Directory of the recording, which must be empty or not exist.
    pub recording: RunDir,
}

impl Settings {
    /// Returns the length of a window, unless a number of loops ends it.
    pub fn run_time(&self) -> Nanos {
        self.wanted.run_time_ns.unwrap_or(self.form.run_time())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSetting {
    /// A directory, in which a file is created, or a block device.
    pub path: PathBuf,
    /// Name shared by disks that fail together; `None` makes each disk its own group.
    pub failure_group: Option<String>,
}
