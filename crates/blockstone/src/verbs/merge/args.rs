//! Arguments of `merge`.

use std::path::PathBuf;

use blockstone_base::units::Nanos;
use clap::{Args, ValueHint};

use crate::purpose::{NamesRecording, Purpose};

/// Arguments of `merge`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone merge db1/run db2/run db3/run        recordings of three hosts
  blockstone merge ranks                          all recordings in a directory
  blockstone merge ranks --partial                although one of them failed
  blockstone merge ranks --json | jq '.tables.ranks'")]
pub struct MergeArgs {
    /// Recordings of the ranks, or directories that contain them
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(add = NamesRecording, add = Purpose::Input)]
    pub runs: Vec<String>,
    /// Merge the others if a rank is missing or failed; the figures are condemned
    #[arg(long)]
    pub partial: bool,
    /// How far the clock of each host may be from UTC, where its recording does not say it; each
    /// window is cut by that much
    #[arg(long = "clock-bound", value_name = "TIME")]
    pub clock_bound_ns: Option<Nanos>,
    /// Write the recording to this directory (new or empty)
    #[arg(long = "record", alias = "out", value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Directory)]
    pub out: Option<PathBuf>,
}
