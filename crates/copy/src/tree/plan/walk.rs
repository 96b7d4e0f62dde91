//! Inspects everything below the sources: one directory is open at a time, so the depth of a tree
//! is limited only by the length of its paths.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_sys::held::HeldDir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::{Entry, Kind, Node, Plan, PlanError, below, unless_special};
use crate::CopyError;
use crate::attributes::{Attributes, Lack, Notes};
use crate::file::Options;
use crate::tree::Failure;

/// Longest path that the kernel accepts (limits.h), without its final zero.
const PATH_BYTES_MAX: usize = 4095;

/// Directory that holds a named source, and how much of the source's path leads there.
#[derive(Clone)]
struct Base {
    dir: Arc<HeldDir>,
    len: usize,
}

/// A directory that was found but not entered yet.
struct Found {
    source: PathBuf,
    target: PathBuf,
}

pub(super) struct Walk {
    pub(super) plan: Plan,
    /// Files with several names, and the indices of their entries.
    seen: HashMap<Node, usize>,
    bases: HashMap<PathBuf, Arc<HeldDir>>,
}

impl Walk {
    pub(super) fn into(root: HeldDir) -> Self {
        let plan = Plan {
            root,
            entries: Vec::new(),
            bytes: 0,
            data_bytes: 0,
            failed: Vec::new(),
            notes: Notes::default(),
        };
        Self { plan, seen: HashMap::new(), bases: HashMap::new() }
    }

