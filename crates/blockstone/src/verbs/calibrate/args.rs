//! The options of `calibrate`.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use clap::{Args, ValueEnum, ValueHint};

use blockstone_base::units::positive;

use crate::purpose::Purpose;

/// Arguments of `calibrate`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone calibrate .                             the storage of this directory
  blockstone calibrate --quick /var/lib/postgresql   in at most 20 s
  blockstone calibrate --max-latency 5ms /data       the most IOPS with p99 ≤ 5 ms
  blockstone calibrate /data/system01.dbf            an existing file, only read
  blockstone calibrate /dev/sdb --destroy /dev/sdb   an empty device, read and written
  blockstone calibrate --precondition /dev/sdb --destroy /dev/sdb
                                                     a flash drive in its steady state
  blockstone calibrate --read-only --offset 900G --span 100G /dev/sdb
                                                     a zone of a disk in use
  blockstone calibrate /data1 /data2 /data3          three directories as one storage
  blockstone calibrate --mix 70:30,50:50 /data       also random reads and writes together
  blockstone calibrate --json . | jq .summary.max_iops")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct CalibrateArgs {
    /// A directory, a file (which is only read) or a block device; several are measured as one, and
    /// any load is spread over them evenly
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath,
          required_unless_present = "file")]
    #[arg(add = Purpose::Scratch)]
    pub paths: Vec<PathBuf>,
    /// Finish within 20 s: fewer points, shorter windows
    #[arg(long, conflicts_with = "full", help_heading = "Duration")]
    pub quick: bool,
    /// Three interleaved rounds with longer windows (about 6 minutes)
    #[arg(long, help_heading = "Duration")]
    pub full: bool,
    /// Database block size
    #[arg(long, default_value = "8K", value_name = "SIZE", help_heading = "Measurement")]
    pub block_size: Bytes,
    /// Size of the test file, in each directory [default: the least of 4G, a quarter of the free
    /// space, and what can be written in the time limit]
    #[arg(long, value_name = "SIZE", help_heading = "Measurement")]
    pub size: Option<Bytes>,
    /// Latency limit for the p99 at the knee and for the mean at `max_iops`; the knee is the load
    /// beyond which more requests in flight only wait longer
    #[arg(long, default_value = "20ms", value_name = "TIME", help_heading = "Measurement")]
    pub max_latency: Nanos,
    /// Also measure small and large reads together, as Orion's matrix does (adds about 20 s)
    #[arg(long, help_heading = "Measurement")]
    pub matrix: bool,
    /// Also write the matrix into this directory as Orion does: iops.csv, mbps.csv and lat.csv (in
    /// microseconds), a line for each number of large reads and a column for each number of small
    /// ones
    #[arg(long, value_name = "DIR", requires = "matrix", value_hint = ValueHint::DirPath,
          help_heading = "Measurement")]
    #[arg(add = Purpose::Directory)]
    pub orion: Option<PathBuf>,
    /// Also write in order through the page cache, and show how fast write(2) returned and how fast
    /// the data were flushed, beside direct writes (adds up to 6 s)
    #[arg(long, conflicts_with_all = ["read_only", "buffered"], help_heading = "Measurement")]
    pub buffered_writes: bool,
    /// Also measure how many cached blocks a session visits per second of processor time, alone and
    /// with one session on each processor: a yardstick for processors (adds about 4 s)
    #[arg(long, help_heading = "Measurement")]
    pub cpu: bool,
    /// Numbers of 1 MiB reads in flight, in order and at random, each reader in a part of its own
    /// [default: 1,2,4,8; with --quick 1,4]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', num_args = 1,
          value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Measurement")]
    pub streams: Vec<u32>,
    /// Measure only this much of a file or device that is only read (short stroking)
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["size", "file", "destroy"],
          help_heading = "Measurement")]
    pub span: Option<Bytes>,
    /// Measure from this offset of a file or device that is only read (zones of a disk)
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["size", "file", "destroy"],
          help_heading = "Measurement")]
    pub offset: Option<Bytes>,
    /// Also measure these mixes of random reads and writes, and either alone, with as many in
    /// flight as at `max_iops` (adds up to 9 s for each, and 18 s)
    #[arg(long, value_name = "READS:WRITES", value_delimiter = ',', value_parser = mix,
          conflicts_with = "read_only", help_heading = "Measurement")]
    pub mix: Vec<u32>,
    /// Also measure random reads started at this fixed rate per second, even if the storage cannot
    /// keep up
    #[arg(long, value_name = "IOPS", value_parser = positive, help_heading = "Measurement")]
    pub rate: Option<f64>,
    /// Distribution of the gaps between the operations of --rate
    #[arg(long, value_enum, default_value_t = Arrivals::Poisson, requires = "rate",
          help_heading = "Measurement")]
    pub arrivals: Arrivals,
    /// Skip all measurements that write (for a block device whose content is needed)
    #[arg(long, conflicts_with_all = ["destroy"], help_heading = "Measurement")]
    pub read_only: bool,
    /// Use the page cache, to see its effect on the results
    #[arg(long, help_heading = "Measurement")]
    pub buffered: bool,
    /// Reuse a test file that an earlier run kept
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "size", "destroy"],
          value_hint = ValueHint::FilePath, help_heading = "Test file")]
    #[arg(add = Purpose::Scratch)]
    pub file: Option<PathBuf>,
    /// Keep the test file, for a later --file
    #[arg(long, conflicts_with_all = ["file", "destroy"], help_heading = "Test file")]
    pub keep: bool,
    /// Name a block device a second time, to allow its content to be destroyed
    #[arg(long, value_name = "DEVICE", help_heading = "Test file")]
    #[arg(add = Purpose::Device)]
    pub destroy: Vec<PathBuf>,
    /// Write the recording to this directory (new or empty)
    #[arg(long = "record", alias = "out", value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Directory)]
    pub out: Option<PathBuf>,
    /// Speed of the link to the storage in MB/s, if the kernel does not know it
    #[arg(long, value_name = "MB/S", value_parser = positive)]
    pub link_mbps: Option<f64>,
    /// Seed of all random choices [default: random, stored in the manifest]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Exit with code 4 unless these capabilities are available, for example direct-io,root
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub require: Vec<String>,
    #[command(flatten)]
    pub preconditioning: PreconditionArgs,
}

