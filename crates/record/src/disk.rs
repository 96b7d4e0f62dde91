//! The individual file operations of a recording, behind a trait, so that a test can end the run
//! after any of them and examine what is left.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use blockstone_base::text::parent_dir;
use blockstone_sys::held::HeldDir;

use crate::error::RecordError;

pub(crate) trait Output: Write + Send {
    /// Waits until all written bytes are on stable storage.
    fn sync(&mut self) -> io::Result<()>;
}

/// File operations. Each is atomic if the process dies; only [`Disk::sync_dir`] makes earlier
/// renames and removals survive a power loss.
pub(crate) trait Disk: Send {
    /// Creates a directory and its parents.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the entries of a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Returns the directory that was created first, which contains all others.
    fn held(&self) -> io::Result<&HeldDir>;

    /// Opens a file for reading.
    fn open(&self, path: &Path) -> io::Result<File> {
        let held = self.held()?;
        held.read(below(held, path)?)
    }
}

/// The operating system.
#[derive(Default)]
pub(crate) struct System(OnceLock<HeldDir>);

impl System {
    /// Opens or creates `dir`. Fails if others could redirect writes to it.
    pub fn hold(dir: &Path) -> Result<Self, RecordError> {
        let disk = Self::default();
        create_dir_on(&disk, dir)?;
        Ok(disk)
    }
}

fn below<'a>(held: &HeldDir, path: &'a Path) -> io::Result<&'a Path> {
    path.strip_prefix(held.path()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

impl Output for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Disk for System {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if self.0.get().is_none() {
            let _ = self.0.set(HeldDir::make(path)?);
        }
        let held = self.held()?;
        let below = below(held, path)?;
        if below.as_os_str().is_empty() { Ok(()) } else { held.make_dir(below) }
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let held = self.held()?;
        Ok(Box::new(held.create(below(held, path)?)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let held = self.held()?;
        held.rename(below(held, from)?, below(held, to)?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let held = self.held()?;
        held.remove(below(held, path)?)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let held = self.held()?;
        match below(held, path) {
            Ok(below) => held.sync(below),
            // A parent directory that was created with it.
            Err(_) => HeldDir::hold(path)?.sync(Path::new(".")),
        }
    }

    fn held(&self) -> io::Result<&HeldDir> {
        self.0.get().ok_or(io::ErrorKind::NotFound.into())
    }
}

/// Creates a directory and its parents, so that they survive a power loss.
pub fn create_dir(path: &Path) -> Result<(), RecordError> {
    System::hold(path).map(|_| ())
}

pub(crate) fn create_dir_on(disk: &dyn Disk, path: &Path) -> Result<(), RecordError> {
    // Includes the last one even if it exists: its creator may not have synced it yet.
    let is_new = |dir: &&Path| *dir == path || !dir.as_os_str().is_empty() && !dir.exists();
    let new: Vec<&Path> = path.ancestors().take_while(is_new).collect();
    disk.create_dir(path).map_err(RecordError::io("create directory", path))?;
    for dir in new {
        match disk.sync_dir(parent_dir(dir)) {
            // It may be writable but not readable: its entries become durable some time later.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced.map_err(RecordError::io("sync directory of", dir))?,
        }
    }
    Ok(())
}

/// Writes `bytes` to the file `name` of a recording or of another directory of this user, entirely
/// or not at all. Creates the directory if there is none. Fails if others could redirect writes to
/// it.
pub fn write_file(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
    let path = dir.join(name);
    publish(&System::hold(dir)?, &path, |out| {
        out.write_all(bytes).map_err(RecordError::io("write", &path))
    })
}

/// Makes `path` appear with everything that `write` writes, or not at all: the data is written next
/// to it under a name that no reader looks at, synced and renamed, and the rename is synced.
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
        disk.sync_dir(parent_dir(path)).map_err(RecordError::io("sync directory of", path))
    })();
    if result.is_err() {
        // Frees the space on a full file system; if that fails too, nothing changes.
        let _ = disk.remove(&temporary);
    }
    result
}

/// Returns the temporary name: `series/.host.parquet.tmp` for `series/host.parquet`.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}
