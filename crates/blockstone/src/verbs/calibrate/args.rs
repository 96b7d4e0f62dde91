//! The options of `calibrate`.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use clap::{Args, ValueEnum, ValueHint};

use blockstone_base::units::positive;

/// Arguments of `calibrate`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone calibrate .                             the storage under this directory
  blockstone calibrate --quick /var/lib/postgresql   in 20 s at most
  blockstone calibrate --max-latency 5ms /data       most IOPS with p99 at most 5 ms
  blockstone calibrate /data/system01.dbf            an existing file, only read
  blockstone calibrate /dev/sdb --destroy /dev/sdb   an empty device, read and written
  blockstone calibrate --json . | jq .summary.max_iops")]
pub struct CalibrateArgs {
    /// A directory, a file (only read) or a block device
    #[arg(value_hint = ValueHint::AnyPath, required_unless_present = "file")]
    pub path: Option<PathBuf>,
    /// Finish within 20 s: fewer points, shorter windows
    #[arg(long, conflicts_with = "full", help_heading = "How long")]
    pub quick: bool,
    /// Three interleaved rounds with longer windows (about 6 minutes)
    #[arg(long, help_heading = "How long")]
    pub full: bool,
    /// Database block size
    #[arg(long, default_value = "8K", value_name = "SIZE", help_heading = "What is measured")]
    pub block_size: Bytes,
    /// Size of the test file [default: 4G, or a quarter of the free space, or what fits the time]
    #[arg(long, value_name = "SIZE", help_heading = "What is measured")]
    pub size: Option<Bytes>,
    /// Latency limit of the knee (p99) and of `max_iops` (mean)
    #[arg(long, default_value = "20ms", value_name = "TIME", help_heading = "What is measured")]
    pub max_latency: Nanos,
    /// Also measure small and large reads together, as Orion's matrix (adds about 20 s)
    #[arg(long, help_heading = "What is measured")]
    pub matrix: bool,
    /// Also measure random reads at this fixed rate a second, whatever the storage does
    #[arg(long, value_name = "IOPS", value_parser = positive, help_heading = "What is measured")]
    pub rate: Option<f64>,
    /// Gaps between the operations of --rate
    #[arg(long, value_enum, default_value_t = Arrivals::Poisson, requires = "rate",
          help_heading = "What is measured")]
    pub arrivals: Arrivals,
    /// Leave out everything that writes (for a block device whose content is needed)
    #[arg(long, conflicts_with_all = ["destroy"], help_heading = "What is measured")]
    pub read_only: bool,
    /// Go through the page cache, to see what it does to the numbers
    #[arg(long, help_heading = "What is measured")]
    pub buffered: bool,
    /// Reuse a test file that an earlier run kept
    #[arg(long, value_name = "FILE", conflicts_with_all = ["path", "size", "destroy"],
          value_hint = ValueHint::FilePath, help_heading = "The test file")]
    pub file: Option<PathBuf>,
    /// Keep the test file for --file
    #[arg(long, conflicts_with_all = ["file", "destroy"], help_heading = "The test file")]
    pub keep: bool,
    /// Name a block device a second time, to allow its content to be destroyed
    #[arg(long, value_name = "DEVICE", help_heading = "The test file")]
    pub destroy: Option<PathBuf>,
    /// Write the recording to this directory (new or empty)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Speed of the link to the storage in MB/s, where the kernel cannot know it
    #[arg(long, value_name = "MB/S", value_parser = positive)]
    pub link_mbps: Option<f64>,
    /// Seed of all random choices [default: drawn, and written to the manifest]
    #[arg(long)]
    pub seed: Option<u64>,
    /// End with exit code 4 unless these capabilities are there
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub require: Vec<String>,
}

/// Gaps between operations at a fixed rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arrivals {
    /// Exponential gaps: independent users.
    Poisson,
    /// Constant gaps.
    Fixed,
}
