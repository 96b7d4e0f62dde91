//! What keeps a scan from being made.

use std::io;
use std::path::{Path, PathBuf};

use blockstone_record::RecordError;
use blockstone_reduce::compress::CodecError;
use blockstone_reduce::table::FILES_MAX;
use blockstone_sys::buffer::ArenaError;

#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error("scan {}: {source}\nhint: check the path and its permissions", path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error(
        "scan {}: it is a {what}\nhint: name files, directories or block devices",
        path.display()
    )]
    Kind { path: PathBuf, what: &'static str },
    #[error("scan {what}: there is no file to scan\nhint: {hint}")]
    Empty { what: String, hint: String },
    #[error(
        "scan {files} files: at most {FILES_MAX} in one scan\n\
         hint: scan parts with --save and merge them"
    )]
    TooMany { files: usize },
    #[error(
        "generate {}: {source}\n\
         hint: name a directory that does not exist yet, with enough free space",
        path.display()
    )]
    Generate { path: PathBuf, source: io::Error },
    #[error(
        "generate {asked} in {}: only {free} are free\n\
         hint: name a directory on another disk, or lower --size or --files",
        path.display()
    )]
    Room { path: PathBuf, asked: blockstone_base::Bytes, free: blockstone_base::Bytes },
    #[error(
        "count within {memory}: at least {least} are needed\n\
         hint: raise --memory, or lower --threads"
    )]
    Memory { memory: blockstone_base::Bytes, least: blockstone_base::Bytes },
    #[error(transparent)]
    Arena(#[from] ArenaError),
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error(
        "start thread {number} of {threads}: {source}\nhint: raise ulimit -u or lower --threads"
    )]
    Thread { number: usize, threads: usize, source: io::Error },
    #[error("scan: a worker terminated unexpectedly\nhint: this is a bug; please report it")]
    Vanished,
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("{verb} saved scan {}: {why}\nhint: {hint}", path.display())]
    Saved {
        /// What was to be done with it: `read`, `resume`, `merge`.
        verb: &'static str,
        path: PathBuf,
        why: String,
        hint: &'static str,
    },
}

impl ScanError {
    pub(crate) fn saved(
        verb: &'static str,
        path: &Path,
        why: impl Into<String>,
        hint: &'static str,
    ) -> Self {
        Self::Saved { verb, path: path.to_owned(), why: why.into(), hint }
    }
}

/// The first line of an error's text: what it is without its hint.
pub(crate) fn first_line(error: &impl ToString) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
