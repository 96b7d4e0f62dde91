//! The options of `size`.

use std::path::PathBuf;
use std::str::FromStr;

use blockstone_base::units::{Nanos, positive, share};
use blockstone_size::hardware::Redundancy;
use blockstone_size::hardware::disk::{ENTRIES, reads_by_index};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};

use crate::purpose::Purpose;

/// Percentiles by which hardware is sized.
pub const PERCENTILES: [&str; 4] = ["p50", "p95", "p99", "max"];
/// Options that apply to a need that was observed only.
const OBSERVED: [&str; 9] = [
    "paths",
    "import",
    "merge",
    "keep_names",
    "save",
    "percentile",
    "hours",
    "weekdays",
    "month_end",
];

/// Arguments of `size`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone size awr*.html --redundancy normal         AWR or Statspack
  blockstone size last                                  of watch or run
  blockstone size awr*.html --on /new --p99 5ms         is it enough?
  blockstone size awr-hist-*.out --hours 9-17 --weekdays
  blockstone size a.out b.out --merge                   several databases
  blockstone size sar.txt --disk 180iops,600gb --cell 12disks
  blockstone size --iops 10000 --reads 50% --redundancy normal --disk 180iops
  blockstone size --units 8 --disk 125iops --reads 0%   what eight disks carry
  blockstone size awr*.html --html size.html            with charts
  blockstone size --iops 5000 --reads 80% --on last     of a recording
  blockstone size --db postgres://localhost/shop --for 10m --on /new/storage
  blockstone size awr*.html --verify run:last")]
pub struct SizeArgs {
    /// Files of AWR, Statspack, sar, iostat and others, or recordings
    ///
    /// Files of AWR, Statspack, AWR-Miner, sar, iostat, collectl, nmon, dstat, vmstat or CSV,
    /// compressed or not; recordings; directories and archives of them (tar, zip).
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Input)]
    pub paths: Vec<PathBuf>,
    /// The same as PATH
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Input)]
    pub import: Vec<PathBuf>,
    /// Size several databases for the same storage
    #[arg(long)]
    pub merge: bool,
    /// Keep names of hosts and the text of statements
    #[arg(long)]
    pub keep_names: bool,
    /// Also store what was imported as a recording in this directory (new or empty)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Directory)]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub stated: StatedArgs,
    #[command(flatten)]
    pub need: NeedArgs,
    #[command(flatten)]
    pub hardware: HardwareArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Does this storage carry it? A path or a recording
    ///
    /// On a path, the need is driven at the percentile, at its maximum, and then as fast as the
    /// storage goes. A recording is one of calibrate or run on that storage.
    #[arg(long, value_name = "PATH|RECORDING", value_hint = ValueHint::AnyPath,
          help_heading = "Answer")]
    #[arg(add = Purpose::Scratch)]
    pub on: Option<String>,
    /// Length of each load of --on
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30s",
        requires = "on",
        help_heading = "Answer"
    )]
    pub drive_for: Nanos,
    /// Also show what faster storage would gain: the database time of a recording of run, with the
    /// reads and commits of --on in place of its own, and what would not change
    #[arg(long, requires = "on", help_heading = "Answer")]
    pub db_time: bool,
    /// Name the block device of --on a second time, to allow its content to be destroyed
    #[arg(long, value_name = "DEVICE", requires = "on", help_heading = "Answer")]
    #[arg(add = Purpose::Device)]
    pub destroy: Option<PathBuf>,
    /// Compare a recording of run with the need: whether it did the I/O, and in what time
    #[arg(long, value_name = "RUN", value_hint = ValueHint::AnyPath, help_heading = "Answer")]
    #[arg(add = Purpose::Input)]
    pub verify: Option<String>,
}

/// Databases that are watched first, and then sized.
#[derive(Args, Debug)]
#[command(next_help_heading = "A database that runs")]
pub struct LiveArgs {
    /// Watch this database, and size the recording
    ///
    /// An address as `watch --db` takes it. Several: once each.
    #[arg(long, value_name = "URL")]
    pub db: Vec<String>,
    /// Time for which it is watched
    #[arg(long = "for", value_name = "TIME", default_value = "10m", requires = "db")]
    pub watch_for: Nanos,
    /// Take the password of the databases from the first line of this file, which must not be
    /// readable by others
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "db")]
    #[arg(add = Purpose::Input)]
    pub password_file: Option<PathBuf>,
}

