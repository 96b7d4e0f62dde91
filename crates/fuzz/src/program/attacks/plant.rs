//! Objects that the owner of a directory may have planted before another user names a path in it,
//! and actions that the owner may take while the program runs.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use blockstone_testkit::{Bait, Play, STRANGER, Victims};
use rustix::fs::{CWD, Mode, mkfifoat};

use super::fixtures::{below, lay};
use super::ways::Honest;

const CAN: &str = "temporary files can be made";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// The path is a link to a file of root.
    LinkToFile,
    /// The path is a link to a directory of root.
    LinkToDirectory,
    /// The directory that holds the path is a link to a directory of root, which has such a name in
    /// it.
    LinkAbove,
    /// The path is a directory in which every name that the program uses is a link to a file of
    /// root.
    LinksWithin,
    /// The path is a pipe, and its owner reads what is written to it.
    Pipe,
    /// The path is a link to a block device.
    LinkToDevice,
    /// The path is a block device, without a link.
    Device,
    /// The path is a link to a character device of root, such as `/dev/null`.
    LinkToNull,
    /// The path is such a device, without a link.
    Null,
    /// The path is a link to a file without an end.
    Endless,
    /// The path is a directory where a file is meant, or the reverse.
    OtherKind,
    /// The path is a hard link to a file of root.
    HardLink,
    /// Each file that is made is immediately replaced by a link.
    FilesReplaced,
    /// Each directory that is made is immediately replaced by another, with links.
    DirectoriesReplaced,
    /// The path alternates all the time between what it was and a link.
    Exchanged,
}

/// Owner of the directory that the path is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The attacker.
    Stranger,
    /// Root, with write access for all users, as in `/tmp`.
    Sticky,
    /// Root alone, with root's own links.
    Root,
}

impl Owner {
    pub const ALL: &[Self] = &[Self::Stranger, Self::Sticky, Self::Root];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Stranger => "a stranger's directory",
            Self::Sticky => "a sticky directory",
            Self::Root => "a directory of root",
        }
    }
}

impl Attack {
    pub const ALL: &[Self] = &[
        Self::LinkToFile,
        Self::LinkToDirectory,
        Self::LinkAbove,
        Self::LinksWithin,
        Self::Pipe,
        Self::LinkToDevice,
        Self::Device,
        Self::LinkToNull,
        Self::Null,
        Self::Endless,
        Self::OtherKind,
        Self::HardLink,
        Self::FilesReplaced,
        Self::DirectoriesReplaced,
        Self::Exchanged,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::LinkToFile => "link to a file",
            Self::LinkToDirectory => "link to a directory",
            Self::LinkAbove => "link above",
            Self::LinksWithin => "links within",
            Self::Pipe => "pipe",
            Self::LinkToDevice => "link to a block device",
            Self::Device => "block device",
            Self::LinkToNull => "link to a character device",
            Self::Null => "character device",
            Self::Endless => "link to an endless file",
            Self::OtherKind => "directory for file",
            Self::HardLink => "hard link",
            Self::FilesReplaced => "files replaced",
            Self::DirectoriesReplaced => "directories replaced",
            Self::Exchanged => "path exchanged",
        }
    }

    /// Returns whether it is a race with the program.
    pub const fn is_race(self) -> bool {
        matches!(self, Self::FilesReplaced | Self::DirectoriesReplaced | Self::Exchanged)
    }

    /// Returns whether it leads to a directory other than the one named. What is measured is
    /// reached by its path: the owner of the way to it decides where files are made, as SECURITY.md
    /// says.
    pub const fn directs(self) -> bool {
        matches!(self, Self::LinkToDirectory | Self::LinkAbove | Self::Exchanged)
    }

    /// Returns the number of tries; `is_short` in a test.
    pub const fn tries(self, is_short: bool) -> u32 {
        match self {
            Self::DirectoriesReplaced if !is_short => 12,
            Self::FilesReplaced | Self::Exchanged if !is_short => 4,
            Self::FilesReplaced => 2,
            _ => 1,
        }
    }

    /// Returns whether it can be made on such a path, and would be an attack there.
    pub fn applies(self, honest: Honest, owner: Owner) -> bool {
        let is_made = matches!(honest, Honest::NewFile(_) | Honest::NewDirectory(_));
        let is_read = honest.is_read();
        let is_place = matches!(honest, Honest::Within(_));
        match self {
            // Root reads or measures what root named; root's own links to directories may be
            // intended.
            Self::LinkToDirectory | Self::LinkAbove => owner != Owner::Root && !is_read,
            Self::LinksWithin => is_place || is_read || matches!(honest, Honest::NewDirectory(_)),
            Self::Endless => is_read,
            // Where only root can enter, there is no attacker at the other end.
            Self::Pipe => owner != Owner::Root,
            Self::Device | Self::Null => owner == Owner::Root,
            Self::FilesReplaced | Self::DirectoriesReplaced => {
                owner == Owner::Stranger && (is_place || is_made)
            }
            Self::Exchanged => owner == Owner::Stranger && (is_place || is_made),
            Self::OtherKind => honest != Honest::Device,
            _ => true,
        }
    }
}

