//! One disk: a file or a block device.
//!
//! A disk reads and writes bytes at offsets, and its errors carry its name. It knows nothing of
//! groups, copies or blocks.

mod file;

use std::fmt;
use std::io;
use std::sync::Arc;

use blockstone_base::hint::Hint;
use blockstone_sys::file::BlockFile;

pub use file::{DISK_FILE, FileDisk};

/// Alignment of every offset, length and buffer: the strictest that direct I/O requires.
pub const ALIGN_BYTES: u64 = 4096;

/// A disk. An operation succeeds as a whole or fails; the result of a failed write on the disk is
/// unknown.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Fills `out` with the bytes from `offset` on.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError>;

    /// Writes `data` at `offset`; durable only after [`Disk::sync`].
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError>;

    /// Writes `data` at `offset` and returns when it is durable.
    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError>;

    /// Makes durable every write that returned before. Fails if the disk fails; any of those writes
    /// may then be lost.
    fn sync(&self) -> Result<(), DiskError>;

    fn size_bytes(&self) -> u64;

    /// Name in messages and statistics: its path.
    fn name(&self) -> &str;

    /// The underlying file, for batches in one system call; `None` if there is no file.
    fn raw(&self) -> Option<&Arc<BlockFile>> {
        None
    }

    /// Whether others can still find it. A removed file remains usable for processes that have it
    /// open, which is not what a disk should do.
    fn is_present(&self) -> bool {
        true
    }
}

#[derive(Debug, thiserror::Error, Hint)]
#[error("{operation} disk {disk} at byte {offset}: {source}")]
#[hint("{}", hint(source))]
pub struct DiskError {
    pub disk: String,
    pub operation: &'static str,
    pub offset: u64,
    pub source: io::Error,
}

impl DiskError {
    pub fn new(disk: &dyn Disk, operation: &'static str, offset: u64, errno: i32) -> Self {
        let source = io::Error::from_raw_os_error(errno);
        Self { disk: disk.name().to_owned(), operation, offset, source }
    }

    /// Creates the error of an operation that ended before all bytes were moved.
    pub fn short(disk: &dyn Disk, operation: &'static str, offset: u64) -> Self {
        let source = io::Error::new(io::ErrorKind::UnexpectedEof, "the disk ends there");
        Self { disk: disk.name().to_owned(), operation, offset, source }
    }
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::UnexpectedEof => "the file is not a disk of Blockstone, or it was shrunk",
        io::ErrorKind::StorageFull => "free some space on the file system of this disk",
        io::ErrorKind::InvalidInput => {
            "offset, length or memory is not aligned as the device requires"
        }
        _ => "see the kernel's log (dmesg); with normal redundancy a group survives one disk",
    }
}
