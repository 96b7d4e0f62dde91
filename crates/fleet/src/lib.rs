//! Recordings of several ranks → one recording: exact sums of their counters and histograms in the
//! window that all of them have in common.
//!
//! Ranks are processes, on one host or on many, that apply one load together and leave a recording
//! each. [`merge`] maps the times of all recordings to one axis by their wall clocks, takes the
//! intersection of their windows less what the clocks may have been apart, adds counters at the
//! same instants, and adds histograms. The result is an ordinary recording, so that judging,
//! reports and comparisons need not know of ranks.
//!
//! It must not know the machine, or which figures a verb derives.
//!
//! [`merge`] finds out what recordings have in common, [`Merge::write`] adds them up.
//!
//! ```no_run
//! use blockstone_fleet::{Options, merge};
//!
//! let ranks = ["db1", "db2", "db3"].map(|host| format!("runs/{host}").into());
//! let merge = merge(&ranks, Options::default())?;
//! merge.write(("runs/all".as_ref(), "7h2k9q"), &[], |_, _| true)?;
//! # Ok::<(), blockstone_fleet::FleetError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod common;
mod counters;
mod latencies;
mod merge;
mod outliers;
mod source;

use std::path::PathBuf;

use blockstone_base::hint::Hint;
use blockstone_base::units::Nanos;
use blockstone_record::RecordError;

pub use merge::{Merge, Options, merge};

#[derive(Debug, thiserror::Error, Hint)]
pub enum FleetError {
    #[error(transparent)]
    #[hint(transparent)]
    Record(#[from] RecordError),
    #[error("merge {found}: at least two recordings are needed")]
    #[hint("name the recordings of all ranks, or a directory that contains them")]
    TooFew { found: usize },
    #[error("merge {}: {why}", path.display())]
    #[hint("ranks run the same version of Blockstone with the same options and seed")]
    Different { path: PathBuf, why: String },
    #[error("merge {}: rank {rank} is also {}", path.display(), other.display())]
    #[hint("name the recording of each rank once")]
    Twice { path: PathBuf, rank: u32, other: PathBuf },
    #[error("merge {}: it is the same recording as {}", path.display(), other.display())]
    #[hint("name the recording of each rank once")]
    Same { path: PathBuf, other: PathBuf },
    #[error(
        "merge {}: its window began {apart} after that of {} ended, by their clocks",
        path.display(),
        other.display()
    )]
    #[hint("start all ranks at the same time, with --start-at or a launcher")]
    Apart { path: PathBuf, other: PathBuf, apart: Nanos },
    #[error("merge: {why}")]
    #[hint("--partial merges the others, and says so in the report")]
    Missing { why: String },
    #[error("merge {}: it does not say when it began", path.display())]
    #[hint("without times, windows of several recordings cannot be compared")]
    Undated { path: PathBuf },
    #[error("merge {}: a `{verb}` has no load that several ranks could share", path.display())]
    #[hint("merge recordings of calibrate, run or noise")]
    Verb { path: PathBuf, verb: String },
    #[error("merge {}: it was merged from several ranks itself", path.display())]
    #[hint("name the recordings of the ranks, without it")]
    Merged { path: PathBuf },
    #[error("merge {}: it says that it is rank {rank} of {ranks}", path.display())]
    #[hint("the manifest was changed after it was written; restore it from a copy")]
    Rank { path: PathBuf, rank: u32, ranks: u32 },
    #[error("merge {}: the times of phase {phase} are not in order", path.display())]
    #[hint("the manifest was changed after it was written; restore it from a copy")]
    Times { path: PathBuf, phase: String },
    #[error("merge: no phase of the recordings has a window in all of them")]
    #[hint("were these ranks run at the same time?")]
    NoPhase,
}
