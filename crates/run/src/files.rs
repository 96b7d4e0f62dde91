//! The files a run creates: removed at its end, unless they are kept. Devices are left empty.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use blockstone_measure::{contents, scratch};
use blockstone_sys::held::HeldDir;

use crate::error::RunError;

/// The files and devices of a run. Once adopted, they are removed on drop.
#[derive(Debug)]
pub struct Files {
    id: u64,
    paths: Vec<PathBuf>,
    devices: Vec<PathBuf>,
    noises: u32,
    /// Whether the target may have written to the devices.
    started: bool,
    adopted: bool,
}

impl Files {
    /// Starts without any files; `id` is the identity of the run.
    pub fn new(id: u64) -> Self {
        Self {
            id,
            paths: Vec::new(),
            devices: Vec::new(),
            noises: 0,
            started: false,
            adopted: false,
        }
    }

    /// Returns the path of the next disk's file in `dir`. Nothing is created.
    pub fn file_in(&mut self, dir: &Path) -> PathBuf {
        let path = dir.join(scratch::name(self.id, &purpose(self.paths.len())));
        self.paths.push(path.clone());
        path
    }

    /// Returns the path of the next noise writer's file in `dir`. Its creator removes it.
    pub fn noise_in(&mut self, dir: &Path) -> PathBuf {
        self.noises += 1;
        dir.join(scratch::name(self.id, &format!("noise{}", self.noises - 1)))
    }

    pub fn device(&mut self, path: &Path) -> PathBuf {
        self.devices.push(path.to_owned());
        path.to_owned()
    }

    /// Records that the target writes to the devices from now on, and clears their ends if it
    /// fails.
    pub fn start(&mut self) {
        self.started = true;
    }

    /// Makes this run the owner of all files, which are removed on drop. Before that, their creator
    /// cleans up: a file of that name may not be ours.
    pub fn adopt(&mut self) {
        self.adopted = true;
    }

    /// Renames the files so that no later run removes them, and returns the new paths. Fails when
    /// one cannot be renamed; the remaining ones are removed.
    pub fn keep(&mut self) -> Result<Vec<PathBuf>, RunError> {
        let mut kept = std::mem::take(&mut self.devices);
        for (index, path) in self.paths.iter().enumerate() {
            let target = path.with_file_name(scratch::kept_name(self.id, &purpose(index)));
            match rename(path, &target) {
                Ok(()) => kept.push(target),
                // A disk that was removed during the run, but its mirrors are kept.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(RunError::Keep { path: path.clone(), source }),
            }
        }
        self.paths.clear();
        Ok(kept)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if self.adopted {
            // They may have been removed already.
            self.paths.iter().for_each(|path| drop(blockstone_sys::scratch::remove(path)));
            self.devices.iter().for_each(|device| contents::clear(device));
        } else if self.started {
            self.devices.iter().for_each(|device| contents::mark_if_clear(device));
        }
    }
}

/// Renames within the directory that the path leads to now.
fn rename(path: &Path, to: &Path) -> io::Result<()> {
    let (dir, name) = HeldDir::hold_parent(path)?;
    dir.rename_new(&name, Path::new(to.file_name().unwrap_or_default()))
}

fn purpose(index: usize) -> String {
    format!("disk{index}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_with_their_run_and_kept_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        for (adopt, keep, left) in [(true, false, 0), (true, true, 2), (false, false, 4)] {
            let mut files = Files::new(7 + u64::from(adopt));
            for _ in 0..2 {
                let path = files.file_in(dir.path());
                std::fs::write(path, b"data").unwrap();
            }
            if adopt {
                files.adopt();
            }
            let kept = if keep { files.keep().unwrap() } else { Vec::new() };
            drop(files);
            assert!(kept.iter().all(|path| path.exists()));
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), left);
        }
    }
}
