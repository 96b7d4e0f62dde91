//! The options of `watch`.

use std::net::SocketAddr;
use std::path::PathBuf;

use blockstone_base::units::Nanos;
use blockstone_probe::profile::ProfileSpec;
use blockstone_view::Condition;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use regex::Regex;

/// Arguments of `watch`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone watch                                 this host, live
  blockstone watch --once                          one second of it, as text
  blockstone watch --once --json | jq .views.disks
  blockstone watch --db postgres://me@localhost/bench
  blockstone watch --db run:last                   a `blockstone run` in progress
  blockstone watch --once --for 10s --profile --view cpu-by-role,cpu-by-function
  blockstone watch --group backup=pg_dump --pid 4711
  blockstone watch --record night --for 8h         recorded; also without a terminal
  blockstone watch --import db1-*.raw.gz --record old    what collectl, sar or iostat kept
  blockstone watch --replay night                  the same again, forwards and backwards
  blockstone watch --replay night --once --from 10m --to 12m --view disks
  blockstone watch --replay night --once --where event=DataFileRead --view sampled-sessions")]
pub struct WatchArgs {
    /// Time between two looks
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = interval)]
    pub interval: Nanos,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", conflicts_with = "replay")]
    pub duration: Option<Nanos>,
    /// Also watch this database: `postgres://user@host/database`, `mysql://user@host`, or a run in
    /// progress: `run:last`
    #[arg(long, value_name = "URL", help_heading = "What is watched", conflicts_with = "replay")]
    pub db: Option<String>,
    /// Time between two samples of the database's sessions
    #[arg(long, default_value = "100ms", value_name = "TIME", value_parser = interval,
          help_heading = "What is watched")]
    pub sample: Nanos,
    /// Do not have the kernel count I/O by role and file
    #[arg(long, help_heading = "What is watched", conflicts_with = "replay")]
    pub no_bpf: bool,
    /// Sample what processors execute: processor time by role, module and function of the kernel
    #[arg(long, help_heading = "What is watched", conflicts_with = "replay")]
    pub profile: bool,
    /// Samples a second of each processor
    #[arg(long, value_name = "HZ", default_value_t = ProfileSpec::PER_SECOND,
          value_parser = clap::value_parser!(u32).range(1..=5000), requires = "profile",
          help_heading = "What is watched")]
    pub profile_hz: u32,
    /// Also watch these processes
    #[arg(
        long,
        value_name = "PID",
        value_delimiter = ',',
        help_heading = "What is watched",
        conflicts_with = "replay"
    )]
    pub pid: Vec<u32>,
    /// Also watch processes whose command line matches, under this name
    #[arg(long, value_name = "NAME=REGEX", value_parser = group, help_heading = "What is watched",
          conflicts_with = "replay")]
    pub group: Vec<(String, Regex)>,
    /// Record to this directory (new or empty)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath,
          help_heading = "Where it goes", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Do not watch: record what these files of collectl (raw), sar (sadf -j) or iostat hold
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath,
          requires = "record", help_heading = "Where it goes",
          conflicts_with_all = ["replay", "interval", "duration", "db", "sample", "no_bpf", "pid",
                                "group", "listen", "once", "view", "profile"])]
    pub import: Vec<PathBuf>,
    /// Show a recording: its directory, its id, or `last`
    #[arg(long, value_name = "RUN", help_heading = "Where it goes")]
    pub replay: Option<String>,
    /// Print one interval as text, or with --json as a document, and end
    #[arg(long, help_heading = "Where it goes")]
    pub once: bool,
    /// Of a replay: from this time after its beginning
    #[arg(long, value_name = "TIME", requires = "replay", help_heading = "Where it goes")]
    pub from: Option<Nanos>,
    /// Of a replay: to this time after its beginning
    #[arg(long, value_name = "TIME", requires = "replay", help_heading = "Where it goes")]
    pub to: Option<Nanos>,
    /// Show only these tables
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = views(),
          help_heading = "Where it goes")]
    pub view: Vec<String>,
    /// Of samples of sessions, look only at those whose column says this
    #[arg(
        long = "where",
        value_name = "COLUMN=VALUE",
        requires = "once",
        help_heading = "Where it goes"
    )]
    pub only: Vec<Condition>,
    /// Answer Prometheus at this address, below `/metrics`
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        help_heading = "Where it goes",
        conflicts_with = "replay"
    )]
    pub listen: Option<SocketAddr>,
    /// Allow --listen on an address that other hosts reach
    #[arg(long, requires = "listen", help_heading = "Where it goes")]
    pub allow_remote: bool,
}

fn interval(text: &str) -> Result<Nanos, String> {
    let interval: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if interval < Nanos::millis(100) {
        return Err("counters of the kernel are too coarse for less than 100ms".to_owned());
    }
    Ok(interval)
}

fn group(text: &str) -> Result<(String, Regex), String> {
    let (name, pattern) = text.split_once('=').ok_or("it must be NAME=REGEX")?;
    if name.is_empty() {
        return Err("a name must stand before the =".to_owned());
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
