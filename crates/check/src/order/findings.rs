//! Findings of `check write-order`: whether several writers of one file wait for each other, by
//! what they write. Data only: it is measured elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use blockstone_base::capability::Capability;
use blockstone_base::named;
use blockstone_base::rule::Judged;

named! {
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Class {
        /// They do not wait for each other.
        Scales = "scales",
        /// They wait for each other: one lock of the file lets one at a time through.
        Serialises = "serialises",
        /// It fails.
        Refused = "refused",
        /// The evidence does not decide.
        Unknown = "unknown",
    }
}

named! {
    /// Blocks that are written, and their place in the file.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Mode {
        /// Blocks that were written before.
        Overwrite = "overwrite",
        /// Blocks that were allocated and never written.
        Unwritten = "unwritten",
        /// Ranges in which the file has no blocks.
        Hole = "hole",
        /// At the end of the file, wherever that is when the kernel takes the request.
        Append = "append",
        /// After the end of the file, where the writers agreed that each of them writes.
        Extend = "extend",
        /// The same as `Extend`, but one of the writers allocates some room ahead for all.
        AllocateAhead = "allocate-ahead",
        /// 512 bytes within blocks that were written before.
        SubBlock = "sub-block",
        /// Two blocks, of which one was written before.
        Straddle = "straddle",
        /// The same as `Straddle`, once the whole file was written.
        SecondPass = "second-pass",
        /// Readers of a file next to one writer that fills a hole in it.
        Readers = "readers",
    }
}

impl Mode {
    /// Modes that can be tried on a device, which has all of its blocks.
    pub const OF_DEVICES: &[Self] = &[Self::Overwrite, Self::SubBlock, Self::Readers];

    /// Describes what is written.
    pub fn about(self) -> &'static str {
        match self {
            Self::Overwrite => "blocks that were written before",
            Self::Unwritten => "blocks that were allocated and never written",
            Self::Hole => "where the file has no blocks",
            Self::Append => "at the end of the file, found by the kernel (O_APPEND)",
            Self::Extend => "behind the end of the file, at places that the writers agree on",
            Self::AllocateAhead => "the same, in room that one of them allocates ahead",
            Self::SubBlock => "512 bytes within written blocks",
            Self::Straddle => "two blocks, one of them written before",
            Self::SecondPass => "the same, once all of the file was written",
            Self::Readers => "readers beside one writer that fills a hole of the file",
        }
    }
}

/// Work of some threads in a time, with one file or with separate files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Requests that succeeded.
    pub requests: u64,
    pub iops: f64,
    /// Time that threads waited for the locks of the files ÷ their time; null if the kernel did not
    /// count.
    pub lock_time_share: Option<f64>,
    /// Waits for a lock per request.
    pub waits_per_request: Option<f64>,
    /// Voluntary context switches of the threads per request.
    pub switches_per_request: f64,
    /// Processor time per request, in nanoseconds.
    pub cpu_ns_per_request: f64,
    /// Appends in whose place another was written: the file is shorter than all of them together.
    pub lost: u64,
}

/// One mode with a number of writers (or readers) of one file, compared with as many that have
/// separate files.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub mode: Mode,
    pub writers: u32,
    pub class: Class,
    /// Observations, with numbers.
    pub evidence: String,
    /// Error of the first request that failed, such as `EINVAL`.
    pub error: Option<String>,
    pub one_file: Side,
    /// The same threads with separate files; none for a device.
    pub own_files: Option<Side>,
    /// Kernel functions in which the first thread waited, innermost first.
    pub waited_in: Vec<String>,
    /// Kernel functions in which the thread that it waited for released the lock.
    pub held_in: Vec<String>,
}

/// Findings of `check write-order`.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderFindings {
    /// Path that was checked.
    pub subject: String,
    /// Type of the file system; empty for a device.
    pub file_system: String,
    /// Whether the target is a device, not files.
    pub is_device: bool,
    /// Whether the writers use the page cache.
    pub is_buffered: bool,
    /// Mount options of the file system.
    pub mount_options: String,
    /// Largest number of writers, and of readers next to one writer.
    pub writers: u32,
    /// Whether waits for locks are counted in the kernel.
    pub kernel: Capability,
    /// Reason why nothing was tried.
    pub not_tried: Option<String>,
    /// By mode, then by number of writers.
    pub cells: Vec<Cell>,
    /// Whether something was left out because it would have taken too long.
    pub unfinished: bool,
    /// Signal that ended the check early.
    pub signal: Option<String>,
}

impl OrderFindings {
    /// Returns the cells with the largest number of writers, on which the answer is based.
    pub fn largest(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.writers == self.writers)
    }

    /// Returns the modes of this class.
    pub fn of(&self, class: Class) -> Vec<&'static str> {
        let found = self.largest().filter(|cell| cell.class == class);
        found.map(|cell| cell.mode.name()).collect()
    }
}

impl Judged for OrderFindings {
    const VERB: &'static str = "check write-order";
}
