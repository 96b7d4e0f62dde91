//! The options of `offload`.

use std::path::PathBuf;
use std::str::FromStr;

use blockstone_base::units::ratio_above_zero;
use blockstone_offload::Unit;
use clap::{Args, Subcommand, ValueHint};

pub use super::engines::args::RunArgs;
pub use super::generate::GenerateArgs;

use crate::choice::{Choice, one_of};
use crate::purpose::Purpose;

/// Arguments of `offload`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone offload account awr.html                  a report of a database
  blockstone offload run --cells 1,2,4 /data           measured on PostgreSQL
  blockstone offload model --cells 6 --scan-rate 1GB --consume-rate 350MB
  blockstone offload account counters.csv --unit GiB   counters of runs
  blockstone offload model --fit counters.csv --unit GiB --cells 6")]
pub struct OffloadArgs {
    /// Action
    #[command(subcommand)]
    pub verb: OffloadVerb,
}

/// The verbs of `offload`.
#[derive(Debug, Subcommand)]
pub enum OffloadVerb {
    /// Show what became of the bytes of runs: skipped, read, filtered, returned, on the wire
    Account(AccountArgs),
    /// Show which part binds, against the number of hosts and against what the storage returns
    Model(Box<ModelArgs>),
    /// Measure it: start servers, ask them with and without a filter at the storage, and count
    Run(Box<RunArgs>),
    /// Write the table of card transactions that `run` measures
    Generate(GenerateArgs),
}

/// Arguments of `offload account`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone offload account awr.html                  a report of a database
  blockstone offload account counters.csv --unit GiB   counters of runs
  blockstone offload account awr.html --link 10GB/s --html bytes.html")]
pub struct AccountArgs {
    /// AWR reports, or tables of counters as CSV; `-` is standard input
    ///
    /// The columns are run, time, instance, statistic, value, unit.
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Input)]
    pub files: Vec<PathBuf>,
    /// Unit of the counters of bytes in a CSV without a column of units [default: B]
    #[arg(long, value_parser = one_of(UNITS))]
    pub unit: Option<Unit>,
    /// Bandwidth of the link of one host: the report says how much of it was used
    #[arg(long, value_name = "RATE")]
    pub link: Option<Rate>,
}

/// Arguments of `offload model`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone offload model --fit counters.csv --unit GiB --cells 6
  blockstone offload model --cells 6 --scan-rate 1GB --consume-rate 350MB
  blockstone offload model --fit runs.json --cells 4   what `offload run` found")]
pub struct ModelArgs {
    /// Take rates from runs that were measured
    ///
    /// The JSON document of `offload account` or `offload run`, or what `offload account` reads.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Input)]
    pub fit: Vec<PathBuf>,
    /// Unit of the counters of bytes in a CSV without a column of units [default: B]
    #[arg(long, value_parser = one_of(UNITS), requires = "fit")]
    pub unit: Option<Unit>,
    /// Share of what is read that crosses the wire
    ///
    /// The default is the greatest of the runs, or 100%.
    #[arg(long, value_name = "PERCENT", value_parser = ratio_above_zero)]
    pub returned: Option<f64>,
    /// Bytes that are to be read: the report says how long that takes
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Rate>,
    #[command(flatten)]
    pub cells: CellArgs,
    #[command(flatten)]
    pub hosts: HostArgs,
    /// Bandwidth of the network between cells and hosts
    #[arg(long, value_name = "RATE", help_heading = "Links")]
    pub fabric: Option<Rate>,
    /// Bandwidth of the link of one host
    #[arg(long, value_name = "RATE", help_heading = "Links")]
    pub host_link: Option<Rate>,
    /// Bandwidth of the link of one cell
    #[arg(long, value_name = "RATE", help_heading = "Links")]
    pub cell_link: Option<Rate>,
}

/// Storage servers.
#[derive(Args, Debug)]
#[command(next_help_heading = "Cells")]
pub struct CellArgs {
    /// Storage servers
    ///
    /// Runs that do not say how many worked are taken to have used all of them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    #[arg(default_value_t = 1)]
    pub cells: u32,
    /// Bytes that one cell reads in a second
    #[arg(long, value_name = "RATE")]
    pub scan_rate: Option<Rate>,
    /// Bytes read that the processors of one cell filter in a second
    #[arg(long, value_name = "RATE")]
    pub cell_cpu_rate: Option<Rate>,
    /// Disks, or other parts, of all cells: the report says what each of them does
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub disks: Option<u32>,
}

/// Hosts, which take the rows.
#[derive(Args, Debug)]
#[command(next_help_heading = "Hosts")]
pub struct HostArgs {
    /// Hosts that there are now [default: as many as in the runs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub hosts: Option<u32>,
    /// Hosts up to which throughput is shown [default: until the storage binds]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub hosts_max: Option<u32>,
    /// Bytes from the wire that one host consumes in a second
    #[arg(long, value_name = "RATE")]
    pub consume_rate: Option<Rate>,
    /// Processors that cells and hosts share, if all of them run on one machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    #[arg(requires = "fit")]
    pub processors: Option<u32>,
}

/// Bytes per second: `1.6GB`, `333.6MiB/s`. A single letter is a binary suffix, as in sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.trim().trim_end_matches("/s").trim();
        let end = plain.find(|it: char| it.is_ascii_alphabetic()).unwrap_or(plain.len());
        let (number, suffix) = plain.split_at(end);
        let unit = match suffix.to_ascii_lowercase().as_str() {
            "b" => Some(Unit::Bytes),
            "k" => Some(Unit::Kib),
            "m" => Some(Unit::Mib),
            "g" => Some(Unit::Gib),
            "t" => Some(Unit::Tib),
            name => Unit::ALL.iter().copied().find(|it| it.name().eq_ignore_ascii_case(name)),
        };
        let number = number.trim().parse::<f64>().ok();
        let rate = number.zip(unit).map(|(number, unit)| number * unit.bytes());
        let rate = rate.filter(|it| *it > 0.0 && *it < 1e18);
        rate.map(Self)
            .ok_or_else(|| "write bytes with their unit, as 1.6GB or 333.6MiB/s".to_owned())
    }
}

const UNITS: [Choice<Unit>; Unit::ALL.len()] = {
    let mut choices = [("", "", Unit::Bytes); Unit::ALL.len()];
    let mut at = 0;
    while at < choices.len() {
        choices[at] = (Unit::ALL[at].name(), "", Unit::ALL[at]);
        at += 1;
    }
    choices
};
