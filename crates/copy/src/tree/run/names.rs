//! Directories, links, pipes and devices of a plan: made in private, then given their names.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_sys::held::HeldDir;
use blockstone_sys::scratch::ScratchDir;
use rustix::fs::{
    AtFlags, FileType, Mode, Stat, fstat, fsync, linkat, mkdirat, mknodat, readlinkat, statat,
    symlinkat,
};
use rustix::io::Errno;

use super::super::kept::is_as_wanted;
use super::super::plan::{Entry, Kind, Node};
use super::super::workshop::{Target, Workshop};
use super::{Results, Run};
use crate::CopyError;
use crate::attributes::{Attributes, Lack, Made};

/// Mode of a new directory until its attributes are set.
const NEW_DIRECTORY: Mode = Mode::RWXU;

/// Result of an entry.
enum Done {
    Made,
    /// It was left by an earlier copy.
    Kept,
}

/// Place for a new name.
struct NewName<'a> {
    dir: Arc<HeldDir>,
    name: &'a Path,
    /// For messages.
    path: PathBuf,
    there: Option<Stat>,
}

/// Directory of the last name.
type Last<'a> = Option<(&'a Path, Arc<HeldDir>)>;

impl<'a> Run<'a> {
    fn place(&self, entry: &'a Entry, last: &mut Last<'a>) -> Result<NewName<'a>, CopyError> {
        let parent = entry.target.parent().unwrap_or(Path::new(""));
        let dir = match last {
            Some((of, dir)) if *of == parent => Arc::clone(dir),
            _ => {
                let dir = Arc::new(self.held(parent)?);
                Arc::clone(&last.insert((parent, dir)).1)
            }
        };
        let name = entry.target.file_name().map_or(Path::new(""), Path::new);
        let path = dir.path().join(name);
        let there = match statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => None,
            found => Some(found.map_err(CopyError::io("look at", &path))?),
        };
        Ok(NewName { dir, name, path, there })
    }

    pub(super) fn directories(&self, workshop: &mut Workshop<'_>) {
        let mut last = None;
        for (index, entry) in self.plan.entries.iter().enumerate() {
            if !matches!(entry.kind, Kind::Directory(_)) || self.is_below_absent(entry) {
                continue;
            }
            match self.directory(entry, &mut last, workshop) {
                Ok(node) => self.with(|results| results.directories.insert(&entry.target, node)),
                Err(error) => {
                    self.fails(index, error);
                    None
                }
            };
        }
    }

    fn directory(
        &self,
        entry: &'a Entry,
        last: &mut Last<'a>,
        workshop: &mut Workshop<'_>,
    ) -> Result<Node, CopyError> {
        let NewName { dir, name, path, there } = self.place(entry, last)?;
        if let Some(there) = there {
            if FileType::from_raw_mode(there.st_mode) != FileType::Directory {
                let error = CopyError::io("make the directory", &path)(Errno::NOTDIR);
                return Err(error);
            }
            if !self.settings.file.force && !self.settings.file.resume {
                return Err(CopyError::io("make the directory", &path)(Errno::EXIST));
            }
            self.with(|results| results.found.insert(&entry.target));
            return Ok(Node::of(&there));
        }
        let make = |room: &ScratchDir, new: &Path| {
            let made = mkdirat(room, new, NEW_DIRECTORY);
            made.map_err(CopyError::io("make the directory", &path))?;
            let made = statat(room, new, AtFlags::SYMLINK_NOFOLLOW);
            Ok(Node::of(&made.map_err(CopyError::io("look at", &path))?))
        };
        workshop.make(&Target { dir: &dir, name, path: &path, replaces: false }, &make)
    }

    /// Makes links, pipes and devices, once the files that they name exist.
    pub(super) fn others(&self, workshop: &mut Workshop<'_>) {
        let mut last = None;
        for (index, entry) in self.plan.entries.iter().enumerate() {
            if matches!(entry.kind, Kind::Directory(_) | Kind::File) || self.is_below_absent(entry)
            {
                continue;
            }
            // Its first name failed, which was already reported.
            if let Kind::Same(first) = entry.kind
                && self.with(|results| results.absent.contains(&first))
            {
                continue;
            }
            match self.other(index, &mut last, workshop) {
                Ok(Done::Made) => self.with(|Results { outcome, .. }| match entry.kind {
                    Kind::Link(..) => outcome.links += 1,
                    Kind::Same(_) => outcome.hard_links += 1,
                    _ => outcome.specials += 1,
                }),
                Ok(Done::Kept) => self.with(|results| results.outcome.kept_files += 1),
                Err(error) => self.fails(index, error),
            }
        }
    }

    fn other(
        &self,
        index: usize,
        last: &mut Last<'a>,
        workshop: &mut Workshop<'_>,
    ) -> Result<Done, CopyError> {
        let entry = &self.plan.entries[index];
        let place = self.place(entry, last)?;
        if let Some(there) = &place.there {
            if self.is_kept(entry, &place, there) {
                self.note_node(index, Node::of(there));
                return Ok(Done::Kept);
            }
            let kind = FileType::from_raw_mode(there.st_mode);
            CopyError::unless_replaceable(kind, &place.path)?;
            if !self.settings.file.force {
                let (path, why) = (place.path, "is another than its source".to_owned());
                return Err(if self.settings.file.resume {
                    CopyError::NotKept { path, why }
                } else {
                    CopyError::io("make", &path)(Errno::EXIST)
                });
            }
            if kind == FileType::Directory {
                return Err(CopyError::io("replace", &place.path)(Errno::ISDIR));
            }
        }
        let replaces = place.there.is_some();
        let target = Target { dir: &place.dir, name: place.name, path: &place.path, replaces };
        let node =
            workshop.make(&target, &|room, new| self.make(entry, (room, new), &place.path))?;
        self.note_node(index, node);
        Ok(Done::Made)
    }

    fn note_node(&self, index: usize, node: Node) {
        if self.plan.entries[index].names > 1 {
            self.with(|results| results.linked.insert(index, node));
        }
    }

    /// Makes a link, pipe or device in a private directory.
    fn make(
        &self,
        entry: &Entry,
        (room, new): (&ScratchDir, &Path),
        path: &Path,
    ) -> Result<Node, CopyError> {
        let made = |kind, number| Made { kind, number, owner: room.owner() };
        match &entry.kind {
            Kind::Same(first) => self.link(*first, (room, new), path)?,
            Kind::Link(to, attributes) => {
                symlinkat(to, room, new).map_err(CopyError::io("make the link", path))?;
                let made = made(FileType::Symlink, 0);
                attributes.apply_at(room, new, &made, path, &self.notes)?;
            }
            Kind::Special(kind, number, attributes) => {
                mknodat(room, new, *kind, Mode::RUSR | Mode::WUSR, *number)
                    .map_err(CopyError::io("make the pipe or device", path))?;
                let made = made(*kind, *number);
                attributes.apply_at(room, new, &made, path, &self.notes)?;
            }
            Kind::Directory(_) | Kind::File => {}
        }
        if entry.names == 1 {
            // Its identity is needed only for further names.
            return Ok(entry.node);
        }
        let found = statat(room, new, AtFlags::SYMLINK_NOFOLLOW);
        Ok(Node::of(&found.map_err(CopyError::io("look at", path))?))
    }

    /// Makes a further name of a target, if that is what was copied.
    fn link(
        &self,
        first: usize,
        (room, new): (&ScratchDir, &Path),
        path: &Path,
    ) -> Result<(), CopyError> {
        let target = &self.plan.entries[first].target;
        let from = self.held(target.parent().unwrap_or(Path::new("")))?;
        let name = target.file_name().unwrap_or_default();
        linkat(&from, name, room, new, AtFlags::empty()).map_err(CopyError::io("link", path))?;
        let found = statat(room, new, AtFlags::SYMLINK_NOFOLLOW);
        let found = Node::of(&found.map_err(CopyError::io("look at", path))?);
        if self.with(|results| results.linked.get(&first).copied()) != Some(found) {
            return Err(CopyError::replaced("link", &from.path().join(name)));
        }
        Ok(())
    }

    /// Returns whether the existing object is what would be made. A device or pipe is never
    /// replaced, so it stays even without --resume.
    fn is_kept(&self, entry: &Entry, place: &NewName<'_>, there: &Stat) -> bool {
        let is_special = matches!(entry.kind, Kind::Special(..));
        if !(self.settings.file.resume || is_special && self.settings.file.force) {
            return false;
        }
        if let Kind::Same(first) = entry.kind {
            let linked = self.with(|results| results.linked.get(&first).copied());
            return linked == Some(Node::of(there));
        }
        let link = readlinkat(&place.dir, place.name, Vec::new());
        is_as_wanted(entry, there, link.as_deref().ok().map(CStr::to_bytes))
    }

    /// Finishes directories, deepest first, because making anything in a directory changes its
    /// times.
    pub(super) fn finish_directories(&self) {
        let were_there = self.with(|results| !results.found.is_empty());
        let planned = self.plan.entries.iter().filter(|_| were_there);
        let planned: HashSet<&Path> = planned.map(|entry| &*entry.target).collect();
        for (index, entry) in self.plan.entries.iter().enumerate().rev() {
            let Kind::Directory(attributes) = &entry.kind else { continue };
            if !self.with(|results| results.directories.contains_key(&*entry.target)) {
                continue;
            }
            match self.finish_directory(entry, attributes, &planned) {
                Ok(()) => self.with(|results| results.outcome.directories += 1),
                Err(error) => self.fails(index, error),
            }
        }
    }

    fn finish_directory(
        &self,
        entry: &Entry,
        attributes: &Attributes,
        planned: &HashSet<&Path>,
    ) -> Result<(), CopyError> {
        let held = self.held(&entry.target)?;
        let path = held.path();
        fsync(&held).map_err(CopyError::io("make durable", path))?;
        if self.with(|results| results.found.contains(&*entry.target)) {
            let there = fstat(&held).map_err(CopyError::io("look at", path))?;
            if !attributes.admits_as(&there) && holds_more(&held, &entry.target, planned)? {
                let why = "it was there before, and holds what is not copied";
                self.notes.add(Lack::Directory, path, &why);
                return Ok(());
            }
        }
        attributes.apply(&held, path, &self.notes)
    }
}

/// Returns whether a directory that existed before the copy holds anything that the copy does not
/// make: its owner and mode may protect that from others.
fn holds_more(held: &HeldDir, target: &Path, planned: &HashSet<&Path>) -> Result<bool, CopyError> {
    let names = held.names().map_err(CopyError::io("list", held.path()))?;
    let is_left = |name: &OsStr| {
        let name = name.as_bytes();
        name.ends_with(b".blockstone-part") || name.ends_with(b".blockstone-resume")
    };
    let is_more = |name: &OsStr| !is_left(name) && !planned.contains(&*target.join(name));
    Ok(names.iter().any(|name| is_more(name)))
}
