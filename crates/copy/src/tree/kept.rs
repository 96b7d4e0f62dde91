//! Objects that already have the name of a target when an interrupted copy is resumed, and whether
//! this copy's user made them from the same source.

use std::path::Path;

use blockstone_sys::held::HeldDir;
use rustix::fs::{AtFlags, FileType, Stat, statat};
use rustix::io::Errno;

use super::plan::{Entry, Kind};
use crate::CopyError;

/// The object that has the name of a target.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    /// A target that an earlier copy completed.
    Complete,
    /// Something else, and how it differs.
    Other(String),
}

/// Returns whether an earlier copy completed this file. Such a file has the size and the
/// modification time of the source, which a copy sets last, belongs to this user or to the owner
/// that the copy sets, and has no more names than the copy makes: a file left by another user does
/// not qualify.
pub(super) fn file(
    entry: &Entry,
    (from, source_name): (&HeldDir, &Path),
    (dir, name): (&HeldDir, &Path),
) -> Result<Found, CopyError> {
    let path = dir.path().join(name);
    let there = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        found => found.map_err(CopyError::io("look at", &path))?,
    };
    let source = statat(from, source_name, AtFlags::SYMLINK_NOFOLLOW);
    let source = source.map_err(CopyError::io("look at", &entry.source))?;
    let kinds = [&source, &there].map(|it| FileType::from_raw_mode(it.st_mode));
    if kinds != [FileType::RegularFile; 2] {
        return Ok(Found::Other("is not a regular file".to_owned()));
    }
    let state = |it: &Stat| (it.st_size, it.st_mtime, it.st_mtime_nsec);
    if state(&source) != state(&there) {
        return Ok(Found::Other("has another size or time than its source".to_owned()));
    }
    let why = foreign(&there, source.st_uid, entry.names);
    // If a file system maps owners (a share, a mount with `uid=`), this user's new files have
    // another owner.
    let is_own = |_: &String| {
        links(&there) <= entry.names && dir.owner_of_new().is_ok_and(|it| it == there.st_uid)
    };
    Ok(why.filter(|why| !is_own(why)).map_or(Found::Complete, Found::Other))
}

/// Returns the number of names of a file.
#[allow(clippy::unnecessary_cast, reason = "it has 32 bits on 64-bit ARM")]
fn links(file: &Stat) -> u64 {
    file.st_nlink as u64
}

/// Returns how a file shows that a copy by this user did not make it, if it does.
fn foreign(there: &Stat, source_owner: u32, names: u64) -> Option<String> {
    let me = rustix::process::geteuid();
    let given = if me.is_root() { source_owner } else { me.as_raw() };
    if ![me.as_raw(), given].contains(&there.st_uid) {
        return Some(format!("belongs to user {}", there.st_uid));
    }
    let more = links(there) > names;
    more.then(|| format!("has {} names, of which this copy makes {names}", there.st_nlink))
}

/// Returns whether a link, pipe or device is what the copy would make. `link` is the target of a
/// link.
pub(super) fn is_as_wanted(entry: &Entry, there: &Stat, link: Option<&[u8]>) -> bool {
    let kind = FileType::from_raw_mode(there.st_mode);
    match &entry.kind {
        Kind::Link(to, attributes) => {
            link == Some(to.as_encoded_bytes())
                && foreign(there, attributes.user(), entry.names).is_none()
        }
        Kind::Special(wanted, number, attributes) => {
            kind == *wanted
                && there.st_rdev == *number
                && attributes.admits_as(there)
                && foreign(there, attributes.user(), entry.names).is_none()
        }
        Kind::Same(_) | Kind::Directory(_) | Kind::File => false,
    }
}
