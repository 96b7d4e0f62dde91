//! The files under test of one or several targets, used together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_base::Capability;
use blockstone_base::units::Bytes;
use blockstone_engine::{Medium, Stripes};
use blockstone_sys::file::{BlockFile, FileError};

use crate::testfile::{AppendFile, TestFile};

/// At least one file; either all or none created by Blockstone.
#[derive(Debug)]
pub struct TestSet(Vec<TestFile>);

impl TestSet {
    pub fn new(files: Vec<TestFile>) -> Self {
        Self(files)
    }

    /// Returns the file, if it is the only one and was created by this run.
    pub fn into_created(mut self) -> Option<TestFile> {
        let only = self.0.pop().filter(|_| self.0.is_empty());
        only.filter(TestFile::is_created)
    }

    pub fn files(&self) -> &[TestFile] {
        &self.0
    }

    pub fn medium(&self) -> Medium {
        medium(self.0.iter().map(|file| Arc::clone(file.main())).collect())
    }

    /// Returns whether Blockstone wrote their content.
    pub fn ours(&self) -> bool {
        self.0.iter().all(TestFile::ours)
    }

    pub fn needs_layout(&self) -> bool {
        self.0.iter().any(TestFile::needs_layout)
    }

    /// Returns the identity written into every block's stamp.
    pub fn file_id(&self) -> u64 {
        self.0.first().map_or(0, |file| file.file_id)
    }

    /// Returns whether the page cache is bypassed on all of them, and if not, on which and why.
    pub fn direct(&self, paths: &[String]) -> Capability {
        let degraded = self.0.iter().zip(paths).find_map(|(file, path)| match &file.direct {
            Capability::Degraded { why } if self.0.len() > 1 => {
                Some(Capability::degraded(format!("{path}: {why}")))
            }
            Capability::Degraded { .. } => Some(file.direct.clone()),
            Capability::Full => None,
        });
        degraded.unwrap_or(Capability::Full)
    }

    /// Returns a file that has disappeared, if any.
    pub fn vanished(&self) -> Option<&Path> {
        self.0.iter().find(|file| !file.main().is_at_its_path()).map(TestFile::path)
    }

    /// Opens the same files through the page cache and evicts them from it, then reads the first
    /// `cached` bytes of all back into it.
    pub fn buffered(&self, cached: Bytes) -> Result<Medium, FileError> {
        let share = self.share(cached);
        let files = self.0.iter().map(|file| file.buffered(share));
        files.collect::<Result<_, _>>().map(medium)
    }

    /// Creates second files next to them that start empty and are removed when dropped.
    pub fn appendable(&self, purpose: &str) -> Result<AppendSet, FileError> {
        let create = |file: &TestFile| file.appendable(purpose, file.main().is_direct());
        self.0.iter().map(create).collect::<Result<_, _>>().map(AppendSet)
    }

    /// Creates second files that are written through the page cache, with `reserved` bytes
    /// preallocated over all of them.
    pub fn reserved(&self, purpose: &str, reserved: Bytes) -> Result<AppendSet, FileError> {
        let create = |file: &TestFile| {
            let second = file.appendable(purpose, false)?;
            if reserved > Bytes(0) {
                second.0.reserve(self.share(reserved).get())?;
            }
            Ok(second)
        };
        self.0.iter().map(create).collect::<Result<_, _>>().map(AppendSet)
    }

    /// Truncates the files to the total size that was laid out.
    pub fn cut(&self, size: Bytes) -> Result<(), FileError> {
        let share = self.share(size);
        self.0.iter().try_for_each(|file| file.cut(share))
    }

    pub fn flush(&self) -> Result<(), FileError> {
        self.0
            .iter()
            .try_for_each(|file| file.main().fsync().map_err(|errno| file.io_error("flush", errno)))
    }

    /// Renames the files so that no later run removes them, and returns the new paths.
    pub fn keep(&mut self) -> Result<Vec<PathBuf>, FileError> {
        self.0.iter_mut().map(TestFile::keep).collect()
    }

    /// Returns the share of `all` that each file has.
    fn share(&self, all: Bytes) -> Bytes {
        Bytes(all.get().div_ceil(self.0.len() as u64))
    }
}

/// Second files of all targets.
#[derive(Debug)]
pub struct AppendSet(Vec<AppendFile>);

impl AppendSet {
    pub fn medium(&self) -> Medium {
        medium(self.0.iter().map(|file| Arc::clone(&file.0)).collect())
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|file| file.0.path())
    }

    pub fn flush(&self) -> Result<(), FileError> {
        self.0.iter().try_for_each(|AppendFile(file)| {
            let error = |errno| file.error("flush", std::io::Error::from_raw_os_error(errno));
            file.fsync().map_err(error)
        })
    }
}

fn medium(mut files: Vec<Arc<BlockFile>>) -> Medium {
    match files.len() {
        1 => Medium::File(files.remove(0)),
        _ => Medium::Files(Stripes::new(files)),
    }
}
