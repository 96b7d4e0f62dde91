//! Directories that a run creates and that a later run removes if the first was killed.
//!
//! Such a directory may be where other users can write: a user who can rename it can replace it
//! with a link or another directory at any moment, and the superuser may be asked to remove it. It
//! is therefore held by its descriptor, and everything in it is reached from there, never by path.
//! A record in it, owned by the user who created it, proves that a run created this very directory,
//! and names the program of the server that works there.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::text::parent_dir;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, openat, statat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::account;
use crate::child::User;
use crate::held::{Identity, names_in, open_below, rename_new};

const RECORD: &str = "blockstone.scratch";
const RECORD_START: &str = "blockstone scratch directory";
/// A record is shorter than this.
const RECORD_BYTES: u64 = 256;
/// Maximum number of bytes read from a server's log, which may have any length.
const LOG_BYTES: u64 = 64 << 10;
/// No database nests directories this deep.
const DEEPEST: u32 = 100;
/// Each of these levels holds a descriptor while it is removed.
const REMOVED_DEPTH: u32 = 16;
/// A younger file may be one that a run has created but not locked yet.
const SETTLED: Duration = Duration::from_millis(100);
const AGAIN: Duration = Duration::from_millis(20);
/// How long a killed process may keep running.
const ENDING: Duration = Duration::from_secs(1);

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A name in a directory that is held open.
#[derive(Debug)]
struct Entry {
    parent: OwnedFd,
    name: OsString,
}

