//! A disk in a file or on a block device, locked against a second user.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::Capability;
use blockstone_sys::file::{Access, BlockFile, FileError};

use super::{Disk, DiskError};

/// The file that a directory holds when it serves as a disk.
pub const DISK_FILE: &str = "blockstone.disk";

/// The kernel takes down the rings of a killed process after it is gone, and keeps its files locked
/// until then.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A file or block device as a disk. It is locked for as long as it is open.
#[derive(Debug)]
pub struct FileDisk {
    file: Arc<BlockFile>,
    name: String,
    size_bytes: u64,
    created: bool,
    direct: Capability,
}

impl FileDisk {
    /// Opens the disk at `path`: the device, the file, or [`DISK_FILE`] in the directory.
    ///
    /// # Errors
    /// When it is not there, or another process has it.
    pub fn open(path: &Path, direct: bool) -> Result<Self, FileError> {
        let place = place(path);
        let (file, direct) = with_fallback(direct, |direct| {
            // Claiming a device also prevents mounts while it is open.
            if is_device(&place) {
                BlockFile::open_device(&place, direct)
            } else {
                BlockFile::open(&place, Access::ReadWrite, direct)
            }
        })?;
        Self::locked(path, file, direct, false)
    }

    /// Makes the disk at `path`: a device is opened, anything else created empty, to be given its
    /// size by [`FileDisk::reserve`].
    ///
    /// # Errors
    /// When it exists already, cannot be created, or is in use.
    pub fn create(path: &Path, direct: bool) -> Result<Self, FileError> {
        if is_device(path) {
            return Self::open(path, direct);
        }
        let place = place(path);
        let (file, direct) = with_fallback(direct, |direct| BlockFile::create_new(&place, direct))?;
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

    /// Gives a created disk its size; a device keeps its own.
    ///
    /// # Errors
    /// When the file system has no room.
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

    /// Whether the page cache is bypassed, and if not, why.
    pub fn direct(&self) -> &Capability {
        &self.direct
    }

    pub fn file(&self) -> &BlockFile {
        &self.file
    }

    /// Removes the file of a disk that was created; a device stays as it is.
    pub fn remove(&self) {
        if !self.file.is_device() {
            // Gone already is as good as removed now.
            let _ = std::fs::remove_file(self.file.path());
        }
    }
}

impl Disk for FileDisk {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        let mut done = 0;
        while done < out.len() {
            match self.file.read_at(offset + done as u64, &mut out[done..]) {
                Ok(0) => return Err(DiskError::short(self, "read", offset)),
                Ok(bytes) => done += bytes,
                Err(errno) => return Err(DiskError::new(self, "read", offset, errno)),
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        write_all(self, offset, data, |at, rest| self.file.write_at(at, rest))
    }

    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        write_all(self, offset, data, |at, rest| self.file.write_dsync_at(at, rest))
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

#[inline]
fn write_all(
    disk: &FileDisk,
    offset: u64,
    data: &[u8],
    write: impl Fn(u64, &[u8]) -> Result<usize, i32>,
) -> Result<(), DiskError> {
    let mut done = 0;
    while done < data.len() {
        match write(offset + done as u64, &data[done..]) {
            Ok(0) => return Err(DiskError::short(disk, "write", offset)),
            Ok(bytes) => done += bytes,
            Err(errno) => return Err(DiskError::new(disk, "write", offset, errno)),
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

fn is_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device())
}

/// Opens direct if asked to; a file system that does not know `O_DIRECT` is used through the page
/// cache, and says so.
fn with_fallback(
    direct: bool,
    open: impl Fn(bool) -> Result<BlockFile, FileError>,
) -> Result<(BlockFile, Capability), FileError> {
    if !direct {
        return Ok((open(false)?, Capability::degraded("the page cache was asked for")));
    }
    match open(true) {
        Ok(file) => Ok((file, Capability::Full)),
        Err(FileError::Open { source, .. } | FileError::Create { source, .. })
            if source.kind() == io::ErrorKind::InvalidInput =>
        {
            let why = "the file system refuses O_DIRECT; every I/O goes through the page cache";
            Ok((open(false)?, Capability::degraded(why)))
        }
        Err(error) => Err(error),
    }
}
