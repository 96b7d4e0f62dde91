//! Files below the paths that a user names: in directories, and in archives such as those of
//! `OSWatcher`, `ExaWatcher`, sosreport and TFA. Those that no format recognises are left out, with
//! the reason.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use blockstone_base::hint::Hint;
use blockstone_base::text::shown;
use blockstone_import::{ImportError as LoadError, Names};
use blockstone_input::{Foreign, LeftOut, Source, members};
use blockstone_sys::path;

use super::{ALL, ImportError, foreign, unread};

/// A directory in a directory is read to this depth.
const DEPTH_MAX: usize = 16;
/// Number of files that are looked at.
const FILES_MAX: usize = 100_000;
/// Bytes at the start of a file that suffice to recognise it.
const HEAD_BYTES: u64 = 64 << 10;
/// The first bytes of sar's binary files, of either order.
const SAR: [&[u8]; 2] = [b"\x96\xd5", b"\xd5\x96"];
/// Reasons that are listed, and for each the number of names.
const REASONS_MAX: usize = 20;
const NAMES_MAX: usize = 2;

/// A file that is to be read.
#[derive(Clone, Debug)]
pub struct File {
    pub source: Source,
    /// Whether the user named it, and not a directory or an archive that it is in.
    pub is_named: bool,
}

#[derive(Debug, Default)]
pub struct Found {
    pub files: Vec<File>,
    pub left_out: Vec<LeftOut>,
}

/// Finds the files that can be read. Those that the user names are not examined.
pub fn find(paths: &[PathBuf]) -> Result<Found, ImportError> {
    let mut found = Found::default();
    for path in paths {
        let before = (found.files.len(), found.left_out.len());
        if path.is_dir() {
            found.directory(path, 1)?;
        } else {
            found.file(path, true)?;
        }
        if found.files.len() == before.0 {
            let left_out = &found.left_out[before.1..];
            let why = match left_out {
                [] => "there is no file in it".to_owned(),
                [only] => format!("the file in it is not read: {}", only.why),
                _ => format!("no file in it is read: {}", told(left_out).join("; ")),
            };
            return Err(ImportError::NoneFound { path: path.clone(), why });
        }
    }
    Ok(found)
}

impl Found {
    fn directory(&mut self, dir: &Path, depth: usize) -> Result<(), ImportError> {
        let failed = |source| ImportError::Read { path: dir.to_owned(), source };
        if depth > DEPTH_MAX {
            self.leave_out(dir, "it is too deep in directories: name it".to_owned());
            return Ok(());
        }
        for path in path::entries(dir).map_err(failed)? {
            if self.files.len() + self.left_out.len() > FILES_MAX {
                let why = format!("it has more than {FILES_MAX} files: name those that are meant");
                return Err(ImportError::NoneFound { path: dir.to_owned(), why });
            }
            // A link to a directory may lead back to where it is.
            let is_dir = path::look_at_name(&path).is_ok_and(|it| it.is_dir());
            if is_dir && path.join("manifest.json").is_file() {
                self.leave_out(&path, "it is a recording: name it".to_owned());
            } else if is_dir {
                self.directory(&path, depth + 1)?;
            } else if path.is_file() {
                self.file(&path, false)?;
            } else {
                self.leave_out(&path, "it is no file: a link, a pipe or a device".to_owned());
            }
        }
        Ok(())
    }

    /// Adds a file, or those of an archive.
    fn file(&mut self, path: &Path, is_named: bool) -> Result<(), ImportError> {
        let source = Source::new(path);
        let mut choose = |head: &[u8]| answers(head);
        match members(&source, || true, &mut choose) {
            Ok(Some(members)) => {
                let files = members.chosen.into_iter();
                self.files.extend(files.map(|source| File { source, is_named: false }));
                self.left_out.extend(members.left_out);
                return Ok(());
            }
            Ok(None) => {}
            Err(error) if is_named => return Err(unreadable(path, error)),
            Err(error) => {
                self.leave_out(path, why(&error));
                return Ok(());
            }
        }
        if is_named {
            self.files.push(File { source, is_named });
            return Ok(());
        }
        match head(&source).map_err(|error| why(&error)).and_then(|head| answers(&head)) {
            Ok(()) => self.files.push(File { source, is_named }),
            Err(why) => self.leave_out(path, why),
        }
        Ok(())
    }

    pub fn leave_out(&mut self, path: &Path, why: String) {
        self.left_out.push(LeftOut { name: path.to_owned(), why });
    }
}

