//! A block device as the source or the target of a copy.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use blockstone_sys::file::{Access, BlockFile, FileError};
use blockstone_sys::path;

use crate::CopyError;

/// Returns whether the path is a block device, or a link to one, like the names in /dev/disk.
pub fn is_device(path: &Path) -> bool {
    path::is_block_device(path)
}

/// Opens a device to read it past the page cache.
pub fn open(path: &Path) -> Result<File, CopyError> {
    file_of(&BlockFile::open(path, Access::Read, true)?, path)
}

/// Returns the number of a device, because its name may come to lead to another.
pub fn number(path: &Path) -> Result<u64, CopyError> {
    Ok(path::look(path).map_err(CopyError::io("look at", path))?.rdev())
}

/// Opens the device with this number to overwrite it past the page cache, if nothing else holds it
/// open.
pub(crate) fn open_to_overwrite(path: &Path, number: u64) -> Result<File, CopyError> {
    let opened = BlockFile::open_device(path, true)?;
    if !opened.is_device() {
        return Err(CopyError::replaced("overwrite", path));
    }
    let file = file_of(&opened, path)?;
    if file.metadata().map_err(CopyError::io("look at", path))?.rdev() != number {
        return Err(CopyError::replaced("overwrite", path));
    }
    Ok(file)
}

fn file_of(opened: &BlockFile, path: &Path) -> Result<File, CopyError> {
    let owned = opened.as_fd().try_clone_to_owned();
    Ok(File::from(owned.map_err(CopyError::io("open", path))?))
}

/// Returns the size of a file or device.
pub fn size_bytes(path: &Path) -> io::Result<u64> {
    if is_device(path) {
        let size = |file: BlockFile| file.size_bytes();
        let found = BlockFile::open(path, Access::Read, false).and_then(size);
        return found.map_err(|error: FileError| io::Error::other(error));
    }
    Ok(path::look(path)?.len())
}
