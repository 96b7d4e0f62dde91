//! Attributes of a file besides its bytes: owner, mode, times, extended attributes and access
//! lists.

use std::ffi::{CStr, CString};
use std::fmt::Display;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::buffer::spare_capacity;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, XattrFlags, chownat,
    fchmod, fchown, fgetxattr, flistxattr, fremovexattr, fsetxattr, fstat, futimens, openat,
    removexattr, utimensat,
};
use rustix::io::Errno;

use blockstone_sys::held;
use blockstone_sys::path::of_descriptor;

use crate::CopyError;

/// Kernel limit for the list of names and for one value (limits.h).
const XATTR_BYTES_MAX: usize = 65536;
/// Access lists that a new file may inherit from its directory.
const ACCESS_LISTS: [&CStr; 2] = [c"system.posix_acl_access", c"system.posix_acl_default"];
const SET_ID: u32 = 0o6000;

/// An attribute that could not be set on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    Owner,
    Mode,
    Times,
    AccessList,
    ExtendedAttribute,
    /// Owner and mode of a directory that existed before.
    Directory,
    /// A socket, which is meaningless without the process that made it.
    Socket,
}

impl Lack {
    pub fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Mode => "set-user-ID or set-group-ID bit",
            Self::Times => "times",
            Self::AccessList => "access list",
            Self::ExtendedAttribute => "extended attribute",
            Self::Directory => "owner and mode of a directory",
            Self::Socket => "socket",
        }
    }
}

/// Number of targets that lack something, and the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub lack: Lack,
    pub count: u64,
    pub first: PathBuf,
    pub why: String,
}

/// Attributes that could not be carried, gathered from several threads.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Vec<Note>>);

impl Notes {
    pub fn add(&self, lack: Lack, path: &Path, why: &dyn Display) {
        let Ok(mut notes) = self.0.lock() else { return };
        if let Some(note) = notes.iter_mut().find(|note| note.lack == lack) {
            note.count += 1;
        } else {
            let (first, why) = (path.to_owned(), why.to_string());
            notes.push(Note { lack, count: 1, first, why });
        }
    }

    pub fn into_list(self) -> Vec<Note> {
        let mut notes = self.0.into_inner().unwrap_or_default();
        notes.sort_by_key(|note| note.lack);
        notes
    }
}

/// A link, pipe or device that was just made.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    pub kind: FileType,
    /// Device number.
    pub number: u64,
    /// Owner of new files in its directory.
    pub owner: u32,
}

impl Made {
    /// Returns whether `found` is this object and has no other name.
    fn is(&self, found: &Stat) -> bool {
        let devices = [FileType::BlockDevice, FileType::CharacterDevice];
        FileType::from_raw_mode(found.st_mode) == self.kind
            && (found.st_rdev == self.number || !devices.contains(&self.kind))
            && found.st_uid == self.owner
            && found.st_nlink <= 1
    }
}

#[derive(Clone, Debug)]
pub struct Attributes {
    owner: (Uid, Gid),
    mode: u32,
    times: Timestamps,
    extended: Vec<(CString, Vec<u8>)>,
}

