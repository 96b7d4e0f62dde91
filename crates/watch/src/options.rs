//! The options of a watch, each declared once: the command line fills them in, and the watch reads
//! them. The manifest stores the interval and what is kept; the others show in what was recorded.

use std::path::PathBuf;

use blockstone_base::units::Nanos;
use blockstone_measure::Purpose;
use blockstone_probe::profile::ProfileSpec;
use clap::{ArgGroup, Args, ValueHint};
use regex::Regex;
use serde::Serialize;

/// Default time between two readings.
const INTERVAL: Nanos = Nanos::millis(1_000);
/// A recording that keeps less would be little more than its last segment.
pub const KEEP_MIN: Nanos = Nanos::millis(60_000);
/// Default time between two samples of sessions.
const SAMPLE: Nanos = Nanos::millis(100);

/// Options of a watch. The text on each is its help.
#[derive(Args, Clone, Debug, Serialize)]
#[command(group(ArgGroup::new("databases").args(["db", "find"]).multiple(true)))]
pub struct WatchOptions {
    /// Time between two readings of all counters
    #[arg(long = "interval", default_value = "1s", value_name = "TIME", value_parser = interval)]
    #[arg(conflicts_with = "replay")]
    pub interval_ns: Nanos,
    /// Stop after this time
    #[arg(long = "for", aliases = ["run-time", "duration"], value_name = "TIME")]
    #[arg(conflicts_with = "replay")]
    #[serde(skip)]
    pub duration_ns: Option<Nanos>,
    /// Also watch this database; `auto`: the servers of this host
    ///
    /// `postgres://user@host/database`, `mysql://user@host`, a run in progress: `run:last`, or
    /// `auto`: all of this host that let this user in through a socket, without a password.
    /// Several: once each.
    #[arg(long, value_name = "URL", help_heading = "Sources", conflicts_with = "replay")]
    #[serde(skip)]
    pub db: Vec<String>,
    /// The same as --db auto
    #[arg(long, help_heading = "Sources", conflicts_with = "replay")]
    #[serde(skip)]
    pub find: bool,
    /// Take the password of the databases from the first line of this file, which must not be
    /// readable by others
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "db",
          help_heading = "Sources")]
    #[arg(add = Purpose::Input)]
    #[arg(conflicts_with = "replay")]
    #[serde(skip)]
    pub password_file: Option<PathBuf>,
    /// Time between two samples of the sessions of a database
    #[arg(long = "sample", default_value = "100ms", value_name = "TIME", value_parser = interval,
          requires = "databases", conflicts_with = "replay",
          help_heading = "Sources")]
    #[serde(skip)]
    pub sample_ns: Nanos,
    /// Do not load the BPF programs that count I/O by role and file
    #[arg(long, help_heading = "Sources", conflicts_with = "replay")]
    #[serde(skip)]
    pub no_bpf: bool,
    /// Sample what the processors execute: processor time by role, module and kernel function
    #[arg(long, help_heading = "Sources", conflicts_with = "replay")]
    #[serde(skip)]
    pub profile: bool,
    /// Samples per second and processor
    #[arg(long, value_name = "HZ", default_value_t = ProfileSpec::PER_SECOND,
          value_parser = clap::value_parser!(u32).range(1..=5000), requires = "profile",
          help_heading = "Sources")]
    #[arg(conflicts_with = "replay")]
    #[serde(skip)]
    pub profile_hz: u32,
    /// Count which parts of devices and files are read and written, from one tick to the next, on
    /// all devices, or only on the devices that these paths name or lie on (views active-set and
    /// cache-curve)
    #[arg(long, value_name = "PATH", num_args = 0.., value_delimiter = ',',
          value_hint = ValueHint::AnyPath, help_heading = "Sources", conflicts_with = "replay")]
    #[arg(add = Purpose::Input)]
    #[serde(skip)]
    pub active_set: Option<Vec<PathBuf>>,
    /// Also watch these processes
    #[arg(
        long,
        value_name = "PID",
        value_delimiter = ',',
        help_heading = "Sources",
        conflicts_with = "replay"
    )]
    #[serde(skip)]
    pub pid: Vec<u32>,
    /// Also watch processes whose command line matches, under this name
    #[arg(long, value_name = "NAME=REGEX", value_parser = group, help_heading = "Sources",
          conflicts_with = "replay")]
    #[serde(skip)]
    pub group: Vec<(String, Regex)>,
    /// Record to this directory (new or empty)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath,
          help_heading = "Recordings", conflicts_with = "replay")]
    #[arg(add = Purpose::Directory)]
    #[serde(skip)]
    pub record: Option<PathBuf>,
    /// Keep at least this much of the past in the recording, and remove what is older, in pieces of
    /// at most 5 minutes
    #[arg(long = "keep", value_name = "TIME", value_parser = keep, requires = "record",
          help_heading = "Recordings")]
    #[arg(conflicts_with = "replay")]
    pub keep_ns: Option<Nanos>,
    /// Show who reads and writes on which disk
    ///
    /// By process and file (view who). Counts the system calls of all processes, to charge what the
    /// kernel writes later to those who wrote it.
    #[arg(long, conflicts_with = "view", help_heading = "Output")]
    #[serde(skip)]
    pub who: bool,
}

/// Kernel counts by role and file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    Off,
    Requests,
    /// Requests to devices, and system calls of the watched processes.
    Calls,
}

impl WatchOptions {
    pub fn kernel(&self) -> Kernel {
        match (self.no_bpf, !self.db.is_empty() || self.find || !self.pid.is_empty() || self.who) {
            (true, _) => Kernel::Off,
            (false, false) => Kernel::Requests,
            (false, true) => Kernel::Calls,
        }
    }
}

/// The values that a command line without these options has.
impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            interval_ns: INTERVAL,
            duration_ns: None,
            db: Vec::new(),
            find: false,
            password_file: None,
            sample_ns: SAMPLE,
            no_bpf: false,
            profile: false,
            profile_hz: ProfileSpec::PER_SECOND,
            active_set: None,
            pid: Vec::new(),
            group: Vec::new(),
            record: None,
            keep_ns: None,
            who: false,
        }
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

#[cfg(test)]
mod tests {
    use clap::{Arg, Command, FromArgMatches as _};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_command_line() {
        let command = WatchOptions::augment_args(Command::new("watch").no_binary_name(true))
            // Options of the verb that are named in conflicts.
            .args(["replay", "view"].map(Arg::new));
        let given = WatchOptions::from_arg_matches(&command.get_matches_from([""; 0])).unwrap();
        assert_eq!(format!("{given:?}"), format!("{:?}", WatchOptions::default()));
        assert_eq!(json!(given), json!({ "interval_ns": 1_000_000_000, "keep_ns": null }));
    }

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