impl Entry {
    fn of(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { parent: openat(CWD, parent_dir(path), flags, Mode::empty())?, name })
    }

    fn look(&self) -> io::Result<Stat> {
        Ok(statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(openat(&self.parent, &self.name, flags, Mode::empty())?)
    }

    /// Removes the name if it still leads to `held`: another process may have taken it.
    fn unlink(&self, held: Identity, flags: AtFlags) -> io::Result<()> {
        match self.look() {
            Ok(found) if Identity::of(&found) == held => {
                Ok(unlinkat(&self.parent, &self.name, flags)?)
            }
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// A directory that a run created, locked (flock) for as long as this lives.
#[derive(Debug)]
pub struct ScratchDir {
    entry: Entry,
    dir: OwnedFd,
    identity: Identity,
    /// User whose processes may work in it.
    owner: u32,
    program: Option<Identity>,
}

impl AsFd for ScratchDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

impl ScratchDir {
    /// Creates and locks the directory `path`; `program` is the server that will work in it. Fails
    /// when it exists, cannot be created, or was replaced by another user at that moment.
    pub fn create(path: &Path, program: Option<&Path>) -> io::Result<Self> {
        let program =
            program.map(|path| Ok::<_, io::Error>(Identity::of(&rustix::fs::stat(path)?)));
        Self::make(Entry::of(path)?, program.transpose()?)
    }

    /// Like [`ScratchDir::create`], under `name` in a directory that is held, for files of this
    /// process.
    pub fn create_in(dir: impl AsFd, name: &str) -> io::Result<Self> {
        Self::make(Entry { parent: dir.as_fd().try_clone_to_owned()?, name: name.into() }, None)
    }

    fn make(entry: Entry, program: Option<Identity>) -> io::Result<Self> {
        rustix::fs::mkdirat(&entry.parent, &entry.name, Mode::from_raw_mode(0o700))?;
        let dir = entry.open(DIRECTORY)?;
        let found = fstat(&dir)?;
        let identity = Identity::of(&found);
        let made = Self { entry, dir, identity, owner: found.st_uid, program };
        if found.st_mode & 0o022 != 0 {
            let why = "others may write to every directory that is made there";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let replaced = || io::Error::other("another user replaced it as it was made");
        if !made.is_empty()? {
            return Err(replaced());
        }
        // If a file system maps owners, what is created in a directory has that directory's owner.
        let prepared = made.lock().and_then(|()| made.write_record());
        let prepared =
            prepared.and_then(|owner| if owner == made.owner { Ok(()) } else { Err(replaced()) });
        if let Err(error) = prepared {
            let _ = made.remove();
            return Err(error);
        }
        Ok(made)
    }

    /// Opens the directory at `entry`, if a run of this user created it.
    fn open(entry: Entry) -> io::Result<Self> {
        let dir = entry.open(DIRECTORY)?;
        let found = fstat(&dir)?;
        let identity = Identity::of(&found);
        let mut made = Self { entry, dir, identity, owner: found.st_uid, program: None };
        match made.read_record() {
            Ok(program) => made.program = program,
            // Its run was killed between two system calls.
            Err(_) if made.owner == me() && made.is_begun()? => {}
            Err(error) => return Err(error),
        }
        Ok(made)
    }

    /// Returns the user whose processes may work in it.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Transfers its ownership to a server's user. Fails when the file system has no owners.
    pub fn give_to(&mut self, user: &User) -> io::Result<()> {
        give(self.dir.as_fd(), user)?;
        self.owner = user.uid;
        Ok(())
    }

    /// Creates a file in it that only `user` may read, or this user if that is `None`.
    pub fn secret(&self, name: &str, text: &str, user: Option<&User>) -> io::Result<()> {
        let mut file = self.create_file(name, OFlags::WRONLY, Mode::from_raw_mode(0o600))?;
        if let Some(user) = user {
            give(file.as_fd(), user)?;
        }
        file.write_all(text.as_bytes())
    }

    /// Creates a file in it, for appending and reading. The server may have put a link there.
    pub fn log(&self, name: &str) -> io::Result<Log> {
        match unlinkat(&self.dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDWR | OFlags::APPEND;
        Ok(Log(self.create_file(name, flags, Mode::from_raw_mode(0o644))?))
    }

    fn create_file(&self, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.dir, name, flags, mode)?))
    }

    /// Returns a path through its descriptor, valid in this process and short enough for a socket
    /// address.
    pub fn short(&self) -> String {
        format!("/proc/self/fd/{}", self.dir.as_raw_fd())
    }

    fn lock(&self) -> io::Result<()> {
        Ok(flock(&self.dir, FlockOperation::NonBlockingLockExclusive)?)
    }

    /// Returns whether it contains nothing but possibly a record that has not been written yet.
    fn is_begun(&self) -> io::Result<bool> {
        let names = names_in(self.dir.as_fd())?;
        if names != [RECORD] {
            return Ok(names.is_empty());
        }
        let record = statat(&self.dir, RECORD, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(record.st_uid == me() && record.st_size == 0)
    }

    fn is_empty(&self) -> io::Result<bool> {
        Ok(names_in(self.dir.as_fd())?.is_empty())
    }

    /// Writes the record and returns its owner.
    fn write_record(&self) -> io::Result<u32> {
        let line = |program: Identity| format!("program {} {}\n", program.device, program.inode);
        let program = self.program.map(line).unwrap_or_default();
        let text = format!("{RECORD_START}\ninode {}\n{program}", self.identity.inode);
        let mode = Mode::from_raw_mode(0o600);
        let mut record = self.create_file(RECORD, OFlags::WRONLY, mode)?;
        record.write_all(text.as_bytes())?;
        Ok(record.metadata()?.uid())
    }

    /// Returns the program that the record names. Only the creator of the directory can have
    /// written it: it belongs to this user, and names the directory, so a record moved here proves
    /// nothing.
    fn read_record(&self) -> io::Result<Option<Identity>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.dir, RECORD, flags, Mode::empty())?);
        let found = file.metadata()?;
        if !found.is_file() || found.uid() != me() || found.mode() & 0o022 != 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut text = String::new();
        file.take(RECORD_BYTES).read_to_string(&mut text)?;
        parse_record(&text, self.identity.inode)
    }

    /// Removes it with its contents. A directory that has taken its name meanwhile is left alone.
    pub fn remove(&self) -> io::Result<()> {
        let is_other = |name: &OsString| name != RECORD;
        let mut is_deeper = true;
        while is_deeper {
            is_deeper = false;
            for name in names_in(self.dir.as_fd())?.into_iter().filter(is_other) {
                is_deeper |= self.remove_at(self.dir.as_fd(), &name, REMOVED_DEPTH)?;
            }
        }
        // The record is removed last, so that the rest of a failed removal is still known as a
        // run's.
        if names_in(self.dir.as_fd())?.iter().any(is_other) {
            return Err(Errno::NOTEMPTY.into());
        }
        match unlinkat(&self.dir, RECORD, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        self.entry.unlink(self.identity, AtFlags::REMOVEDIR)
    }

    /// Turns it into an ordinary directory, which no later run removes.
    pub fn keep(self) -> io::Result<()> {
        Ok(unlinkat(&self.dir, RECORD, AtFlags::empty())?)
    }

    /// Removes `name` in `dir`, and everything below it on the same file system: links are not
    /// followed, mounts are not entered. Directories that are too deep are moved up, to be removed
    /// in turn; returns whether there were any.
    fn remove_at(&self, dir: BorrowedFd, name: &OsStr, depth: u32) -> io::Result<bool> {
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(false),
            // Linux returns the first for a directory, POSIX the second.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        let below = open_below(dir, name)?;
        if fstat(&below)?.st_dev != self.identity.device {
            return Err(Errno::XDEV.into());
        }
        if depth == 0 {
            return self.move_up(dir, name).map(|()| true);
        }
        let mut is_deeper = false;
        for name in names_in(below.as_fd())? {
            is_deeper |= self.remove_at(below.as_fd(), &name, depth - 1)?;
        }
        unlinkat(dir, name, AtFlags::REMOVEDIR)?;
        Ok(is_deeper)
    }

    fn move_up(&self, dir: BorrowedFd, name: &OsStr) -> io::Result<()> {
        let mut number = 0_u32;
        loop {
            let free = format!("moved-{number}");
            match rename_new((dir, name.as_ref()), (&self.dir, free.as_ref())) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                moved => return moved,
            }
        }
    }

    /// Kills what is left of its server and removes it.
    pub fn clear_away(&self) -> io::Result<()> {
        let patience = Instant::now() + ENDING;
        loop {
            self.kill_server();
            match self.remove() {
                Err(_) if Instant::now() < patience => thread::sleep(AGAIN),
                removed => return removed,
            }
        }
    }

    /// Kills what is left of the server: processes of its program and its user that work in this
    /// directory. No other process is killed, neither a shell nor one that has reused a process ID.
    fn kill_server(&self) {
        let Some(program) = self.program else { return };
        for pid in account::all(Path::new("/")) {
            let Some(raw) = Pid::from_raw(pid as i32) else { continue };
            // Opened before the check: from here on the ID cannot change its meaning.
            let Ok(process) = pidfd_open(raw, PidfdFlags::empty()) else { continue };
            if self.is_worker(pid, program) {
                let _ = pidfd_send_signal(&process, Signal::KILL);
            }
        }
    }

    fn is_worker(&self, pid: u32, program: Identity) -> bool {
        let of = |name: &str| rustix::fs::stat(format!("/proc/{pid}/{name}"));
        of("").is_ok_and(|found| found.st_uid == self.owner)
            && of("exe").is_ok_and(|found| Identity::of(&found) == program)
            && self.holds(pid).unwrap_or(false)
    }

    /// Returns whether the working directory of process `pid` is this one or below it.
    fn holds(&self, pid: u32) -> io::Result<bool> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut dir = openat(CWD, format!("/proc/{pid}/cwd"), flags, Mode::empty())?;
        let mut below = None;
        for _ in 0..DEEPEST {
            let here = Identity::of(&fstat(&dir)?);
            if here == self.identity {
                return Ok(true);
            }
            // The root is its own parent.
            if below == Some(here) {
                return Ok(false);
            }
            below = Some(here);
            dir = openat(&dir, "..", flags, Mode::empty())?;
        }
        Ok(false)
    }
}

