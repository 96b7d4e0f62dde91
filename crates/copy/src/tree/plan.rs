//! Sources and targets of a copy, before anything is written: the sources are walked through
//! directories that are held open, and a copy that would fail at the end is refused now.

mod walk;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_base::hint::Hint;
use blockstone_base::text::shown;
use blockstone_base::units::Bytes;
use blockstone_sys::held::HeldDir;
use blockstone_sys::path;
use rustix::fs::{AtFlags, FileType, Stat, fstat, fstatvfs, statat};

use super::Failure;
use crate::attributes::{Attributes, Notes};
use crate::error::special;
use crate::file::{Method, Options};
use walk::Walk;

/// Reason why a copy is refused before anything is written.
#[derive(Debug, thiserror::Error, Hint)]
pub enum PlanError {
    #[error("copy {}: {source}", shown(path))]
    #[hint("{hint}")]
    Source { path: PathBuf, source: io::Error, hint: &'static str },
    #[error("copy to {}: {source}", shown(path))]
    #[hint("{hint}")]
    Target { path: PathBuf, source: io::Error, hint: &'static str },
    #[error("copy to {}: several sources need a directory", shown(path))]
    #[hint("make it first, or name one that exists")]
    NoDirectory { path: PathBuf },
    #[error("copy to {}: it exists", shown(path))]
    #[hint(
        "--force replaces files and fills directories, --resume goes on with a copy that was \
         interrupted"
    )]
    Exists { path: PathBuf },
    #[error("copy to {}: it is {what}, which a copy never replaces", shown(path))]
    #[hint("{hint}")]
    Special { path: PathBuf, what: &'static str, hint: &'static str },
    #[error("copy {} to {}: they are the same", shown(source_path), shown(target))]
    #[hint("name another target")]
    Same { source_path: PathBuf, target: PathBuf },
    #[error("copy {} to {}: the target is inside the source", shown(source_path), shown(target))]
    #[hint("name a target elsewhere")]
    Inside { source_path: PathBuf, target: PathBuf },
    #[error("copy {} and {}: both would be {}", shown(first), shown(second), shown(target))]
    #[hint("copy them one after the other to different names")]
    Twice { first: PathBuf, second: PathBuf, target: PathBuf },
    #[error("copy to {}: {needed} are needed and {free} are free", shown(path))]
    #[hint("free some space, or name a target on another file system")]
    NoSpace { path: PathBuf, needed: Bytes, free: Bytes },
}

#[derive(Debug)]
pub struct Plan {
    /// Directory in which all targets are made.
    pub root: HeldDir,
    /// Directories come before their contents.
    pub entries: Vec<Entry>,
    /// Size of all files in bytes, including holes.
    pub bytes: u64,
    /// Bytes that all files occupy on their storage.
    pub data_bytes: u64,
    /// Sources that could not be inspected.
    pub failed: Vec<Failure>,
    /// Attributes and objects that are left out.
    pub notes: Notes,
}

#[derive(Debug)]
pub struct Entry {
    pub source: PathBuf,
    /// Directory from which the source is reached, without links: that of the named source.
    pub base: Arc<HeldDir>,
    /// Length of the part of `source` that leads to `base`.
    base_len: usize,
    /// Number of names of this file in the plan.
    pub names: u64,
    /// Path below the root.
    pub target: PathBuf,
    pub node: Node,
    pub kind: Kind,
    pub bytes: u64,
    pub data_bytes: u64,
}

impl Entry {
    /// Returns the source below its base; empty if it is the base.
    pub fn below(&self) -> &Path {
        below(&self.source, self.base_len)
    }

    /// Opens the source for reading. Fails if it is no longer a regular file.
    pub fn open(&self) -> io::Result<File> {
        self.base.read_within(self.below())
    }
}

fn below(source: &Path, base_len: usize) -> &Path {
    let bytes = source.as_os_str().as_bytes().get(base_len..).unwrap_or_default();
    let slashes = bytes.iter().take_while(|&&byte| byte == b'/').count();
    Path::new(OsStr::from_bytes(&bytes[slashes..]))
}

/// Identity of a file, whatever its name.
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
    /// Another name of the file of the entry with this index.
    Same(usize),
    Link(OsString, Attributes),
    /// A named pipe or a device in a directory.
    Special(FileType, u64, Attributes),
}

/// Walks the sources and refuses what would fail later. Writes nothing.
pub fn plan(sources: &[PathBuf], target: &Path, options: &Options) -> Result<Plan, PlanError> {
    let (root, only_name) = root(sources, target)?;
    plan_into(sources, (root, only_name), options)
}

/// Like [`plan`], into a directory that is held; `only_name` is the name that a single source gets.
pub fn plan_into(
    sources: &[PathBuf],
    (root, only_name): (HeldDir, Option<OsString>),
    options: &Options,
) -> Result<Plan, PlanError> {
    let mut walk = Walk::into(root);
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

/// Returns the directory and the name of a file made from a pipe.
pub fn pipe_target(target: &Path, force: bool) -> Result<(HeldDir, PathBuf), PlanError> {
    let (dir, name) = root(&[], target)?;
    let Some(name) = name else {
        let (path, hint) = (target.to_owned(), "name a file in it");
        return Err(PlanError::Target { path, source: io::ErrorKind::IsADirectory.into(), hint });
    };
    if let Ok(there) = statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
        unless_special(FileType::from_raw_mode(there.st_mode), target)?;
        if !force {
            return Err(PlanError::Exists { path: target.to_owned() });
        }
    }
    Ok((dir, PathBuf::from(name)))
}

/// Refuses a target that is a device, a pipe or a socket.
fn unless_special(there: FileType, target: &Path) -> Result<(), PlanError> {
    match special(there) {
        Some((what, hint)) => Err(PlanError::Special { path: target.to_owned(), what, hint }),
        None => Ok(()),
    }
}

/// Returns the directory in which targets are made, and the name there if the target is not a
/// directory yet.
fn root(sources: &[PathBuf], target: &Path) -> Result<(HeldDir, Option<OsString>), PlanError> {
    let refused = |source, hint| PlanError::Target { path: target.to_owned(), source, hint };
    // Links are followed, because /dev/stdout is one.
    if let Ok(found) = path::look(target) {
        unless_special(FileType::from_raw_mode(found.mode()), target)?;
    }
    let held = path::directory(target).map(|root| HeldDir::of(root, target));
    // Names in it are made durable, for which it must be readable.
    match held.and_then(|root| root.within(Path::new(""))) {
        Ok(root) => return Ok((root, None)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(error) => {
            return Err(refused(
                error,
                "name the directory itself, or one that this user can read",
            ));
        }
    }
    if sources.len() > 1 {
        return Err(PlanError::NoDirectory { path: target.to_owned() });
    }
    let (root, name) = HeldDir::hold_parent(target.components().as_path())
        .map_err(|error| refused(error, "make the directory above it first"))?;
    Ok((root, Some(name.into())))
}

/// Returns the name of a source; `.` and `..` have the name of the directory that they stand for.
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
    let whole = path::whole(source).map_err(refused)?;
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

/// Returns whether it is btrfs, XFS, bcachefs or OCFS2: magic numbers of linux/magic.h.
fn shares_blocks(dir: impl AsFd) -> bool {
    const MAGIC: [i64; 4] = [0x9123_683e, 0x5846_5342, 0xca45_1a4e, 0x7461_636f];
    rustix::fs::fstatfs(dir).is_ok_and(|found| MAGIC.contains(&found.f_type))
}
