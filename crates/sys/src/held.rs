//! A directory held by its descriptor. Its contents are reached from there and never through a path
//! or a link, so that a user who can rename it, or the directories above it, cannot redirect what
//! the superuser writes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use blockstone_base::text::parent_dir;
use blockstone_base::units::Bytes;
use rustix::fs::{
    AtFlags, CWD, Dir, Mode, RenameFlags, ResolveFlags, Stat, StatxFlags, Timestamps, fstat, fsync,
    linkat, mkdirat, openat, openat2, renameat, renameat_with, statx, unlinkat,
};
pub use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::path::of_descriptor;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const IN_PLACE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
/// The resulting mode depends on the umask.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const OWNER_MODE: Mode = Mode::from_raw_mode(0o600);
/// Created and removed to see which owner the file system assigns to new files.
const OWNER_PROBE: &str = ".blockstone-owner";
/// A removal holds a descriptor for each level and goes no deeper than this.
const DEEPEST: u32 = 100;
/// Attempts at the owner probe, because several processes may make it at the same time.
const PROBES: u32 = 20;

/// Reason why a directory is not written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    #[error("it belongs to user {0}, who could direct elsewhere what is written to it")]
    Owner(u32),
    #[error("other users may write to it (its mode is {0:04o}), and it has no sticky bit")]
    Writable(u32),
}

impl From<Foreign> for io::Error {
    fn from(foreign: Foreign) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, foreign)
    }
}

impl Foreign {
    /// Returns the reason contained in an error of this module, if there is one.
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// Identity of a file, which stays the same when it is renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl Identity {
    pub(crate) fn of(found: &Stat) -> Self {
        Self { device: found.st_dev, inode: found.st_ino }
    }
}

#[derive(Debug)]
pub struct HeldDir {
    dir: OwnedFd,
    path: PathBuf,
}

