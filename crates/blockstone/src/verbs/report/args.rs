//! The options of `report`.

use blockstone_base::units::Nanos;
use blockstone_view::Condition;
use clap::Args;

use crate::purpose::Purpose;

/// Arguments of `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// A recording: its directory, its id, or `last`
    #[arg(add = Purpose::Input)]
    pub run: String,
    /// Print only SLOB's `awr_info` columns of a run: a header line and a line of values
    #[arg(long, conflicts_with_all = ["html", "json", "csv"])]
    pub awr_info: bool,
    /// Show the activity of all layers from this time after the start of the recording
    #[arg(long, value_name = "TIME", conflicts_with = "awr_info")]
    pub from: Option<Nanos>,
    /// Show the activity of all layers up to this time after the start of the recording
    #[arg(long, value_name = "TIME", conflicts_with = "awr_info")]
    pub to: Option<Nanos>,
    /// Use only session samples with this value in this column
    #[arg(long = "where", value_name = "COLUMN=VALUE", conflicts_with = "awr_info")]
    pub only: Vec<Condition>,
}

impl ReportArgs {
    /// Whether it asks what every layer did in a part of the time.
    pub fn is_of_layers(&self) -> bool {
        self.from.is_some() || self.to.is_some() || !self.only.is_empty()
    }
}
