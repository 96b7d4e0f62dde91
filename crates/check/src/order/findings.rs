//! What `check write-order` finds: whether several writers of one file wait for each other, by what
//! they write. Data only: it is measured elsewhere.

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
    /// What is written, and where in the file.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Mode {
        /// Blocks that were written before.
        Overwrite = "overwrite",
        /// Blocks that were allocated and never written.
        Unwritten = "unwritten",
        /// Where the file has no blocks.
        Hole = "hole",
        /// At the end of the file, wherever that is when the kernel takes the request.
        Append = "append",
        /// Behind the end of the file, where the writers agreed that each of them writes.
        Extend = "extend",
        /// The same, where one of them allocates some room ahead for all.
        AllocateAhead = "allocate-ahead",
        /// 512 bytes within blocks that were written before.
        SubBlock = "sub-block",
        /// Two blocks, of which one was written before.
        Straddle = "straddle",
        /// The same, once all of the file was written.
        SecondPass = "second-pass",
        /// Readers of a file beside one writer that fills a hole of it.
        Readers = "readers",
    }
}

impl Mode {
    /// What can be tried on a device, which has all of its blocks.
    pub const OF_DEVICES: &[Self] = &[Self::Overwrite, Self::SubBlock, Self::Readers];

    /// What is written, in words.
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

/// What some threads did in a time, with one file or with files of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Requests that succeeded.
    pub requests: u64,
    pub iops: f64,
    /// Time that threads waited for the locks of the files ÷ their time; null where the kernel was
    /// not asked.
    pub lock_time_share: Option<f64>,
    /// Waits for a lock for each request.
    pub waits_per_request: Option<f64>,
    /// Times a thread gave its processor away to wait, for each request.
    pub switches_per_request: f64,
    /// Processor time of a request.
    pub cpu_ns_per_request: f64,
    /// Appends in whose place another was written: the file is shorter than all of them together.
    pub lost: u64,
}

/// One mode with a number of writers (or readers) of one file, beside as many with files of their
/// own.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub mode: Mode,
    pub writers: u32,
    pub class: Class,
    /// What was seen, with numbers.
    pub evidence: String,
    /// What the kernel answered to the first request that failed: `EINVAL`.
    pub error: Option<String>,
    pub one_file: Side,
    /// A device has none.
    pub own_files: Option<Side>,
    /// Where in the kernel the first thread waited: functions, innermost first.
    pub waited_in: Vec<String>,
    /// Where the thread that it waited for let go of the lock.
    pub held_in: Vec<String>,
}

/// What `check write-order` found.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderFindings {
    /// The path.
    pub subject: String,
    /// Type of the file system; empty of a device.
    pub file_system: String,
    /// Whether what is written to is a device, not files.
    pub is_device: bool,
    /// Whether the writers use the page cache.
    pub is_buffered: bool,
    /// Its mount options.
    pub mount_options: String,
    /// Writers, and readers beside one writer: the largest number of them.
    pub writers: u32,
    /// Whether waits for locks are counted in the kernel.
    pub kernel: Capability,
    /// Why nothing was tried.
    pub not_tried: Option<String>,
    /// By mode, then by number of writers.
    pub cells: Vec<Cell>,
    /// Not all was tried: that would have taken too long.
    pub unfinished: bool,
    /// The signal that ended it early.
    pub signal: Option<String>,
}

impl OrderFindings {
    /// The cells of the largest number of writers, on which the answer rests.
    pub fn largest(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.writers == self.writers)
    }

    /// The modes of this class.
    pub fn of(&self, class: Class) -> Vec<&'static str> {
        let found = self.largest().filter(|cell| cell.class == class);
        found.map(|cell| cell.mode.name()).collect()
    }
}

impl Judged for OrderFindings {
    const VERB: &'static str = "check write-order";
}
