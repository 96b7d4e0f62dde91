//! Findings of `check direct`: whether I/O that asks to bypass the page cache does, by operation
//! and shape on a path, or by open file of a process. Data only: it is measured elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use blockstone_base::capability::Capability;
use blockstone_base::load::SyncFlag;
use blockstone_base::named;
use blockstone_base::rule::Judged;

named! {
    /// Result for I/O that asks to bypass the page cache.
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
    /// Returns whether it went through the page cache.
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
    /// Alignment of a request in the file and in memory.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Shape {
        /// Whole blocks of the file system, from memory aligned to a page.
        Block = "block",
        /// 512 bytes within a block.
        Sector = "512",
        /// Whole blocks, from memory 512 bytes after the start of a page.
        Memory512 = "memory+512",
        /// Whole blocks, from memory 4 bytes after the start of a page.
        Memory4 = "memory+4",
    }
}

/// One operation in one shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    pub operation: Operation,
    pub shape: Shape,
    pub class: Class,
    /// Observations, with numbers.
    pub evidence: String,
    /// Requests that succeeded.
    pub requests: u64,
    /// Error of the first request that failed, such as `EINVAL`.
    pub error: Option<String>,
    /// Whether statx(2) says that this shape can be direct on this file; null if it does not say.
    pub promised: Option<bool>,
    /// Pages of 4 KiB that these requests added to the page cache; null if the kernel did not
    /// count.
    pub added_pages: Option<u64>,
    /// Times the kernel entered its direct path for them; null if it does not tell.
    pub direct_ios: Option<u64>,
    /// Bytes of the file in the page cache before and after.
    pub before_cached_bytes: Option<u64>,
    pub after_cached_bytes: Option<u64>,
    /// Bytes that the kernel charged to this process, as fetched from or written to storage, per
    /// requested byte.
    pub charged_ratio: Option<f64>,
}

impl Cell {
    /// Returns the name of the case: `overwrite/512`.
    pub fn case(&self) -> String {
        format!("{}/{}", self.operation.name(), self.shape.name())
    }

    /// Returns whether a program may expect direct I/O: the shape is whole blocks, or statx(2) says
    /// so. A file system that does not want direct I/O to a file has to refuse it.
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
    /// Flag that the server's settings request; null without a server, or if they do not say.
    pub requested: Option<Opened>,
    /// The setting that requests it.
    pub setting: Option<String>,
    /// Way in which the settings ask for its writes to be made durable; null without a server, or
    /// if they do not say.
    pub requested_sync: Option<SyncFlag>,
    pub class: Class,
    pub evidence: String,
    pub size_bytes: u64,
    /// Bytes of the file in the page cache; null if the kernel does not tell.
    pub cached_bytes: Option<u64>,
    pub dirty_bytes: Option<u64>,
    /// Reads and writes in the time of observation; null if they were not counted.
    pub requests: Option<u64>,
    /// Share of these requests that added pages to the page cache.
    pub cached_share: Option<f64>,
}

impl OpenFile {
    /// Returns whether it was opened to bypass the page cache, and its I/O was seen, or may have
    /// been missed.
    pub fn is_expected(&self) -> bool {
        let is_idle = self.requests == Some(0) && self.class == Class::Unknown;
        self.opened != Opened::Buffered && !is_idle
    }

    /// Returns whether the flags contradict the settings.
    pub fn disagrees(&self) -> bool {
        self.requested.is_some_and(|requested| requested != self.opened)
            || self.requested_sync.is_some_and(|requested| requested != self.sync)
    }
}

/// Requests of a process for I/O of files on storage, by how it asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// System calls that return when the data has moved: read, pwrite, `copy_file_range` and
    /// others.
    pub blocking: u64,
    /// Pages of mapped files that it waited for, or wrote to.
    pub mapped: u64,
    /// Requests through AIO (`io_submit`).
    pub aio: u64,
    /// Requests through `io_uring`.
    pub io_uring: u64,
}

impl Requested {
    pub fn total(&self) -> u64 {
        self.blocking + self.mapped + self.aio + self.io_uring
    }

    /// Names how it asks, most requests first: `io_uring`, `aio`, `blocking`, `mapped`; `none` if
    /// it asks for nothing.
    pub fn how(&self) -> String {
        let mut kinds = [
            ("io_uring", self.io_uring),
            ("aio", self.aio),
            ("blocking", self.blocking),
            ("mapped", self.mapped),
        ];
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let kinds = kinds.iter().filter(|(_, count)| *count > 0).map(|(kind, _)| *kind);
        let how = kinds.collect::<Vec<_>>().join(", ");
        if how.is_empty() { "none".to_owned() } else { how }
    }

    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            blocking: self.blocking + other.blocking,
            mapped: self.mapped + other.mapped,
            aio: self.aio + other.aio,
            io_uring: self.io_uring + other.io_uring,
        }
    }
}

/// A process that requests I/O, or has the means to do so asynchronously.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitter {
    pub pid: u32,
    /// Its command line.
    pub title: String,
    /// Requests in the time of observation; none if they were not counted.
    pub requested: Option<Requested>,
    /// Instances of `io_uring` that it has open; none if this user may not see them.
    pub rings: Option<u64>,
    /// Its AIO contexts, likewise.
    pub aio_contexts: Option<u64>,
}

impl Submitter {
    /// Returns whether it did nothing that was seen, and has no such means.
    pub fn is_idle(&self) -> bool {
        let requested = self.requested.is_some_and(|it| it.total() > 0);
        !requested && self.rings.unwrap_or(0) == 0 && self.aio_contexts.unwrap_or(0) == 0
    }
}

/// Findings of `check direct`.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectFindings {
    /// The path, process or server.
    pub subject: String,
    /// Type of the file system; empty for a device and for processes.
    pub file_system: String,
    /// Mount options of the file system.
    pub mount_options: String,
    /// Statement of statx(2) about direct I/O there; none for processes.
    pub statx: Option<String>,
    /// Whether pages added to the page cache are counted in the kernel.
    pub kernel: Capability,
    pub cells: Vec<Cell>,
    pub files: Vec<OpenFile>,
    /// Processes by how they request I/O, and why requests were not counted, if they were not.
    pub submitters: Vec<Submitter>,
    pub submissions_unmeasured: Option<String>,
    /// The server's setting that decides how it requests I/O; none without a server, or if it has
    /// no such setting.
    pub submission_setting: Option<String>,
    /// Number of files that could not be inspected.
    pub unseen_files: u64,
    /// Time for which processes were observed, in seconds.
    pub observed_s: f64,
    /// Whether something was left out because it would have taken too long.
    pub unfinished: bool,
    /// Signal that ended the check early.
    pub signal: Option<String>,
}

impl DirectFindings {
    /// Returns the requests of all processes together; none if they were not counted.
    pub fn requested(&self) -> Option<Requested> {
        if self.is_of_path() || self.submissions_unmeasured.is_some() {
            return None;
        }
        let all = self.submitters.iter().filter_map(|it| it.requested.as_ref());
        Some(all.fold(Requested::default(), |sum, it| sum.plus(it)))
    }

    /// Returns whether it is about a path, not about processes.
    pub fn is_of_path(&self) -> bool {
        self.statx.is_some()
    }

    /// Returns the class of each case that asks to bypass the page cache and may expect to, by its
    /// name.
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
