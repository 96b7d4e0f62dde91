//! A disk that dies after the Nth operation, or is full after the Nth byte.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use blockstone_sys::held::HeldDir;

use blockstone_base::text::parent_dir;

use crate::disk::{Disk, Output, System};

/// Clones share their state.
#[derive(Clone, Default)]
pub(crate) struct FaultyDisk(Arc<(Mutex<State>, System)>);

#[derive(Default)]
struct State {
    done: usize,
    dies_after: Option<usize>,
    bytes_left: Option<usize>,
    /// Files with bytes that a power loss discards.
    unsynced: BTreeSet<PathBuf>,
    /// Renames that a power loss undoes: the new name and the previous content under it.
    renamed: Vec<(PathBuf, Option<Vec<u8>>)>,
    /// Directories whose names a power loss discards, with everything in them.
    new_dirs: BTreeSet<PathBuf>,
}

struct FaultyOutput {
    disk: FaultyDisk,
    path: PathBuf,
    inner: Box<dyn Output>,
}

impl FaultyDisk {
    /// Creates a disk whose process is killed after this many file operations; a write in progress
    /// is torn.
    pub fn dying_after(operations: usize) -> Self {
        let disk = Self::default();
        disk.state().dies_after = Some(operations);
        disk
    }

    /// Sets the number of bytes that still fit; `None` for no limit.
    pub fn set_free(&self, bytes: Option<usize>) {
        self.state().bytes_left = bytes;
    }

    pub fn operations(&self) -> usize {
        self.state().done
    }

    /// Simulates a power failure: unsynced bytes are lost, and so are unsynced renames, while later
    /// removals may well have reached the disk.
    pub fn lose_power(&self) {
        let mut state = self.state();
        for path in &state.unsynced {
            if path.exists() {
                OpenOptions::new().write(true).truncate(true).open(path).unwrap();
            }
        }
        for (path, before) in state.renamed.drain(..).rev() {
            match before {
                Some(bytes) => fs::write(path, bytes).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
        }
        // Parent directories come first.
        for dir in std::mem::take(&mut state.new_dirs) {
            if dir.exists() {
                fs::remove_dir_all(dir).unwrap();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap()
    }

    fn step(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        if state.dies_after == Some(state.done) {
            return Err(io::Error::other("killed"));
        }
        state.done += 1;
        Ok(state)
    }
}

impl Disk for FaultyDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.step()?;
        let is_new = |dir: &&Path| !dir.exists();
        state.new_dirs.extend(path.ancestors().take_while(is_new).map(Path::to_owned));
        self.0.1.create_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        self.step()?.unsynced.insert(path.to_owned());
        let inner = self.0.1.create(path)?;
        Ok(Box::new(FaultyOutput { disk: self.clone(), path: path.to_owned(), inner }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.step()?;
        if state.unsynced.remove(from) {
            state.unsynced.insert(to.to_owned());
        }
        state.renamed.push((to.to_owned(), fs::read(to).ok()));
        self.0.1.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?.unsynced.remove(path);
        self.0.1.remove(path)
    }

    fn held(&self) -> io::Result<&HeldDir> {
        self.0.1.held()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        // `State` tracks what is durable: waiting for the real disk would only take time.
        let mut state = self.step()?;
        state.renamed.retain(|(to, _)| parent_dir(to) != path);
        state.new_dirs.retain(|dir| parent_dir(dir) != path);
        Ok(())
    }
}

impl Write for FaultyOutput {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let state = self.disk.step();
        let Ok(mut state) = state else {
            self.inner.write_all(&buffer[..buffer.len() / 2])?;
            return Err(io::Error::other("killed"));
        };
        let room = state.bytes_left.unwrap_or(usize::MAX).min(buffer.len());
        if room == 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.bytes_left = state.bytes_left.map(|bytes| bytes - room);
        self.inner.write(&buffer[..room])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Output for FaultyOutput {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.step()?.unsynced.remove(&self.path);
        Ok(())
    }
}
