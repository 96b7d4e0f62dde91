//! One disk: a file or a block device.
//!
//! A disk reads and writes bytes at offsets and says what went wrong with its name. It knows
//! nothing of groups, copies or blocks.

mod file;

use std::fmt;
use std::io;
use std::sync::Arc;

use blockstone_sys::file::BlockFile;

pub use file::{DISK_FILE, FileDisk};

/// The alignment of every offset, length and buffer: the strictest that direct I/O asks for.
pub const ALIGN_BYTES: u64 = 4096;

/// A disk. Operations are whole or an error; what a failed write left behind is unknown.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Fills `out` from `offset`.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError>;

    /// Writes `data` at `offset`; durable only after [`Disk::sync`].
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError>;

    /// Writes `data` at `offset` and returns when they are durable.
    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError>;

    /// Makes durable every write that returned before. Fails when the disk fails; any of those
    /// writes may then be lost.
    fn sync(&self) -> Result<(), DiskError>;

    fn size_bytes(&self) -> u64;

    /// What it is called in messages and statistics: its path.
    fn name(&self) -> &str;

    /// The file behind it, for batches in one system call; none where there is no file.
    fn raw(&self) -> Option<&Arc<BlockFile>> {
        None
    }

    /// Whether it is still there for others to find. A removed file still answers those that have
    /// it open, which is not what was asked of a disk.
    fn is_present(&self) -> bool {
        true
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{operation} disk {disk} at byte {offset}: {source}\nhint: {}", hint(source))]
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

    /// An operation that ended before all was moved.
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