impl HeldDir {
    /// Opens the directory `path`. Fails when it belongs to a user other than this one or root,
    /// when others may write to it, and with [`crate::path::ForeignLink`] when a link of another
    /// user leads to it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let way = crate::path::directory(path)?;
        let held = Self::of(openat(&way, ".", DIRECTORY, Mode::empty())?, path);
        held.check_owner()?;
        Ok(held)
    }

    /// Fails when it belongs to a user other than this one or root, or when others may write to it.
    pub fn check_owner(&self) -> io::Result<()> {
        let found = fstat(&self.dir)?;
        if !self.is_trusted(&found, true)? {
            return Err(Foreign::Owner(found.st_uid).into());
        }
        match by_others(&found) {
            Some(mode) if mode & 0o1000 == 0 => Err(Foreign::Writable(mode).into()),
            _ => Ok(()),
        }
    }

    /// Opens the directory `path`, regardless of who owns it or may write to it: for entries that
    /// are created in it under a name and then checked to be what was created.
    pub fn hold(path: &Path) -> io::Result<Self> {
        Ok(Self { dir: openat(CWD, path, DIRECTORY, Mode::empty())?, path: path.to_owned() })
    }

    /// Like [`HeldDir::hold`], but only to reach named entries in it: it need not be readable, and
    /// can be neither listed nor synced.
    pub fn reach(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { dir: openat(CWD, path, flags, Mode::empty())?, path: path.to_owned() })
    }

    /// Wraps a directory that was opened elsewhere; `path` is for messages.
    pub fn of(dir: OwnedFd, path: &Path) -> Self {
        Self { dir, path: path.to_owned() }
    }

    /// Returns the directory that contains the last name of `path`, whoever owns it, and that name.
    /// Fails with [`crate::path::ForeignLink`] when a link of another user leads to it.
    pub fn hold_parent(path: &Path) -> io::Result<(Self, PathBuf)> {
        let (dir, name) = crate::path::parent(path)?;
        Ok((Self::of(dir, parent_dir(path)), name.into()))
    }

    /// Opens the directory `path` below this one, on any file system, reached without links; if the
    /// path is empty, this directory once more.
    pub fn within(&self, path: &Path) -> io::Result<Self> {
        let is_this = path.as_os_str().is_empty();
        let below = if is_this { Path::new(".") } else { path };
        let dir = within(self.dir.as_fd(), below, DIRECTORY | IN_PLACE)?;
        let path = if is_this { self.path.clone() } else { self.path.join(path) };
        Ok(Self { dir, path })
    }

    /// Opens a file below this directory for reading, as [`open_file`] does, on any file system and
    /// reached without links.
    pub fn read_within(&self, path: &Path) -> io::Result<File> {
        regular(within(self.dir.as_fd(), path, OFlags::NONBLOCK | IN_PLACE)?)
    }

    /// Opens the directory `path`, as [`HeldDir::open`] does, or creates it and its missing
    /// parents.
    pub fn make(path: &Path) -> io::Result<Self> {
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
        let mut new: Vec<&Path> = path.ancestors().take_while(missing).collect();
        let above = new.last().and_then(|top| top.parent());
        let above = above.filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut held = Self::of(crate::path::directory(above)?, above);
        while let Some(dir) = new.pop() {
            let name = dir.file_name().ok_or(io::ErrorKind::InvalidInput)?;
            held.make_dir(Path::new(name))?;
            let inner = openat(&held.dir, name, DIRECTORY | IN_PLACE, Mode::empty())?;
            held = Self { dir: inner, path: dir.to_owned() };
            let found = fstat(&held.dir)?;
            if !held.is_trusted(&found, false)? {
                return Err(Foreign::Owner(found.st_uid).into());
            }
        }
        Ok(held)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the directory `path` below this one if it does not exist.
    pub fn make_dir(&self, path: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        match mkdirat(&parent, name, DIRECTORY_MODE) {
            Err(Errno::EXIST) => Ok(()),
            made => Ok(made?),
        }
    }

    /// Creates and holds a directory that only this user can access. Fails when the name exists, or
    /// was replaced by another user at that moment.
    pub fn make_new_dir(&self, name: &OsStr) -> io::Result<Self> {
        mkdirat(&self.dir, name, Mode::from_raw_mode(0o700))?;
        let made = self.within(Path::new(name))?;
        let found = fstat(&made.dir)?;
        if !made.is_trusted(&found, false)? || !made.is_empty()? {
            return Err(io::Error::other("another user replaced it as it was made"));
        }
        Ok(made)
    }

    /// Opens the directory of that name, created here by this user and not writable by others.
    pub fn open_own_dir(&self, name: &OsStr) -> io::Result<Self> {
        let held = self.within(Path::new(name))?;
        let found = fstat(&held.dir)?;
        if !held.is_trusted(&found, false)? {
            return Err(Foreign::Owner(found.st_uid).into());
        }
        match found.st_mode & 0o7777 {
            mode if mode & 0o022 != 0 => Err(Foreign::Writable(mode).into()),
            _ => Ok(held),
        }
    }

    /// Removes its contents, as far as they are on its file system.
    pub fn remove_all(&self) -> io::Result<()> {
        let device = Identity::of(&fstat(&self.dir)?).device;
        let remove = |name: OsString| remove_below(self.as_fd(), &name, device);
        self.names()?.into_iter().try_for_each(remove)
    }

    /// Removes the empty directory of that name if it is still `held`.
    pub fn remove_dir(&self, name: &OsStr, held: &Self) -> io::Result<()> {
        self.remove_as(name, held.as_fd(), AtFlags::REMOVEDIR)
    }

    /// Removes the name if it still leads to `file`: another file that has taken the name is left
    /// alone.
    pub fn remove_this(&self, name: &OsStr, file: BorrowedFd) -> io::Result<()> {
        self.remove_as(name, file, AtFlags::empty())
    }

    fn remove_as(&self, name: &OsStr, held: BorrowedFd, flags: AtFlags) -> io::Result<()> {
        if !self.leads_to(name, held)? {
            return Ok(());
        }
        match unlinkat(&self.dir, name, flags) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a name in it leads to what is open as `held`, and not through a link.
    pub fn leads_to(&self, name: &OsStr, held: BorrowedFd) -> io::Result<bool> {
        match rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Identity::of(&found) == Identity::of(&fstat(held)?)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the entry of this name, even if it is a link, for inspection and for reopening
    /// (`O_PATH`).
    pub fn find(&self, path: &Path) -> io::Result<OwnedFd> {
        let (parent, name) = self.parent(path)?;
        Ok(openat(&parent, name, OFlags::PATH | IN_PLACE, Mode::empty())?)
    }

    /// Creates a file for writing, replacing one that a killed process may have left.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        let (parent, name) = self.parent(path)?;
        match unlinkat(&parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | IN_PLACE;
        Ok(File::from(openat(&parent, name, flags, FILE_MODE)?))
    }

    /// Opens a file for reading, as [`open_file`] does.
    pub fn read(&self, path: &Path) -> io::Result<File> {
        let (parent, name) = self.parent(path)?;
        open_at(parent.as_fd(), name.as_ref(), IN_PLACE)
    }

    /// Creates a file that only this user can access, for reading and writing. Fails when the name
    /// exists.
    pub fn create_new(&self, path: &Path) -> io::Result<File> {
        self.create_new_as(path, OFlags::RDWR)
    }

    pub(crate) fn create_new_as(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let (parent, name) = self.parent(path)?;
        let flags = flags | OFlags::CREATE | OFlags::EXCL | IN_PLACE;
        Ok(File::from(openat(&parent, name, flags, OWNER_MODE)?))
    }

    /// Opens a file for reading and writing, as [`open_file`] does; past the page cache if
    /// `direct`.
    pub fn write(&self, path: &Path, direct: bool) -> io::Result<File> {
        let (parent, name) = self.parent(path)?;
        let how = if direct { OFlags::DIRECT } else { OFlags::empty() };
        open_at(parent.as_fd(), name.as_ref(), OFlags::RDWR | IN_PLACE | how)
    }

    /// Returns the type of the entry of this name, without following links; `None` if there is
    /// none.
    pub fn look(&self, path: &Path) -> io::Result<Option<FileType>> {
        let (parent, name) = self.parent(path)?;
        match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Like [`HeldDir::rename`]; fails when the new name exists.
    pub fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let ((from_dir, from), (to_dir, to)) = (self.parent(from)?, self.parent(to)?);
        rename_new((from_dir, from.as_ref()), (to_dir, to.as_ref()))
    }

    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let ((from_dir, from), (to_dir, to)) = (self.parent(from)?, self.parent(to)?);
        Ok(renameat(&from_dir, from, &to_dir, to)?)
    }

    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(unlinkat(&parent, name, AtFlags::empty())?)
    }

    /// Makes the entries of `path`, a directory below this one or this one itself, durable.
    pub fn sync(&self, path: &Path) -> io::Result<()> {
        Ok(fsync(self.below(path)?)?)
    }

    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.names()?.is_empty())
    }

    /// Returns the names in it, in the order of the file system.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        names_in(self.dir.as_fd())
    }

    /// Opens the directory itself, for locking.
    pub fn file(&self) -> io::Result<File> {
        Ok(File::from(self.dir.try_clone()?))
    }

    fn below(&self, path: &Path) -> io::Result<Below<'_>> {
        if path.components().all(|part| part == Component::CurDir) {
            return Ok(Below::This(self.dir.as_fd()));
        }
        Ok(Below::Opened(open_below(self.dir.as_fd(), path.as_os_str())?))
    }

    fn parent<'a>(&self, path: &'a Path) -> io::Result<(Below<'_>, &'a OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.below(path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// Returns whether only this user and root control it. If a file system maps owners (a share, a
    /// mount with `uid=`), a new file has the owner of its directory.
    fn is_trusted(&self, found: &Stat, root_too: bool) -> io::Result<bool> {
        let me = rustix::process::geteuid().as_raw();
        if found.st_uid == me || root_too && found.st_uid == 0 {
            return Ok(true);
        }
        Ok(self.owner_of_new()? == found.st_uid)
    }

    /// Returns the user who owns what this user creates here: another one if the file system maps
    /// owners. Creates a file for a moment.
    pub fn owner_of_new(&self) -> io::Result<u32> {
        let probe = Path::new(OWNER_PROBE);
        let mut tries = 0;
        let made = loop {
            match self.create(probe) {
                // Another process is probing too.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < PROBES => {
                    tries += 1;
                }
                made => break made?,
            }
        };
        let owner = fstat(made)?.st_uid;
        match unlinkat(&self.dir, probe, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(owner),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the regular file of this name, which belongs to `owner` and has no other name. Fails
    /// (`EPERM`) when it is anything else, including a link. A server is not asked for attributes
    /// that the kernel already has: that would refresh what it has cached of the file.
    pub fn open_own(&self, name: &OsStr, owner: u32, flags: OFlags) -> io::Result<File> {
        let found = self.find(Path::new(name))?;
        let wanted = StatxFlags::TYPE | StatxFlags::UID | StatxFlags::NLINK;
        let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let it = statx(&found, "", how, wanted)?;
        let is_file = FileType::from_raw_mode(it.stx_mode.into()) == FileType::RegularFile;
        if !is_file || it.stx_uid != owner || it.stx_nlink > 1 {
            return Err(Errno::PERM.into());
        }
        open_again(found.as_fd(), flags)
    }
}

/// A directory below one that is held, or that directory itself.
enum Below<'a> {
    This(BorrowedFd<'a>),
    Opened(OwnedFd),
}

impl AsFd for Below<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::This(dir) => *dir,
            Self::Opened(dir) => dir.as_fd(),
        }
    }
}

