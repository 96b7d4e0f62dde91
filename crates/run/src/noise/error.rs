//! Errors that prevent noise or end it early.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};

#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    #[error(transparent)]
    Survey(#[from] blockstone_sys::survey::SurveyError),
    #[error(transparent)]
    Claim(#[from] blockstone_measure::claim::ClaimError),
    #[error(transparent)]
    Record(#[from] blockstone_record::RecordError),
    #[error(transparent)]
    Watch(#[from] blockstone_watch::WatchError),
    #[error(transparent)]
    Writers(#[from] blockstone_workload::noise::NoiseError),
    #[error("make noise: no path is named\nhint: blockstone noise . writes beside this directory")]
    NoPlace,
    #[error(
        "write noise to {}: no file of others is overwritten\n\
         hint: name its directory, or a block device together with --destroy",
        path.display()
    )]
    NotAPlace { path: PathBuf },
    #[error(
        "destroy {}: it is not one of the paths of this noise\n\
         hint: name the same device as PATH and with --destroy",
        path.display()
    )]
    DestroyOther { path: PathBuf },
    #[error(
        "write past the page cache in {}: {why}\n\
         hint: --buffered writes through it",
        path.display()
    )]
    NotDirect { path: PathBuf, why: String },
    #[error(
        "make noise with {writers} writers on {places} paths: it must be one for each path, and at \
         most {most}\n\
         hint: --writers 2"
    )]
    Count { writers: u32, places: usize, most: u32 },
    #[error(
        "write {write} at once: it must be a power of two from 4K to 1M\n\
         hint: log writers and dd bs=128k write 128K"
    )]
    Write { write: Bytes },
    #[error(
        "write in an area of {area}: it must be whole MiB, and not 0\n\
         hint: --area 1G is as large as many redo logs"
    )]
    Area { area: Bytes },
    #[error(
        "alternate in phases of {phase} for {duration}: that is less than one without noise and \
         one with it\n\
         hint: use a longer --for, or a --phase of 2s or more"
    )]
    Phases { phase: Nanos, duration: Nanos },
    #[error("alternate in phases of {phase}: too short to settle\nhint: --phase 2s is the least")]
    Phase { phase: Nanos },
    #[error("write noise: {why}\nhint: the recording has everything measured so far; see dmesg")]
    Failed { why: String },
}
