//! Pages that this process adds to the page cache of files, counted inside the kernel. docs/bpf.md
//! has the definitions.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::load::Loaded;
use super::table::Table;
use super::watch::own;
use super::{BpfError, object, on, open, spent};

/// Files that can be watched at the same time.
pub const FILES_MAX: usize = 64;

/// From linux/magic.h.
const OVERLAYFS_SUPER_MAGIC: i64 = 0x794c_7630;

/// Counts pages until it is dropped.
#[derive(Debug)]
pub struct PageTracer {
    /// Descriptors of the files, each plus one, followed by zeros.
    descriptors: Table<u32, u32>,
    added: Table<u32, u64>,
    /// The program finds the files by these descriptors.
    files: Vec<(PathBuf, File)>,
    loaded: Loaded,
}

impl PageTracer {
    /// Starts without any file. Fails when the kernel does not accept the program.
    pub fn start() -> Result<Self, BpfError> {
        let mut loaded = Loaded::new(object!("pages"))?;
        own(&loaded, true)?;
        loaded.attach(&["mm_filemap_add_to_page_cache"], [])?;
        Ok(Self {
            descriptors: open(&loaded, "descriptors")?,
            added: open(&loaded, "added")?,
            files: Vec::new(),
            loaded,
        })
    }

    /// Counts the pages of this file or device too from now on. Fails when it cannot be opened,
    /// when there are too many, and on an overlay file system, whose files have their pages in
    /// those of the file system below.
    pub fn watch(&mut self, path: &Path) -> Result<(), BpfError> {
        let error = |why: String| BpfError::File { path: path.to_owned(), why };
        // A device may be named by a symbolic link that root owns; a link of another user is not
        // followed.
        let is_link_of_trust = crate::path::look_at_name(path)
            .is_ok_and(|it| it.is_symlink() && crate::path::is_trusted(it.uid()));
        let how = if is_link_of_trust { 0 } else { libc::O_NOFOLLOW };
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK | how);
        let file = options.open(path).map_err(|e| error(e.to_string()))?;
        let found = rustix::fs::fstatfs(&file).map_err(|e| error(e.to_string()))?;
        if found.f_type == OVERLAYFS_SUPER_MAGIC {
            return Err(error("an overlay keeps its pages in another file".to_owned()));
        }
        if self.files.len() == FILES_MAX {
            return Err(error(format!("{FILES_MAX} files are watched already")));
        }
        self.files.push((path.to_owned(), file));
        self.apply()
    }

    /// Stops counting the pages of a file, which may then be removed.
    pub fn forget(&mut self, path: &Path) -> Result<(), BpfError> {
        let (gone, kept) = self.files.drain(..).partition(|(known, _)| known == path);
        self.files = kept;
        let applied = self.apply();
        // Closed only now: the descriptor number may be reused for another file.
        drop::<Vec<_>>(gone);
        applied
    }

    /// Returns the number of pages that this process has added so far.
    pub fn added_pages(&self) -> Result<u64, BpfError> {
        let added = self.added.get(&0).map_err(on("read", "added"))?;
        Ok(added.unwrap_or(0))
    }

    /// Returns the measured runs of the program and the nanoseconds that they took, if the kernel
    /// measures it.
    pub fn spent(&self) -> Option<(u64, u64)> {
        spent(&self.loaded)
    }

    fn apply(&self) -> Result<(), BpfError> {
        let used = self.files.iter().map(|(_, file)| file.as_raw_fd().unsigned_abs() + 1);
        let all = used.chain(std::iter::repeat(0)).take(FILES_MAX);
        (0..).zip(all).try_for_each(|(index, descriptor)| {
            self.descriptors.set(&index, &descriptor).map_err(on("write", "descriptors"))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::Command;

    use blockstone_testkit::{ScratchDir, require};

    use super::*;
    use crate::file::{Access, BlockFile};

    const BYTES: usize = 1 << 20;
    const PAGES: u64 = BYTES as u64 / 4096;

    fn evict(path: &Path) {
        let file = BlockFile::open(path, Access::ReadWrite, false).unwrap();
        file.fsync().unwrap();
        file.drop_cached().unwrap();
    }

    #[test]
    fn pages_that_this_process_adds_are_counted_and_those_of_others_are_not() {
        require!(Bpf);
        let scratch = ScratchDir::on_disk().unwrap();
        let (path, other) = (scratch.path().join("watched"), scratch.path().join("other"));
        for path in [&path, &other] {
            std::fs::write(path, vec![7; BYTES]).unwrap();
            evict(path);
        }
        let mut tracer = PageTracer::start().unwrap();
        std::fs::read(&other).unwrap();
        evict(&other);
        tracer.watch(&path).unwrap();
        assert_eq!(tracer.added_pages().unwrap(), 0);
        // Read-ahead may make large folios: pages are counted, not folios.
        std::fs::read(&path).unwrap();
        std::fs::read(&other).unwrap();
        assert_eq!(tracer.added_pages().unwrap(), PAGES);
        evict(&path);
        assert!(Command::new("cat").arg(&path).output().unwrap().status.success());
        assert_eq!(tracer.added_pages().unwrap(), PAGES, "added by another process");
        // A read of cached pages adds none.
        std::fs::read(&path).unwrap();
        assert_eq!(tracer.added_pages().unwrap(), PAGES);
        evict(&path);
        let threads: Vec<_> = (0..4).map(|_| path.clone()).collect();
        std::thread::scope(|scope| {
            for path in &threads {
                scope.spawn(move || {
                    let mut bytes = Vec::new();
                    File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
                });
            }
        });
        assert_eq!(tracer.added_pages().unwrap(), 2 * PAGES, "threads of this process");
        tracer.forget(&path).unwrap();
        evict(&path);
        std::fs::read(&path).unwrap();
        assert_eq!(tracer.added_pages().unwrap(), 2 * PAGES);
    }

    #[test]
    fn what_cannot_be_watched_is_said() {
        require!(Bpf);
        let mut tracer = PageTracer::start().unwrap();
        let error = tracer.watch(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("watch the page cache of /nowhere"), "{error}");
        (0..FILES_MAX).for_each(|_| tracer.watch(Path::new("/dev/null")).unwrap());
        let error = tracer.watch(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(error.contains("64 files are watched"), "{error}");
    }
}
