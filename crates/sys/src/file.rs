//! Files and block devices that are read and written in blocks: opened with direct I/O or through
//! the page cache, addressed by offset, never through a cursor.
//!
//! A path is resolved once. A file that this program creates may be where other users can write:
//! its directory is held by its descriptor, and the file is reopened, renamed and removed from
//! there, never by path, so that nothing can be put in its place.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_base::Capability;
use blockstone_base::hint::Hint;
use blockstone_base::load::SyncFlag;
use blockstone_base::text::parent_dir;
use rustix::fs::{
    CWD, FallocateFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, fstat, openat,
};
use rustix::io::{Errno, ReadWriteFlags};

use crate::held::{HeldDir, Identity, open_again};

const DEVICE: FileType = FileType::BlockDevice;
const NEITHER: &str = "it is neither a regular file nor a block device";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    ReadWrite,
}

#[derive(Debug)]
pub struct BlockFile {
    file: File,
    path: PathBuf,
    direct: bool,
    /// Its directory and name, if it was reached from a directory that is held.
    home: Option<Home>,
}

/// A name in a directory that is held.
#[derive(Clone, Debug)]
struct Home {
    dir: Arc<HeldDir>,
    name: OsString,
}

#[derive(Debug, thiserror::Error, Hint)]
pub enum FileError {
    #[error("open {path}: {source}")]
    #[hint("{}", open_hint(source, *direct))]
    Open { path: PathBuf, direct: bool, source: io::Error },
    #[error("create {path}: {source}")]
    #[hint("{}", create_hint(source, *direct))]
    Create { path: PathBuf, direct: bool, source: io::Error },
    #[error("lock {path}: another process holds it")]
    #[hint("is another Blockstone running there?")]
    Locked { path: PathBuf },
    #[error("{operation} {path}: {source}")]
    #[hint("{}", io_hint(source))]
    Io { operation: &'static str, path: PathBuf, source: io::Error },
}

/// State that shows whether a file was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    pub bytes: u64,
    /// Time of the last write, in nanoseconds since 1970.
    pub modified_ns: i64,
}

impl BlockFile {
    /// Opens an existing regular file or block device that the user named, with `O_DIRECT` if
    /// `direct`; links are followed. Fails when it is anything else, which is not opened, or cannot
    /// be opened that way; if the file system does not support `O_DIRECT`, that is an error and
    /// never silently dropped.
    pub fn open(path: &Path, access: Access, direct: bool) -> Result<Self, FileError> {
        Self::open_as(path, flags(access, direct), direct, &[FileType::RegularFile, DEVICE])
    }

    /// Opens a block device for writing and claims it (`O_EXCL`) against mounts, arrays and pools.
    /// Otherwise like [`BlockFile::open`]; `EBUSY` when it is claimed.
    pub fn open_device(path: &Path, direct: bool) -> Result<Self, FileError> {
        let flags = flags(Access::ReadWrite, direct) | OFlags::EXCL;
        Self::open_as(path, flags, direct, &[DEVICE])
    }

    /// Like [`BlockFile::open_device`], through the page cache and read-only.
    pub fn open_device_to_read(path: &Path) -> Result<Self, FileError> {
        let flags = flags(Access::Read, false) | OFlags::EXCL;
        Self::open_as(path, flags, false, &[DEVICE])
    }

    /// Opens an existing file or block device for writing, with the flag that makes each write
    /// return only when it is durable. Otherwise like [`BlockFile::open`].
    pub fn open_synchronous(path: &Path, direct: bool, flag: SyncFlag) -> Result<Self, FileError> {
        let flags = flags(Access::ReadWrite, direct) | synchronous(flag);
        Self::open_as(path, flags, direct, &[FileType::RegularFile, DEVICE])
    }

    /// Opens the null device, to take the place of a file that is let go.
    pub fn nothing() -> Result<Self, FileError> {
        let device = Path::new("/dev/null");
        Self::open_as(device, OFlags::RDONLY, false, &[FileType::CharacterDevice])
    }

    /// Opens a file or device for reading whose path this process found, for example from a
    /// database, where other users may have changed what it leads to since. A file of root or this
    /// user is opened only under its own and only name, and through no link of another user
    /// ([`crate::path::ForeignLink`]). Fails like [`BlockFile::open`].
    pub fn open_found(path: &Path) -> Result<Self, FileError> {
        let opened =
            find(path).and_then(|found| open_again(found.as_fd(), flags(Access::Read, false)));
        let (path, direct) = (path.to_owned(), false);
        match opened {
            Ok(file) => Ok(Self { file, path, direct, home: None }),
            Err(source) => Err(FileError::Open { path, direct, source }),
        }
    }

