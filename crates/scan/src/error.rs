//! What keeps a scan from being made.

use std::io;
use std::path::PathBuf;

use blockstone_record::RecordError;
use blockstone_reduce::compress::CodecError;
use blockstone_reduce::table::FILES_MAX;
use blockstone_sys::buffer::ArenaError;

/// A scan that cannot be made, saved or resumed.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// A path that leads nowhere.
    #[error("scan {}: {source}\nhint: check the path and its permissions", path.display())]
    Path { path: PathBuf, source: io::Error },
    /// A path that has no content to scan.
    #[error(
        "scan {}: it is a {what}\nhint: name files, directories or block devices",
        path.display()
    )]
    Kind { path: PathBuf, what: &'static str },
    #[error("scan {what}: there is no file to scan\nhint: {hint}")]
    Empty {
        what: String,
        /// Why there may be none.
        hint: String,
    },
    /// More files than can be told apart.
    #[error(
        "scan {files} files: at most {FILES_MAX} in one scan\n\
         hint: scan parts with --save and merge them"
    )]
    TooMany { files: usize },
    /// A data set that cannot be written.
    #[error(
        "generate {}: {source}\n\
         hint: name a directory that does not exist yet, with enough free space",
        path.display()
    )]
    Generate { path: PathBuf, source: io::Error },
    /// A data set that is larger than what is free.
    #[error(
        "generate {asked} in {}: only {free} are free\n\
         hint: name a directory on another disk, or lower --size or --files",
        path.display()
    )]
    Room { path: PathBuf, asked: blockstone_base::Bytes, free: blockstone_base::Bytes },
    /// Too little memory to count in.
    #[error(
        "count within {memory}: at least {least} are needed\n\
         hint: raise --memory, or lower --threads"
    )]
    Memory {
        memory: blockstone_base::Bytes,
        /// What it takes.
        least: blockstone_base::Bytes,
    },
    #[error(transparent)]
    Arena(#[from] ArenaError),
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error(
        "start thread {number} of {threads}: {source}\nhint: raise ulimit -u or lower --threads"
    )]
    Thread { number: usize, threads: usize, source: io::Error },
    /// A worker ended early.
    #[error("scan: a worker terminated unexpectedly\nhint: this is a bug; please report it")]
    Vanished,
    /// A saved scan that cannot be written or read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A saved scan that is not one, or does not fit.
    #[error("{verb} saved scan {}: {why}\nhint: {hint}", path.display())]
    Saved {
        /// What was to be done with it: `read`, `resume`, `merge`.
        verb: &'static str,
        path: PathBuf,
        why: String,
        hint: &'static str,
    },
}
