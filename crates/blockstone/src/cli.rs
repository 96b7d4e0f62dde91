//! The command line, declared once: parsing, `--help`, man pages and shell completions derive
//! from these types.

pub mod flash;
pub mod reduce;
pub mod run;
pub mod target;
pub mod watch;

use std::io::{self, Write};
use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos, positive};
use blockstone_view::Condition;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};

use crate::exit::Exit;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Measure storage the way a database uses it, and learn which numbers to believe.
#[derive(Debug, Parser)]
#[command(
    name = "blockstone",
    version,
    styles = STYLES,
    after_help = "Exit codes: 0 done, 1 judged and failed, 2 could not run, 3 ran but not \
                  trustworthy, 4 a required capability is missing, 130 interrupted."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Options of every verb.
    #[command(flatten)]
    pub global: Global,
}

/// Options of every verb.
#[derive(Args, Debug)]
pub struct Global {
    /// Print one JSON document on standard output instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no progress and no notes, only the answer
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// When to use colours (`NO_COLOR` is honoured too)
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
    /// Where recordings are kept
    #[arg(long, global = true, default_value = "blockstone-runs", value_name = "DIR",
          value_hint = ValueHint::DirPath)]
    pub runs_dir: PathBuf,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the most IOPS, MB/s and commits a storage can do, at what latency, and whether to
    /// believe it
    #[command(visible_alias = "cal")]
    Calibrate(Box<CalibrateArgs>),
    /// Run the SLOB method on a miniature database instance: what a database gets from a storage
    Run(Box<run::RunArgs>),
    /// Remove what a killed run left in a database server
    Teardown {
        /// The server, as --target names it: `postgres://user@host/db`, `mysql://user@host`
        target: String,
    },
    /// Simulate a flash device: what garbage collection does to writes and reads, and when
    Flash(Box<flash::FlashArgs>),
    /// Count how far an array would shrink files: deduplication, compression, and what stops them
    Reduce(Box<reduce::ReduceArgs>),
    /// Watch a host: processors, disks, memory, network, databases' processes; live, recorded,
    /// replayed
    Watch(Box<watch::WatchArgs>),
    /// Show a recording again, or write its HTML report anew
    Report(ReportArgs),
    /// Compare two recordings: faster, slower, or difference not established
    Compare(CompareArgs),
    /// List the recordings
    Runs,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write the man pages
    Man {
        /// The directory to write them to; it is created
        #[arg(value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },
}

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

/// Arguments of `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// A recording: its directory, its id, or `last`
    pub run: String,
    /// Write the HTML report to this file (`-` for standard output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print only SLOB's `awr_info` columns of a run, heading and values
    #[arg(long, conflicts_with_all = ["html", "json"])]
    pub awr_info: bool,
    /// Show what every layer did from this time after the recording's first tick
    #[arg(long, value_name = "TIME", conflicts_with = "awr_info")]
    pub from: Option<Nanos>,
    /// Show what every layer did up to this time after the recording's first tick
    #[arg(long, value_name = "TIME", conflicts_with = "awr_info")]
    pub to: Option<Nanos>,
    /// Of samples of sessions, show only those whose column says this
    #[arg(long = "where", value_name = "COLUMN=VALUE", conflicts_with_all = ["awr_info", "html"])]
    pub only: Vec<Condition>,
}

impl ReportArgs {
    /// Whether it asks what every layer did in a part of the time.
    pub fn is_of_layers(&self) -> bool {
        self.from.is_some() || self.to.is_some() || !self.only.is_empty()
    }
}

/// Arguments of `compare`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone compare 20260101-… last
  blockstone compare night@..2h night@2h..         before and after, in one recording
  blockstone compare monday@9h..10h tuesday@9h..10h")]
pub struct CompareArgs {
    /// The base: a recording's directory, its id, or `last`; of what was watched also a part of its
    /// time, `night@10m..12m`
    pub a: String,
    /// The one that is compared with it
    pub b: String,
    /// Write an HTML page to this file (`-` for standard output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
}

/// Reads the command line. Help and version go to standard output and end well; anything wrong is
/// one line that says what and one that says where to look.
pub fn parse() -> Result<Cli, Exit> {
    Cli::try_parse().map_err(|error| {
        if !error.use_stderr() || error.kind() == MISSING_VERB {
            let _ = error.print();
            return if error.use_stderr() { Exit::CouldNotRun } else { Exit::Done };
        }
        let text = error.to_string();
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let what = lines.next().unwrap_or("error: the command line cannot be read");
        // Names of missing arguments follow indented on lines of their own.
        let names: Vec<&str> = lines
            .clone()
            .take_while(|line| !line.starts_with("Usage") && !line.starts_with("For more"))
            .filter(|line| !line.starts_with("tip:"))
            .collect();
        let tip = lines.find_map(|line| line.strip_prefix("tip: ")).map(str::to_owned);
        let hint = tip.unwrap_or_else(|| "blockstone --help lists verbs and options".to_owned());
        let what = [&[what][..], &names].concat().join(" ");
        let _ = writeln!(io::stderr(), "{what}\nhint: {hint}");
        Exit::CouldNotRun
    })
}

const MISSING_VERB: clap::error::ErrorKind =
    clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

/// The declarations, for completions and man pages.
pub fn declarations() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_sound() {
        declarations().debug_assert();
    }
}