    /// Opens the target of the path after checking its type: opening a pipe would wait for its
    /// writer, and some devices act on being opened.
    fn open_as(
        path: &Path,
        flags: OFlags,
        direct: bool,
        types: &[FileType],
    ) -> Result<Self, FileError> {
        let opened = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(io::Error::from)
            .and_then(|found| {
                check_type(found.as_fd(), types)?;
                open_again(found.as_fd(), flags)
            });
        let path = path.to_owned();
        match opened {
            Ok(file) => Ok(Self { file, path, direct, home: None }),
            Err(source) => Err(FileError::Open { path, direct, source }),
        }
    }

    /// Creates a new file, readable only by its owner, and keeps its directory open. No space is
    /// preallocated: blocks are allocated as they are written, so that no read is answered from an
    /// unwritten extent. Fails if the file exists or cannot be created. A file system that refuses
    /// `O_DIRECT` may create the name all the same; it is then removed.
    pub fn create_new(path: &Path, direct: bool) -> Result<Self, FileError> {
        let error = |source| FileError::Create { path: path.to_owned(), direct, source };
        let home = Home::of(path).map_err(error)?;
        let made = Self::create_in(&home.dir, &home.name, direct);
        made.map(|made| Self { path: path.to_owned(), ..made })
    }

    /// Like [`BlockFile::create_new`], in the directory of this file.
    pub fn create_beside(&self, name: &OsStr, direct: bool) -> Result<Self, FileError> {
        let path = self.path.with_file_name(name);
        match &self.home {
            Some(home) => Self::create_in(&home.dir, name, direct),
            None => Self::create_new(&path, direct),
        }
        .map(|made| Self { path, ..made })
    }

    /// Like [`BlockFile::create_new`], under a name in a directory that is held.
    pub fn create_in(dir: &Arc<HeldDir>, name: &OsStr, direct: bool) -> Result<Self, FileError> {
        let made = dir.create_new_as(Path::new(name), flags(Access::ReadWrite, direct));
        let path = dir.path().join(name);
        match made {
            Ok(file) => Ok(Self { file, path, direct, home: Some(Home::new(dir, name)) }),
            Err(source) => {
                if direct && source.raw_os_error() == Some(libc::EINVAL) {
                    let _ = dir.remove(Path::new(name));
                }
                Err(FileError::Create { path, direct, source })
            }
        }
    }

    /// Opens the regular file of that name in a directory that is held; a link is not followed.
    /// Fails like [`BlockFile::open`].
    pub fn open_in(
        dir: &Arc<HeldDir>,
        name: &OsStr,
        access: Access,
        direct: bool,
    ) -> Result<Self, FileError> {
        let path = dir.path().join(name);
        let found = dir.find(Path::new(name)).and_then(|found| {
            check_type(found.as_fd(), &[FileType::RegularFile])?;
            open_again(found.as_fd(), flags(access, direct))
        });
        match found {
            Ok(file) => Ok(Self { file, path, direct, home: Some(Home::new(dir, name)) }),
            Err(source) => Err(FileError::Open { path, direct, source }),
        }
    }

    /// Opens this same file or device a second time (a new open file description), whatever its
    /// name leads to now. Fails like [`BlockFile::open`].
    pub fn reopen(&self, access: Access, direct: bool) -> Result<Self, FileError> {
        self.reopen_as(flags(access, direct), direct)
    }

    /// Like [`BlockFile::reopen`], for writing, with the flag that makes each write return only
    /// when it is durable.
    pub fn reopen_synchronous(&self, direct: bool, flag: SyncFlag) -> Result<Self, FileError> {
        self.reopen_as(flags(Access::ReadWrite, direct) | synchronous(flag), direct)
    }

    fn reopen_as(&self, flags: OFlags, direct: bool) -> Result<Self, FileError> {
        let (path, home) = (self.path.clone(), self.home.clone());
        match open_again(self.as_fd(), flags) {
            Ok(file) => Ok(Self { file, path, direct, home }),
            Err(source) => Err(FileError::Open { path, direct, source }),
        }
    }

