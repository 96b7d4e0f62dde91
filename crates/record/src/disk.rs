//! The file operations a recording is made of, one by one, behind a trait: so that a test can end
//! the run after any of them and look at what is left.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::RecordError;

pub(crate) trait Output: Write + Send {
    /// Waits until all written bytes are on stable storage.
    fn sync(&mut self) -> io::Result<()>;
}

/// The operations. Each is atomic for a process that dies; only [`Disk::sync_dir`] makes the
/// renames and removals before it survive a power loss.
pub(crate) trait Disk: Send {
    /// Creates a directory and those above it.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the entries of a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

pub(crate) struct System;

impl Output for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Disk for System {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(File::create(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

/// Creates a directory and those above it, so that they survive a power loss.
pub fn create_dir(path: &Path) -> Result<(), RecordError> {
    create_dir_on(&System, path)
}

pub(crate) fn create_dir_on(disk: &dyn Disk, path: &Path) -> Result<(), RecordError> {
    // The last one too where it exists: whoever created it a moment ago may not have synced it.
    let is_new = |dir: &&Path| *dir == path || !dir.as_os_str().is_empty() && !dir.exists();
    let new: Vec<&Path> = path.ancestors().take_while(is_new).collect();
    disk.create_dir(path).map_err(RecordError::io("create directory", path))?;
    for dir in new {
        match disk.sync_dir(parent(dir)) {
            // It may be written to and not listed: what is in it becomes durable some time later.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced.map_err(RecordError::io("sync directory of", dir))?,
        }
    }
    Ok(())
}

/// Makes `path` appear with all that `write` writes, or not at all: written beside it under a
/// name that no reader looks at, synced, renamed, and the rename synced.
pub(crate) fn publish(
    disk: &dyn Disk,
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    let temporary = temporary(path);
    let result = (|| {
        let output = disk.create(&temporary).map_err(RecordError::io("create", path))?;
        let mut output = BufWriter::with_capacity(64 << 10, output);
        write(&mut output)?;
        let mut output =
            output.into_inner().map_err(|e| RecordError::io("write", path)(e.into_error()))?;
        output.sync().map_err(RecordError::io("sync", path))?;
        disk.rename(&temporary, path).map_err(RecordError::io("rename", path))?;
        disk.sync_dir(parent(path)).map_err(RecordError::io("sync directory of", path))
    })();
    if result.is_err() {
        // Gives a full file system its space back; that it fails too changes nothing.
        let _ = disk.remove(&temporary);
    }
    result
}

/// `series/host.parquet` is written as `series/.host.parquet.tmp`.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}

pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(here) if here.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}
