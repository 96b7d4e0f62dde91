//! The options of `watch`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use blockstone_base::units::Nanos;
use blockstone_probe::profile::ProfileSpec;
use blockstone_report::render::csv::ticks::Shape;
use blockstone_view::Condition;
use blockstone_watch::{KEEP_MIN, host_name};
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use regex::Regex;

use crate::instants::When;
use crate::purpose::Purpose;

/// Options of a watch, which do not apply to an import of files.
const IMPORTING: [&str; 16] = [
    "replay",
    "interval",
    "duration",
    "db",
    "sample",
    "no_bpf",
    "pid",
    "group",
    "listen",
    "once",
    "lines",
    "csv",
    "view",
    "profile",
    "keep",
    "active_set",
];

/// Arguments of `watch`.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("printed").args(["once", "lines", "csv"]).multiple(true)),
          after_help = "\
Examples:
  blockstone watch                                 this host, live
  blockstone watch --once                          one second, as text
  blockstone watch --once --for 5s --times 5 --view snapper,session-waits    five samples of 5 s
  blockstone watch --lines                         a line each second, without --view a summary
  blockstone watch --lines --view disks --rows 4 --interval 10s | tee disks.log
  blockstone watch --csv disks.csv --view disks --for 10m       for gnuplot or a spreadsheet
  blockstone watch --replay night --csv - --csv-shape long      all rows, a line each value
  blockstone watch --once --json | jq .views.disks
  blockstone watch --db postgres://me@localhost/bench
  blockstone watch --db postgres://me@localhost:5432/a --db postgres://me@localhost:5433/b
  blockstone watch --db run:last                   a `blockstone run` in progress
  blockstone watch --once --for 10s --profile --view cpu-by-role,cpu-by-function
  blockstone watch --active-set /data --interval 1m --lines --view active-set --rows 8
  blockstone watch --group backup=pg_dump --pid 4711
  blockstone watch --record night --for 8h         record; needs no terminal
  blockstone watch --record always --keep 7d       the last week, whenever something happened
  blockstone watch --import db1-*.raw.gz --record old    convert files of collectl, sar or iostat
  blockstone watch --import awr/ --record load     convert reports of AWR or Statspack
  blockstone watch --replay night                  show a recording, forwards and backwards
  blockstone watch --replay night --once --from 10m --to 12m --view disks
  blockstone watch --replay night --once --where event=DataFileRead --view sampled-sessions")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct WatchArgs {
    /// Time between two readings of all counters
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = interval)]
    pub interval: Nanos,
    /// Stop after this time
    #[arg(long = "for", aliases = ["run-time", "duration"], value_name = "TIME")]
    #[arg(conflicts_with = "replay")]
    pub duration: Option<Nanos>,
    /// Also watch this database: `postgres://user@host/database`, `mysql://user@host`, or a run in
    /// progress: `run:last`. Several: once each
    #[arg(long, value_name = "URL", help_heading = "Sources", conflicts_with = "replay")]
    pub db: Vec<String>,
    /// Take the password of the databases from the first line of this file, which must not be
    /// readable by others
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "db",
          help_heading = "Sources")]
    #[arg(add = Purpose::Input)]
    #[arg(conflicts_with = "replay")]
    pub password_file: Option<PathBuf>,
    /// Time between two samples of the sessions of a database
    #[arg(long, default_value = "100ms", value_name = "TIME", value_parser = interval,
          help_heading = "Sources")]
    pub sample: Nanos,
    /// Do not load the BPF programs that count I/O by role and file
    #[arg(long, help_heading = "Sources", conflicts_with = "replay")]
    pub no_bpf: bool,
    /// Sample what the processors execute: processor time by role, module and kernel function
    #[arg(long, help_heading = "Sources", conflicts_with = "replay")]
    pub profile: bool,
    /// Samples per second and processor
    #[arg(long, value_name = "HZ", default_value_t = ProfileSpec::PER_SECOND,
          value_parser = clap::value_parser!(u32).range(1..=5000), requires = "profile",
          help_heading = "Sources")]
    #[arg(conflicts_with = "replay")]
    pub profile_hz: u32,
    /// Count which parts of devices and files are read and written, from one tick to the next, on
    /// all devices or on those that are or hold these paths (views active-set and cache-curve)
    #[arg(long, value_name = "PATH", num_args = 0.., value_delimiter = ',',
          value_hint = ValueHint::AnyPath, help_heading = "Sources", conflicts_with = "replay")]
    #[arg(add = Purpose::Input)]
    pub active_set: Option<Vec<PathBuf>>,
    /// Also watch these processes
    #[arg(
        long,
        value_name = "PID",
        value_delimiter = ',',
        help_heading = "Sources",
        conflicts_with = "replay"
    )]
    pub pid: Vec<u32>,
    /// Also watch processes whose command line matches, under this name
    #[arg(long, value_name = "NAME=REGEX", value_parser = group, help_heading = "Sources",
          conflicts_with = "replay")]
    pub group: Vec<(String, Regex)>,
    /// Record to this directory (new or empty)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath,
          help_heading = "Output", conflicts_with = "replay")]
    #[arg(add = Purpose::Directory)]
    pub record: Option<PathBuf>,
    /// Keep at least this much of the past in the recording, and remove what is older, in pieces of
    /// at most 5 minutes
    #[arg(long, value_name = "TIME", value_parser = keep, requires = "record",
          help_heading = "Output")]
    #[arg(conflicts_with = "replay")]
    pub keep: Option<Nanos>,
    /// Instead of watching, convert these files of collectl (raw), sar (sadf -j) or iostat, or
    /// reports of AWR, Statspack and AWR-Miner and CSV (see docs/import.md), to a recording
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath,
          requires = "record", help_heading = "Output",
          conflicts_with_all = IMPORTING)]
    #[arg(add = Purpose::Input)]
    pub import: Vec<PathBuf>,
    /// With --import of a database's reports: keep names of hosts, of which otherwise only a hash
    /// is kept
    #[arg(long, requires = "import", help_heading = "Output")]
    #[arg(conflicts_with_all = IMPORTING)]
    pub keep_names: bool,
    /// Show a recording: its directory, its id, or `last`
    #[arg(long, value_name = "RUN", help_heading = "Output")]
    #[arg(add = Purpose::Input)]
    pub replay: Option<String>,
    /// Print one interval and exit: as text, or as --json or --csv says
    #[arg(long, help_heading = "Output")]
    pub once: bool,
    /// With --once, this many intervals one after the other, each printed when it ends
    #[arg(long, value_name = "N", default_value_t = 1, requires = "once", value_parser = times,
          conflicts_with_all = ["html", "replay"], help_heading = "Output")]
    pub times: u64,
    /// Print a line at every tick, which begins with the time; this is the default if standard
    /// output is not a terminal and nothing else is asked for
    #[arg(long, conflicts_with = "once", help_heading = "Output")]
    pub lines: bool,
    /// Lines at every tick: the first rows of each table side by side, below each other
    #[arg(long, value_name = "N", default_value_t = 1, requires = "lines", conflicts_with = "once",
          value_parser = rows, help_heading = "Output")]
    pub rows: usize,
    /// Write every tick to this file as CSV (`-`, or no name: to standard output), each line with
    /// its time first. With --once: print one table as CSV, the one named after `=`, or the first
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
    #[arg(long, value_name = "TIME", requires = "replay", help_heading = "Output")]
    pub from: Option<When>,
    /// Replay up to this time, given in the same way
    #[arg(long, value_name = "TIME", requires = "replay", help_heading = "Output")]
    pub to: Option<When>,
    /// Show only these tables
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
    /// Serve metrics for Prometheus at this address, under `/metrics`
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Output", conflicts_with = "replay")]
    pub listen: Option<SocketAddr>,
    /// Allow --listen on an address that other hosts can reach; they need the token
    #[arg(long, requires = "listen_token_file", help_heading = "Output")]
    #[arg(conflicts_with = "replay")]
    pub allow_remote: bool,
    /// Serve only requests with the token in this file, which other users must not be able to read
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "listen",
          help_heading = "Output")]
    #[arg(add = Purpose::Input)]
    #[arg(conflicts_with = "replay")]
    pub listen_token_file: Option<PathBuf>,
    /// Also serve requests to this name or address of the host, besides `localhost` and the address
    /// that is connected to
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = host_name,
          requires = "listen", help_heading = "Output")]
    #[arg(conflicts_with = "replay")]
    pub listen_host: Vec<String>,
    /// Serve the paths of files too; without it, metrics of files are sums
    #[arg(long, requires = "listen", help_heading = "Output")]
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
    /// File into which every tick is written as CSV; `-` is standard output.
    pub fn csv_file(&self) -> Option<&Path> {
        let name = self.csv.as_deref().filter(|_| !self.once)?;
        Some(Path::new(if name.is_empty() { "-" } else { name }))
    }
}