/// Output of a server, for this program to read.
#[derive(Debug)]
pub struct Log(File);

impl Log {
    /// Returns a descriptor for the server to write to. Fails when this process has too many.
    pub fn writer(&self) -> io::Result<File> {
        self.0.try_clone()
    }

    /// Returns the end of the log as text, at most [`LOG_BYTES`]; empty if it cannot be read.
    pub fn text(&self) -> String {
        let len = self.0.metadata().map_or(0, |found| found.len());
        let mut bytes = vec![0; LOG_BYTES.min(len) as usize];
        match self.0.read_at(&mut bytes, len.saturating_sub(LOG_BYTES)) {
            Ok(read) => String::from_utf8_lossy(&bytes[..read]).into_owned(),
            Err(_) => String::new(),
        }
    }
}

/// Removes the file or directory at `path` that this run created. Fails when it is gone, cannot be
/// removed, or is a directory that no run created.
pub fn remove(path: &Path) -> io::Result<()> {
    let entry = Entry::of(path)?;
    match FileType::from_raw_mode(entry.look()?.st_mode) {
        FileType::Directory => ScratchDir::open(entry)?.remove(),
        _ => Ok(unlinkat(&entry.parent, &entry.name, AtFlags::empty())?),
    }
}

/// Removes the file or directory at `path` if it belongs to this user and its run was killed;
/// returns whether it did. Waits until `patience` for locks that the kernel releases late.
pub fn remove_orphan(path: &Path, patience: Instant) -> bool {
    let removed = || -> io::Result<bool> {
        let entry = Entry::of(path)?;
        match FileType::from_raw_mode(entry.look()?.st_mode) {
            FileType::RegularFile => remove_orphan_file(&entry, patience),
            FileType::Directory => remove_orphan_dir(entry),
            _ => Ok(false),
        }
    };
    removed().unwrap_or(false)
}