    /// Opens this same file a second time, to read it through the page cache.
    pub fn plain(&self) -> Result<File, FileError> {
        self.reopen(Access::Read, false).map(|again| again.file)
    }

    /// Removes its name if it still leads to this file: another file that has taken the name is
    /// left alone.
    pub fn remove(&self) -> Result<(), FileError> {
        let removed = self.home().and_then(|home| home.dir.remove_this(&home.name, self.as_fd()));
        removed.map_err(|source| self.error("remove", source))
    }

    /// Gives it another name in its directory, replacing whatever has that name.
    pub fn rename(&mut self, name: &OsStr) -> Result<(), FileError> {
        self.renamed(name, HeldDir::rename)
    }

    /// Like [`BlockFile::rename`]; fails when the name exists.
    pub fn rename_new(&mut self, name: &OsStr) -> Result<(), FileError> {
        self.renamed(name, HeldDir::rename_new)
    }

    fn renamed(
        &mut self,
        name: &OsStr,
        rename: fn(&HeldDir, &Path, &Path) -> io::Result<()>,
    ) -> Result<(), FileError> {
        let renamed = self.home().and_then(|home| {
            let is_there = |name: &OsStr| {
                let is_this = home.dir.leads_to(name, self.as_fd())?;
                is_this.then_some(()).ok_or(io::Error::other("another file has taken its name"))
            };
            is_there(&home.name)?;
            rename(&home.dir, Path::new(&home.name), Path::new(name))?;
            is_there(name).map(|()| Home::new(&home.dir, name))
        });
        let home = renamed.map_err(|source| self.error("rename", source))?;
        self.path.set_file_name(name);
        self.home = Some(home);
        Ok(())
    }

    fn home(&self) -> io::Result<Home> {
        self.home.clone().map_or_else(|| Home::of(&self.path), Ok)
    }

    /// Wraps a file that was opened elsewhere; `path` is for messages.
    pub fn of(file: File, path: &Path, direct: bool) -> Self {
        Self { file, path: path.to_owned(), direct, home: None }
    }

