//! Errors of checks.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error(transparent)]
    Survey(#[from] blockstone_sys::survey::SurveyError),
    #[error(transparent)]
    Claim(#[from] blockstone_measure::claim::ClaimError),
    #[error(transparent)]
    File(#[from] blockstone_sys::file::FileError),
    #[error(transparent)]
    Memory(#[from] blockstone_sys::buffer::ArenaError),
    #[error("prepare a scratch file in {}: {source}\nhint: {hint}", dir.display())]
    Scratch { dir: PathBuf, source: io::Error, hint: &'static str },
    #[error(
        "check reads of {}: it has {bytes} bytes, and at least {least} are read\n\
         hint: name a larger file, or the directory",
        path.display()
    )]
    Short { path: PathBuf, bytes: u64, least: u64 },
    #[error(
        "check metadata of {}: it is no directory\n\
         hint: name the directory, or one on the device",
        path.display()
    )]
    NoDirectory { path: PathBuf },
    #[error(
        "create {files} files in {}: there are not enough {what} for them\n\
         hint: use fewer with --files, or choose another directory",
        path.display()
    )]
    NoRoom { path: PathBuf, files: u64, what: &'static str },
    #[error(
        "drop caches of metadata: {source}\n\
         hint: run as root, or without --drop-caches"
    )]
    Drop { source: io::Error },
    #[error("check the files of process {pid}: no such process\nhint: ps -e lists the process ids")]
    NoProcess { pid: u32 },
    #[error(
        "check the files of process {pid}: {source}\n\
         hint: run as its user, or as root"
    )]
    NotPermitted { pid: u32, source: io::Error },
    #[error(transparent)]
    Link(#[from] crate::meet::LinkError),
    #[error(
        "ask a rank: it does not answer\n\
         hint: its storage hangs (see dmesg there), or it was ended; start all ranks again"
    )]
    RankGone,
    #[error("{doing} at rank {rank}: {error}\nhint: {hint}")]
    Rank { doing: &'static str, rank: usize, error: String, hint: &'static str },
    #[error("check {}: {why}\nhint: {hint}", path.display())]
    Target { path: PathBuf, why: &'static str, hint: &'static str },
    #[error(
        "keep what is witnessed in {}: {source}\nhint: name another file with --log",
        path.display()
    )]
    Log { path: PathBuf, source: io::Error },
    #[error(
        "write to {}: what an earlier run wrote there was not verified yet\n\
         hint: --verify does that and removes it; or remove it with rm -r",
        path.display()
    )]
    Unverified { path: PathBuf },
    #[error(
        "verify {}: {source}\n\
         hint: run as the user who wrote there, or remove it if it is not a run's",
        path.display()
    )]
    Foreign { path: PathBuf, source: io::Error },
    #[error(
        "verify {}: there is no trace of a run that the witness knows\n\
         hint: is its file system mounted there? Where it cannot be mounted any more, or is empty, \
         all that was acknowledged is lost",
        path.display()
    )]
    NoTrace { path: PathBuf },
    #[error(
        "verify {}: the witness does not know the run that wrote there\n\
         hint: name the witness that it had, with its log",
        path.display()
    )]
    UnknownRun { path: PathBuf },
    #[error(
        "write to {}: a file is only read\nhint: name its directory, or an empty device",
        path.display()
    )]
    NotWritten { path: PathBuf },
    #[error(
        "start a thread: {source}\n\
         hint: raise the limit on processes (ulimit -u, pids.max), or end some of them"
    )]
    Thread { source: io::Error },
    #[error("run {program}: {source}\nhint: name a program that can be run, with its arguments")]
    Command { program: String, source: io::Error },
    #[error("run {program}: {source}\nhint: run it again")]
    Lost { program: String, source: io::Error },
}
