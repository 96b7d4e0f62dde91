//! Removes recordings. A directory is removed only if it is one that Blockstone made: everything in
//! it must be a file of a recording, so that a directory that merely has the name of one, or into
//! which a user has put something else, stays as it is. Links are never followed.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use blockstone_base::units::Bytes;
use blockstone_sys::held::{FileType, HeldDir};

use crate::error::RecordError;
use crate::labels::LABELS;
use crate::manifest::MANIFEST;
use crate::rows::{EVENTS, HISTOGRAMS};
use crate::runs::{GRID, Named, PAGE, lock};

const SERIES: &str = "series";

/// Returns the size of the recording or grid in `dir`, if [`remove`] would remove it.
pub fn removable(dir: &Path) -> Result<Bytes, RecordError> {
    Doomed::open(dir).map(|doomed| Bytes(doomed.bytes))
}

/// Removes the recording or grid in `dir`, and returns how large its files were. Fails, and removes
/// nothing, when it is being recorded, when it has anything that is not part of a recording, when
/// it is a link, and when others could replace what is in the directory above it.
pub fn remove(dir: &Path) -> Result<Bytes, RecordError> {
    let doomed = Doomed::open(dir)?;
    doomed.remove()?;
    Ok(Bytes(doomed.bytes))
}

/// A recording or a grid that is about to be removed.
struct Doomed<'a> {
    dir: &'a Path,
    above: HeldDir,
    here: HeldDir,
    /// Its files. What makes it a recording is the last to be removed, so that what an interrupted
    /// removal leaves is still one.
    files: Vec<PathBuf>,
    /// Recordings of a grid.
    parts: Vec<PathBuf>,
    bytes: u64,
    /// Locked, so that nothing is recorded there meanwhile.
    _lock: File,
}

impl<'a> Doomed<'a> {
    fn open(dir: &'a Path) -> Result<Self, RecordError> {
        let above = dir.parent().filter(|above| !above.as_os_str().is_empty());
        let above = HeldDir::open(above.unwrap_or(Path::new(".")));
        Self::within(above.map_err(RecordError::io("remove", dir))?, dir, true)
    }

    fn within(above: HeldDir, dir: &'a Path, may_be_grid: bool) -> Result<Self, RecordError> {
        let failed = || RecordError::io("remove", dir);
        let name = name_of(dir)?;
        if above.look(name).map_err(failed())? == Some(FileType::Symlink) {
            return Err(RecordError::Link { path: dir.to_owned() });
        }
        let here = above.within(name).map_err(failed())?;
        let lock = lock(&here).map_err(|error| match error {
            RecordError::InUse { .. } => RecordError::Running { path: dir.to_owned() },
            error => error,
        })?;
        let mut doomed =
            Self { dir, above, here, files: Vec::new(), parts: Vec::new(), bytes: 0, _lock: lock };
        for found in doomed.here.names().map_err(failed())? {
            doomed.take(PathBuf::from(found), may_be_grid)?;
        }
        let has = |name: &str| doomed.files.iter().any(|file| file.as_os_str() == name);
        if let Some(part) = doomed.parts.first().filter(|_| !has(GRID)) {
            return Err(strange(dir, part));
        }
        if !has(MANIFEST) && !has(GRID) && Named::of(name).is_none() {
            return Err(RecordError::NotARecording { path: dir.to_owned() });
        }
        doomed.files.sort_by_key(|file| [MANIFEST, GRID].map(|last| file.as_os_str() == last));
        Ok(doomed)
    }

    /// Adds what has this name. Fails when it does not belong to a recording.
    fn take(&mut self, path: PathBuf, may_be_grid: bool) -> Result<(), RecordError> {
        let dir = self.dir;
        let failed = || RecordError::io("remove", dir);
        let text = path.to_str().unwrap_or_default();
        match self.here.look(&path).map_err(failed())? {
            Some(FileType::RegularFile) if is_part(text) => self.take_file(path),
            Some(FileType::Directory) if text == SERIES => {
                let series = self.here.within(&path).map_err(failed())?;
                for name in series.names().map_err(failed())? {
                    let file = path.join(&name);
                    let kind = self.here.look(&file).map_err(failed())?;
                    let is_table = finished(name.to_str().unwrap_or_default()).ends_with(TABLE);
                    if kind != Some(FileType::RegularFile) || !is_table {
                        return Err(strange(dir, &file));
                    }
                    self.take_file(file)?;
                }
                Ok(())
            }
            Some(FileType::Directory) if may_be_grid => {
                self.bytes += self.part(&path, &dir.join(&path))?.bytes;
                self.parts.push(path);
                Ok(())
            }
            Some(_) => Err(strange(dir, &path)),
            None => Ok(()),
        }
    }

    fn take_file(&mut self, path: PathBuf) -> Result<(), RecordError> {
        let found = self.here.find(&path).and_then(|found| File::from(found).metadata());
        self.bytes += found.map_err(RecordError::io("remove", self.dir))?.len();
        self.files.push(path);
        Ok(())
    }

    /// Returns the recording of a grid in the directory of this name.
    fn part<'b>(&self, name: &Path, dir: &'b Path) -> Result<Doomed<'b>, RecordError> {
        let above = self.here.within(Path::new("")).map_err(RecordError::io("remove", dir))?;
        Doomed::within(above, dir, false).map_err(|error| match error {
            RecordError::NotARecording { .. } => strange(self.dir, name),
            error => error,
        })
    }

    fn remove(&self) -> Result<(), RecordError> {
        for part in &self.parts {
            self.part(part, &self.dir.join(part))?.remove()?;
        }
        let remove = || {
            let (last, others) = self.files.split_last().unzip();
            others.unwrap_or_default().iter().try_for_each(|file| self.here.remove(file))?;
            if self.here.look(Path::new(SERIES))?.is_some() {
                let series = self.here.within(Path::new(SERIES))?;
                self.here.remove_dir(OsStr::new(SERIES), &series)?;
            }
            last.map_or(Ok(()), |file| self.here.remove(file))?;
            let name = self.dir.file_name().unwrap_or_default();
            self.above.remove_dir(name, &self.here)?;
            self.above.sync(Path::new("."))
        };
        remove().map_err(RecordError::io("remove", self.dir))
    }
}

fn strange(dir: &Path, found: &Path) -> RecordError {
    RecordError::Strange { path: dir.to_owned(), found: found.to_owned() }
}

fn name_of(dir: &Path) -> Result<&Path, RecordError> {
    let name = dir.file_name().map(Path::new);
    name.ok_or_else(|| RecordError::NotARecording { path: dir.to_owned() })
}

/// End of the names of all tables.
const TABLE: &str = ".parquet";

/// Returns the name that a file has when it is complete (`.a.tmp` becomes `a`).
fn finished(name: &str) -> &str {
    name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp")).unwrap_or(name)
}

/// Whether a recorder, or what judges and labels its recording, makes a file of this name.
fn is_part(name: &str) -> bool {
    let name = finished(name);
    let is_table = |table: &str| name.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
    [MANIFEST, GRID, LABELS, PAGE].contains(&name)
        || name.ends_with(TABLE) && [HISTOGRAMS, EVENTS].into_iter().any(is_table)
}