fn interval(text: &str) -> Result<Nanos, String> {
    let interval: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if interval < Nanos::millis(100) {
        return Err("the counters of the kernel are too coarse for less than 100ms".to_owned());
    }
    Ok(interval)
}

fn keep(text: &str) -> Result<Nanos, String> {
    let keep: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if keep < KEEP_MIN {
        return Err(format!("a recording keeps at least {KEEP_MIN}"));
    }
    Ok(keep)
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

fn group(text: &str) -> Result<(String, Regex), String> {
    let (name, pattern) = text.split_once('=').ok_or("it must be NAME=REGEX")?;
    if name.is_empty() {
        return Err("the name before = is missing".to_owned());
    }
    let pattern = Regex::new(pattern).map_err(|error| {
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })?;
    Ok((name.to_owned(), pattern))
}

fn views() -> PossibleValuesParser {
    let value =
        |view: &&blockstone_view::View| clap::builder::PossibleValue::new(view.name).help(view.doc);
    PossibleValuesParser::new(blockstone_view::registry::ALL.iter().map(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_a_name_and_a_pattern() {
        let (name, pattern) = group("backup=pg_(dump|restore)").unwrap();
        assert!(name == "backup" && pattern.is_match("/usr/bin/pg_dump db"));
        assert!(group("backup").unwrap_err().contains("NAME=REGEX"));
        assert!(group("=x").is_err());
        assert!(!group("a=(").unwrap_err().contains('\n'));
    }

    #[test]
    fn intervals_shorter_than_the_kernel_counts_are_refused() {
        assert!(interval("10ms").is_err() && interval("100ms").is_ok() && interval("x").is_err());
    }
}