#[derive(Args, Debug)]
pub struct PreconditionArgs {
    /// First write the whole device or test file twice, then at random in rounds until the rate has
    /// settled, as SNIA's Performance Test Specification does; beneath a file system only the test
    /// file is written
    #[arg(long, conflicts_with_all = ["read_only", "buffered", "file"],
          help_heading = "Preconditioning")]
    pub precondition: bool,
    /// Longest time of --precondition
    #[arg(
        long,
        value_name = "TIME",
        default_value = "12h",
        requires = "precondition",
        help_heading = "Preconditioning"
    )]
    #[arg(conflicts_with_all = ["read_only", "buffered", "file"])]
    pub precondition_limit: Nanos,
    /// Length of each round of --precondition, of which there are 25 at most
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "precondition",
          value_parser = round, help_heading = "Preconditioning")]
    #[arg(conflicts_with_all = ["read_only", "buffered", "file"])]
    pub precondition_round: Nanos,
}

/// Parses the length of a round.
fn round(text: &str) -> Result<Nanos, String> {
    let length: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    let bounds = Nanos::millis(1_000)..=Nanos::millis(3_600_000);
    bounds.contains(&length).then_some(length).ok_or_else(|| "it is not between 1s and 1h".into())
}

/// Parses a mix such as `70:30` and returns how many of 100 operations are reads.
fn mix(text: &str) -> Result<u32, String> {
    let (reads, writes) = text.split_once(':').ok_or("it has no colon: write 70:30")?;
    let part = |text: &str| text.parse::<u32>().map_err(|error| format!("{text}: {error}"));
    let (reads, writes) = (part(reads)?, part(writes)?);
    if reads.checked_add(writes) != Some(100) {
        return Err("its parts do not add up to 100".into());
    }
    let both = reads > 0 && writes > 0;
    both.then_some(reads).ok_or_else(|| "reads and writes alone are measured beside any mix".into())
}

/// Gaps between operations at a fixed rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arrivals {
    /// Exponential: independent users.
    Poisson,
    /// Constant.
    Fixed,
}
