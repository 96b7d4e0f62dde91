//! The options of `report`.

use blockstone_base::units::Nanos;
use blockstone_view::Condition;
use clap::Args;

/// Arguments of `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// A recording: its directory, its id, or `last`
    pub run: String,
    /// Print only SLOB's `awr_info` columns of a run, heading and values
    #[arg(long, conflicts_with_all = ["html", "json", "csv"])]
    pub awr_info: bool,
    /// Show what every layer did from this time after the recording's first tick
    #[arg(long, value_name = "TIME", conflicts_with = "awr_info")]
    pub from: Option<Nanos>,
    /// Show what every layer did up to this time after the recording's first tick
    #[arg(long, value_name = "TIME", conflicts_with = "awr_info")]
    pub to: Option<Nanos>,
    /// Of samples of sessions, show only those whose column says this
    #[arg(long = "where", value_name = "COLUMN=VALUE", conflicts_with = "awr_info")]
    pub only: Vec<Condition>,
}

impl ReportArgs {
    /// Whether it asks what every layer did in a part of the time.
    pub fn is_of_layers(&self) -> bool {
        self.from.is_some() || self.to.is_some() || !self.only.is_empty()
    }
}
