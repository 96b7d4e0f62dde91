//! Which files there are to scan: paths are walked, what is no file is named and left out, and the
//! format of each file is recognised by its beginning.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use blockstone_reduce::page::{self, Recognised};
use blockstone_reduce::scanned::Skipped;
use blockstone_reduce::table::FILES_MAX;
use blockstone_sys::buffer::Arena;
use blockstone_sys::file::{Access, BlockFile, FileError, FileState};

use crate::error::{ScanError, first_line};

/// Bytes of a file by which its format is recognised.
const HEAD_BYTES: usize = 64 << 10;

#[derive(Clone, Debug)]
pub struct Found {
    pub path: PathBuf,
    pub bytes: u64,
    /// When it was last written to, in nanoseconds since 1970.
    pub modified_ns: i64,
    pub format: Option<Recognised>,
}

#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Files and block devices, in the order of the paths, directories by name.
    pub files: Vec<Found>,
    pub skipped: Vec<Skipped>,
}

impl Survey {
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub fn knows_a_format(&self) -> bool {
        self.files.iter().any(|file| file.format.is_some())
    }
}

/// Walks `paths`. Symbolic links are followed, as a database follows those to its tablespaces; a
/// file that is reached twice is scanned once.
pub fn survey(paths: &[PathBuf]) -> Result<Survey, ScanError> {
    let mut walk = Walk::default();
    for path in paths {
        let found =
            fs::metadata(path).map_err(|source| ScanError::Path { path: path.clone(), source })?;
        if found.file_type().is_block_device() {
            walk.file(path, &found);
        } else if !walk.enter(path, &found) {
            return Err(ScanError::Kind { path: path.clone(), what: kind_name(&found) });
        }
    }
    if walk.survey.files.len() > FILES_MAX {
        return Err(ScanError::TooMany { files: walk.survey.files.len() });
    }
    Ok(walk.survey)
}

#[derive(Default)]
struct Walk {
    survey: Survey,
    seen: HashSet<(u64, u64)>,
}

impl Walk {
    /// False for what is neither directory nor regular file.
    fn enter(&mut self, path: &Path, found: &Metadata) -> bool {
        if found.is_dir() {
            self.directory(path, found);
        } else if found.is_file() {
            self.file(path, found);
        }
        found.is_dir() || found.is_file()
    }

    fn directory(&mut self, path: &Path, found: &Metadata) {
        if !self.seen.insert((found.dev(), found.ino())) {
            self.skip(path, "this directory was already scanned", false);
            return;
        }
        let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut paths: Vec<PathBuf> = match entries {
            Ok(entries) => entries.iter().map(fs::DirEntry::path).collect(),
            Err(error) => return self.skip(path, &error.to_string(), true),
        };
        paths.sort_unstable();
        for path in paths {
            match fs::metadata(&path) {
                Ok(found) if self.enter(&path, &found) => {}
                Ok(found) => {
                    let why = format!("a {} in a directory is not scanned", kind_name(&found));
                    self.skip(&path, &why, false);
                }
                Err(error) => self.skip(&path, &error.to_string(), true),
            }
        }
    }

    fn file(&mut self, path: &Path, found: &Metadata) {
        // A device is known by its number, whatever name leads to it.
        let device = found.file_type().is_block_device();
        let key = if device { (u64::MAX, found.rdev()) } else { (found.dev(), found.ino()) };
        if !self.seen.insert(key) {
            return self.skip(path, "this file is scanned under another name", false);
        }
        match look(path) {
            Ok(found) => self.survey.files.push(found),
            Err(why) => self.skip(path, &why, true),
        }
    }

    fn skip(&mut self, path: &Path, why: &str, matters: bool) {
        let path = shown(path);
        self.survey.skipped.push(Skipped { path, why: why.to_owned(), matters });
    }
}

fn look(path: &Path) -> Result<Found, String> {
    let read = |direct| {
        let file = BlockFile::open(path, Access::Read, direct)?;
        let mut arena = Arena::new(1, HEAD_BYTES)
            .map_err(|e| file.error("look at", io::Error::other(e.to_string())))?;
        let head = arena.slot(0);
        let len = file
            .read_at(0, head)
            .map_err(|errno| file.error("read", io::Error::from_raw_os_error(errno)))?;
        let format = page::recognise(&head[..len]);
        let FileState { bytes, modified_ns } = file.state()?;
        Ok::<_, FileError>(Found { path: path.to_owned(), bytes, modified_ns, format })
    };
    read(true).or_else(|_| read(false)).map_err(|error| first_line(&error))
}

fn kind_name(found: &Metadata) -> &'static str {
    let kind = found.file_type();
    if kind.is_fifo() {
        "FIFO"
    } else if kind.is_socket() {
        "socket"
    } else if kind.is_char_device() {
        "character device"
    } else if kind.is_block_device() {
        "block device"
    } else {
        "node of unknown kind"
    }
}

/// A path as text that a terminal can be given: a file name must not control it.
pub(crate) fn shown(path: &Path) -> String {
    let mut shown = String::new();
    for c in path.display().to_string().chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}