impl AsFd for HeldDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

/// Renames an entry of one directory to a new name in another. Fails when that name exists.
pub fn rename_new(
    (from_dir, from): (impl AsFd, &Path),
    (to_dir, to): (impl AsFd, &Path),
) -> io::Result<()> {
    match renameat_with(&from_dir, from, &to_dir, to, RenameFlags::NOREPLACE) {
        // NFS, FUSE and others do not support the flag, and not all support a second name.
        Err(Errno::INVAL | Errno::NOSYS) => {}
        renamed => return Ok(renamed?),
    }
    match linkat(&from_dir, from, &to_dir, to, AtFlags::empty()) {
        Ok(()) => return Ok(unlinkat(&from_dir, from, AtFlags::empty())?),
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM | Errno::MLINK) => {}
        Err(error) => return Err(error.into()),
    }
    match rustix::fs::statat(&to_dir, to, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(renameat(&from_dir, from, &to_dir, to)?),
        Ok(_) => Err(Errno::EXIST.into()),
        Err(error) => Err(error.into()),
    }
}

/// Sets the mode of an open file, even one opened with `O_PATH`, unless it is a link.
pub fn set_mode(node: impl AsFd, mode: Mode) -> rustix::io::Result<()> {
    rustix::fs::chmodat(CWD, of_descriptor(&node), mode, AtFlags::empty())
}

