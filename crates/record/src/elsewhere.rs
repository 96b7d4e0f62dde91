//! Recordings outside the directory of recordings (`--record`): a list of where they were put, so
//! that they have names like the others.
//!
//! The list is a file of each user in the directory of recordings, which users may share. It is
//! read only if no users except this one and root can write to it, and the same goes for what it
//! names. What is gone stays in the list until the list is full: a recording that is noted is made
//! only later, and a file system may be mounted again.

use std::io;
use std::path::{Path, PathBuf};

use blockstone_base::units::Bytes;
use blockstone_sys::child::own_uid;
use blockstone_sys::held::{HeldDir, foreign, read_whole};
use blockstone_sys::path::look;
use serde::{Deserialize, Serialize};

use crate::disk::write_file;
use crate::error::RecordError;

const FORMAT: &str = "blockstone.elsewhere/1";
const LIST_MAX: Bytes = Bytes(4 << 20);
/// Places that the list has room for.
const PLACES_MAX: usize = 500;

#[derive(Serialize, Deserialize)]
struct Stored {
    format: String,
    /// Absolute paths, the last one noted last.
    places: Vec<PathBuf>,
}

fn file_name() -> String {
    format!(".elsewhere-{}.json", own_uid())
}

/// Notes in the directory of recordings, which is created if it does not exist, that a recording
/// or a grid is about to be made in `dir`. One that is in that directory is found anyway.
pub fn note_elsewhere(root: &Path, dir: &Path) -> Result<(), RecordError> {
    let failed = || RecordError::io("note", dir);
    let place = std::path::absolute(dir).map_err(failed())?;
    if place.parent().map(Path::to_owned) == std::path::absolute(root).ok() {
        return Ok(());
    }
    let held = HeldDir::make(root).map_err(failed())?;
    // Without locks, two that begin in the same moment may forget one of them.
    let lock = held.file().map_err(failed())?;
    let _ = lock.lock();
    let mut places = read(root).unwrap_or_default();
    places.retain(|known| *known != place);
    if places.len() >= PLACES_MAX {
        places.retain(|known| look(known).is_ok());
        places.drain(..(places.len() + 1).saturating_sub(PLACES_MAX));
    }
    places.push(place);
    let mut text = serde_json::to_vec_pretty(&Stored { format: FORMAT.to_owned(), places })
        .map_err(|error| RecordError::rejected("the path", error.to_string()))?;
    text.push(b'\n');
    write_file(root, &file_name(), &text)
}

/// Returns the directories that were noted, as far as they still are directories to which no
/// users except this one and root can write. A list that cannot be read has none.
pub(crate) fn places(root: &Path) -> Vec<PathBuf> {
    let own = |place: &PathBuf| place.is_absolute() && HeldDir::open(place).is_ok();
    read(root).unwrap_or_default().into_iter().filter(own).collect()
}

fn read(root: &Path) -> io::Result<Vec<PathBuf>> {
    let file = HeldDir::hold(root)?.read(Path::new(&file_name()))?;
    if let Some(reason) = foreign(&file)? {
        return Err(reason.into());
    }
    let stored: Stored = serde_json::from_slice(&read_whole(file, LIST_MAX)?)?;
    if stored.format != FORMAT {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(stored.places)
}
