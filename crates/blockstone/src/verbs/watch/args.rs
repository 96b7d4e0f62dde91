//! The options of `watch`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use blockstone_report::render::csv::ticks::Shape;
use blockstone_view::Condition;
use blockstone_watch::{WatchOptions, host_name};
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, ValueEnum, ValueHint};

use crate::instants::When;
use crate::purpose::Purpose;

/// Options of a watch, which do not apply to an import of files.
const IMPORTING: [&str; 18] = [
    "replay",
    "find",
    "who",
    "interval_ns",
    "duration_ns",
    "db",
    "sample_ns",
    "no_bpf",
    "pid",
    "group",
    "listen",
    "once",
    "lines",
    "csv",
    "view",
    "profile",
    "keep_ns",
    "active_set",
];

/// Arguments of `watch`.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("printed").args(["once", "lines", "csv"]).multiple(true)),
          after_help = "\
Examples:
  blockstone watch                                     this host, live
  blockstone watch --once                              one second, as text
  blockstone watch --who --once --for 5s               who writes to this disk?
  blockstone watch --db auto                           databases of this host
  blockstone watch --db postgres://me@localhost/bench
  blockstone watch --db postgres://me@db1/a --db postgres://me@db1/b
  blockstone watch --db run:last                       a run in progress
  blockstone watch --once --for 5s --times 5 --view snapper,session-waits
  blockstone watch --lines                             a line each second
  blockstone watch --lines --view disks --rows 4 --interval 10s | tee disks.log
  blockstone watch --csv disks.csv --view disks        for a spreadsheet
  blockstone watch --replay night --csv - --csv-shape long
  blockstone watch --once --json | jq .views.disks
  blockstone watch --once --for 10s --profile --view cpu-by-role,cpu-by-function
  blockstone watch --active-set /data --interval 1m --lines --view active-set
  blockstone watch --group backup=pg_dump --pid 4711
  blockstone watch --record night --for 8h             needs no terminal
  blockstone watch --record always --keep 7d           the last week
  blockstone watch --import db1*.raw.gz --record old   collectl, sar, iostat
  blockstone watch --import awr/ --record load         AWR, Statspack
  blockstone watch --replay night                      forwards and backwards
  blockstone watch --replay night --once --from 10m --to 12m --view disks
  blockstone watch --replay night --once --where event=DataFileRead")]