impl Attributes {
    /// Reads the attributes of an open file or directory.
    pub fn of(file: impl AsFd) -> io::Result<Self> {
        let file = file.as_fd();
        let mut attributes = Self::of_stat(&fstat(file)?);
        for name in names(file)? {
            let mut value = Vec::new();
            match fetch(&mut value, |out| fgetxattr(file, name.as_c_str(), spare_capacity(out))) {
                Ok(()) => attributes.extended.push((name, value)),
                // Removed meanwhile, or not accessible to this user.
                Err(Errno::NODATA | Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(attributes)
    }

    /// Returns the attributes except extended ones.
    pub fn of_stat(stat: &Stat) -> Self {
        let time = |s: i64, ns: u64| Timespec { tv_sec: s, tv_nsec: ns as i64 };
        Self {
            owner: (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid)),
            mode: stat.st_mode & 0o7777,
            times: Timestamps {
                last_access: time(stat.st_atime, stat.st_atime_nsec),
                last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
            },
            extended: Vec::new(),
        }
    }

    /// Sets them on an open file or directory: the owner before mode and extended attributes,
    /// because a change of owner clears set-ID bits and capabilities; times last.
    pub fn apply(&self, file: impl AsFd, path: &Path, notes: &Notes) -> Result<(), CopyError> {
        let file = file.as_fd();
        let is_owned =
            keeps_owner(fchown(file, Some(self.owner.0), Some(self.owner.1)), path, notes)?;
        // An inherited list could admit users whom the source excludes; the mode limits that.
        for list in ACCESS_LISTS {
            unless_there_is_none(fremovexattr(file, list), path)?;
        }
        fchmod(file, Mode::from_raw_mode(self.mode_for(is_owned, path, notes)))
            .map_err(CopyError::io("set the mode of", path))?;
        for (name, value) in &self.extended {
            if let Err(error) = fsetxattr(file, name.as_c_str(), value, XattrFlags::empty()) {
                if matches!(error, Errno::NOSPC | Errno::DQUOT | Errno::IO) {
                    return Err(CopyError::io("write an extended attribute of", path)(error));
                }
                let is_list = ACCESS_LISTS.contains(&name.as_c_str());
                let lack = if is_list { Lack::AccessList } else { Lack::ExtendedAttribute };
                let why = io::Error::from(error);
                notes.add(lack, path, &format!("{}: {why}", name.to_string_lossy()));
            }
        }
        keep_times(futimens(file, &self.times), path, notes);
        Ok(())
    }

    /// Sets them on a link, pipe or device, which cannot be opened. Fails if `name` leads to
    /// anything but what was made there.
    pub fn apply_at(
        &self,
        dir: impl AsFd,
        name: &Path,
        made: &Made,
        path: &Path,
        notes: &Notes,
    ) -> Result<(), CopyError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let node = openat(dir, name, flags, Mode::empty()).map_err(CopyError::io("open", path))?;
        // From here on, the name is irrelevant.
        if !made.is(&fstat(&node).map_err(CopyError::io("look at", path))?) {
            return Err(CopyError::replaced("set the attributes of", path));
        }
        let chown =
            chownat(&node, c"", Some(self.owner.0), Some(self.owner.1), AtFlags::EMPTY_PATH);
        let is_owned = keeps_owner(chown, path, notes)?;
        let is_link = made.kind == FileType::Symlink;
        if !is_link {
            let through = of_descriptor(&node);
            // Inherited from its directory.
            unless_there_is_none(removexattr(&through, ACCESS_LISTS[0]), path)?;
            let bits = Mode::from_raw_mode(self.mode_for(is_owned, path, notes));
            held::set_mode(&node, bits).map_err(CopyError::io("set the mode of", path))?;
        }
        let set = utimensat(&node, c"", &self.times, AtFlags::EMPTY_PATH);
        // Before Linux 5.8.
        let set = if set == Err(Errno::INVAL) && !is_link {
            held::set_times(&node, &self.times)
        } else {
            set
        };
        keep_times(set, path, notes);
        Ok(())
    }

    /// Returns the owner that a target gets if this user may set it.
    pub fn user(&self) -> u32 {
        self.owner.0.as_raw()
    }

    /// Returns whether a directory with these attributes admits the same users as `found`.
    pub fn admits_as(&self, found: &Stat) -> bool {
        (self.owner.0.as_raw(), self.owner.1.as_raw()) == (found.st_uid, found.st_gid)
            && self.mode == found.st_mode & 0o7777
            && !self.extended.iter().any(|(name, _)| ACCESS_LISTS.contains(&name.as_c_str()))
    }

    /// Returns the mode to set. Without the original owner, set-ID bits would grant the rights of
    /// another user.
    fn mode_for(&self, is_owned: bool, path: &Path, notes: &Notes) -> u32 {
        if is_owned || self.mode & SET_ID == 0 {
            return self.mode;
        }
        notes.add(Lack::Mode, path, &"the owner could not be kept");
        self.mode & !SET_ID
    }
}

fn keeps_owner(set: rustix::io::Result<()>, path: &Path, notes: &Notes) -> Result<bool, CopyError> {
    match set {
        Ok(()) => Ok(true),
        Err(error @ (Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP)) => {
            notes.add(Lack::Owner, path, &io::Error::from(error));
            Ok(false)
        }
        Err(error) => Err(CopyError::io("set the owner of", path)(error)),
    }
}

fn keep_times(set: rustix::io::Result<()>, path: &Path, notes: &Notes) {
    if let Err(error) = set {
        notes.add(Lack::Times, path, &io::Error::from(error));
    }
}

fn unless_there_is_none(removed: rustix::io::Result<()>, path: &Path) -> Result<(), CopyError> {
    match removed {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::ACCESS) => Ok(()),
        Err(error) => Err(CopyError::io("remove the access list of", path)(error)),
    }
}