/// Sets the times of an open file, even one opened with `O_PATH`, unless it is a link.
pub fn set_times(node: impl AsFd, times: &Timestamps) -> rustix::io::Result<()> {
    rustix::fs::utimensat(CWD, of_descriptor(&node), times, AtFlags::empty())
}

/// Like [`open_file`], past the page cache.
pub fn open_direct(path: &Path) -> io::Result<File> {
    open_at(CWD, path, OFlags::CLOEXEC | OFlags::DIRECT)
}

/// Returns why others decide what is in an open file, if they do.
pub fn foreign(file: impl AsFd) -> io::Result<Option<Foreign>> {
    let found = fstat(file)?;
    let theirs = (!crate::path::is_trusted(found.st_uid)).then_some(found.st_uid);
    Ok(theirs.map(Foreign::Owner).or_else(|| by_others(&found).map(Foreign::Writable)))
}

/// Returns the mode if others than its owner, root and this user's group may write.
fn by_others(found: &Stat) -> Option<u32> {
    let mode = found.st_mode & 0o7777;
    let own_group = [0, rustix::process::getegid().as_raw()].contains(&found.st_gid);
    (mode & 0o002 != 0 || mode & 0o020 != 0 && !own_group).then_some(mode)
}

/// Opens a file for reading. Fails for anything but a regular file: a pipe would block until it has
/// a writer, and some devices never end.
pub fn open_file(path: &Path) -> io::Result<File> {
    open_at(CWD, path, OFlags::CLOEXEC)
}

