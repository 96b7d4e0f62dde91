//! The directory that a subset is written into until it is complete.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use blockstone_sys::held::HeldDir;
use blockstone_sys::scratch::ScratchDir;
use blockstone_sys::secret;

use crate::failure::Failure;

const PREFIX: &str = ".blockstone-subset-";

/// A directory that is removed unless it is finished.
pub struct Unfinished {
    above: HeldDir,
    /// Name in `above` until it is finished.
    name: String,
    /// `None` once it is finished.
    scratch: Option<ScratchDir>,
    dir: HeldDir,
}

impl Unfinished {
    /// Creates it next to the directory that it will become, or with other temporary files.
    pub fn beside(path: Option<&Path>) -> Result<Self> {
        let (above, shown) = match path {
            None => (HeldDir::hold(&std::env::temp_dir()), std::env::temp_dir()),
            Some(path) => (hold_parent(path).map(|(above, _)| above), path.to_owned()),
        };
        above.and_then(Self::make).map_err(|error| {
            anyhow!(Failure::new(
                format!("write a directory for {}: {error}", shown.display()),
                "name one where this user may write"
            ))
        })
    }

    fn make(above: HeldDir) -> io::Result<Self> {
        let name = format!("{PREFIX}{:016x}", u64::from_be_bytes(secret::random()?));
        let scratch = ScratchDir::create_in(&above, &name)?;
        let dir = HeldDir::of(scratch.as_fd().try_clone_to_owned()?, &above.path().join(&name));
        Ok(Self { above, name, scratch: Some(scratch), dir })
    }

    pub fn dir(&self) -> &HeldDir {
        &self.dir
    }

    /// Gives it its final name.
    pub fn finish(mut self, path: &Path) -> Result<()> {
        self.rename(path).map_err(|error| {
            anyhow!(Failure::new(
                format!("write {}: {error}", path.display()),
                "name a new directory"
            ))
        })
    }

    fn rename(&mut self, path: &Path) -> io::Result<()> {
        let name = path.file_name().map(Path::new).ok_or(io::ErrorKind::InvalidInput)?;
        self.above.rename(Path::new(&self.name), name)?;
        let identity = |file: File| file.metadata().map(|it| (it.dev(), it.ino()));
        if identity(self.above.within(name)?.file()?)? != identity(self.dir.file()?)? {
            return Err(io::Error::other("another user replaced it as it was made"));
        }
        self.scratch.take().map_or(Ok(()), ScratchDir::keep)
    }
}

/// Opens the directory that holds the last component of a path, even if that ends in a slash.
pub fn hold_parent(path: &Path) -> io::Result<(HeldDir, PathBuf)> {
    HeldDir::hold_parent(path.components().as_path())
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // If it cannot be removed, it is left under its temporary name.
        let _ = self.scratch.take().map(|scratch| scratch.remove());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_removed_unless_it_is_finished() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("subset");
        let names = || blockstone_sys::path::names(root.path()).unwrap();
        let made = Unfinished::beside(Some(&path)).unwrap();
        made.dir().make_dir(Path::new("data")).unwrap();
        made.dir().create_new(Path::new("data/a")).unwrap();
        drop(made);
        assert!(names().is_empty());
        let made = Unfinished::beside(Some(&path)).unwrap();
        made.dir().create_new(Path::new("a")).unwrap();
        made.finish(&root.path().join("subset/")).unwrap();
        assert_eq!(names(), ["subset"]);
        assert_eq!(blockstone_sys::path::names(&path).unwrap(), ["a"]);
    }
}
