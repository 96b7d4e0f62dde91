//! What `check direct` finds: whether I/O that asks to bypass the page cache does, by operation and
//! shape on a path, or by open file of a process. Data only: it is measured elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use blockstone_base::capability::Capability;
use blockstone_base::load::SyncFlag;
use blockstone_base::named;
use blockstone_base::rule::Judged;

named! {
    /// What becomes of I/O that asks to bypass the page cache.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Class {
        /// It goes past the page cache.
        Direct = "direct",
        /// It goes through the page cache, and its pages stay there.
        Buffered = "buffered",
        /// It goes through the page cache, and its pages are dropped afterwards.
        Dropped = "dropped",
        /// The file system keeps its files in memory.
        Memory = "memory",
        /// It fails.
        Refused = "refused",
        /// The evidence does not decide.
        Unknown = "unknown",
    }
}

impl Class {
    /// Whether it went through the page cache.
    pub fn is_cached(self) -> bool {
        matches!(self, Self::Buffered | Self::Dropped)
    }
}

named! {
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Operation {
        /// Reads blocks that were written.
        Read = "read",
        /// Reads blocks that the file system was asked to compress.
        ReadCompressed = "read-compressed",
        /// Writes blocks that were written before.
        Overwrite = "overwrite",
        /// Writes blocks that another file shares (reflink).
        OverwriteShared = "overwrite-shared",
        /// Extends the file.
        Append = "append",
        /// Writes where the file has no blocks.
        FillHole = "fill-hole",
        /// Writes blocks that were allocated and never written.
        Unwritten = "unwritten",
    }
}

impl Operation {
    pub fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadCompressed)
    }
}

named! {
    /// How a request lies in the file and in memory.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Shape {
        /// Whole blocks of the file system, from memory aligned to a page.
        Block = "block",
        /// 512 bytes within a block.
        Sector = "512",
        /// Whole blocks, from memory 512 bytes behind the beginning of a page.
        Memory512 = "memory+512",
        /// Whole blocks, from memory 4 bytes behind the beginning of a page.
        Memory4 = "memory+4",
    }
}

/// One operation in one shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    pub operation: Operation,
    pub shape: Shape,
    pub class: Class,
    /// What was seen, with numbers.
    pub evidence: String,
    /// Requests that succeeded.
    pub requests: u64,
    /// What the kernel answered to the first that did not: `EINVAL`.
    pub error: Option<String>,
    /// Whether statx(2) says that this shape can be direct on this file; null where it says
    /// nothing.
    pub promised: Option<bool>,
    /// Pages of 4 KiB that these requests added to the page cache; null where the kernel was not
    /// asked.
    pub added_pages: Option<u64>,
    /// Times the kernel entered its direct path for them; null where it does not tell.
    pub direct_ios: Option<u64>,
    /// Bytes of the file in the page cache before and after.
    pub before_cached_bytes: Option<u64>,
    pub after_cached_bytes: Option<u64>,
    /// Bytes that the kernel charged to this process, as fetched from or going to storage, for each
    /// byte that was asked for.
    pub charged_ratio: Option<f64>,
}

impl Cell {
    /// `overwrite/512`.
    pub fn case(&self) -> String {
        format!("{}/{}", self.operation.name(), self.shape.name())
    }

    /// Whether a program may expect it to be direct: it is of whole blocks, or statx(2) says so.
    /// Who does not want direct I/O to a file has to refuse it.
    pub fn is_expected(&self) -> bool {
        self.shape == Shape::Block || self.promised == Some(true)
    }
}

named! {
    /// Whether the descriptors of a file have `O_DIRECT`.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Opened {
        /// All of them.
        Direct = "direct",
        /// None of them.
        Buffered = "buffered",
        /// Some of them.
        Both = "both",
    }
}

/// A file that watched processes hold open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenFile {
    pub path: String,
    /// `data`, `redo`, `temp`, `control` or `other`.
    pub file_type: String,
    pub descriptors: u64,
    pub opened: Opened,
    pub sync: SyncFlag,
    /// What the server's settings ask for; null without a server, or where they do not say.
    pub requested: Option<Opened>,
    /// The setting that asks for it.
    pub setting: Option<String>,
    /// How the settings ask for its writes to be made durable; null as above.
    pub requested_sync: Option<SyncFlag>,
    pub class: Class,
    pub evidence: String,
    pub size_bytes: u64,
    /// Of it in the page cache; null where the kernel does not tell.
    pub cached_bytes: Option<u64>,
    pub dirty_bytes: Option<u64>,
    /// Reads and writes in the time of observation; null where they were not counted.
    pub requests: Option<u64>,
    /// The share of them that added pages to the page cache.
    pub cached_share: Option<f64>,
}

impl OpenFile {
    /// Whether it was opened to bypass the page cache, and its I/O was seen, or may have been
    /// missed.
    pub fn is_expected(&self) -> bool {
        let is_idle = self.requests == Some(0) && self.class == Class::Unknown;
        self.opened != Opened::Buffered && !is_idle
    }

    /// Whether the flags contradict the settings.
    pub fn disagrees(&self) -> bool {
        self.requested.is_some_and(|requested| requested != self.opened)
            || self.requested_sync.is_some_and(|requested| requested != self.sync)
    }
}

/// What `check direct` found.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectFindings {
    /// The path, process or server.
    pub subject: String,
    /// Type of the file system; empty for a device and for processes.
    pub file_system: String,
    /// Its mount options.
    pub mount_options: String,
    /// What statx(2) says of direct I/O there; none for processes.
    pub statx: Option<String>,
    /// Whether pages that are added to the page cache are counted in the kernel.
    pub kernel: Capability,
    pub cells: Vec<Cell>,
    pub files: Vec<OpenFile>,
    /// Files that could not be looked at.
    pub unseen_files: u64,
    /// Seconds for which processes were observed.
    pub observed_s: f64,
    /// Not all was tried: that would have taken too long.
    pub unfinished: bool,
    /// The signal that ended it early.
    pub signal: Option<String>,
}

impl DirectFindings {
    /// Whether it is about a path, not about processes.
    pub fn is_of_path(&self) -> bool {
        self.statx.is_some()
    }

    /// The class of each case that asks to bypass the page cache and may expect to, by its name.
    pub fn expected(&self) -> impl Iterator<Item = (String, Class)> {
        let cells = self.cells.iter().filter(|cell| cell.is_expected());
        let files = self.files.iter().filter(|file| file.is_expected());
        let cells = cells.map(|cell| (cell.case(), cell.class));
        cells.chain(files.map(|file| (file.path.clone(), file.class)))
    }
}

impl Judged for DirectFindings {
    const VERB: &'static str = "check direct";
}
