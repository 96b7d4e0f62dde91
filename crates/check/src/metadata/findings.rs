//! Findings of `check metadata`: the cost of operations on names and inodes, by shape and number of
//! files, and where their answers came from. Data only: it is measured elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use blockstone_base::histogram::LatencyHistogram;
use blockstone_base::named;
use blockstone_base::rule::Judged;
use blockstone_base::stats::Estimate;

named! {
    /// Source of the answers.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Class {
        /// The device was read, or written before the call returned.
        Storage = "storage",
        /// A server answered: what it had to read is not visible.
        Server = "server",
        /// Memory answered: nothing was read, and nothing had to be written.
        Cached = "cached",
        /// The evidence does not decide.
        Unknown = "unknown",
    }
}

named! {
    /// Growth of the cost of an operation with the number of files in its directory.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    GrowthClass {
        Flat = "flat",
        Linear = "linear",
        /// In between, or there are too few sizes.
        Unknown = "unknown",
    }
}

named! {
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Operation {
        /// Creates an empty file.
        Create = "create",
        /// Creates a file, writes to it, and makes it and its directory durable.
        CreateFsync = "create-fsync",
        /// Opens a file for reading and closes it.
        OpenClose = "open-close",
        Stat = "stat",
        /// Looks up a name that does not exist.
        AccessNegative = "access-negative",
        /// Lists a directory.
        Readdir = "readdir",
        /// Lists a directory and stats each entry, like `ls -l`.
        ReaddirStat = "readdir-stat",
        /// Renames a file within its directory.
        Rename = "rename",
        /// Gives a file a second name.
        Link = "link",
        /// Sets the times of a file.
        Setattr = "setattr",
        /// Opens a file, sets and gets an extended attribute, and closes it.
        Xattr = "xattr",
        Mkdir = "mkdir",
        Rmdir = "rmdir",
        /// Removes a file.
        Unlink = "unlink",
    }
}

impl Operation {
    /// Returns whether it changes nothing, so that memory may answer it.
    pub fn reads(self) -> bool {
        use Operation::{AccessNegative, OpenClose, Readdir, ReaddirStat, Stat};
        matches!(self, OpenClose | Stat | AccessNegative | Readdir | ReaddirStat)
    }

    /// Returns whether it may return only when the storage has it.
    pub fn is_durable(self) -> bool {
        self == Self::CreateFsync
    }
}

named! {
    /// Distribution of the files over directories.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Shape {
        /// All in one directory.
        One = "one-directory",
        /// The files of each rank in a directory of its own.
        Own = "own-directories",
        /// The files of each rank in a tree of its own, 256 to a directory.
        Tree = "tree",
    }
}

/// Requests of the device meanwhile, on behalf of any process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub write_bytes: u64,
    pub flushes: u64,
}

/// One operation, in one shape, with one number of files.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub operation: Operation,
    pub shape: Shape,
    pub files: u64,
    /// Whether caches were dropped beforehand.
    pub cold: bool,
    pub class: Class,
    /// Observations, with numbers.
    pub evidence: String,
    /// Operations that succeeded; for a listing, its entries.
    pub operations: u64,
    /// Error of the first operation that failed, such as `EOPNOTSUPP`.
    pub error: Option<String>,
    pub ops_per_s: Option<Estimate>,
    /// Latency of each operation; for a listing, of each getdents(2).
    pub latency: LatencyHistogram,
    /// Processor time of the ranks for each operation, in nanoseconds.
    pub cpu_ns_per_op: f64,
    /// Bytes that the kernel charged to this process as fetched from storage.
    pub bytes_read: Option<u64>,
    pub moved: Option<Moved>,
    /// Requests to the server of a mount, on behalf of any process; none if they are not counted.
    pub rpcs: Option<u64>,
}

impl Cell {
    /// Returns the name of the case: `stat/one-directory/10000`, with `/cold` if caches were
    /// dropped.
    pub fn case(&self) -> String {
        let cold = if self.cold { "/cold" } else { "" };
        format!("{}/{}/{}{cold}", self.operation.name(), self.shape.name(), self.files)
    }

    /// Returns `number`, which is the total of all operations, per operation.
    pub fn per_op(&self, number: u64) -> f64 {
        number as f64 / self.operations.max(1) as f64
    }
}

