//! Scans that are kept: to go on after an interruption, to look again, and to count the files of
//! several machines together.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use blockstone_record::scan::{self as kept, FileSetRow, FingerprintRow, SavedScan};
use blockstone_reduce::counter::{Counter, Row};
use blockstone_reduce::page::{Recognised, registry};
use blockstone_reduce::scanned::Scanned;
use blockstone_reduce::sets::SetId;
use blockstone_reduce::table::{Entry, Place};
use serde::{Deserialize, Serialize};

use crate::error::ScanError;
use crate::scan::{Outcome, Progress, Settings, Start, go_on, shown};
use crate::survey::{Found, Survey};

/// Up to where a scan came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The file at hand; all before it are done.
    pub file: usize,
    /// Bytes of it that are counted.
    pub bytes: u64,
}

/// A file as it was when the scan began: it must be the same when it goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeptFile {
    /// Absolute, so that the scan can go on from anywhere.
    path: KeptPath,
    bytes: u64,
    modified_ns: i64,
    format: Option<(String, usize)>,
}

/// A path: text, or the bytes of a name that is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum KeptPath {
    Text(String),
    Bytes(Vec<u8>),
}

impl KeptPath {
    fn of(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }

    fn path(&self) -> PathBuf {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsStr::from_bytes(bytes).into(),
        }
    }
}

/// `scan.json`, as it is written.
#[derive(Serialize)]
struct Written<'a> {
    tool_version: &'static str,
    /// Where the files are.
    host: String,
    complete: bool,
    /// What the column `table` of the fingerprints means.
    tables: Vec<String>,
    files: Vec<KeptFile>,
    position: Position,
    scanned: &'a Scanned,
    counter: &'a Counter,
}

/// `scan.json`, as it is read.
#[derive(Deserialize)]
struct Document {
    host: String,
    complete: bool,
    files: Vec<KeptFile>,
    position: Position,
    scanned: Scanned,
    counter: Counter,
}

pub(crate) fn write(
    dir: &Path,
    counter: &Counter,
    scanned: &Scanned,
    files: &[Found],
    position: Position,
    complete: bool,
) -> Result<(), ScanError> {
    let file = |found: &Found| KeptFile {
        path: KeptPath::of(&found.path),
        bytes: found.bytes,
        modified_ns: found.modified_ns,
        format: found.format.map(|known| (known.format.name.to_owned(), known.page_bytes)),
    };
    let document = Written {
        tool_version: env!("CARGO_PKG_VERSION"),
        host: host(),
        complete,
        tables: counter.table_names(),
        files: files.iter().map(file).collect(),
        position,
        scanned,
        counter,
    };
    let document = serde_json::to_value(document).map_err(|e| ScanError::Saved {
        verb: "write",
        path: dir.to_owned(),
        why: e.to_string(),
        hint: "this is a defect; please report it",
    })?;
    let sets = counter.set_rows().map(|(parent, file)| FileSetRow { parent, file });
    Ok(kept::write(dir, document, counter.rows().map(|row| kept_row(&row)), sets)?)
}

/// Reads a saved scan.
///
/// # Errors
/// When there is none in `dir`, or it is damaged.
pub fn read(dir: &Path) -> Result<Outcome, ScanError> {
    Ok(outcome(load(dir)?))
}

fn outcome(document: Document) -> Outcome {
    let mut scanned = document.scanned;
    if !document.complete && scanned.ended_by.is_none() {
        scanned.ended_by = Some("it was saved before its end".to_owned());
    }
    Outcome { counter: document.counter, scanned, unsaved: None }
}

/// Reads several saved scans and counts them as one.
///
/// # Errors
/// When one cannot be read or is named twice, or they did not count the same.
pub fn merge(dirs: &[PathBuf]) -> Result<Outcome, ScanError> {
    let mut merged: Option<Outcome> = None;
    let mut known: Vec<(String, Vec<KeptFile>)> = Vec::new();
    let mut seen = HashSet::new();
    for dir in dirs {
        // Every file of it would be a copy of itself.
        if let Ok(resolved) = dir.canonicalize()
            && !seen.insert(resolved)
        {
            return Err(ScanError::Saved {
                verb: "merge",
                path: dir.clone(),
                why: "it is named twice".to_owned(),
                hint: "name each saved scan once",
            });
        }
        let document = load(dir)?;
        let files = (document.host.clone(), document.files.clone());
        if known.contains(&files) {
            return Err(ScanError::Saved {
                verb: "merge",
                path: dir.clone(),
                why: format!("it is of the same files of host {} as another one", files.0),
                hint: "name each scan once",
            });
        }
        known.push(files);
        let next = outcome(document);
        let Some(all) = &mut merged else {
            merged = Some(next);
            continue;
        };
        all.counter.merge(&next.counter).map_err(|error| ScanError::Saved {
            verb: "merge",
            path: dir.clone(),
            why: error.to_string(),
            hint: "scan all with the same --block-size, --offset, --model and --codec; and with \
                   --no-headers, where only some of them hold databases",
        })?;
        let scanned = &mut all.scanned;
        scanned.files.extend(next.scanned.files);
        scanned.skipped.extend(next.scanned.skipped);
        scanned.read_bytes += next.scanned.read_bytes;
        scanned.elapsed_s += next.scanned.elapsed_s;
        scanned.cpu_s += next.scanned.cpu_s;
        scanned.memory_bytes = scanned.memory_bytes.max(next.scanned.memory_bytes);
        scanned.direct &= next.scanned.direct;
        scanned.ended_by = scanned.ended_by.take().or(next.scanned.ended_by);
    }
    let (what, hint) = ("nothing".to_owned(), "name saved scans to merge".to_owned());
    merged.ok_or(ScanError::Empty { what, hint })
}

