//! A block device as the source of a copy.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::CopyError;

/// Whether the path is a block device, or a link to one, as names in /dev/disk are.
pub fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_block_device())
}

/// Opens a device to read it past the page cache.
pub fn open(path: &Path) -> Result<File, CopyError> {
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    opened.map(File::from).map_err(CopyError::io("open", path))
}

/// The size of a file or device.
pub fn size_bytes(path: &Path) -> io::Result<u64> {
    let found = path.metadata()?;
    if found.file_type().is_block_device() {
        return File::open(path)?.seek(SeekFrom::End(0));
    }
    Ok(found.len())
}
