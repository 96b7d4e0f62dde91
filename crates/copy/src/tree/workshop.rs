//! Private directories in which directories, links, pipes and devices are made: only this user may
//! enter them, so no one can put something else in their place before they have their attributes.
//! Then they get their names.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::path::Path;

use blockstone_measure::scratch::{name, remove_orphans};
use blockstone_sys::held::{HeldDir, rename_new};
use blockstone_sys::scratch::ScratchDir;
use rustix::fs::{AtFlags, renameat, unlinkat};
use rustix::io::Errno;

use crate::CopyError;

/// Name of the object being made.
const NEW: &str = "new";
/// One room for the target and one for a mount below it.
const ROOMS_MAX: usize = 2;

#[derive(Debug)]
pub(super) struct Workshop<'a> {
    root: &'a HeldDir,
    /// Rooms on different file systems; the most recently used comes first.
    rooms: Vec<Room>,
}

/// Name for a new object.
pub(super) struct Target<'a> {
    pub dir: &'a HeldDir,
    pub name: &'a Path,
    /// For messages.
    pub path: &'a Path,
    /// Whether an existing object of that name is replaced.
    pub replaces: bool,
}

impl<'a> Workshop<'a> {
    pub(super) fn below(root: &'a HeldDir) -> Self {
        Self { root, rooms: Vec::new() }
    }

    /// Calls `make` with a private directory and a name that is free there, and gives the target's
    /// name to what it made. Fails if that name is taken.
    pub(super) fn make<T>(
        &mut self,
        target: &Target<'_>,
        make: &dyn Fn(&ScratchDir, &Path) -> Result<T, CopyError>,
    ) -> Result<T, CopyError> {
        let mut at = 0;
        loop {
            let is_beside = at == self.rooms.len() && at > 0;
            if at == self.rooms.len() {
                let new = if is_beside { room_in(target.dir) } else { self.first(target.dir) };
                let new = new.map_err(CopyError::io("make a directory in", target.dir.path()))?;
                self.rooms.truncate(ROOMS_MAX - 1);
                self.rooms.push(Room(new));
                at = self.rooms.len() - 1;
            }
            let Room(room) = &self.rooms[at];
            let given = make(room, Path::new(NEW)).map(|it| (it, give(room, target)));
            if !matches!(given, Ok((_, Ok(())))) {
                remove(room);
            }
            match given? {
                (it, Ok(())) => {
                    self.rooms.swap(0, at);
                    return Ok(it);
                }
                // Another file system, or another project of a quota.
                (_, Err(error)) if is_other(&error) && !is_beside => at += 1,
                (_, Err(error)) => return Err(CopyError::io("make", target.path)(error)),
            }
        }
    }

    /// Makes a room in the root, or if that fails, in the directory of the target.
    fn first(&self, dir: &HeldDir) -> io::Result<ScratchDir> {
        remove_orphans(self.root.path(), &[]);
        room_in(self.root).or_else(|_| room_in(dir))
    }
}

fn room_in(dir: &HeldDir) -> io::Result<ScratchDir> {
    ScratchDir::create_in(dir, &name(RandomState::new().build_hasher().finish(), "copy"))
}

/// A private directory, removed with this value.
#[derive(Debug)]
struct Room(ScratchDir);

impl Drop for Room {
    fn drop(&mut self) {
        // The next copy to this place removes anything that cannot be removed now.
        let _ = self.0.remove();
    }
}

fn give(room: &ScratchDir, target: &Target<'_>) -> io::Result<()> {
    if target.replaces {
        let renamed = renameat(room, NEW, target.dir, target.name);
        // rename(2) does nothing if both are names of the same file.
        let _ = unlinkat(room, NEW, AtFlags::empty());
        return Ok(renamed?);
    }
    rename_new((room, Path::new(NEW)), (target.dir, target.name))
}

fn is_other(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::XDEV.raw_os_error())
}

fn remove(room: &ScratchDir) {
    // Left-overs would be in the way of the next object, whose error reports it.
    let _ = unlinkat(room, NEW, AtFlags::empty());
    let _ = unlinkat(room, NEW, AtFlags::REMOVEDIR);
}