fn names(file: impl AsFd) -> io::Result<Vec<CString>> {
    let mut list = Vec::new();
    match fetch(&mut list, |out| flistxattr(&file, spare_capacity(out))) {
        Ok(()) => {}
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    }
    let names = list.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| CString::new(name).ok()).collect())
}

/// Tries a small buffer first, then the largest size that the kernel allows.
fn fetch(
    out: &mut Vec<u8>,
    ask: impl Fn(&mut Vec<u8>) -> rustix::io::Result<usize>,
) -> rustix::io::Result<()> {
    out.reserve(256);
    match ask(out) {
        Err(Errno::RANGE) => {
            out.reserve(XATTR_BYTES_MAX);
            ask(out).map(drop)
        }
        asked => asked.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use rustix::fs::{mkfifoat, statat};

    use super::*;

    #[test]
    fn what_has_the_name_of_a_new_node_by_then_gets_no_attributes() {
        blockstone_testkit::require!(Root);
        let root = tempfile::tempdir().unwrap();
        let dir = fs::File::open(root.path()).unwrap();
        mkfifoat(&dir, "source", Mode::RUSR).unwrap();
        chown(root.path().join("source"), Some(65534), Some(65534)).unwrap();
        fs::set_permissions(root.path().join("source"), fs::Permissions::from_mode(0o666)).unwrap();
        let source = statat(&dir, "source", AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let attributes = Attributes::of_stat(&source);
        let made = Made { kind: FileType::Fifo, number: 0, owner: 0 };
        let notes = Notes::default();
        let apply = |name: &str| {
            let path = root.path().join(name);
            let applied = attributes.apply_at(&dir, Path::new(name), &made, &path, &notes);
            let found = fs::symlink_metadata(path).unwrap();
            (applied.is_ok(), found.uid(), found.mode() & 0o777)
        };
        fs::write(root.path().join("file"), "x").unwrap();
        fs::set_permissions(root.path().join("file"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("file", root.path().join("link")).unwrap();
        mkfifoat(&dir, "linked", Mode::RUSR).unwrap();
        fs::hard_link(root.path().join("linked"), root.path().join("other")).unwrap();
        mkfifoat(&dir, "theirs", Mode::RUSR).unwrap();
        chown(root.path().join("theirs"), Some(65534), None).unwrap();
        assert_eq!(apply("file"), (false, 0, 0o600));
        assert!(!apply("link").0);
        assert_eq!(apply("linked"), (false, 0, 0o400));
        assert!(!apply("theirs").0);
        let file = fs::metadata(root.path().join("file")).unwrap();
        assert_eq!((file.uid(), file.mode() & 0o777), (0, 0o600));
        mkfifoat(&dir, "new", Mode::RUSR).unwrap();
        assert_eq!(apply("new"), (true, 65534, 0o666));
    }
}