/// Cost of an operation in one directory, by the number of its files.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    pub operation: Operation,
    pub class: GrowthClass,
    pub evidence: String,
    /// Numbers of files, and processor time per operation in nanoseconds.
    pub points: Vec<(u64, f64)>,
    /// Power of the number of files with which the cost grew up to the largest number.
    pub exponent: Option<f64>,
}

impl Growth {
    /// Returns the name of the case: `growth/create`.
    pub fn case(&self) -> String {
        format!("growth/{}", self.operation.name())
    }

    /// Classifies costs by the largest number of files and the next that is clearly smaller: below
    /// that, the fixed cost of a call hides the growth.
    pub fn of(operation: Operation, points: Vec<(u64, f64)>) -> Self {
        let exponent = points.split_last().and_then(|(&(more, after), others)| {
            let step = |files: u64| more as f64 / files as f64;
            let &(fewer, before) = others.iter().rfind(|(files, _)| step(*files) >= LEAST_STEP)?;
            (before > 0.0 && after > 0.0).then(|| (after / before).ln() / step(fewer).ln())
        });
        let class = match exponent {
            Some(power) if power <= FLAT_MAX => GrowthClass::Flat,
            Some(power) if power >= LINEAR_MIN => GrowthClass::Linear,
            _ => GrowthClass::Unknown,
        };
        let costs: Vec<String> = points
            .iter()
            .map(|(files, ns)| format!("{:.1} µs CPU at {files} files", ns / 1e3))
            .collect();
        Self { operation, class, evidence: costs.join(", "), points, exponent }
    }
}

/// Sizes that differ by less than this factor show nothing about growth.
const LEAST_STEP: f64 = 4.0;
/// Twice the cost for ten times as many files is flat: more processor cache misses cost that much.
const FLAT_MAX: f64 = 0.3;
/// Four times the cost for ten times as many files is not flat.
const LINEAR_MIN: f64 = 0.6;

/// A kernel cache that grows with each file.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheGrowth {
    /// Name in /proc/slabinfo: `dentry`, `ext4_inode_cache`.
    pub cache: String,
    pub bytes_per_file: f64,
}

/// Findings of `check metadata`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataFindings {
    /// Path of the directory that was checked.
    pub subject: String,
    /// Type of the file system.
    pub file_system: String,
    /// Device whose counters were read; none if the file system hides it.
    pub device: Option<String>,
    pub ranks: u32,
    pub cells: Vec<Cell>,
    pub growth: Vec<Growth>,
    pub memory: Vec<CacheGrowth>,
    /// Why the caches of the kernel were not counted; empty if they were.
    pub memory_unseen: String,
    /// Whether something was left out because it would have taken too long.
    pub unfinished: bool,
    /// Signal that ended the check early.
    pub signal: Option<String>,
}

impl MetadataFindings {
    /// Returns the cells that are expected to show the storage: those after caches were dropped,
    /// and durable ones.
    pub fn of_storage(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.cold || cell.operation.is_durable())
    }
}

impl Judged for MetadataFindings {
    const VERB: &'static str = "check metadata";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_classified_by_its_last_decade() {
        let class = |points: &[(u64, f64)]| Growth::of(Operation::Create, points.to_vec()).class;
        // ext4 with and without dir_index: the call itself hides the search of a small directory.
        let linear = [(1_000, 9_000.0), (10_000, 30_000.0), (100_000, 240_000.0)];
        let flat = [(1_000, 8_000.0), (10_000, 9_000.0), (100_000, 11_000.0)];
        assert_eq!(class(&linear), GrowthClass::Linear);
        assert_eq!(class(&flat), GrowthClass::Flat);
        assert_eq!(class(&[(1_000, 10.0), (10_000, 28.0)]), GrowthClass::Unknown);
        assert_eq!(class(&[(1_000, 10.0)]), GrowthClass::Unknown);
        // 20,000 files are too close to 10,000.
        assert_eq!(class(&[(1_000, 10.0), (10_000, 11.0), (20_000, 12.0)]), GrowthClass::Flat);
        assert_eq!(class(&[(1_000, 10.0), (2_000, 20.0)]), GrowthClass::Unknown);
        assert_eq!(class(&[]), GrowthClass::Unknown);
    }
}