pub struct WatchArgs {
    #[command(flatten)]
    pub options: WatchOptions,
    /// Instead of watching, convert these files of collectl, sar, iostat, nmon, dstat or vmstat,
    /// reports of AWR, Statspack and AWR-Miner, CSV, or archives and directories of them (see
    /// `blockstone help import.md`), to a recording
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::AnyPath,
          requires = "record", help_heading = "Recordings",
          conflicts_with_all = IMPORTING)]
    #[arg(add = Purpose::Input)]
    pub import: Vec<PathBuf>,
    /// With --import of a database's reports: keep names of hosts, of which otherwise only a hash
    /// is kept
    #[arg(long, requires = "import", help_heading = "Recordings")]
    #[arg(conflicts_with_all = IMPORTING)]
    pub keep_names: bool,
    /// Show this recording: its directory, its id, or `last`
    #[arg(long, value_name = "RUN", help_heading = "Recordings")]
    #[arg(add = Purpose::Input)]
    pub replay: Option<String>,
    /// Print the figures of --for, or of one second, and exit
    ///
    /// As text, or as --json or --csv says.
    #[arg(long, help_heading = "Output")]
    pub once: bool,
    /// With --once, this many intervals one after the other, each printed when it ends
    #[arg(long, value_name = "N", default_value_t = 1, requires = "once", value_parser = times,
          conflicts_with_all = ["html", "replay"], help_heading = "Output")]
    pub times: u64,
    /// Print a line for each --interval
    ///
    /// It begins with the time. This is the default if standard output is not a terminal and
    /// nothing else is asked for.
    #[arg(long, conflicts_with = "once", help_heading = "Output")]
    pub lines: bool,
    /// Lines at every tick: the first N rows of each table, with the tables side by side
    #[arg(long, value_name = "N", default_value_t = 1, requires = "lines", conflicts_with = "once",
          value_parser = rows, help_heading = "Output")]
    pub rows: usize,
    /// Write a line for each --interval to this file as CSV
    ///
    /// Each line has its time first. `-`, or no name, is standard output. With --once: print one
    /// table as CSV, the one named after `=`, or the first.
    // Replaces the option of the same name that all verbs have.
    #[arg(id = "csv", long = "csv", value_name = "FILE|TABLE", num_args = 0..=1,
          default_missing_value = "", conflicts_with = "json", value_hint = ValueHint::FilePath,
          help_heading = "Output")]
    #[arg(add = Purpose::Output)]
    pub csv: Option<String>,
    /// A line each tick with a column for each figure, for gnuplot, or a line each figure with the
    /// names of view, row and figure
    #[arg(long, value_enum, value_name = "SHAPE", default_value_t = CsvShape::Wide,
          requires = "csv", conflicts_with = "once", help_heading = "Output")]
    #[arg(conflicts_with = "json")]
    pub csv_shape: CsvShape,
    /// Replay from this time on: time since the start (10m) or clock time (18:45:10,
    /// 2026-11-24T18:45+01:00)
    #[arg(long, value_name = "TIME", requires = "replay", help_heading = "Recordings")]
    pub from: Option<When>,
    /// Replay up to this time, given in the same way
    #[arg(long, value_name = "TIME", requires = "replay", help_heading = "Recordings")]
    pub to: Option<When>,
    /// Show only these tables, such as disks
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = views(),
          help_heading = "Output")]
    pub view: Vec<String>,
    /// Use only session samples with this value in this column
    #[arg(
        long = "where",
        value_name = "COLUMN=VALUE",
        requires = "printed",
        help_heading = "Output"
    )]
    pub only: Vec<Condition>,
    /// Serve metrics for Prometheus at this address
    ///
    /// They are under `/metrics`.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        help_heading = "Prometheus",
        conflicts_with = "replay"
    )]
    pub listen: Option<SocketAddr>,
    /// Allow --listen on an address that other hosts can reach; they need the token
    #[arg(long, requires = "listen_token_file", help_heading = "Prometheus")]
    #[arg(conflicts_with = "replay")]
    pub allow_remote: bool,
    /// Serve only requests with the token in this file, which other users must not be able to read
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "listen",
          help_heading = "Prometheus")]
    #[arg(add = Purpose::Input)]
    #[arg(conflicts_with = "replay")]
    pub listen_token_file: Option<PathBuf>,
    /// Also serve requests to this name or address of the host, besides `localhost` and the address
    /// that is connected to
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = host_name,
          requires = "listen", help_heading = "Prometheus")]
    #[arg(conflicts_with = "replay")]
    pub listen_host: Vec<String>,
    /// Serve the paths of files too; without it, metrics of files are sums
    #[arg(long, requires = "listen", help_heading = "Prometheus")]
    #[arg(conflicts_with = "replay")]
    pub listen_paths: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum CsvShape {
    /// A line each tick; the rows of the first tick, in a replay all rows, have columns
    Wide,
    /// A line each figure
    Long,
}

impl From<CsvShape> for Shape {
    fn from(shape: CsvShape) -> Self {
        match shape {
            CsvShape::Wide => Self::Wide,
            CsvShape::Long => Self::Long,
        }
    }
}

impl WatchArgs {
    /// Whether the view of processes and files is wanted.
    pub fn wants_who(&self) -> bool {
        self.view.iter().any(|name| name == blockstone_view::WHO.name)
    }

    /// File into which every tick is written as CSV; `-` is standard output.
    pub fn csv_file(&self) -> Option<&Path> {
        let name = self.csv.as_deref().filter(|_| !self.once)?;
        Some(Path::new(if name.is_empty() { "-" } else { name }))
    }
}

fn times(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("there is at least one interval".to_owned()),
        Ok(times) => Ok(times),
        Err(error) => Err(error.to_string()),
    }
}

fn rows(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a tick has at least one line".to_owned()),
        Ok(rows) => Ok(rows),
        Err(error) => Err(error.to_string()),
    }
}

fn views() -> PossibleValuesParser {
    let value =
        |view: &&blockstone_view::View| clap::builder::PossibleValue::new(view.name).help(view.doc);
    PossibleValuesParser::new(blockstone_view::registry::ALL.iter().map(value))
}
