//! The options of `report`.

use blockstone_view::Condition;
use clap::Args;

use crate::instants::When;
use crate::purpose::{NamesRecording, Purpose};

/// Arguments of `report`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone report last                     the last recording
  blockstone report last --html report.html  as a page
  blockstone report night@10m..12m           a part of a recording
  blockstone report 8fj2k1 --expect 'commit.p99<2ms'")]
pub struct ReportArgs {
    /// A recording: its directory, the beginning of its name or id, `last`, `last~1`, `run:last`;
    /// `night@10m..12m` selects a part
    #[arg(add = Purpose::Input, add = NamesRecording)]
    pub run: String,
    /// Print only SLOB's `awr_info` columns of a run: a header line and a line of values
    #[arg(long, conflicts_with_all = ["html", "json", "csv"])]
    pub awr_info: bool,
    /// Show the activity of all layers from this time on: time since the start (10m) or clock time
    /// (18:45:10, 2026-11-24T18:45+01:00)
    #[arg(long, value_name = "TIME", conflicts_with = "awr_info")]
    pub from: Option<When>,
    /// Show the activity of all layers up to this time, given in the same way
    #[arg(long, value_name = "TIME", conflicts_with = "awr_info")]
    pub to: Option<When>,
    /// Use only session samples with this value in this column
    #[arg(long = "where", value_name = "COLUMN=VALUE", conflicts_with = "awr_info")]
    pub only: Vec<Condition>,
}
