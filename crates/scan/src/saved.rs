//! Contents of a saved scan: its counter, its position, and its files as they were.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use blockstone_record::scan::{self as kept, FileSetRow, FingerprintRow, SavedScan};
use blockstone_reduce::counter::{Counter, Row};
use blockstone_reduce::scanned::Scanned;
use blockstone_reduce::sets::SetId;
use blockstone_reduce::table::{Entry, Location};
use blockstone_sys::proc;
use serde::{Deserialize, Serialize};

use crate::error::ScanError;
use crate::survey::Found;

/// Position that a scan has reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Index of the current file; all files before it are done.
    pub file: usize,
    /// Bytes of the current file that have been counted.
    pub bytes: u64,
}

/// A file as it was when the scan began: it must be unchanged when the scan continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptFile {
    /// Absolute, so that the scan can be continued from any directory.
    pub path: KeptPath,
    pub bytes: u64,
    pub modified_ns: i64,
    pub format: Option<(String, usize)>,
}

/// A path as text, or as bytes if it is not valid text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum KeptPath {
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

    pub fn path(&self) -> PathBuf {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsStr::from_bytes(bytes).into(),
        }
    }
}

/// The file `scan.json`, for writing.
#[derive(Serialize)]
struct Written<'a> {
    tool_version: &'static str,
    /// Host on which the files are stored.
    host: String,
    complete: bool,
    /// Names for the values of the fingerprints' column `table`.
    tables: Vec<String>,
    files: Vec<KeptFile>,
    position: Position,
    scanned: &'a Scanned,
    counter: &'a Counter,
}

/// The file `scan.json`, for reading.
#[derive(Deserialize)]
pub(crate) struct Document {
    pub host: String,
    pub complete: bool,
    pub files: Vec<KeptFile>,
    pub position: Position,
    pub scanned: Scanned,
    pub counter: Counter,
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
        host: proc::text(Path::new("/proc/sys/kernel/hostname")).unwrap_or_default(),
        complete,
        tables: counter.table_names(),
        files: files.iter().map(file).collect(),
        position,
        scanned,
        counter,
    };
    let document = serde_json::to_value(document).map_err(|e| {
        ScanError::saved("write", dir, e.to_string(), "this is a bug; please report it")
    })?;
    let sets = counter.set_rows().map(|(parent, file)| FileSetRow { parent, file });
    Ok(kept::write(dir, document, counter.rows().map(|row| kept_row(&row)), sets)?)
}

pub(crate) fn load(dir: &Path) -> Result<Document, ScanError> {
    let saved = SavedScan::open(dir)?;
    let hint = "restore it from a copy, or scan again";
    let damaged = |why: String| ScanError::saved("read", dir, why, hint);
    let mut document: Document =
        serde_json::from_value(saved.document.clone()).map_err(|e| damaged(e.to_string()))?;
    let counter = &mut document.counter;
    counter.awake().map_err(|error| damaged(error.to_string()))?;
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
        return Err(damaged(format!(
            "its list of {files} files does not match the files it scanned"
        )));
    }
    Ok(document)
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
    let first = Location::new(row.first_file, row.first_at);
    let mut entry = Entry::new(row.fingerprint, first, row.occurrences);
    entry.set_set(SetId(row.file_set));
    if row.never_used {
        entry.set_never_used();
    }
    Row { table: row.table as usize, entry, sizes: row.compressed_bytes }
}