    pub fn into_file(self) -> File {
        self.file
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Reads at `offset_bytes`; may return fewer bytes than requested. The error is the kernel's
    /// errno as a number: in the hot path a message costs more than the I/O.
    #[inline]
    pub fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<usize, i32> {
        rustix::io::pread(&self.file, out, offset_bytes).map_err(Errno::raw_os_error)
    }

    /// Writes at `offset_bytes`; may write fewer bytes than requested.
    #[inline]
    pub fn write_at(&self, offset_bytes: u64, data: &[u8]) -> Result<usize, i32> {
        rustix::io::pwrite(&self.file, data, offset_bytes).map_err(Errno::raw_os_error)
    }

    /// Writes at the end of the file, wherever that is when the kernel takes the request
    /// (`RWF_APPEND`, Linux 4.16).
    pub fn append(&self, data: &[u8]) -> Result<usize, i32> {
        let data = [io::IoSlice::new(data)];
        rustix::io::pwritev2(&self.file, &data, 0, ReadWriteFlags::APPEND)
            .map_err(Errno::raw_os_error)
    }

    /// Writes at `offset_bytes` and returns when the data are durable (`RWF_DSYNC`, Linux 4.7).
    #[inline]
    pub fn write_dsync_at(&self, offset_bytes: u64, data: &[u8]) -> Result<usize, i32> {
        let data = [io::IoSlice::new(data)];
        rustix::io::pwritev2(&self.file, &data, offset_bytes, ReadWriteFlags::DSYNC)
            .map_err(Errno::raw_os_error)
    }

    /// Makes written data durable, and the metadata needed to read them.
    #[inline]
    pub fn fdatasync(&self) -> Result<(), i32> {
        rustix::fs::fdatasync(&self.file).map_err(Errno::raw_os_error)
    }

    /// Makes written data and all metadata durable.
    #[inline]
    pub fn fsync(&self) -> Result<(), i32> {
        rustix::fs::fsync(&self.file).map_err(Errno::raw_os_error)
    }

    /// Writes the dirty pages of this part to the device and waits for that: neither is the
    /// device's cache flushed, nor any metadata written.
    pub fn write_out(&self, offset_bytes: u64, len_bytes: u64) -> Result<(), i32> {
        let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        let (offset, len) = (offset_bytes as libc::off64_t, len_bytes as libc::off64_t);
        // SAFETY: the call takes no memory of ours, and the descriptor is open as long as the file.
        let done = unsafe { libc::sync_file_range(self.file.as_raw_fd(), offset, len, flags) };
        if done == 0 {
            return Ok(());
        }
        Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
    }

    /// Returns the size of the file or block device in bytes.
    pub fn size_bytes(&self) -> Result<u64, FileError> {
        // `stat` returns zero for a block device. Nothing else uses the cursor that this moves.
        rustix::fs::seek(&self.file, SeekFrom::End(0)).map_err(|e| self.error("size", e.into()))
    }

    /// Truncates or extends the file; an extension is a hole.
    pub fn set_size(&self, size_bytes: u64) -> Result<(), FileError> {
        self.file.set_len(size_bytes).map_err(|source| self.error("resize", source))
    }

    /// Reserves space for `size_bytes`, contiguous if the file system can, so that a full file
    /// system is noticed before anything is written. Reserved space reads as zeros until written.
    /// Fails when there is not enough space; nothing is reserved then. It is not an error if the
    /// file system cannot reserve space.
    pub fn reserve(&self, size_bytes: u64) -> Result<(), FileError> {
        let error = |source| self.error("reserve room in", source);
        // fallocate fills the file system before it fails, which affects all of its users.
        let found = rustix::fs::fstatvfs(&self.file).map_err(|e| error(e.into()))?;
        let held_bytes = self.file.metadata().map_err(error)?.blocks() * 512;
        if size_bytes > held_bytes.saturating_add(found.f_bavail.saturating_mul(found.f_frsize)) {
            return Err(error(Errno::NOSPC.into()));
        }
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, size_bytes) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(other) => Err(error(other.into())),
        }
    }

    /// Returns whether its name still leads to it: a file that was removed or replaced still serves
    /// processes that have it open, but is gone for all others.
    pub fn is_at_its_path(&self) -> bool {
        if let Some(home) = &self.home {
            return home.dir.leads_to(&home.name, self.as_fd()).unwrap_or(false);
        }
        match (fstat(&self.file), rustix::fs::stat(&self.path)) {
            (Ok(here), Ok(there)) => Identity::of(&here) == Identity::of(&there),
            _ => false,
        }
    }

    /// Returns the first offset from `offset_bytes` on that is not in a hole; `None` if only a hole
    /// follows. Devices, and file systems that do not support holes, have none.
    pub fn next_data(&self, offset_bytes: u64) -> Option<u64> {
        // Nothing else uses the cursor that this moves.
        match rustix::fs::seek(&self.file, SeekFrom::Data(offset_bytes)) {
            Ok(data) => Some(data),
            Err(Errno::NXIO) => None,
            Err(_) => Some(offset_bytes),
        }
    }

    /// Asks the kernel to drop a part of this file's clean pages from the page cache.
    pub fn drop_cached_part(&self, offset_bytes: u64, len_bytes: u64) {
        let len = std::num::NonZeroU64::new(len_bytes);
        // Advice only: a file system that has no pages to drop may refuse it.
        let _ = rustix::fs::fadvise(&self.file, offset_bytes, len, rustix::fs::Advice::DontNeed);
    }

    /// Returns the size and the time of the last write (nanoseconds since 1970), as the kernel
    /// knows them now.
    pub fn state(&self) -> Result<FileState, FileError> {
        let found = self.file.metadata().map_err(|source| self.error("look at", source))?;
        let modified_ns = found.mtime() * 1_000_000_000 + found.mtime_nsec();
        Ok(FileState { bytes: self.size_bytes()?, modified_ns })
    }

    pub fn is_device(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.file_type().is_block_device())
    }

    /// Takes the exclusive lock (flock), which is held until the file is closed; does not wait.
    /// Returns [`FileError::Locked`] when another process holds it.
    pub fn lock_exclusive(&self) -> Result<(), FileError> {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(()),
            Err(Errno::WOULDBLOCK) => Err(FileError::Locked { path: self.path.clone() }),
            Err(other) => Err(self.error("lock", other.into())),
        }
    }

    /// Asks the kernel to drop this file's clean pages from the page cache.
    pub fn drop_cached(&self) -> Result<(), FileError> {
        rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed)
            .map_err(|e| self.error("drop cached pages of", e.into()))
    }

    pub fn error(&self, operation: &'static str, source: io::Error) -> FileError {
        FileError::Io { operation, path: self.path.clone(), source }
    }
}