    /// Walks a source named on the command line.
    pub(super) fn named(
        &mut self,
        source: &Path,
        name: &OsStr,
        options: &Options,
    ) -> Result<(), PlanError> {
        let refused = |error: io::Error| PlanError::Source {
            path: source.to_owned(),
            // The directory of each source is held open.
            hint: if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) {
                "name sources of fewer directories, or raise the limit on open files (ulimit -n)"
            } else {
                "check the name, and that this user can read it"
            },
            source: error,
        };
        let base = self.base(source).map_err(refused)?;
        let stat = statat(&base.dir, name_in(source, &base), AtFlags::SYMLINK_NOFOLLOW);
        let stat = stat.map_err(|error| refused(error.into()))?;
        let target = self.plan.root.path().join(name);
        match statat(&self.plan.root, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(error) => {
                let hint = "check the name, and that this user can read the directory";
                return Err(PlanError::Target { path: target, source: error.into(), hint });
            }
            Ok(there) if Node::of(&there) == Node::of(&stat) => {
                return Err(PlanError::Same { source_path: source.to_owned(), target });
            }
            Ok(there) => {
                unless_special(FileType::from_raw_mode(there.st_mode), &target)?;
                if !options.force && !options.resume {
                    return Err(PlanError::Exists { path: target });
                }
            }
        }
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if is_directory && self.root_is_in(Node::of(&stat)).map_err(refused)? {
            return Err(PlanError::Inside { source_path: source.to_owned(), target });
        }
        self.all(&base, source, Path::new(name));
        Ok(())
    }

    /// Returns the directory from which a source is reached: the one that holds its name, or the
    /// source itself if it is named without one, as in `..`, or with a trailing slash.
    fn base(&mut self, source: &Path) -> io::Result<Base> {
        let bytes = source.as_os_str().as_bytes();
        let is_itself = bytes.ends_with(b"/") || bytes.ends_with(b"/.");
        let (path, len) = match source.file_name().filter(|_| !is_itself) {
            Some(name) => (source.parent().unwrap_or(Path::new("")), bytes.len() - name.len()),
            None => (source, bytes.len()),
        };
        if let Some(dir) = self.bases.get(path) {
            return Ok(Base { dir: Arc::clone(dir), len });
        }
        let reached = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let dir = Arc::new(HeldDir::reach(reached)?);
        self.bases.insert(path.to_owned(), Arc::clone(&dir));
        Ok(Base { dir, len })
    }

    /// Returns whether the root is this directory, or below it.
    fn root_is_in(&self, directory: Node) -> io::Result<bool> {
        let mut at: OwnedFd = self.plan.root.as_fd().try_clone_to_owned()?;
        loop {
            let here = Node::of(&fstat(&at)?);
            if here == directory {
                return Ok(true);
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let above = openat(&at, "..", flags, Mode::empty())?;
            if Node::of(&fstat(&above)?) == here {
                return Ok(false);
            }
            at = above;
        }
    }

    /// Adds a source and everything below it, directories before their contents. Anything that
    /// cannot be read is noted.
    fn all(&mut self, base: &Base, source: &Path, target: &Path) {
        let first = Found { source: source.to_owned(), target: target.to_owned() };
        let mut left = Vec::new();
        match self.look(base, (base.dir.as_fd(), name_in(source, base)), &first) {
            Ok(true) => left.push(first),
            Ok(false) => {}
            Err(error) => self.fails(source, error.into()),
        }
        while let Some(found) = left.pop() {
            match self.enter(base, &found) {
                Ok(directories) => left.extend(directories.into_iter().rev()),
                Err(error) => self.fails(&found.source, error),
            }
        }
    }

    fn fails(&mut self, source: &Path, error: io::Error) {
        let error = CopyError::io("read", source)(error);
        self.plan.failed.push(Failure { path: source.to_owned(), error });
    }

    /// Adds the contents of a directory. Returns the directories in it.
    fn enter(&mut self, base: &Base, found: &Found) -> io::Result<Vec<Found>> {
        // Its entries would exceed the longest path.
        if found.source.as_os_str().len() > PATH_BYTES_MAX {
            return Err(Errno::NAMETOOLONG.into());
        }
        let inner = base.dir.within(below(&found.source, base.len))?;
        let kind = Kind::Directory(Attributes::of(&inner)?);
        self.push(base, found, &fstat(&inner)?, kind);
        let mut names = inner.names()?;
        names.sort();
        let mut directories = Vec::new();
        for name in names {
            let source = found.source.join(&name);
            let found = Found { target: found.target.join(&name), source };
            match self.look(base, (inner.as_fd(), &name), &found) {
                Ok(true) => directories.push(found),
                Ok(false) => {}
                Err(error) => self.fails(&found.source, error.into()),
            }
        }
        Ok(directories)
    }

    /// Returns whether it is a directory; anything else is planned.
    fn look(
        &mut self,
        base: &Base,
        (dir, name): (BorrowedFd<'_>, &OsStr),
        found: &Found,
    ) -> rustix::io::Result<bool> {
        let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let node = Node::of(&stat);
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return Ok(true),
            FileType::Socket => {
                let why = "the program that listens on it makes it";
                self.plan.notes.add(Lack::Socket, &found.source, &why);
                return Ok(false);
            }
            _ if stat.st_nlink > 1 && self.seen.contains_key(&node) => {
                let first = self.seen[&node];
                self.plan.entries[first].names += 1;
                Kind::Same(first)
            }
            FileType::RegularFile => Kind::File,
            FileType::Symlink => {
                let to = readlinkat(dir, name, Vec::new())?;
                Kind::Link(OsStr::from_bytes(to.as_bytes()).to_owned(), Attributes::of_stat(&stat))
            }
            special => Kind::Special(special, stat.st_rdev, Attributes::of_stat(&stat)),
        };
        if stat.st_nlink > 1 {
            self.seen.entry(node).or_insert(self.plan.entries.len());
        }
        let is_file = matches!(kind, Kind::File);
        self.push(base, found, &stat, kind);
        if is_file {
            let bytes = stat.st_size as u64;
            self.count(bytes, bytes.min(stat.st_blocks as u64 * 512));
        }
        Ok(false)
    }

    fn push(&mut self, base: &Base, found: &Found, stat: &Stat, kind: Kind) {
        self.plan.entries.push(Entry {
            source: found.source.clone(),
            base: Arc::clone(&base.dir),
            base_len: base.len,
            names: 1,
            target: found.target.clone(),
            node: Node::of(stat),
            kind,
            bytes: 0,
            data_bytes: 0,
        });
    }

    /// Sets the bytes of the entry that was pushed last.
    fn count(&mut self, bytes: u64, data_bytes: u64) {
        self.plan.bytes += bytes;
        self.plan.data_bytes += data_bytes;
        if let Some(entry) = self.plan.entries.last_mut() {
            (entry.bytes, entry.data_bytes) = (bytes, data_bytes);
        }
    }
}

/// Returns the name of a source in the directory from which it is reached.
fn name_in<'a>(source: &'a Path, base: &Base) -> &'a OsStr {
    let name = below(source, base.len).as_os_str();
    if name.is_empty() { OsStr::new(".") } else { name }
}