/// A need that nothing was observed of.
#[derive(Args, Debug)]
#[command(next_help_heading = "A stated need, in place of PATH")]
pub struct StatedArgs {
    /// Requests of the database a second
    #[arg(long, value_name = "IOPS", value_parser = positive, conflicts_with_all = OBSERVED)]
    pub iops: Option<f64>,
    /// Percentage of them, and of the bytes, that are reads
    #[arg(long, value_name = "PCT", value_parser = share, default_value = "50",
          conflicts_with_all = OBSERVED)]
    pub reads: f64,
    /// Writes a second of the log writer, of those of --iops
    #[arg(long, value_name = "IOPS", value_parser = positive, requires = "iops")]
    #[arg(conflicts_with_all = OBSERVED)]
    pub redo_writes: Option<f64>,
    /// Rows a second that are found by an index, nothing of which is cached
    #[arg(long, value_name = "ROWS/S", value_parser = positive, requires = "rows",
          conflicts_with_all = ["iops", "reads"], conflicts_with_all = OBSERVED)]
    pub lookups: Option<f64>,
    /// Rows of the table of --lookups
    #[arg(long, value_name = "N", value_parser = positive, requires = "lookups")]
    #[arg(conflicts_with_all = ["iops", "reads"], conflicts_with_all = OBSERVED)]
    pub rows: Option<f64>,
    /// Decimal megabytes a second, of reads and writes
    #[arg(long, value_name = "MB/S", value_parser = positive, conflicts_with_all = OBSERVED)]
    pub mbps: Option<f64>,
    /// Decimal gigabytes of data
    #[arg(long, value_name = "GB", value_parser = positive, conflicts_with_all = OBSERVED)]
    pub gb: Option<f64>,
    /// Busy cores
    #[arg(long, value_name = "CORES", value_parser = positive, conflicts_with_all = OBSERVED)]
    pub cores: Option<f64>,
}

/// Interpretation of the observations.
#[derive(Args, Debug)]
#[command(next_help_heading = "Need")]
pub struct NeedArgs {
    /// How the storage protects data: external, normal, raid5 …
    ///
    /// This says how many writes it does for one of the database: external 1, normal 2, high 3,
    /// raid10 2, raid5 4, raid6 6.
    #[arg(long, value_name = "KIND", default_value = "external")]
    pub redundancy: Redundancy,
    /// The same as a number
    #[arg(long, value_name = "N", value_parser = penalty, conflicts_with = "redundancy")]
    pub penalty: Option<f64>,
    /// The percentile to size for
    #[arg(long, value_name = "P", default_value = "p95",
          value_parser = PossibleValuesParser::new(PERCENTILES))]
    pub percentile: String,
    /// Only these hours of the day, for example 9-17
    ///
    /// By the clock of the server.
    #[arg(long, value_name = "FROM-TO")]
    pub hours: Option<Hours>,
    /// Only Monday to Friday
    #[arg(long)]
    pub weekdays: bool,
    /// Only this many days at the end of each month
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=31))]
    pub month_end: Option<u32>,
}

/// Hardware that the need is compared with.
#[derive(Args, Debug)]
#[command(next_help_heading = "Hardware")]
pub struct HardwareArgs {
    /// Capacity of one unit: 180iops,600gb or a name
    ///
    /// Amounts such as 180iops,600gb,350usd, other keys of a catalogue such as
    /// `rpm=15000,mtbf_h=1000000`, or the name of a unit of the catalogue, of which the first is
    /// the default.
    #[arg(long, value_name = "UNIT")]
    pub disk: Option<String>,
    /// How many units there are: what each has to do; without a need, what all of them carry
    #[arg(long, value_name = "N", value_parser = disks)]
    pub units: Option<u64>,
    /// How many units are in a larger one, for example 12disks
    #[arg(long, value_name = "COUNT", value_parser = disks)]
    pub cell: Option<u64>,
    /// A catalogue of units, as TOML [default: the one that is built in]; without FILE, print that
    /// one, with sources and dates, to copy and edit
    #[arg(long, value_name = "FILE", num_args = 0..=1, value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Input)]
    #[expect(clippy::option_option, reason = "not given, without FILE, or with it")]
    pub catalogue: Option<Option<PathBuf>>,
    /// The share of what a unit can do that may be used
    #[arg(long, value_name = "PCT", value_parser = share, default_value = "100")]
    pub utilisation: f64,
    /// The share of the reads that a flash cache before the units answers
    #[arg(long, value_name = "PCT", value_parser = share, default_value = "0")]
    pub cached_reads: f64,
    /// The highest acceptable p99 of a read
    ///
    /// With --curve, it limits what a unit may do; with --verify and --on, it must be met.
    #[arg(long, value_name = "TIME")]
    pub p99: Option<Nanos>,
    /// A recording of calibrate on one unit: what it did within --p99 replaces its IOPS
    #[arg(long, value_name = "RECORDING", requires = "p99", value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Input)]
    pub curve: Option<String>,
}