/// Setting of an attack.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The directory that holds the path.
    pub theirs: &'a Path,
    pub victims: &'a Victims,
    /// A block device with data.
    pub device: &'a Path,
    /// A valid file or directory of the kind that the command wants; `None` if it makes one.
    pub fixture: Option<&'a Path>,
    /// File name of the path.
    pub name: &'a str,
    /// Paths that an honest run made at the path and below it, relative to it.
    pub made: &'a [PathBuf],
    /// Number of earlier tries of the attack: each one is a little different.
    pub tried: u32,
}

/// A prepared attack.
#[derive(Debug)]
pub struct Planted {
    /// Path that root names on the command line.
    pub path: PathBuf,
    /// Actions of the attacker while the program runs.
    pub play: Option<Play>,
}

impl Scene<'_> {
    /// Prepares an attack; everything belongs to `owner` afterwards.
    pub fn plant(&self, attack: Attack, honest: Honest, owner: Owner) -> Planted {
        let path = self.theirs.join(self.name);
        let (file, dir) = (self.victims.file(), self.victims.dir());
        let link = |to: &Path, at: &Path| symlink(to, at).expect(CAN);
        let mut planted = Planted { path: path.clone(), play: None };
        match attack {
            Attack::LinkToFile => link(&file, &path),
            Attack::LinkToDirectory => link(&dir, &path),
            Attack::LinkAbove => {
                link(&dir, &self.theirs.join("above"));
                planted.path = self.theirs.join("above").join(self.name);
            }
            Attack::LinksWithin => self.links_within(&path, &file),
            Attack::Pipe => {
                mkfifoat(CWD, &path, Mode::from_raw_mode(0o622)).expect(CAN);
                let is_read = honest.is_read();
                let play = if is_read { Play::Hold } else { Play::Listen };
                planted.play = Some(play(path));
            }
            Attack::LinkToDevice => link(self.device, &path),
            Attack::Device => self.device.clone_into(&mut planted.path),
            Attack::LinkToNull => link(&self.victims.null(), &path),
            Attack::Null => planted.path = self.victims.null(),
            Attack::Endless => link(Path::new("/dev/zero"), &path),
            Attack::OtherKind => self.other_kind(&path, honest),
            Attack::HardLink => fs::hard_link(&file, &path).expect(CAN),
            Attack::FilesReplaced | Attack::DirectoriesReplaced => {
                let dir = self.race_in(&path);
                planted.play = Some(if attack == Attack::FilesReplaced {
                    let victim =
                        if self.tried.is_multiple_of(2) { file } else { self.victims.empty() };
                    Play::ReplaceFiles { dir, victim }
                } else {
                    let after = Duration::from_millis([0, 20, 100, 300][self.tried as usize % 4]);
                    Play::ReplaceDirectories { dir, after, names: self.baits(), victim: file }
                });
            }
            Attack::Exchanged => {
                let other = self.theirs.join("other");
                let is_dir = self.fixture.is_some() || matches!(honest, Honest::NewDirectory(_));
                if is_dir {
                    self.honest(&path);
                } else {
                    fs::write(&path, "theirs").expect(CAN);
                }
                link(if is_dir { &dir } else { &file }, &other);
                planted.play = Some(Play::Exchange(path, other));
            }
        }
        give(self.theirs, owner, &self.victims.file());
        planted
    }

    /// Puts in place what is there without an attack.
    pub fn honest(&self, path: &Path) {
        if let Some(fixture) = self.fixture {
            lay(fixture, path);
        }
    }

    /// Returns the directory in which new names are replaced: the path itself, or the one that
    /// holds it.
    fn race_in(&self, path: &Path) -> PathBuf {
        self.honest(path);
        if path.is_dir() { path.to_owned() } else { self.theirs.to_owned() }
    }

    /// Returns the last parts of the names that an honest run made: all are links at first, and
    /// later every second one, alternating between even and odd places.
    fn baits(&self) -> Vec<Bait> {
        let last = |made: &PathBuf| made.file_name().map(ToOwned::to_owned);
        let mut names: Vec<OsString> = self.made.iter().filter_map(last).collect();
        names.sort();
        names.dedup();
        let is_link =
            |place: usize| self.tried < 4 || (place + self.tried as usize / 4).is_multiple_of(2);
        let bait = |(place, name)| Bait { name, is_link: is_link(place) };
        names.into_iter().enumerate().map(bait).collect()
    }

    /// Makes a copy of the fixture with links in place of its files, and with links of the names
    /// that an honest run made.
    fn links_within(&self, path: &Path, victim: &Path) {
        self.honest(path);
        if !path.is_dir() {
            let _ = fs::remove_file(path);
            fs::create_dir(path).expect(CAN);
        }
        for held in below(path) {
            let held = path.join(held);
            if held.is_file() {
                fs::remove_file(&held).expect(CAN);
                symlink(victim, &held).expect(CAN);
            }
        }
        for name in self.made {
            // Nothing can be planted below a directory that the program makes itself.
            let is_first = name.parent().is_some_and(|parent| parent.as_os_str().is_empty());
            if is_first && fs::symlink_metadata(path.join(name)).is_err() {
                symlink(victim, path.join(name)).expect(CAN);
            }
        }
    }

    fn other_kind(&self, path: &Path, honest: Honest) {
        let is_dir = match honest {
            Honest::NewFile(_) => false,
            Honest::NewDirectory(_) => true,
            _ => self.fixture.is_some_and(Path::is_dir),
        };
        if is_dir {
            fs::write(path, "theirs").expect(CAN);
        } else {
            fs::create_dir(path).expect(CAN);
            fs::write(path.join("theirs"), "theirs").expect(CAN);
        }
    }
}

/// Gives `dir` and everything below it to its owner, except hard links to `victim`.
fn give(dir: &Path, owner: Owner, victim: &Path) {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let mode = match owner {
        Owner::Stranger => 0o755,
        Owner::Sticky => 0o1777,
        Owner::Root => 0o700,
    };
    fs::set_permissions(dir, fs::Permissions::from_mode(mode)).expect(CAN);
    if owner == Owner::Root {
        return;
    }
    if owner == Owner::Stranger {
        lchown(dir, Some(STRANGER), Some(STRANGER)).expect(CAN);
    }
    let inode = fs::metadata(victim).expect(CAN).ino();
    for held in below(dir) {
        let held = dir.join(held);
        if fs::symlink_metadata(&held).is_ok_and(|meta| meta.ino() != inode) {
            lchown(&held, Some(STRANGER), Some(STRANGER)).expect(CAN);
        }
    }
}