/// Opens a file past the page cache if requested; `buffered` says why it is not. If the file system
/// does not support `O_DIRECT`, the page cache is used, and `buffered` says so.
pub fn open_direct(
    direct: bool,
    buffered: &str,
    open: impl Fn(bool) -> Result<BlockFile, FileError>,
) -> Result<(BlockFile, Capability), FileError> {
    if !direct {
        return Ok((open(false)?, Capability::degraded(buffered)));
    }
    match open(true) {
        Ok(file) => Ok((file, Capability::Full)),
        Err(FileError::Open { source, .. } | FileError::Create { source, .. })
            if source.kind() == io::ErrorKind::InvalidInput =>
        {
            let why = "the file system refuses O_DIRECT; every I/O goes through the page cache";
            Ok((open(false)?, Capability::degraded(why)))
        }
        Err(error) => Err(error),
    }
}

impl AsFd for BlockFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for BlockFile {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl Home {
    fn of(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let dir = HeldDir::reach(parent_dir(path))?;
        Ok(Self { dir: Arc::new(dir), name: name.to_owned() })
    }

    fn new(dir: &Arc<HeldDir>, name: &OsStr) -> Self {
        Self { dir: Arc::clone(dir), name: name.to_owned() }
    }
}

/// Finds what [`BlockFile::open_found`] will open, without opening it yet.
fn find(path: &Path) -> io::Result<OwnedFd> {
    let step = OFlags::PATH | OFlags::CLOEXEC;
    let types = [FileType::RegularFile, DEVICE];
    let found = openat(CWD, path, step, Mode::empty())?;
    check_type(found.as_fd(), &types)?;
    if !crate::path::is_trusted(fstat(&found)?.st_uid) {
        return Ok(found);
    }
    let (dir, name) = crate::path::parent_of_target(path)?;
    let found = openat(dir, name, step | OFlags::NOFOLLOW, Mode::empty())?;
    check_type(found.as_fd(), &types)?;
    if fstat(&found)?.st_nlink != 1 {
        return Err(Errno::MLINK.into());
    }
    Ok(found)
}

fn flags(access: Access, direct: bool) -> OFlags {
    let access = match access {
        Access::Read => OFlags::RDONLY,
        Access::ReadWrite => OFlags::RDWR,
    };
    let direct = if direct { OFlags::DIRECT } else { OFlags::empty() };
    access | direct | OFlags::CLOEXEC
}

fn synchronous(flag: SyncFlag) -> OFlags {
    match flag {
        SyncFlag::None => OFlags::empty(),
        SyncFlag::Dsync => OFlags::DSYNC,
        SyncFlag::Sync => OFlags::SYNC,
    }
}

fn check_type(found: BorrowedFd, types: &[FileType]) -> io::Result<()> {
    let found = FileType::from_raw_mode(fstat(found)?.st_mode);
    if types.contains(&found) {
        return Ok(());
    }
    Err(match found {
        FileType::Directory => Errno::ISDIR.into(),
        FileType::RegularFile => Errno::NOTBLK.into(),
        FileType::Symlink => Errno::LOOP.into(),
        _ => io::Error::new(io::ErrorKind::InvalidInput, NEITHER),
    })
}

fn open_hint(source: &io::Error, direct: bool) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EINVAL) if direct => {
            "this file system does not offer O_DIRECT; choose another or measure the page cache \
             with --buffered"
        }
        Some(libc::ENOENT) => "nothing of that name exists; check the spelling",
        Some(libc::EBUSY) => "the device is in use",
        Some(libc::EISDIR) => "name a file or a block device, not a directory",
        Some(libc::ENOTBLK) => "name a block device",
        Some(libc::ELOOP) => "a link is not followed there; choose another directory",
        Some(libc::EMLINK) => "it has another name too; choose another directory",
        None if source.kind() == io::ErrorKind::InvalidInput => "name a file or a block device",
        _ => io_hint(source),
    }
}

fn create_hint(source: &io::Error, direct: bool) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EEXIST) => "remove the file, or choose another directory",
        Some(libc::ENOENT) => "the directory does not exist",
        _ => open_hint(source, direct),
    }
}

