//! Errors that prevent noise or end it early.

use std::path::PathBuf;

use blockstone_base::hint::Hint;
use blockstone_base::units::{Bytes, Nanos};

#[derive(Debug, thiserror::Error, Hint)]
pub enum NoiseError {
    #[error(transparent)]
    #[hint(transparent)]
    Survey(#[from] blockstone_sys::survey::SurveyError),
    #[error(transparent)]
    #[hint(transparent)]
    Claim(#[from] blockstone_measure::claim::ClaimError),
    #[error(transparent)]
    #[hint(transparent)]
    Record(#[from] blockstone_record::RecordError),
    #[error(transparent)]
    #[hint(transparent)]
    Watch(#[from] blockstone_watch::WatchError),
    #[error(transparent)]
    #[hint(transparent)]
    Writers(#[from] blockstone_workload::noise::NoiseError),
    #[error("make noise: no path is named")]
    #[hint("blockstone noise . writes beside this directory")]
    NoPlace,
    #[error("write noise to {}: no file of others is overwritten", path.display())]
    #[hint("name its directory, or a block device together with --destroy")]
    NotAPlace { path: PathBuf },
    #[error("destroy {}: it is not one of the paths of this noise", path.display())]
    #[hint("name the same device as PATH and with --destroy")]
    DestroyOther { path: PathBuf },
    #[error("write past the page cache in {}: {why}", path.display())]
    #[hint("--buffered writes through it")]
    NotDirect { path: PathBuf, why: String },
    #[error(
        "make noise with {writers} writers on {places} paths: it must be one for each path, and \
         at most {most}"
    )]
    #[hint("--writers 2")]
    Count { writers: u32, places: usize, most: u32 },
    #[error("write {write} at once: it must be a power of two from 4K to 1M")]
    #[hint("log writers and dd bs=128k write 128K")]
    Write { write: Bytes },
    #[error("write in an area of {area}: it must be whole MiB, and not 0")]
    #[hint("--area 1G is as large as many redo logs")]
    Area { area: Bytes },
    #[error(
        "alternate in phases of {phase} for {duration}: that is less than one without noise and \
         one with it"
    )]
    #[hint("use a longer --for, or a --phase of 2s or more")]
    Phases { phase: Nanos, duration: Nanos },
    #[error("alternate in phases of {phase}: too short to settle")]
    #[hint("--phase 2s is the least")]
    Phase { phase: Nanos },
    #[error("write noise: {why}")]
    #[hint("the recording has everything measured so far; see dmesg")]
    Failed { why: String },
}
