//! A disk in a file or on a block device, locked against a second user.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::Capability;
use blockstone_sys::file::{Access, BlockFile, FileError, open_direct};
use blockstone_sys::held::HeldDir;
use blockstone_sys::path::is_block_device;

use super::{Disk, DiskError};

/// Name of the file in a directory that serves as a disk.
pub const DISK_FILE: &str = "blockstone.disk";

const BUFFERED: &str = "the page cache was asked for";
/// After a process has been killed, the kernel tears down its rings with a delay, and keeps its
/// files locked until then.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A file or block device as a disk. It is locked as long as it is open.
#[derive(Debug)]
pub struct FileDisk {
    file: Arc<BlockFile>,
    name: String,
    size_bytes: u64,
    created: bool,
    direct: Capability,
}

impl FileDisk {
    /// Opens the disk at `path`: the device, the file, or [`DISK_FILE`] in the directory. Fails if
    /// it does not exist, or another process has it open. A symbolic link in place of the file is
    /// not followed: the owner of the directory may have put it there after the file was created.
    pub fn open(path: &Path, direct: bool) -> Result<Self, FileError> {
        let place = place(path);
        let (file, direct) = open_direct(direct, BUFFERED, |direct| {
            // Claiming a device also prevents it from being mounted while it is open.
            if is_block_device(&place) {
                BlockFile::open_device(&place, direct)
            } else {
                open_file(&place, direct)
            }
        })?;
        Self::locked(path, file, direct, false)
    }

    /// Creates the disk at `path`: a device is opened; anything else is created empty and gets its
    /// size from [`FileDisk::reserve`]. Fails if it already exists, cannot be created, or is in
    /// use.
    pub fn create(path: &Path, direct: bool) -> Result<Self, FileError> {
        if is_block_device(path) {
            return Self::open(path, direct);
        }
        let place = place(path);
        let (file, direct) =
            open_direct(direct, BUFFERED, |direct| BlockFile::create_new(&place, direct))?;
        Self::locked(path, file, direct, true)
    }

    fn locked(
        path: &Path,
        file: BlockFile,
        direct: Capability,
        created: bool,
    ) -> Result<Self, FileError> {
        lock(&file)?;
        let size_bytes = file.size_bytes()?;
        let name = path.display().to_string();
        Ok(Self { file: Arc::new(file), name, size_bytes, created, direct })
    }

    /// Gives a created disk its size; a device keeps its own. Fails if the file system has no room.
    pub fn reserve(&mut self, size_bytes: u64) -> Result<(), FileError> {
        if self.created {
            self.file.reserve(size_bytes)?;
            self.size_bytes = size_bytes;
        }
        Ok(())
    }

    pub fn is_created(&self) -> bool {
        self.created
    }

    pub fn direct(&self) -> &Capability {
        &self.direct
    }

    pub fn file(&self) -> &BlockFile {
        &self.file
    }

    /// Removes the file of a disk that was created; a device is left as it is.
    pub fn remove(&self) {
        if !self.file.is_device() {
            // It may have been removed already.
            let _ = self.file.remove();
        }
    }
}

fn open_file(place: &Path, direct: bool) -> Result<BlockFile, FileError> {
    let refused = |source| FileError::Open { path: place.to_owned(), direct, source };
    let (dir, name) = HeldDir::hold_parent(place).map_err(refused)?;
    let dir = Arc::new(dir);
    BlockFile::open_in(&dir, name.as_os_str(), Access::ReadWrite, direct)
}

impl Disk for FileDisk {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        move_all(self, "read", offset, out.len(), |at| {
            self.file.read_at(offset + at as u64, &mut out[at..])
        })
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        move_all(self, "write", offset, data.len(), |at| {
            self.file.write_at(offset + at as u64, &data[at..])
        })
    }

    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        move_all(self, "write", offset, data.len(), |at| {
            self.file.write_dsync_at(offset + at as u64, &data[at..])
        })
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.fdatasync().map_err(|errno| DiskError::new(self, "sync", 0, errno))
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn raw(&self) -> Option<&Arc<BlockFile>> {
        Some(&self.file)
    }

    fn is_present(&self) -> bool {
        self.file.is_at_its_path()
    }
}

/// Moves `len` bytes, in as many steps as it takes: `part` moves some of them from a given offset
/// on.
#[inline]
fn move_all(
    disk: &FileDisk,
    operation: &'static str,
    offset: u64,
    len: usize,
    mut part: impl FnMut(usize) -> Result<usize, i32>,
) -> Result<(), DiskError> {
    let mut done = 0;
    while done < len {
        match part(done) {
            Ok(0) => return Err(DiskError::short(disk, operation, offset)),
            Ok(bytes) => done += bytes,
            Err(errno) => return Err(DiskError::new(disk, operation, offset, errno)),
        }
    }
    Ok(())
}

/// Locks the file. Waits for the lock of a process that was killed just now.
fn lock(file: &BlockFile) -> Result<(), FileError> {
    let patience = Instant::now() + PATIENCE;
    loop {
        match file.lock_exclusive() {
            Err(FileError::Locked { .. }) if Instant::now() < patience => thread::sleep(LOOK_AGAIN),
            ended => return ended,
        }
    }
}

fn place(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(DISK_FILE) } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_in_place_of_a_disk_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("disk"), dir.path().join("other"));
        drop(FileDisk::create(&path, false).unwrap());
        drop(FileDisk::open(&path, false).unwrap());
        std::fs::rename(&path, &other).unwrap();
        symlink(&other, &path).unwrap();
        let refused = FileDisk::open(&path, false).unwrap_err().to_string();
        assert!(refused.contains("disk"), "{refused}");
    }
}
