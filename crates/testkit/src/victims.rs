//! Files that a program must not touch, and a check that it did not.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, inotify, llistxattr, makedev, mknodat};

use crate::attacker::STRANGER;

/// Text in every victim, and nowhere else.
pub const CANARY: &str = "canary-5b1f0c77-of-the-administrator\n";

/// Size of a victim in bytes, larger than any block.
const BYTES: usize = 64 << 10;

/// Bytes of a file to search for the canary.
const SEARCHED_BYTES: u64 = 1 << 20;

/// A directory that only its owner may enter, with files, a directory of files, and a character
/// device.
#[derive(Debug)]
pub struct Victims {
    dir: PathBuf,
    before: BTreeMap<PathBuf, Held>,
    /// Reports when a file is opened.
    watch: OwnedFd,
}

/// State that must not change. Access times, and all times of directories, may change: a program
/// that was led to a directory and lists it, or creates a file there and removes it, leaves nothing
/// behind.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    mode: u32,
    owner: (u32, u32),
    device: u64,
    modified: (i64, i64),
    attributes: Vec<u8>,
    content: Vec<u8>,
}

impl Victims {
    /// Creates the victims in `dir`, which must not exist. The directory of files also gets files
    /// of these names, and a directory for each name that ends in `/`.
    pub fn make(dir: &Path, names: &[&str]) -> io::Result<Self> {
        let content = CANARY.repeat(BYTES / CANARY.len() + 1);
        let private = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        fs::create_dir(dir)?;
        fs::create_dir(dir.join("dir"))?;
        let write = |path: PathBuf| {
            fs::write(&path, &content[..BYTES])?;
            private(&path, 0o600)
        };
        write(dir.join("file"))?;
        write(dir.join("dir/kept"))?;
        fs::write(dir.join("empty"), "")?;
        private(&dir.join("empty"), 0o600)?;
        for name in names {
            if let Some(name) = name.strip_suffix('/') {
                fs::create_dir(dir.join("dir").join(name))?;
                write(dir.join("dir").join(name).join("kept"))?;
            } else {
                write(dir.join("dir").join(name))?;
            }
        }
        let mode = Mode::RUSR | Mode::WUSR;
        // Like /dev/null. Where devices cannot be created, there is none to lose.
        let _ = mknodat(CWD, dir.join("null"), FileType::CharacterDevice, mode, makedev(1, 3));
        private(&dir.join("dir"), 0o700)?;
        private(dir, 0o700)?;
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        let before = held(dir)?;
        for name in ["file", "empty"] {
            inotify::add_watch(&watch, dir.join(name), inotify::WatchFlags::OPEN)?;
        }
        Ok(Self { dir: dir.to_owned(), before, watch })
    }

    pub fn file(&self) -> PathBuf {
        self.dir.join("file")
    }

    /// Returns an empty file, which some programs fill.
    pub fn empty(&self) -> PathBuf {
        self.dir.join("empty")
    }

    pub fn dir(&self) -> PathBuf {
        self.dir.join("dir")
    }

    pub fn null(&self) -> PathBuf {
        self.dir.join("null")
    }

    /// Whether [`Victims::file`] or [`Victims::empty`] was opened since the last call or
    /// [`Victims::make`].
    pub fn was_opened(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.watch, &mut buffer);
        let mut was_opened = false;
        while let Ok(event) = events.next() {
            was_opened |= event.events().contains(inotify::ReadFlags::OPEN);
        }
        was_opened
    }

    /// Returns the differences from the state after [`Victims::make`]; links to a victim may come
    /// and go.
    pub fn changes(&self) -> io::Result<Vec<String>> {
        let after = held(&self.dir)?;
        let name = |path: &Path| path.strip_prefix(&self.dir).unwrap_or(path).display().to_string();
        let gone = self.before.keys().filter(|path| !after.contains_key(*path));
        let mut changes: Vec<String> =
            gone.map(|path| format!("{} was removed", name(path))).collect();
        for (path, now) in &after {
            match self.before.get(path) {
                None => changes.push(format!("{} was made", name(path))),
                Some(before) => changes.extend(
                    before.differences(now).map(|what| format!("{what} of {}", name(path))),
                ),
            }
        }
        Ok(changes)
    }
}