/// Returns what usually helps against an errno of any file operation.
pub(crate) fn io_hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "run as a user with the permission, or choose another path"
        }
        Some(libc::EROFS) => "the file system is mounted read-only; choose a writable one",
        Some(libc::ENOSPC | libc::EDQUOT) => "free some space, or ask for less with --size",
        Some(libc::EFBIG) => "the file system or ulimit -f limits the file size",
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit on open files (ulimit -n)",
        Some(libc::EINVAL) => "offset, length or memory is not aligned as the device requires",
        Some(libc::EIO) => "the device reported an error; see dmesg",
        _ => "see the kernel's log (dmesg) for the cause",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Arena;

    #[test]
    fn what_is_written_is_read_back_by_offset() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let file = BlockFile::create_new(&path, false).unwrap();
        file.lock_exclusive().unwrap();
        assert_eq!(file.write_at(8192, &[7; 512]), Ok(512));
        assert_eq!(file.write_dsync_at(0, &[9; 512]), Ok(512));
        assert_eq!(file.append(&[8; 512]), Ok(512));
        assert_eq!(file.size_bytes().unwrap(), 9216);
        file.set_size(8704).unwrap();
        file.write_out(0, 8704).unwrap();
        file.fdatasync().unwrap();
        file.fsync().unwrap();
        let synchronous = file.reopen_synchronous(false, SyncFlag::Dsync).unwrap();
        assert_eq!(synchronous.write_at(8192, &[7; 512]), Ok(512));
        assert_eq!(file.size_bytes().unwrap(), 8704);
        let mut back = [0; 512];
        assert_eq!(file.read_at(8192, &mut back), Ok(512));
        assert_eq!(back, [7; 512]);
        assert_eq!(file.read_at(8704, &mut back), Ok(0), "the end of the file is a short read");
        file.set_size(512).unwrap();
        file.drop_cached().unwrap();
        assert_eq!(file.size_bytes().unwrap(), 512);
    }

    #[test]
    fn a_second_holder_is_refused_and_errors_name_path_and_hint() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let first = BlockFile::create_new(&path, false).unwrap();
        first.lock_exclusive().unwrap();
        let second = BlockFile::open(&path, Access::Read, false).unwrap();
        for error in [
            second.lock_exclusive().unwrap_err(),
            BlockFile::create_new(&path, false).unwrap_err(),
            BlockFile::open(&path.join("x"), Access::Read, false).unwrap_err(),
            second.set_size(1).unwrap_err(),
        ] {
            let text = error.told();
            assert!(text.contains(path.to_str().unwrap()) && text.contains("\nhint: "), "{text}");
        }
        assert_eq!(second.write_at(0, &[0]), Err(libc::EBADF));
    }

    #[test]
    fn a_file_that_went_away_is_noticed_and_room_is_reserved() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let file = BlockFile::create_new(&path, false).unwrap();
        file.reserve(1 << 20).unwrap();
        assert_eq!(file.size_bytes().unwrap(), 1 << 20);
        assert!(file.reserve(1 << 60).unwrap_err().to_string().contains("No space left"));
        assert!(file.is_at_its_path() && !file.is_device());
        std::fs::remove_file(&path).unwrap();
        assert!(!file.is_at_its_path());
        let _other = BlockFile::create_new(&path, false).unwrap();
        assert!(!file.is_at_its_path(), "another file of that name is not this one");
    }

    #[test]
    fn what_takes_the_name_of_a_file_is_neither_opened_nor_renamed_nor_removed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("dir/data");
        let (victim, aside) = (root.path().join("victim"), root.path().join("dir/aside"));
        std::fs::create_dir(root.path().join("dir")).unwrap();
        std::fs::write(&victim, "victim").unwrap();
        let mut file = BlockFile::create_new(&path, false).unwrap();
        std::fs::rename(&path, &aside).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();

        assert_eq!(file.reopen(Access::ReadWrite, false).unwrap().write_at(0, b"ours"), Ok(4));
        assert_eq!(file.plain().unwrap().metadata().unwrap().len(), 4);
        assert!(!file.is_at_its_path());
        file.remove().unwrap();
        assert!(path.is_symlink());
        assert!(file.rename(OsStr::new("other")).is_err());
        assert_eq!(std::fs::read(&victim).unwrap(), b"victim");
        assert_eq!(std::fs::read(&aside).unwrap(), b"ours");

        // The directory moves away, and another one takes its path.
        std::fs::rename(&aside, root.path().join("dir/back")).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(root.path().join("dir/back"), &path).unwrap();
        let moved = root.path().join("moved");
        std::fs::rename(root.path().join("dir"), &moved).unwrap();
        std::fs::create_dir(root.path().join("dir")).unwrap();
        std::fs::write(&path, "other").unwrap();
        file.rename_new(OsStr::new("kept")).unwrap();
        assert_eq!(std::fs::read(moved.join("kept")).unwrap(), b"ours");
        file.remove().unwrap();
        assert_eq!(std::fs::read_dir(moved).unwrap().count(), 0);
        assert_eq!(std::fs::read(&path).unwrap(), b"other");
    }

    #[test]
    fn what_is_found_is_not_what_another_user_leads_to() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let own = |name: &str| std::os::unix::fs::lchown(at(name), Some(65534), None).unwrap();
        std::fs::create_dir(at("dir")).unwrap();
        for name in ["dir/secret", "dir/theirs", "dir/twin"] {
            std::fs::write(at(name), "data").unwrap();
        }
        std::fs::hard_link(at("dir/twin"), at("twin")).unwrap();
        let links = [("file", "dir/secret"), ("way", "dir"), ("good", "dir/theirs")];
        for (name, to) in links.into_iter().chain([("ours", "dir/secret"), ("both", "file")]) {
            std::os::unix::fs::symlink(to, at(name)).unwrap();
        }
        for name in ["dir/theirs", "file", "way", "good"] {
            own(name);
        }
        let open = |name: &str| BlockFile::open_found(&at(name)).map(|file| file.size_bytes());
        for name in ["dir/secret", "dir/theirs", "good", "way/theirs", "ours"] {
            assert!(matches!(open(name), Ok(Ok(4))), "{name}");
        }
        for name in ["file", "way/secret", "both", "twin", "dir", "none"] {
            assert!(open(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_file_of_a_held_directory_is_reached_from_there() {
        let root = tempfile::tempdir().unwrap();
        let dir = Arc::new(HeldDir::make(&root.path().join("dir")).unwrap());
        let [data, link, kept] = ["data", "link", "kept"].map(OsStr::new);
        let mut file = BlockFile::create_in(&dir, data, false).unwrap();
        std::fs::rename(root.path().join("dir"), root.path().join("moved")).unwrap();
        std::os::unix::fs::symlink("data", root.path().join("moved/link")).unwrap();
        assert!(BlockFile::open_in(&dir, link, Access::Read, false).is_err());
        assert!(BlockFile::open_in(&dir, data, Access::Read, false).unwrap().is_at_its_path());
        assert!(file.rename_new(link).is_err());
        file.rename_new(kept).unwrap();
        assert!(file.is_at_its_path() && file.path().ends_with("dir/kept"));
        file.rename(data).unwrap();
        file.remove().unwrap();
        file.remove().unwrap();
        assert_eq!(std::fs::read_dir(root.path().join("moved")).unwrap().count(), 1);
    }

    #[test]
    fn only_files_and_block_devices_are_opened() {
        let root = tempfile::tempdir().unwrap();
        let (pipe, link) = (root.path().join("pipe"), root.path().join("link"));
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        BlockFile::create_new(&root.path().join("data"), false).unwrap();
        std::os::unix::fs::symlink("data", &link).unwrap();
        BlockFile::open(&link, Access::ReadWrite, false).unwrap();
        for refused in [pipe.as_path(), root.path(), Path::new("/dev/null")] {
            let error = BlockFile::open(refused, Access::Read, false).unwrap_err().told();
            assert!(error.contains("hint: name a file or a block device"), "{error}");
        }
        let error = BlockFile::open_device(&link, false).unwrap_err().told();
        assert!(error.contains("hint: name a block device"), "{error}");
    }

    #[test]
    fn a_direct_read_of_a_regular_file_works_or_says_why() {
        // The build directory is on a real file system on every machine where this test was built.
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("data");
        match BlockFile::create_new(&path, true) {
            Ok(file) => {
                let mut arena = Arena::new(2, 8192).unwrap();
                arena.slot(0).fill(3);
                assert_eq!(file.write_at(0, arena.slot(0)), Ok(8192));
                assert_eq!(file.read_at(0, arena.slot(1)), Ok(8192));
                assert!(arena.slot(1).iter().all(|&b| b == 3));
            }
            Err(error) => {
                assert!(error.to_string().contains("O_DIRECT"), "{error}");
                assert!(!path.exists(), "a refused creation leaves no file behind");
            }
        }
    }
}