fn remove_orphan_dir(entry: Entry) -> io::Result<bool> {
    let left = ScratchDir::open(entry)?;
    if !is_settled(&fstat(&left.dir)?) {
        return Ok(false);
    }
    left.lock()?;
    left.clear_away().map(|()| true)
}

fn remove_orphan_file(entry: &Entry, patience: Instant) -> io::Result<bool> {
    // Network file systems lock exclusively only files open for writing.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = entry.open(flags)?;
    let found = fstat(&file)?;
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if !is_file || found.st_uid != me() {
        return Ok(false);
    }
    let is_free = || -> io::Result<bool> {
        let lock = || flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(is_settled(&fstat(&file)?) && lock().is_ok())
    };
    while !is_free()? {
        if Instant::now() >= patience {
            return Ok(false);
        }
        thread::sleep(AGAIN);
    }
    entry.unlink(Identity::of(&found), AtFlags::empty()).map(|()| true)
}

fn give(held: BorrowedFd, user: &User) -> io::Result<()> {
    let (uid, gid) = (rustix::fs::Uid::from_raw(user.uid), rustix::fs::Gid::from_raw(user.gid));
    Ok(rustix::fs::fchown(held, Some(uid), Some(gid))?)
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns whether it has not been touched for a moment.
fn is_settled(found: &Stat) -> bool {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
    let age_ns = ns(now.tv_sec, now.tv_nsec) - ns(found.st_mtime, found.st_mtime_nsec as i64);
    age_ns >= SETTLED.as_nanos() as i128
}

fn parse_record(text: &str, inode: u64) -> io::Result<Option<Identity>> {
    let parsed = || {
        let mut lines = text.lines();
        let starts = lines.next() == Some(RECORD_START);
        let named: u64 = lines.next()?.strip_prefix("inode ")?.parse().ok()?;
        let program = match lines.next() {
            None => None,
            Some(line) => {
                let (device, inode) = line.strip_prefix("program ")?.split_once(' ')?;
                Some(Identity { device: device.parse().ok()?, inode: inode.parse().ok()? })
            }
        };
        (starts && named == inode).then_some(program)
    };
    parsed().ok_or(io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests;