impl Held {
    fn new(path: &Path, meta: &Metadata) -> io::Result<Self> {
        let content = if meta.is_file() {
            fs::read(path)?
        } else if meta.is_symlink() {
            fs::read_link(path)?.into_os_string().into_encoded_bytes()
        } else {
            Vec::new()
        };
        let mut names = vec![0; 4096];
        let length = llistxattr(path, &mut names).unwrap_or(0);
        names.truncate(length);
        Ok(Self {
            mode: meta.mode(),
            owner: (meta.uid(), meta.gid()),
            device: meta.rdev(),
            modified: if meta.is_file() { (meta.mtime(), meta.mtime_nsec()) } else { (0, 0) },
            attributes: names,
            content,
        })
    }

    fn differences(&self, now: &Self) -> impl Iterator<Item = &'static str> {
        [
            ("kind or mode", self.mode != now.mode || self.device != now.device),
            ("owner", self.owner != now.owner),
            ("extended attributes", self.attributes != now.attributes),
            ("content", self.content != now.content),
            ("time", self.modified != now.modified && self.content == now.content),
        ]
        .into_iter()
        .filter_map(|(what, differs)| differs.then_some(what))
    }
}

/// Returns the state of everything in `dir`, including `dir`.
fn held(dir: &Path) -> io::Result<BTreeMap<PathBuf, Held>> {
    let mut all = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(path) = left.pop() {
        let meta = fs::symlink_metadata(&path)?;
        if meta.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        }
        all.insert(path.clone(), Held::new(&path, &meta)?);
    }
    Ok(all)
}

/// Returns a file below `dir` that holds [`CANARY`] and that [`STRANGER`] can read.
pub fn leaked(dir: &Path) -> io::Result<Option<PathBuf>> {
    let mut left = vec![dir.to_owned()];
    while let Some(path) = left.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        let is_theirs = meta.uid() == STRANGER;
        let lets = |bit: u32| is_theirs || meta.mode() & bit != 0;
        if meta.is_dir() && lets(0o001) {
            left.extend(fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
        } else if meta.is_file() && meta.nlink() == 1 && lets(0o004) && holds_canary(&path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Searches only the beginning of the file, because a victim is smaller.
fn holds_canary(path: &Path) -> io::Result<bool> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SEARCHED_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).contains(CANARY))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;
    use crate::ScratchDir;

    #[test]
    fn every_change_is_seen_and_reading_is_none() {
        crate::require!(Root);
        let scratch = ScratchDir::on_disk().unwrap();
        let victims = Victims::make(&scratch.path().join("victims"), &["a", "b/"]).unwrap();
        assert!(!victims.was_opened());
        fs::read(victims.file()).unwrap();
        assert!(victims.was_opened());
        assert_eq!(victims.changes().unwrap(), [""; 0]);

        fs::write(victims.dir().join("new"), "").unwrap();
        fs::remove_file(victims.dir().join("a")).unwrap();
        fs::write(victims.file(), "other").unwrap();
        chown(victims.dir().join("kept"), Some(STRANGER), None).unwrap();
        fs::set_permissions(victims.dir().join("b"), Permissions::from_mode(0o777)).unwrap();
        fs::remove_file(victims.null()).unwrap();
        fs::write(victims.null(), "").unwrap();
        let expected = [
            "dir/a was removed",
            "kind or mode of dir/b",
            "owner of dir/kept",
            "dir/new was made",
            "content of file",
            "kind or mode of null",
        ];
        let mut changes = victims.changes().unwrap();
        changes.retain(|change| !["content of null", "time of null"].contains(&change.as_str()));
        assert_eq!(changes, expected);
    }

    #[test]
    fn a_canary_is_found_where_a_stranger_can_read_it() {
        let scratch = ScratchDir::on_disk().unwrap();
        let (dir, file) = (scratch.path().join("dir"), scratch.path().join("dir/file"));
        fs::create_dir(&dir).unwrap();
        fs::write(&file, format!("ccanary{CANARY}")).unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        mode(&file, 0o644).unwrap();
        assert_eq!(leaked(scratch.path()).unwrap(), Some(file.clone()));
        mode(&dir, 0o700).unwrap();
        assert_eq!(leaked(scratch.path()).unwrap(), None);
        mode(&dir, 0o755).unwrap();
        mode(&file, 0o600).unwrap();
        assert_eq!(leaked(scratch.path()).unwrap(), None);
    }
}
