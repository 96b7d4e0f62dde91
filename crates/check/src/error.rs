//! Errors of checks.

use std::io;
use std::path::PathBuf;

use blockstone_base::hint::Hint;

#[derive(Debug, thiserror::Error, Hint)]
pub enum CheckError {
    #[error(transparent)]
    #[hint(transparent)]
    Survey(#[from] blockstone_sys::survey::SurveyError),
    #[error(transparent)]
    #[hint(transparent)]
    Claim(#[from] blockstone_measure::claim::ClaimError),
    #[error(transparent)]
    #[hint(transparent)]
    File(#[from] blockstone_sys::file::FileError),
    #[error(transparent)]
    #[hint(transparent)]
    Memory(#[from] blockstone_sys::buffer::ArenaError),
    #[error("prepare a scratch file in {}: {source}", dir.display())]
    #[hint("{hint}")]
    Scratch { dir: PathBuf, source: io::Error, hint: &'static str },
    #[error(
        "check reads of {}: it has {bytes} bytes, and at least {least} are read",
        path.display()
    )]
    #[hint("name a larger file, or the directory")]
    Short { path: PathBuf, bytes: u64, least: u64 },
    #[error("check metadata of {}: it is not a directory", path.display())]
    #[hint("name the directory, or one on the device")]
    NoDirectory { path: PathBuf },
    #[error("create {files} files in {}: there are not enough {what} for them", path.display())]
    #[hint("use fewer with --files, or choose another directory")]
    NoRoom { path: PathBuf, files: u64, what: &'static str },
    #[error("drop caches of metadata: {source}")]
    #[hint("run as root, or without --drop-caches")]
    Drop { source: io::Error },
    #[error("check the files of process {pid}: no such process")]
    #[hint("ps -e lists the process ids")]
    NoProcess { pid: u32 },
    #[error("check the files of process {pid}: {source}")]
    #[hint("run as its user, or as root")]
    NotPermitted { pid: u32, source: io::Error },
    #[error(transparent)]
    #[hint(transparent)]
    Link(#[from] crate::meet::LinkError),
    #[error("ask a rank: it does not answer")]
    #[hint("its storage hangs (see dmesg there), or it was ended; start all ranks again")]
    RankGone,
    #[error("{doing} at rank {rank}: {error}")]
    #[hint("{hint}")]
    Rank { doing: &'static str, rank: usize, error: String, hint: &'static str },
    #[error("check {}: {why}", path.display())]
    #[hint("{hint}")]
    Target { path: PathBuf, why: &'static str, hint: &'static str },
    #[error("keep what is witnessed in {}: {source}", path.display())]
    #[hint("name another file with --log")]
    Log { path: PathBuf, source: io::Error },
    #[error("write to {}: what an earlier run wrote there was not verified yet", path.display())]
    #[hint("--verify does that and removes it; or remove it with rm -r")]
    Unverified { path: PathBuf },
    #[error("verify {}: {source}", path.display())]
    #[hint("run as the user who wrote there, or remove it if it is not a run's")]
    Foreign { path: PathBuf, source: io::Error },
    #[error("verify {}: there is no trace of a run that the witness knows", path.display())]
    #[hint(
        "is its file system mounted there? Where it cannot be mounted any more, or is empty, all \
         that was acknowledged is lost"
    )]
    NoTrace { path: PathBuf },
    #[error("verify {}: the witness does not know the run that wrote there", path.display())]
    #[hint("name the witness that it had, with its log")]
    UnknownRun { path: PathBuf },
    #[error("write to {}: a file is only read", path.display())]
    #[hint("name its directory, or an empty device")]
    NotWritten { path: PathBuf },
    #[error("start a thread: {source}")]
    #[hint("raise the limit on processes (ulimit -u, pids.max), or end some of them")]
    Thread { source: io::Error },
    #[error("start {ranks} ranks, each a thread: {source}{limit}")]
    #[hint("raise that limit, or use fewer with --ranks")]
    Threads { ranks: u32, source: io::Error, limit: String },
    #[error(
        "start {ranks} ranks: they need {needed} open files, and this process may have {limit} \
         (ulimit -n)"
    )]
    #[hint("raise that limit, or use fewer with --ranks")]
    Descriptors { ranks: u32, needed: u64, limit: u64 },
    #[error("run {program}: {source}")]
    #[hint("name a program that can be run, with its arguments")]
    Command { program: String, source: io::Error },
    #[error("run {program}: {source}")]
    #[hint("run it again")]
    Lost { program: String, source: io::Error },
}