/// Machine that the units are attached to.
#[derive(Args, Debug)]
#[command(next_help_heading = "Machine")]
pub struct MachineArgs {
    /// The machine that the units are attached to: a unit of the catalogue, of which IOPS and MB/s
    /// are those of its link to them
    #[arg(long, value_name = "UNIT")]
    pub machine: Option<String>,
    /// Speed of a core of the source, as a multiple of that of a core of the machine, for example
    /// the ratio of two calibrate --cpu
    #[arg(long, value_name = "RATIO", value_parser = positive, requires = "machine",
          default_value = "1")]
    pub core_ratio: f64,
    /// A licence of the catalogue, for the machines or the cores
    #[arg(long, value_name = "NAME")]
    pub licence: Option<String>,
    /// Lines of name,performance of a core: the first is the source, the others what could be
    /// bought; how many cores of each it takes, and with --licence how many licences
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Input)]
    pub core_list: Option<PathBuf>,
}

/// Hours of the day: `9-17` is from 9:00 to just before 17:00.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours(pub u32, pub u32);

impl FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('-').and_then(|(from, to)| {
            let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
            (from < 24 && to <= 24 && from != to).then_some(Self(from, to))
        });
        parsed.ok_or_else(|| "write two hours from 0 to 24, for example 9-17".to_owned())
    }
}

fn penalty(text: &str) -> Result<f64, String> {
    let penalty = positive(text)?;
    if (1.0..=100.0).contains(&penalty) { Ok(penalty) } else { Err("from 1 to 100".to_owned()) }
}

/// Parses `12disks` or `12`.
fn disks(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
    let count = number.parse().ok().filter(|count| (1..=100_000).contains(count));
    count.ok_or_else(|| "write how many units it holds, for example 12disks".to_owned())
}

impl SizeArgs {
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.iter().chain(&self.import)
    }

    /// Whether a need is stated in place of an observed one.
    pub fn is_stated(&self) -> bool {
        self.stated.amounts().next().is_some() || self.asks_what_is_carried()
    }

    /// Block reads that it takes to find a row by its index.
    pub fn reads_of_lookup(&self) -> Option<f64> {
        reads_by_index(self.stated.rows?, ENTRIES).map(f64::from)
    }

    /// Whether units are given without a need.
    pub fn asks_what_is_carried(&self) -> bool {
        let needed = self.stated.amounts().next().is_some()
            || self.inputs().next().is_some()
            || !self.live.db.is_empty();
        !needed && self.hardware.units.is_some()
    }
}

impl StatedArgs {
    fn amounts(&self) -> impl Iterator<Item = f64> {
        [self.iops, self.lookups, self.mbps, self.gb, self.cores].into_iter().flatten()
    }
}

impl NeedArgs {
    pub fn redundancy(&self) -> Redundancy {
        self.penalty.map_or(self.redundancy, Redundancy::Penalty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_read() {
        assert_eq!("9-17".parse(), Ok(Hours(9, 17)));
        assert_eq!("22-6".parse(), Ok(Hours(22, 6)));
        assert!("9".parse::<Hours>().is_err() && "9-25".parse::<Hours>().is_err());
        assert_eq!((disks("12disks"), disks("7")), (Ok(12), Ok(7)));
        assert!(disks("0").is_err() && penalty("0.5").is_err());
    }
}
