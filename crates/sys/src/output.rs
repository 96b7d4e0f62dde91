//! Files and directories that a user names for writing.
//!
//! A file is created in the directory that contains its name and takes that name when it is
//! complete: what had the name is replaced, never written to, so that neither a symbolic nor a hard
//! link to a victim's file does harm. A pipe or a character device is written to directly, if it
//! belongs to this user or to root; a block device never is.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fcntl_getfl, fcntl_setfl, fstat, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;

use crate::held::HeldDir;
use crate::path::{self, is_trusted};

const NEW: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// The resulting mode depends on the umask.
const MODE: Mode = Mode::from_raw_mode(0o666);
/// How long a pipe may have no reader.
const READER: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// Names tried before the directory is considered hostile.
const TRIES: u32 = 100;

/// Writes `bytes` to the file of this name, completely or not at all.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut place = Destination::of(path)?;
    place.file.write_all(bytes)?;
    place.keep().map(drop)
}

/// Fails if [`write`] would, as far as that can be known without writing.
pub fn check(path: &Path) -> io::Result<()> {
    if descriptor(path).is_some() {
        return Ok(());
    }
    let (dir, name) = path::parent(path)?;
    match statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if is_replaceable(&found) => Ok(()),
        Ok(found) => allowed(&found),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Creates a file of this name that is written bit by bit. It replaces another file of that name
/// immediately.
pub fn create(path: &Path) -> io::Result<File> {
    Destination::of(path)?.keep()
}

/// Opens the directory of this name, creating it and its missing parents. Fails with
/// [`path::ForeignLink`] if a link of another user leads to it.
pub fn directory(path: &Path) -> io::Result<HeldDir> {
    let missing = |dir: &&Path| !dir.as_os_str().is_empty() && path::look_at_name(dir).is_err();
    let mut new: Vec<&Path> = path.ancestors().take_while(missing).collect();
    let there = new.last().map_or(path, |top| top.parent().unwrap_or(Path::new("")));
    let mut held = HeldDir::of(path::directory(there)?, there);
    while let Some(dir) = new.pop() {
        let name = Path::new(dir.file_name().ok_or(io::ErrorKind::InvalidInput)?);
        held.make_dir(name)?;
        held = held.within(name)?;
    }
    Ok(held)
}

/// Where the bytes are stored until they are complete.
struct Destination {
    file: File,
    /// The directory, the temporary name in it, and the requested name.
    pending: Option<(OwnedFd, PathBuf, PathBuf)>,
}

impl Destination {
    fn of(path: &Path) -> io::Result<Self> {
        if let Some(number) = descriptor(path) {
            return own_descriptor(number).map(|file| Self { file, pending: None });
        }
        let (dir, name) = path::parent(path)?;
        match statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if is_replaceable(&found) => {}
            Ok(found) => return special(dir.as_fd(), &name, &found),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        for number in 0..TRIES {
            let part = PathBuf::from(format!(".blockstone-{}-{number}", std::process::id()));
            match openat(&dir, &part, NEW, MODE) {
                Ok(file) => {
                    let pending = Some((dir, part, PathBuf::from(name)));
                    return Ok(Self { file: File::from(file), pending });
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EXIST.into())
    }

    fn keep(mut self) -> io::Result<File> {
        if let Some((dir, part, name)) = &self.pending {
            renameat(dir, part, dir, name)?;
            self.pending = None;
        }
        self.file.try_clone()
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if let Some((dir, part, _)) = &self.pending {
            // It was not written completely.
            let _ = unlinkat(dir, part, AtFlags::empty());
        }
    }
}

fn is_replaceable(found: &Stat) -> bool {
    let kind = FileType::from_raw_mode(found.st_mode);
    matches!(kind, FileType::RegularFile | FileType::Symlink)
}

/// Fails unless it is a pipe or a character device that belongs to this user or root.
fn allowed(found: &Stat) -> io::Result<()> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Fifo | FileType::CharacterDevice if is_trusted(found.st_uid) => Ok(()),
        FileType::Fifo | FileType::CharacterDevice => {
            let why = format!("it is a pipe or a device of user {}", found.st_uid);
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
        FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
        FileType::BlockDevice => refused("it is a block device"),
        _ => refused("it is neither a file nor a pipe"),
    }
}

/// Opens a file that cannot be replaced.
fn special(dir: BorrowedFd, name: &OsStr, found: &Stat) -> io::Result<Destination> {
    allowed(found)?;
    let until = Instant::now() + READER;
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let file = loop {
        match openat(dir, name, flags | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NXIO) if Instant::now() < until => thread::sleep(LOOK),
            Err(Errno::NXIO) => {
                return Err(io::Error::other("it is a pipe that nothing reads from"));
            }
            opened => break opened?,
        }
    };
    // Another file may have taken its name.
    allowed(&fstat(&file)?)?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(Destination { file: File::from(file), pending: None })
}

/// Returns the number of this process's descriptor that a path names: shells make such paths, and
/// `/dev/stdout` is one.
fn descriptor(path: &Path) -> Option<i32> {
    match path.as_os_str().as_bytes() {
        b"/dev/stdout" => Some(1),
        b"/dev/stderr" => Some(2),
        bytes => {
            let number =
                bytes.strip_prefix(b"/dev/fd/").or(bytes.strip_prefix(b"/proc/self/fd/"))?;
            std::str::from_utf8(number).ok()?.parse().ok().filter(|number| *number >= 0)
        }
    }
}

fn own_descriptor(number: i32) -> io::Result<File> {
    // SAFETY: fcntl takes any number, and returns EBADF for one that is not open; nothing closes it
    // meanwhile, because only descriptors inherited by this process have such a name.
    let given = unsafe { BorrowedFd::borrow_raw(number) };
    let file = File::from(given.try_clone_to_owned()?);
    let found = fstat(&file)?;
    if FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a block device"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use rustix::fs::{CWD, mkfifoat};

    use super::*;

    #[test]
    fn a_file_is_replaced_and_never_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, page) = (dir.path().join("victim"), dir.path().join("page"));
        fs::write(&victim, "theirs").unwrap();
        symlink(&victim, &page).unwrap();
        write(&page, b"ours").unwrap();
        assert!(path::look_at_name(&page).unwrap().is_file());
        fs::remove_file(&page).unwrap();
        fs::hard_link(&victim, &page).unwrap();
        create(&page).unwrap().write_all(b"bit by bit").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(&page).unwrap(), "bit by bit");
        assert_eq!(path::names(dir.path()).unwrap().len(), 2, "nothing is left beside it");
    }

    #[test]
    fn directories_are_made_as_far_as_they_are_missing() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        directory(&deep).unwrap().create(Path::new("x")).unwrap();
        directory(&deep).unwrap().create(Path::new("y")).unwrap();
        assert_eq!(path::names(&deep).unwrap().len(), 2);
        assert_eq!(write(&deep, b"x").unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(directory(&deep.join("x/z")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn a_pipe_is_written_to_if_it_is_of_this_user() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
        let reading = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write(&pipe, b"through a pipe").unwrap();
        assert_eq!(reading.join().unwrap(), "through a pipe");
        if !rustix::process::geteuid().is_root() {
            return;
        }
        chown(&pipe, Some(65534), None).unwrap();
        fs::set_permissions(&pipe, PermissionsExt::from_mode(0o666)).unwrap();
        let _reader = File::options().read(true).write(true).open(&pipe).unwrap();
        let refused = write(&pipe, b"secret").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{refused}");
    }

    #[test]
    fn descriptors_of_this_process_are_named_as_shells_do() {
        let of = |path: &str| descriptor(Path::new(path));
        assert_eq!(of("/dev/stdout"), Some(1));
        assert_eq!(of("/dev/fd/63"), Some(63));
        assert_eq!(of("/proc/self/fd/5"), Some(5));
        for other in ["/dev/fd/", "/dev/fd/-1", "/dev/fd/1/x", "/dev/null", "fd/1"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert!(write(Path::new("/dev/fd/987654"), b"").is_err());
        write(Path::new("/dev/null"), b"nothing keeps it").unwrap();
    }
}