/// Goes on with a scan where it was saved. What is counted, and within which memory, stays.
///
/// # Errors
/// As reading it, and when a file is no longer what it was.
pub fn resume(
    dir: &Path,
    settings: &Settings,
    watch: &mut dyn FnMut(Progress<'_>) -> bool,
) -> Result<Outcome, ScanError> {
    let document = load(dir)?;
    let refuse =
        |why: String, hint| ScanError::Saved { verb: "resume", path: dir.to_owned(), why, hint };
    if document.complete {
        return Ok(outcome(document));
    }
    let mut survey = Survey { skipped: document.scanned.skipped.clone(), ..Survey::default() };
    for (index, file) in document.files.into_iter().enumerate() {
        let path = file.path.path();
        let found =
            blockstone_sys::file::BlockFile::open(&path, blockstone_sys::file::Access::Read, false)
                .and_then(|open| open.state());
        let same = found
            .as_ref()
            .is_ok_and(|now| (now.bytes, now.modified_ns) == (file.bytes, file.modified_ns));
        // A file that is done may have gone its way.
        if !same && index >= document.position.file {
            let what = match found {
                Ok(_) => "is not what it was when the scan began".to_owned(),
                Err(error) => format!("can no longer be read ({})", first_line(&error)),
            };
            let why = format!("{} {what}", shown(&path));
            return Err(refuse(why, "put it back, or scan again from the beginning"));
        }
        survey.files.push(Found {
            format: file.format.and_then(|(name, page_bytes)| recognised(&name, page_bytes)),
            path,
            bytes: file.bytes,
            modified_ns: file.modified_ns,
        });
    }
    let scanned = Scanned { ended_by: None, ..document.scanned };
    let start = Start { counter: document.counter, scanned, position: document.position };
    go_on(&survey, start, settings, watch)
}

fn load(dir: &Path) -> Result<Document, ScanError> {
    let saved = SavedScan::open(dir)?;
    let damaged = |why: String| ScanError::Saved {
        verb: "read",
        path: dir.to_owned(),
        why,
        hint: "restore it from a copy, or scan again",
    };
    let mut document: Document =
        serde_json::from_value(saved.document.clone()).map_err(|e| damaged(e.to_string()))?;
    let counter = &mut document.counter;
    counter.awake();
    let mut fault = None;
    saved.sets(|row| {
        if let Err(error) = counter.put_set(row.parent, row.file) {
            fault.get_or_insert(error);
        }
    })?;
    saved.fingerprints(|row| {
        if let Err(error) = counter.put(counted_row(&row)) {
            fault.get_or_insert(error);
        }
    })?;
    if let Some(error) = fault {
        return Err(damaged(error.to_string()));
    }
    let (files, scanned) = (document.files.len(), document.scanned.files.len());
    if files != scanned || document.position.file > files {
        return Err(damaged(format!("its {files} files are not those that it says it scanned")));
    }
    Ok(document)
}

fn first_line(error: &impl ToString) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

fn recognised(name: &str, page_bytes: usize) -> Option<Recognised> {
    let format = registry::ALL.iter().find(|format| format.name == name)?;
    Some(Recognised { format, page_bytes })
}

fn kept_row(row: &Row) -> FingerprintRow {
    let entry = &row.entry;
    FingerprintRow {
        table: row.table as u32,
        fingerprint: entry.print,
        first_file: entry.first.file(),
        first_at: entry.first.at(),
        occurrences: entry.count,
        file_set: entry.set().0,
        never_used: entry.never_used(),
        compressed_bytes: row.sizes,
    }
}

fn counted_row(row: &FingerprintRow) -> Row {
    let first = Place::new(row.first_file, row.first_at);
    let mut entry = Entry::new(row.fingerprint, first, row.occurrences);
    entry.set_set(SetId(row.file_set));
    if row.never_used {
        entry.set_never_used();
    }
    Row { table: row.table as usize, entry, sizes: row.compressed_bytes }
}
