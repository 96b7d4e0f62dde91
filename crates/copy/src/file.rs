//! One file: how its bytes get from the source to the target, which methods exist and which of them
//! a pair of files supports, and what is kept so that an interrupted copy can be resumed.

mod batch;
mod choose;
mod copier;
mod extents;
mod finish;
mod io;
mod keep;
pub mod manifest;
mod mover;
mod moving;
pub mod onto_device;
mod pages;
mod peers;
pub mod pipe;
mod plan;
pub mod resume;
mod serve;
mod verify;

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use blockstone_base::units::Bytes;
use blockstone_sys::held::HeldDir;
use serde::{Deserialize, Serialize};

use crate::CopyError;
pub use batch::BatchJob;
pub use copier::Copier;
pub use keep::Kept;

/// Way in which bytes get from one file to another, the cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Both files share the blocks (`FICLONE`).
    Reflink,
    /// The server that has both files copies them (`copy_file_range` on NFS, SMB).
    Server,
    /// Direct requests on both sides through one io_uring.
    Direct,
    /// Through the page cache, which keeps nothing (`RWF_DONTCACHE`).
    Dontcache,
    /// Through the page cache, from which the pages that the copy brought are dropped.
    Buffered,
    /// Like cp of Solaris: the source is mapped, and written from the mapping. Only on request.
    Mmap,
    /// Like cp of GNU: the kernel copies from file to file (`copy_file_range`). Only on request.
    CopyFileRange,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `None`: the first of [`Method`] that this pair supports.
    pub method: Option<Method>,
    /// Bytes per request, and per chunk that has a hash: whole pages of 4 KiB.
    pub request: Bytes,
    pub in_flight: u32,
    /// Hash each chunk as it is read, for a manifest. Implied by `verify`.
    pub hash: bool,
    /// Read the target again from its medium, and compare the hashes of its chunks.
    pub verify: bool,
    /// Resume an interrupted copy.
    pub resume: bool,
    /// Replace an existing target, and anything an interrupted copy left.
    pub force: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            method: None,
            request: Bytes::mib(8),
            in_flight: 8,
            hash: false,
            verify: false,
            resume: false,
            force: false,
        }
    }
}

/// One file to copy. The target appears under its name only when it is complete and durable.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    pub source: &'a Path,
    /// Directory that holds the last name of the source.
    pub from: &'a HeldDir,
    pub target_dir: &'a HeldDir,
    /// Name in that directory, without a separator.
    pub name: &'a Path,
}

impl<'a> Job<'a> {
    pub fn source_name(&self) -> &'a Path {
        Path::new(self.source.file_name().unwrap_or_default())
    }

    /// Opens the source for reading. Fails if it is not a regular file.
    fn open(&self) -> Result<File, CopyError> {
        self.from.read(self.source_name()).map_err(CopyError::io("open", self.source))
    }
}

/// A chunk of a file that was read, and its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub offset_bytes: u64,
    pub len_bytes: u32,
    pub xxh3_128: u128,
}

/// Whether the target holds what was read from the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    NotAsked,
    /// All chunks are equal. `medium_bytes`: bytes that the kernel read from the device for that.
    Equal {
        read_bytes: u64,
        medium_bytes: u64,
    },
    /// All chunks are equal, but nothing shows that they came from the medium.
    Unproven {
        why: String,
    },
    /// Nothing was read from the source that could be compared: the bytes were shared, or copied by
    /// a server.
    NotCompared,
}

#[derive(Clone, Debug)]
pub struct Copied {
    pub bytes: u64,
    /// Bytes that were moved or shared, not counting holes.
    pub data_bytes: u64,
    pub method: Method,
    /// Why no cheaper method was used.
    pub why: String,
    /// Empty if no hashes were requested, or if no bytes pass through this process.
    pub chunks: Vec<Chunk>,
    /// Bytes that an interrupted copy had moved and that were found in the target.
    pub resumed_bytes: u64,
    /// Bytes that an interrupted copy had made durable but that were not found in the target.
    pub again_bytes: u64,
    pub verified: Verified,
}

/// Callbacks of a copy to its caller, from several threads.
pub trait Watch: Sync {
    /// Called after `bytes` more were moved. `Break` ends the copy as soon as it can be resumed.
    fn moved(&self, bytes: u64) -> ControlFlow<()>;
    /// Waits until `bytes` more may be moved.
    fn pace(&self, bytes: u64);
}

/// Copies attributes from the source (first) to the target (second), before the target gets its
/// name.
pub type Carry<'a> = &'a dyn Fn(&File, &File) -> Result<(), CopyError>;

/// Copies one regular file. For several files, one [`Copier`] is cheaper.
pub fn copy(
    job: &Job<'_>,
    options: &Options,
    carry: Carry<'_>,
    watch: &dyn Watch,
) -> Result<Copied, CopyError> {
    Copier::new(*options)?.copy(job, carry, watch)
}

#[cfg(test)]
mod tests;
