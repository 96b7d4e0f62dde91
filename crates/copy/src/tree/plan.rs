//! What is to be copied to where, before anything is written: the sources are walked through
//! directories that are held open, and what would go wrong at the end is refused now.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use blockstone_base::units::Bytes;
use blockstone_sys::held::HeldDir;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, fstatvfs, openat, readlinkat, statat,
};
use rustix::io::Errno;

use super::Failure;
use crate::attributes::{Attributes, Lack, Notes, failed};
use crate::file::{Method, Options};

/// Longest path that the kernel accepts (limits.h), without its final zero.
const PATH_BYTES_MAX: usize = 4095;

/// Why a copy is refused before anything is written.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("copy {}: {source}\nhint: {hint}", shown(path))]
    Source { path: PathBuf, source: io::Error, hint: &'static str },
    #[error("copy to {}: {source}\nhint: {hint}", shown(path))]
    Target { path: PathBuf, source: io::Error, hint: &'static str },
    #[error(
        "copy to {}: several sources need a directory\n\
         hint: make it first, or name one that exists",
        shown(path)
    )]
    NoDirectory { path: PathBuf },
    #[error(
        "copy to {}: it exists\nhint: --force replaces files and fills directories, --resume goes \
         on with a copy that was interrupted",
        shown(path)
    )]
    Exists { path: PathBuf },
    #[error(
        "copy {} to {}: they are the same\nhint: name another target",
        shown(source_path),
        shown(target)
    )]
    Same { source_path: PathBuf, target: PathBuf },
    #[error(
        "copy {} to {}: the target is inside the source\nhint: name a target elsewhere",
        shown(source_path),
        shown(target)
    )]
    Inside { source_path: PathBuf, target: PathBuf },
    #[error(
        "copy {} and {}: both would be {}\nhint: copy them one after the other to different names",
        shown(first),
        shown(second),
        shown(target)
    )]
    Twice { first: PathBuf, second: PathBuf, target: PathBuf },
    #[error(
        "copy to {}: {needed} are needed and {free} are free\n\
         hint: free some space, or name a target on another file system",
        shown(path)
    )]
    NoSpace { path: PathBuf, needed: Bytes, free: Bytes },
}

