//! Paths as users type them: what they lead to, and the directory that holds their last name.
//!
//! Files to be written are reached through [`parent`] or [`directory`], which hold each directory
//! on the way by its descriptor. A link on the way is followed only if it belongs to root or to
//! this user: in a directory of another user, a link is that user's choice of what the superuser
//! writes to.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, accessat, fstat, openat, readlinkat,
};
use rustix::io::Errno;

/// Maximum number of links followed, the same number as in the kernel.
const LINKS_MAX: u32 = 40;
const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A link created by another user is on the path of a file to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the way to it leads through a link of user {0}, who could direct it elsewhere")]
pub struct ForeignLink(pub u32);

/// Returns the metadata of the path's target.
pub fn look(path: &Path) -> io::Result<Metadata> {
    std::fs::metadata(path)
}

/// Returns the metadata of the path itself: of a link, not of its target.
pub fn look_at_name(path: &Path) -> io::Result<Metadata> {
    std::fs::symlink_metadata(path)
}

pub fn is_block_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    look(path).is_ok_and(|found| found.file_type().is_block_device())
}

/// Fails when this user cannot create files in a directory.
pub fn may_make_files(dir: &Path) -> io::Result<()> {
    let access = Access::WRITE_OK | Access::EXEC_OK;
    Ok(accessat(CWD, dir, access, AtFlags::EACCESS)?)
}

/// Returns the names in a directory, in the order of the file system.
pub fn names(dir: &Path) -> io::Result<Vec<OsString>> {
    std::fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// Returns the paths of a directory's entries, sorted by name.
pub fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = names(dir)?;
    names.sort();
    Ok(names.into_iter().map(|name| dir.join(name)).collect())
}

/// Returns the target of a link.
pub fn link_target(path: &Path) -> io::Result<PathBuf> {
    std::fs::read_link(path)
}

/// Returns the absolute path without links.
pub fn whole(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// Opens the directory that contains the last name of `path`, and returns that name too. Fails with
/// [`ForeignLink`], or when a directory on the way does not exist.
pub fn parent(path: &Path) -> io::Result<(OwnedFd, OsString)> {
    // `file_name` would treat `a/.` as `a`, and drops a trailing slash.
    let ends_in_directory = path.as_os_str().as_bytes().last() == Some(&b'/');
    match path.components().next_back() {
        Some(Component::Normal(name)) if !ends_in_directory => {
            let above = path.parent().unwrap_or(Path::new(""));
            Ok((directory(above)?, name.to_owned()))
        }
        _ => Err(io::ErrorKind::IsADirectory.into()),
    }
}

/// Like [`parent`], for the target of the last name if that is a link of root or this user.
pub(crate) fn parent_of_target(path: &Path) -> io::Result<(OwnedFd, OsString)> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let (dir, name) = parent(&path)?;
        let found = openat(&dir, &name, STEP, Mode::empty())?;
        let Some(target) = followed(&found)? else { return Ok((dir, name)) };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(Errno::LOOP.into())
}

/// Opens the directory `path`. Fails with [`ForeignLink`].
pub fn directory(path: &Path) -> io::Result<OwnedFd> {
    let start = |absolute| if absolute { Path::new("/") } else { Path::new(".") };
    let from = |path| openat(CWD, path, STEP | OFlags::DIRECTORY, Mode::empty());
    let mut at = from(start(path.is_absolute()))?;
    let mut left: VecDeque<OsString> = steps(path);
    let mut links = 0;
    while let Some(name) = left.pop_front() {
        let next = openat(&at, &name, STEP, Mode::empty())?;
        if let Some(target) = followed(&next)? {
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::LOOP.into());
            }
            if target.is_absolute() {
                at = from(Path::new("/"))?;
            }
            for step in steps(&target).into_iter().rev() {
                left.push_front(step);
            }
        } else if FileType::from_raw_mode(fstat(&next)?.st_mode) == FileType::Directory {
            at = next;
        } else {
            return Err(Errno::NOTDIR.into());
        }
    }
    // A descriptor opened for path traversal cannot be listed or synced.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(&at, ".", flags, Mode::empty()) {
        // It may still be writable.
        Err(Errno::ACCESS) => Ok(at),
        opened => Ok(opened?),
    }
}

/// Returns the target of a symbolic link, or `None` for anything else. Fails with [`ForeignLink`].
fn followed(found: &OwnedFd) -> io::Result<Option<PathBuf>> {
    let stat = fstat(found)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        return Ok(None);
    }
    if !is_trusted(stat.st_uid) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, ForeignLink(stat.st_uid)));
    }
    let said = readlinkat(found, "", Vec::new())?;
    Ok(Some(PathBuf::from(OsStr::from_bytes(said.as_bytes()))))
}

/// Returns whether `owner` is root or this user, who could do any harm here already.
pub(crate) fn is_trusted(owner: u32) -> bool {
    owner == 0 || owner == rustix::process::geteuid().as_raw()
}

fn steps(path: &Path) -> VecDeque<OsString> {
    let step = |part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(step).collect()
}

/// Returns a path that leads to the same open file in this process, whatever its name leads to.
pub fn of_descriptor(file: &impl AsFd) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    fn inode(found: &OwnedFd) -> u64 {
        fstat(found).unwrap().st_ino
    }

    fn inode_of(path: &Path) -> u64 {
        use std::os::unix::fs::MetadataExt;
        look(path).unwrap().ino()
    }

    #[test]
    fn links_of_this_user_are_followed_wherever_they_lead() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        symlink("b/c", root.path().join("a/relative")).unwrap();
        symlink(root.path().join("a/b/../relative"), root.path().join("absolute")).unwrap();
        for path in ["a/b/c", "a/relative", "absolute", "absolute/../c/."] {
            let path = root.path().join(path);
            assert_eq!(inode(&directory(&path).unwrap()), inode_of(&deep), "{}", path.display());
        }
        let (held, name) = parent(&root.path().join("absolute/new")).unwrap();
        assert_eq!((inode(&held), name.to_str()), (inode_of(&deep), Some("new")));
        assert_eq!(inode(&directory(Path::new("")).unwrap()), inode_of(Path::new(".")));
    }

    #[test]
    fn what_is_no_way_to_a_file_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        symlink("loop", root.path().join("loop")).unwrap();
        let kind = |path: &str| directory(&root.path().join(path)).unwrap_err().kind();
        assert_eq!(kind("file"), io::ErrorKind::NotADirectory);
        assert_eq!(kind("file/x"), io::ErrorKind::NotADirectory);
        assert_eq!(kind("none/x"), io::ErrorKind::NotFound);
        assert_eq!(kind("loop"), io::Error::from(Errno::LOOP).kind());
        for path in ["x/", "..", "/", ""] {
            let refused = parent(Path::new(path)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::IsADirectory, "{path}");
        }
    }

    #[test]
    fn a_link_of_another_user_is_not_followed() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("victim")).unwrap();
        let link = root.path().join("link");
        symlink("victim", &link).unwrap();
        lchown(&link, Some(65534), Some(65534)).unwrap();
        let refused = directory(&link.join("x")).unwrap_err();
        let why = refused.get_ref().and_then(|it| it.downcast_ref::<ForeignLink>());
        assert_eq!(why, Some(&ForeignLink(65534)));
    }
}