/// Like [`open_file`], but refuses a link in place of the file.
pub fn open_no_link(path: &Path) -> io::Result<File> {
    open_at(CWD, path, IN_PLACE).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link"),
        _ => error,
    })
}

/// Reads a regular file whole. Fails when it has more than `at_most` bytes.
pub fn read_file(path: &Path, at_most: Bytes) -> io::Result<Vec<u8>> {
    read_whole(open_file(path)?, at_most)
}

/// Reads a file whole. Fails when it has more than `at_most` bytes.
pub fn read_whole(file: File, at_most: Bytes) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let found = file.metadata()?;
    if found.is_file() {
        crate::memory::ask(Bytes(found.len().min(at_most.get())))?;
    }
    file.take(at_most.get() + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > at_most.get() {
        let why = format!("it is larger than {at_most}, the most that is read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Opens the same file once more: also for writing if `writes`, past the page cache if `direct`.
pub fn again(file: impl AsFd, writes: bool, direct: bool) -> io::Result<File> {
    let access = if writes { OFlags::RDWR } else { OFlags::RDONLY };
    let how = if direct { OFlags::DIRECT } else { OFlags::empty() };
    open_again(file.as_fd(), access | how)
}

fn open_at(dir: BorrowedFd, path: &Path, flags: OFlags) -> io::Result<File> {
    regular(openat(dir, path, flags | OFlags::NONBLOCK, Mode::empty())?)
}

fn regular(file: OwnedFd) -> io::Result<File> {
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(File::from(file)),
        FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Reopens what is open as `found` (even with `O_PATH`) as a new open file description.
pub(crate) fn open_again(found: BorrowedFd, flags: OFlags) -> io::Result<File> {
    let again = format!("/proc/self/fd/{}", found.as_raw_fd());
    match openat(CWD, again, flags | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => Err(io::Error::new(io::ErrorKind::NotFound, "/proc is not mounted")),
        opened => Ok(File::from(opened?)),
    }
}

/// Removes `name` in `dir`, and everything below it on the same file system, `device`.
fn remove_below(dir: BorrowedFd, name: &OsStr, device: u64) -> io::Result<()> {
    remove_at(dir, name, device, DEEPEST)
}

/// Like [`remove_below`], down to this depth: links are not followed, mounts are not entered.
fn remove_at(dir: BorrowedFd, name: &OsStr, device: u64, depth: u32) -> io::Result<()> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // Linux returns the first for a directory, POSIX the second.
        Err(Errno::ISDIR | Errno::PERM) if depth > 0 => {}
        Err(error) => return Err(error.into()),
    }
    let below = open_below(dir, name)?;
    if fstat(&below)?.st_dev != device {
        return Err(Errno::XDEV.into());
    }
    for name in names_in(below.as_fd())? {
        remove_at(below.as_fd(), &name, device, depth - 1)?;
    }
    Ok(unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}

/// Returns the names in a directory, in the order of the file system.
pub(crate) fn names_in(dir: BorrowedFd) -> io::Result<Vec<OsString>> {
    use std::os::unix::ffi::OsStrExt;
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Opens `path` below `dir`, on any file system, reached without links.
fn within(dir: BorrowedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if !path.components().all(is_below) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    match openat2(dir, path, flags, Mode::empty(), resolve) {
        // Before Linux 5.6, in some containers, and if the path is longer than the kernel accepts.
        Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG) => {}
        opened => return Ok(opened?),
    }
    let mut at = dir.try_clone_to_owned()?;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_some() { DIRECTORY | IN_PLACE } else { flags };
        at = openat(&at, part.as_os_str(), flags, Mode::empty())?;
    }
    Ok(at)
}

/// Opens the directory `path` in `dir`, reached without links and on the same file system.
pub(crate) fn open_below(dir: BorrowedFd, path: &OsStr) -> io::Result<OwnedFd> {
    let flags = DIRECTORY | IN_PLACE;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    match openat2(dir, path, flags, Mode::empty(), resolve) {
        // Before Linux 5.6, and in some containers.
        Err(Errno::NOSYS | Errno::PERM) => {
            let mut below = dir.try_clone_to_owned()?;
            for part in Path::new(path).components() {
                let Component::Normal(name) = part else {
                    return Err(io::ErrorKind::InvalidInput.into());
                };
                below = openat(&below, name, flags, Mode::empty())?;
            }
            Ok(below)
        }
        opened => Ok(opened?),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    const NOBODY: u32 = 65534;

    fn foreign(dir: &Path) -> Option<Foreign> {
        HeldDir::open(dir).err().and_then(|error| Foreign::of(&error))
    }

    #[test]
    fn a_link_of_another_user_leads_to_no_directory() {
        blockstone_testkit::require!(Root);
        let root = tempfile::tempdir().unwrap();
        let (theirs, ours) = (root.path().join("theirs"), root.path().join("ours"));
        for dir in [&theirs, &ours] {
            fs::create_dir(dir).unwrap();
        }
        symlink(&ours, theirs.join("link")).unwrap();
        assert!(HeldDir::open(&theirs.join("link")).is_ok(), "it is a link of root");
        rustix::fs::chownat(
            CWD,
            theirs.join("link"),
            Some(rustix::fs::Uid::from_raw(NOBODY)),
            None,
            AtFlags::SYMLINK_NOFOLLOW,
        )
        .unwrap();
        for path in ["link", "link/runs"] {
            let refused = HeldDir::make(&theirs.join(path)).unwrap_err();
            assert!(refused.to_string().contains("a link of user 65534"), "{refused}");
        }
        assert_eq!(fs::read_dir(&ours).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_is_moved_away_keeps_what_is_written() {
        let root = tempfile::tempdir().unwrap();
        let held = HeldDir::make(&root.path().join("runs/one")).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("a"), "theirs").unwrap();
        fs::rename(root.path().join("runs/one"), root.path().join("runs/moved")).unwrap();
        symlink(elsewhere.path(), root.path().join("runs/one")).unwrap();

        held.create(Path::new("a")).unwrap().write_all(b"ours").unwrap();
        held.rename(Path::new("a"), Path::new("b")).unwrap();
        held.create(Path::new("a")).unwrap();
        held.remove(Path::new("a")).unwrap();
        assert_eq!(fs::read_to_string(elsewhere.path().join("a")).unwrap(), "theirs");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
        let moved = root.path().join("runs/moved/b");
        assert_eq!(fs::read_to_string(moved).unwrap(), "ours");
    }

    #[test]
    fn a_name_that_exists_is_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let held = HeldDir::make(&root.path().join("run")).unwrap();
        let (part, name) = (Path::new("part"), Path::new("name"));
        held.create_new(part).unwrap().write_all(b"new").unwrap();
        assert_eq!(held.create_new(part).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(held.look(name).unwrap(), None);
        held.rename_new(part, name).unwrap();
        assert_eq!(held.look(name).unwrap(), Some(FileType::RegularFile));
        held.create_new(part).unwrap();
        let refused = held.rename_new(part, name).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        let path = root.path().join("run/name");
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn links_are_replaced_and_never_followed() {
        let root = tempfile::tempdir().unwrap();
        let held = HeldDir::make(&root.path().join("run")).unwrap();
        let theirs = root.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("file"), "theirs").unwrap();
        symlink(theirs.join("file"), held.path().join("a")).unwrap();
        symlink(&theirs, held.path().join("series")).unwrap();

        assert!(held.read(Path::new("a")).is_err());
        held.create(Path::new("a")).unwrap().write_all(b"ours").unwrap();
        let mut text = String::new();
        held.read(Path::new("a")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "ours");
        held.make_dir(Path::new("series")).unwrap();
        for reached in ["series/file", "../theirs/file"] {
            assert!(held.create(Path::new(reached)).is_err(), "{reached}");
            assert!(held.remove(Path::new(reached)).is_err(), "{reached}");
        }
        assert_eq!(fs::read_to_string(theirs.join("file")).unwrap(), "theirs");
    }

    #[test]
    fn a_directory_of_anyone_can_be_held_and_a_link_below_it_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("open/below")).unwrap();
        fs::set_permissions(root.path().join("open"), fs::Permissions::from_mode(0o777)).unwrap();
        let held = HeldDir::hold(&root.path().join("open")).unwrap();
        held.within(Path::new("below")).unwrap().create(Path::new("a")).unwrap();
        assert!(root.path().join("open/below/a").exists());
        symlink(root.path(), held.path().join("link")).unwrap();
        for refused in ["link", "link/open", "below/..", "/"] {
            assert!(held.within(Path::new(refused)).is_err(), "{refused}");
        }
    }

    #[test]
    fn files_are_read_below_a_directory_without_links_however_long_their_paths_are() {
        let root = tempfile::tempdir().unwrap();
        let held = HeldDir::hold(root.path()).unwrap();
        let part = "d".repeat(200);
        let (mut deep, mut inner) = (PathBuf::new(), HeldDir::hold(root.path()).unwrap());
        // Longer than the kernel accepts in one call.
        for _ in 0..30 {
            inner.make_dir(Path::new(&part)).unwrap();
            inner = inner.within(Path::new(&part)).unwrap();
            deep.push(&part);
        }
        for (dir, below) in [(&inner, deep.join("file")), (&held, PathBuf::from("file"))] {
            dir.create(Path::new("file")).unwrap().write_all(b"ours").unwrap();
            let mut text = String::new();
            held.read_within(&below).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "ours");
        }
        symlink("file", root.path().join("link")).unwrap();
        symlink(&part, root.path().join("other")).unwrap();
        for refused in ["link", "other/file", "../file", "/etc/passwd", "none", &part, ""] {
            assert!(held.read_within(Path::new(refused)).is_err(), "{refused}");
        }
        // The same file, whatever takes its name.
        let file = held.read_within(Path::new("file")).unwrap();
        fs::rename(root.path().join("file"), root.path().join("moved")).unwrap();
        fs::write(root.path().join("file"), "other").unwrap();
        again(&file, true, false).unwrap().write_all(b"OURS").unwrap();
        assert_eq!(fs::read_to_string(root.path().join("moved")).unwrap(), "OURS");
        assert!(again(&file, false, false).unwrap().write_all(b"x").is_err());
    }

    #[test]
    fn directories_that_others_write_to_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("out");
        fs::create_dir(&dir).unwrap();
        for (mode, refused) in [(0o700, false), (0o777, true), (0o1777, false), (0o755, false)] {
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(foreign(&dir), refused.then_some(Foreign::Writable(mode)), "{mode:o}");
        }
    }

    #[test]
    fn directories_of_other_users_and_groups_are_refused() {
        blockstone_testkit::require!(Root);
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("out");
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o770)).unwrap();
        chown(&dir, None, Some(NOBODY)).unwrap();
        assert_eq!(foreign(&dir), Some(Foreign::Writable(0o770)));
        chown(&dir, Some(NOBODY), None).unwrap();
        assert_eq!(foreign(&dir), Some(Foreign::Owner(NOBODY)));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "the probe is left");
        // This user can still create a directory of its own below it.
        assert!(HeldDir::make(&dir.join("mine")).is_ok());
    }

    #[test]
    fn a_pipe_in_place_of_a_file_is_not_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let held = HeldDir::make(&root.path().join("run")).unwrap();
        let pipe = held.path().join("manifest.json");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(held.read(Path::new("manifest.json")).is_err());
    }
}