/// A path for messages: control characters and bytes that are not UTF-8 appear as `\x..`.
pub fn shown(path: &Path) -> String {
    let mut text = String::new();
    let escape = |text: &mut String, bytes: &[u8]| {
        for byte in bytes {
            let _ = write!(text, "\\x{byte:02x}");
        }
    };
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() {
                escape(&mut text, letter.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(letter);
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

#[derive(Debug)]
pub struct Plan {
    /// In which all targets are made.
    pub root: HeldDir,
    /// Directories before what is in them.
    pub entries: Vec<Entry>,
    /// Of all files, holes included.
    pub bytes: u64,
    /// Of all files, as they lie on their storage.
    pub data_bytes: u64,
    /// What could not be looked at.
    pub failed: Vec<Failure>,
    /// What is left out.
    pub notes: Notes,
}

#[derive(Debug)]
pub struct Entry {
    pub source: PathBuf,
    /// Below the root.
    pub target: PathBuf,
    pub node: Node,
    pub kind: Kind,
    pub bytes: u64,
    pub data_bytes: u64,
}

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    device: u64,
    inode: u64,
}

impl Node {
    pub fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

#[derive(Debug)]
pub enum Kind {
    Directory(Attributes),
    File,
    /// Another name of the file that this entry is.
    Same(usize),
    Link(OsString, Attributes),
    /// A named pipe or a device in a directory.
    Special(FileType, u64, Attributes),
}

/// Walks the sources and refuses what would fail later. Writes nothing.
pub fn plan(sources: &[PathBuf], target: &Path, options: &Options) -> Result<Plan, PlanError> {
    let (root, only_name) = root(sources, target)?;
    let mut walk = Walk {
        plan: Plan {
            root,
            entries: Vec::new(),
            bytes: 0,
            data_bytes: 0,
            failed: Vec::new(),
            notes: Notes::default(),
        },
        seen: HashMap::new(),
    };
    let mut names: HashMap<OsString, &Path> = HashMap::new();
    for source in sources {
        let name = match &only_name {
            Some(name) => name.clone(),
            None => name_of(source)?,
        };
        if let Some(first) = names.insert(name.clone(), source) {
            let target = walk.plan.root.path().join(name);
            return Err(PlanError::Twice {
                first: first.to_owned(),
                second: source.clone(),
                target,
            });
        }
        walk.named(source, &name, options)?;
    }
    if !options.resume {
        refuse_without_space(&walk.plan, options)?;
    }
    Ok(walk.plan)
}

/// The directory and the name of a file that is made of what comes through a pipe.
pub fn pipe_target(target: &Path, force: bool) -> Result<(HeldDir, PathBuf), PlanError> {
    let (dir, name) = root(&[], target)?;
    let Some(name) = name else {
        let (path, hint) = (target.to_owned(), "name a file in it");
        return Err(PlanError::Target { path, source: io::ErrorKind::IsADirectory.into(), hint });
    };
    if !force && statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        return Err(PlanError::Exists { path: target.to_owned() });
    }
    Ok((dir, PathBuf::from(name)))
}

/// The directory in which targets are made, and the name there if the target is no directory yet.
fn root(sources: &[PathBuf], target: &Path) -> Result<(HeldDir, Option<OsString>), PlanError> {
    let refused = |source, hint| PlanError::Target { path: target.to_owned(), source, hint };
    match HeldDir::hold(target) {
        Ok(root) => return Ok((root, None)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(error) => return Err(refused(error, "name a directory that this user can read")),
    }
    if sources.len() > 1 {
        return Err(PlanError::NoDirectory { path: target.to_owned() });
    }
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let root = HeldDir::hold(parent)
        .map_err(|error| refused(error, "make the directory above it first"))?;
    let name = target
        .file_name()
        .ok_or_else(|| refused(io::ErrorKind::InvalidInput.into(), "name a file or directory"))?;
    Ok((root, Some(name.to_owned())))
}

/// `.` and `..` have the name of the directory that they are.
fn name_of(source: &Path) -> Result<OsString, PlanError> {
    let refused = |source_error| PlanError::Source {
        path: source.to_owned(),
        source: source_error,
        hint: "name a file or directory with a name",
    };
    if let (Some(name), false) =
        (source.file_name(), source.as_os_str().as_bytes().ends_with(b"/."))
    {
        return Ok(name.to_owned());
    }
    let whole = source.canonicalize().map_err(refused)?;
    let name = whole.file_name().map(OsStr::to_owned);
    name.ok_or_else(|| refused(io::ErrorKind::InvalidInput.into()))
}

/// Refuses a copy that does not fit. On file systems that share blocks, a copy may need no space.
fn refuse_without_space(plan: &Plan, options: &Options) -> Result<(), PlanError> {
    let room = fstatvfs(&plan.root);
    let shares = matches!(options.method, None | Some(Method::Reflink))
        && fstat(&plan.root).is_ok_and(|root| {
            let on_root = |entry: &Entry| entry.node.device == root.st_dev;
            plan.entries.iter().any(on_root) && shares_blocks(&plan.root)
        });
    match room {
        Ok(room) if !shares && room.f_blocks > 0 => {
            let free = room.f_bavail.saturating_mul(room.f_frsize);
            if plan.data_bytes <= free {
                return Ok(());
            }
            let (needed, free) = (Bytes(plan.data_bytes), Bytes(free));
            Err(PlanError::NoSpace { path: plan.root.path().to_owned(), needed, free })
        }
        _ => Ok(()),
    }
}

/// btrfs, XFS, bcachefs, OCFS2: magic numbers of linux/magic.h.
fn shares_blocks(dir: impl AsFd) -> bool {
    const MAGIC: [i64; 4] = [0x9123_683e, 0x5846_5342, 0xca45_1a4e, 0x7461_636f];
    rustix::fs::fstatfs(dir).is_ok_and(|found| MAGIC.contains(&found.f_type))
}

fn is_device(stat: &Stat) -> bool {
    let kind = FileType::from_raw_mode(stat.st_mode);
    matches!(kind, FileType::BlockDevice | FileType::CharacterDevice)
}

struct Walk {
    plan: Plan,
    /// Files with several names, and their entries.
    seen: HashMap<Node, usize>,
}

impl Walk {
    /// What was named on the command line.
    fn named(&mut self, source: &Path, name: &OsStr, options: &Options) -> Result<(), PlanError> {
        let refused = |source_error: io::Error| PlanError::Source {
            path: source.to_owned(),
            source: source_error,
            hint: "check the name, and that this user can read it",
        };
        let stat = statat(CWD, source, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| refused(e.into()))?;
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
            Ok(there) if is_device(&there) => {
                let source = io::Error::new(io::ErrorKind::InvalidInput, "it is a device");
                let hint = "a block device by itself can be a target, with --destroy";
                return Err(PlanError::Target { path: target, source, hint });
            }
            Ok(_) if !options.force && !options.resume => {
                return Err(PlanError::Exists { path: target });
            }
            Ok(_) => {}
        }
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if is_directory && self.root_is_in(Node::of(&stat)).map_err(refused)? {
            return Err(PlanError::Inside { source_path: source.to_owned(), target });
        }
        self.visit(CWD.as_fd(), source.as_os_str(), source, Path::new(name));
        Ok(())
    }

    /// Whether the root is this directory, or below it.
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

    /// One entry of a directory, and what is below it. What cannot be read is noted.
    fn visit(&mut self, dir: BorrowedFd<'_>, name: &OsStr, source: &Path, target: &Path) {
        if let Err(error) = self.look(dir, name, source, target) {
            self.plan
                .failed
                .push(Failure { path: source.to_owned(), error: failed("read", source)(error) });
        }
    }

    fn look(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        source: &Path,
        target: &Path,
    ) -> rustix::io::Result<()> {
        let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let node = Node::of(&stat);
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return self.descend(dir, name, source, target),
            FileType::Socket => {
                self.plan.notes.add(
                    Lack::Socket,
                    source,
                    &"the program that listens on it makes it",
                );
                return Ok(());
            }
            _ if stat.st_nlink > 1 && self.seen.contains_key(&node) => Kind::Same(self.seen[&node]),
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
        self.push(source.to_owned(), target.to_owned(), &stat, kind);
        if is_file {
            let bytes = stat.st_size as u64;
            self.count(bytes, bytes.min(stat.st_blocks as u64 * 512));
        }
        Ok(())
    }

    fn descend(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        source: &Path,
        target: &Path,
    ) -> rustix::io::Result<()> {
        // Its entries would exceed the longest path. This also bounds the recursion.
        if source.as_os_str().len() > PATH_BYTES_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inner = openat(dir, name, flags, Mode::empty())?;
        let stat = fstat(&inner)?;
        let attributes =
            Attributes::of(&inner).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
        self.push(source.to_owned(), target.to_owned(), &stat, Kind::Directory(attributes));
        let mut names = Vec::new();
        for entry in Dir::read_from(&inner)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        names.sort();
        for name in names {
            self.visit(inner.as_fd(), &name, &source.join(&name), &target.join(&name));
        }
        Ok(())
    }

    fn push(&mut self, source: PathBuf, target: PathBuf, stat: &Stat, kind: Kind) {
        let node = Node::of(stat);
        self.plan.entries.push(Entry { source, target, node, kind, bytes: 0, data_bytes: 0 });
    }

    /// Of the entry that was pushed last.
    fn count(&mut self, bytes: u64, data_bytes: u64) {
        self.plan.bytes += bytes;
        self.plan.data_bytes += data_bytes;
        if let Some(entry) = self.plan.entries.last_mut() {
            (entry.bytes, entry.data_bytes) = (bytes, data_bytes);
        }
    }
}
