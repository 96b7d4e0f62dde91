//! Why a check could not be made.

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
    #[error("check the files of process {pid}: no such process\nhint: ps -e lists the process ids")]
    NoProcess { pid: u32 },
    #[error(
        "check the files of process {pid}: {source}\n\
         hint: run as its user, or as root"
    )]
    NotPermitted { pid: u32, source: io::Error },
}
