//! Errors that prevent a scan.

use std::io;
use std::path::{Path, PathBuf};

use blockstone_base::Bytes;
use blockstone_base::hint::Hint;
use blockstone_record::RecordError;
use blockstone_reduce::compress::CodecError;
use blockstone_reduce::table::FILES_MAX;
use blockstone_sys::buffer::ArenaError;
use blockstone_sys::file::FileError;
use blockstone_sys::free_space::FreeSpaceError;

#[derive(Debug, thiserror::Error, Hint)]
pub enum ScanError {
    #[error("scan {path}: {source}")]
    #[hint("check the path and its permissions")]
    Path { path: PathBuf, source: io::Error },
    #[error("scan {path}: it is a {what}")]
    #[hint("name files, directories or block devices")]
    Kind { path: PathBuf, what: &'static str },
    #[error("scan {what}: there is no file to scan")]
    #[hint("{hint}")]
    Empty { what: String, hint: String },
    #[error("scan {files} files: at most {FILES_MAX} in one scan")]
    #[hint("scan parts with --save and merge them")]
    TooMany { files: usize },
    #[error("generate {path}: {source}")]
    #[hint("name a directory that does not exist yet, with enough free space")]
    Generate { path: PathBuf, source: io::Error },
    #[error("generate {asked} in {path}: only {free} are free")]
    #[hint("name a directory on another disk, or lower --size or --files")]
    Room { path: PathBuf, asked: Bytes, free: Bytes },
    #[error("count within {memory}: at least {least} are needed")]
    #[hint("raise --memory, or lower --threads")]
    Memory { memory: Bytes, least: Bytes },
    #[error(transparent)]
    #[hint(transparent)]
    Arena(#[from] ArenaError),
    #[error(transparent)]
    #[hint(transparent)]
    FreeSpace(#[from] FreeSpaceError),
    #[error(transparent)]
    #[hint(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    #[hint(transparent)]
    Codec(#[from] CodecError),
    #[error("start thread {number} of {threads}: {source}")]
    #[hint("raise ulimit -u or lower --threads")]
    Thread { number: usize, threads: usize, source: io::Error },
    #[error("scan: it was ended before all files were looked at")]
    #[hint("start it again")]
    Ended,
    #[error("scan: a worker terminated unexpectedly")]
    #[hint("this is a bug; please report it")]
    Vanished,
    #[error(transparent)]
    #[hint(transparent)]
    Record(#[from] RecordError),
    /// `verb` is the attempted action: `read`, `resume`, `merge`.
    #[error("{verb} saved scan {path}: {why}")]
    #[hint("{hint}")]
    Saved { verb: &'static str, path: PathBuf, why: String, hint: &'static str },
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

/// Returns the first line of an error's text: the error without its hint.
pub(crate) fn first_line(error: &impl ToString) -> String {
    error.to_string()
}