fn why(error: &std::io::Error) -> String {
    Foreign::in_error(error).map_or_else(|| error.to_string(), |kind| told_of(&kind))
}

/// Returns an error that names the kind of the file, if it is known.
pub fn unreadable(path: &Path, source: std::io::Error) -> ImportError {
    let path = path.to_owned();
    match Foreign::in_error(&source) {
        Some(kind) => ImportError::Kind { path, kind },
        None => ImportError::Read { path, source },
    }
}

/// Returns an error for a text that no format recognises.
pub fn unknown(path: &Path, head: &str) -> ImportError {
    if let Some(error) = refused(head) {
        let hint = error.hint().map(Cow::into_owned).unwrap_or_default();
        return ImportError::Load { path: path.to_owned(), what: error.to_string(), hint };
    }
    if let Some(width) = times_before(head) {
        let what = "each line begins with a time".to_owned();
        let hint = format!("cut -c{}- FILE removes the times", width + 1);
        return ImportError::Load { path: path.to_owned(), what, hint };
    }
    match unread::kind_of(head) {
        Some(kind) => ImportError::Kind { path: path.to_owned(), kind },
        None => foreign(path, "its format is unknown"),
    }
}

/// Returns the width of the times that ts(1) or a script put before each line of what would be
/// read without them.
fn times_before(head: &str) -> Option<usize> {
    let first = head.lines().find(|line| !line.trim().is_empty())?;
    let has_clock = |text: &str| text.split(' ').any(|word| word.split(':').count() == 3);
    let ends = first.match_indices(' ').map(|(at, _)| at + 1).take(5);
    ends.filter(|width| has_clock(&first[..*width])).find(|width| {
        let without: String =
            head.lines().flat_map(|line| [line.get(*width..).unwrap_or_default(), "\n"]).collect();
        ALL.iter().any(|format| (format.recognises)(&without))
    })
}

/// Returns why a report of a database is not read, if it is a known one.
fn refused(head: &str) -> Option<LoadError> {
    let error = blockstone_import::read("", head, Names::Kept).err()?;
    (error != LoadError::Unknown).then_some(error)
}

fn told_of(error: &impl Hint) -> String {
    error.in_a_line()
}

/// Whether a format recognises a file by its first lines; the error is why not.
fn answers(head: &[u8]) -> Result<(), String> {
    if SAR.iter().any(|mark| head.starts_with(mark)) {
        return Err("it is sar's binary file; sadf -j FILE -- -A makes what is read".to_owned());
    }
    if head.contains(&0) {
        return Err("it is binary".to_owned());
    }
    let head = &String::from_utf8_lossy(head);
    if blockstone_import::recognises(head) || ALL.iter().any(|format| (format.recognises)(head)) {
        return Ok(());
    }
    let of_load = refused(head).map(|error| told_of(&error));
    let of_kind = || unread::kind_of(head).map(|kind| told_of(&kind));
    Err(of_load.or_else(of_kind).unwrap_or_else(|| "its format is unknown".to_owned()))
}

/// Returns the beginning of a file, as far as it can be read.
fn head(source: &Source) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let text = source.open(|| true)?.decoded()?;
    match text.take(HEAD_BYTES).read_to_end(&mut bytes) {
        Err(error) if bytes.is_empty() => return Err(error),
        _ => {}
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "it is empty"));
    }
    Ok(bytes)
}

/// Names the files that are left out, by reason.
pub fn told(left_out: &[LeftOut]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for LeftOut { name, why } in left_out {
        reasons.entry(why).or_default().push(name);
    }
    let mut reasons: Vec<(&str, Vec<&Path>)> = reasons.into_iter().collect();
    // Stable, so that equal numbers stay in order.
    reasons.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let others = reasons.split_off(reasons.len().min(REASONS_MAX));
    let mut told: Vec<String> = reasons.iter().map(|(why, names)| of_reason(why, names)).collect();
    let more: usize = others.iter().map(|(_, names)| names.len()).sum();
    told.extend((more > 0).then(|| format!("{more} more files are not read")));
    told
}

fn of_reason(why: &str, names: &[&Path]) -> String {
    let some: Vec<String> = names.iter().take(NAMES_MAX).map(|name| shown(name)).collect();
    match names.len() {
        1 => format!("{} is not read: {why}", some[0]),
        count if count <= NAMES_MAX => format!("{} are not read: {why}", some.join(" and ")),
        count => {
            let more = count - NAMES_MAX;
            format!("{} and {more} more files are not read: {why}", some.join(", "))
        }
    }
}
