//! The directory that a subset is written into until it is whole.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use blockstone_sys::held::HeldDir;
use blockstone_sys::scratch::ScratchDir;
use blockstone_sys::secret;

const PREFIX: &str = ".blockstone-subset-";

/// A directory that is removed unless it is finished.
pub struct Unfinished {
    /// None when it is finished.
    scratch: Option<ScratchDir>,
    dir: HeldDir,
}

impl Unfinished {
    /// Beside the directory that it becomes, or where temporary files are.
    pub fn beside(dir: Option<&Path>) -> Result<Self> {
        let above = match dir {
            None => std::env::temp_dir(),
            Some(dir) => match dir.parent() {
                Some(above) if !above.as_os_str().is_empty() => above.to_owned(),
                _ => PathBuf::from("."),
            },
        };
        Self::make(&above).map_err(|error| {
            anyhow!(
                "write a directory in {}: {error}\nhint: name one where this user may write",
                above.display()
            )
        })
    }

    fn make(above: &Path) -> io::Result<Self> {
        let name = format!("{PREFIX}{:016x}", u64::from_be_bytes(secret::random()?));
        let path = above.join(name);
        let scratch = ScratchDir::create(&path, None)?;
        let dir = HeldDir::of(scratch.as_fd().try_clone_to_owned()?, &path);
        Ok(Self { scratch: Some(scratch), dir })
    }

    pub fn dir(&self) -> &HeldDir {
        &self.dir
    }

    /// Gives it the name that it was to have.
    pub fn finish(mut self, path: &Path) -> Result<()> {
        self.rename(path).map_err(|error| {
            anyhow!("write {}: {error}\nhint: name a new directory", path.display())
        })
    }

    fn rename(&mut self, path: &Path) -> io::Result<()> {
        // Without a slash at the end.
        let (above, name) = HeldDir::hold_parent(path.components().as_path())?;
        let own = self.dir.path().file_name().ok_or(io::ErrorKind::InvalidInput)?;
        above.rename(Path::new(own), &name)?;
        let identity = |file: std::fs::File| file.metadata().map(|it| (it.dev(), it.ino()));
        if identity(above.within(&name)?.file()?)? != identity(self.dir.file()?)? {
            return Err(io::Error::other("another user replaced it as it was made"));
        }
        self.scratch.take().map_or(Ok(()), ScratchDir::keep)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // What cannot be removed is left under its name.
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
