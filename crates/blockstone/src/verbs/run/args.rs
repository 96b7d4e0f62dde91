//! Arguments of `run`: SLOB's parameters under SLOB's names, and the parameters of the instance.

use std::path::PathBuf;
use std::str::FromStr;

use blockstone_base::units::{Bytes, Nanos, positive};
use blockstone_servers::{Io, Redundancy, TornProtection, registry};
use blockstone_workload::Wanted;
use blockstone_workload::noise::NoiseMode;
use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum, ValueHint};

use super::target::TargetOptions;
use crate::choice::one_of;
use crate::password::PasswordFile;
use crate::purpose::Purpose;

/// Arguments of `run`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  blockstone run .                                   the storage of this directory
  blockstone run --schemas 8 --threads 16 --update-pct 25 /data
  blockstone run --readers 128 /d1 /d2 /d3 /d4       128 read-only sessions, four disks
  blockstone run --redundancy normal --failure-group a=/d1,/d2 --failure-group b=/d3,/d4
  blockstone run --conf slob.conf --for 60s /data
  blockstone run --profile oltp --sessions 32 /data  order entry: transactions per second
  blockstone run --profile bulk-write /data          tables made of existing rows (CTAS)
  blockstone run --profile scan --multiblock 4,8,16,128 --parallel 1,16 /data
  blockstone run --noise redo:2 /data                without, then with two noisy writers
  blockstone run --rate 500 --json . | jq .summary.read_iops")]
pub struct RunArgs {
    /// The disks: directories (one file is created in each), block devices, or files left by a run
    /// with --keep, which are used again [default: .]
    #[arg(value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Scratch)]
    pub path: Vec<PathBuf>,
    /// Read settings from a slob.conf or pgio.conf; command-line options take precedence
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Input)]
    pub conf: Option<PathBuf>,
    #[command(flatten)]
    pub form: FormArgs,
    #[command(flatten)]
    pub method: Wanted,
    #[command(flatten)]
    pub instance: InstanceArgs,
    /// Name a block device a second time, to allow its content to be destroyed
    #[arg(long, value_name = "DEVICE", help_heading = "Disks")]
    #[arg(add = Purpose::Device)]
    pub destroy: Vec<PathBuf>,
    /// Disks that fail together; do not list them as PATH as well [default: each disk is its own
    /// group]
    #[arg(long, value_name = "NAME=PATH[,PATH]", help_heading = "Disks")]
    #[arg(add = Purpose::Scratch)]
    pub failure_group: Vec<FailureGroup>,
    /// Keep the files; a later run that names them as PATH uses them again without loading
    #[arg(long, help_heading = "Disks")]
    pub keep: bool,
    /// Run every combination of these settings, for example update=0,20 sessions=1,8,64
    /// target=instance,postgres:scratch: any option of `run` that has a value, by its name without
    /// dashes; `none` leaves an option without a default away. PATH must precede this option
    #[arg(long, value_name = "NAME=VALUE,VALUE", num_args = 1.., conflicts_with_all = ["awr_info",
          "keep", "require"])]
    pub matrix: Vec<String>,
    /// Repetitions of each combination of --matrix, interleaved
    #[arg(long, value_name = "N", default_value_t = 2, requires = "matrix")]
    #[arg(conflicts_with_all = ["awr_info", "keep", "require"])]
    pub repeat: u32,
    /// Write the recording to this directory (new or empty)
    #[arg(long = "record", alias = "out", value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Directory)]
    pub out: Option<PathBuf>,
    /// Speed of the link to the storage in MB/s, if the kernel does not know it
    #[arg(long, value_name = "MB/S", value_parser = positive)]
    pub link_mbps: Option<f64>,
    /// Print only SLOB's `awr_info` columns: a header line and a line of values
    #[arg(long, conflicts_with_all = ["json", "csv", "html"])]
    pub awr_info: bool,
    /// Exit with code 4 unless these capabilities are available: direct-io, root
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub require: Vec<String>,
}

/// Which measurement it is.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Measurement")]
pub struct FormArgs {
    /// Work of the sessions
    #[arg(long, value_enum, default_value_t = Profile::Slob)]
    pub profile: Profile,
    /// Blocks per read, for --profile scan: of the instance, and from PostgreSQL 17 on (its
    /// `io_combine_limit`) [default: 4,8,16 and the largest possible read]
    #[arg(long, value_name = "BLOCKS", value_delimiter = ',')]
    pub multiblock: Option<Vec<u32>>,
    /// Sessions that share the scan, for --profile scan [default: 1,16]
    #[arg(long, value_name = "SESSIONS", value_delimiter = ',')]
    pub parallel: Option<Vec<u32>>,
    /// Reads that each session keeps in flight, for --profile scan of the instance [default: 2]
    #[arg(long, value_name = "N")]
    pub slots: Option<u32>,
    /// Processor time that a session spends on each row of the scan, one in a block, while its
    /// reads go on: 20us is about what count(*) takes for the rows of a block of 8K; for --profile
    /// scan of the instance [default: none]
    #[arg(long, value_name = "TIME")]
    pub row_cost: Option<Nanos>,
    /// Measure twice: without noise, then beside N writers that each loop over their own area
    /// [default N: 2]. The writes of `redo` are durable, as those of the log writers of other
    /// databases; `direct` writes bypass the page cache without a flush, and `buffered` ones go
    /// through it, as those of dd
    #[arg(long, value_name = "redo|direct|buffered[:N]")]
    pub noise: Option<Noise>,
    /// Area that each noise writer loops over: an array with a write cache absorbs smaller areas
    /// [default: 256M, or an eighth of the free space over all writers]
    #[arg(long, value_name = "SIZE", requires = "noise")]
    pub noise_area: Option<Bytes>,
    /// Bytes per write of the noise [default: 128K]
    #[arg(long, value_name = "SIZE", requires = "noise")]
    pub noise_write: Option<Bytes>,
}

/// Work of the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Select and update rows, as SLOB does
    Slob,
    /// Transactions of order entry: of 100, 45 new orders, 43 payments, 4 order status, 4
    /// deliveries and 4 stock levels; no think time unless --think gives one
    Oltp,
    /// Make tables of existing rows (create table as select), one after the other: each is made,
    /// flushed to the medium and dropped
    BulkWrite,
    /// Scan one table with every combination of read size and number of sessions: of the instance
    /// past the buffer cache, of a database by a statement
    Scan,
}

/// `redo` or `redo:N`, and the same for the other modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    pub mode: NoiseMode,
    pub writers: u32,
}

impl FromStr for Noise {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mode, writers) = text.split_once(':').unwrap_or((text, "2"));
        let mode = NoiseMode::ALL.iter().find(|known| known.name() == mode);
        let why = || {
            format!(
                "unknown noise `{text}`; write redo, direct or buffered, or redo:4 for four writers"
            )
        };
        let (mode, writers) = mode.zip(writers.parse().ok()).ok_or_else(why)?;
        Ok(Self { mode: *mode, writers })
    }
}

/// Database that the workload is sent to.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Database")]
pub struct InstanceArgs {
    /// Where the workload is sent
    #[arg(long, default_value = registry::ALL[0].name, value_parser = target,
          long_help = targets())]
    #[arg(add = Purpose::Scratch)]
    pub target: String,
    #[command(flatten)]
    pub password: PasswordFile,
    #[command(flatten)]
    pub of_target: TargetOptions,
    /// Database block size: 4K to 32K
    #[arg(long, default_value = "8K", value_name = "SIZE")]
    pub block_size: Bytes,
    /// Size of the buffer cache
    #[arg(long, default_value = "128M", value_name = "SIZE")]
    pub cache: Bytes,
    /// Let SQLite, or a scratch server, have at most this much page cache, 16M or more, so that
    /// what it reads through it comes from the storage; SQLite then uses --io direct unless told
    /// otherwise; needs a control group of memory
    #[arg(long, value_name = "SIZE")]
    pub page_cache: Option<Bytes>,
    /// Read and write the files of the database past the page cache, or through it; a target that
    /// cannot says why [default: direct for instance and for SQLite with --page-cache, otherwise as
    /// the database does by itself]
    #[arg(long, value_name = "HOW", value_parser = io())]
    pub io: Option<Io>,
    /// Copies of each block: external 1, normal 2, high 3
    #[arg(long, default_value = "external", value_parser = redundancy())]
    pub redundancy: Redundancy,
    /// Allocation unit of the disk group: 1M or 4M
    #[arg(long, default_value = "1M", value_name = "SIZE")]
    pub allocation_unit: Bytes,
    /// Protection of blocks against torn (partial) writes
    #[arg(long, default_value = "full-page", value_parser = torn_protection())]
    pub torn_protection: TornProtection,
    /// Open disks of an earlier run even if damage has lost commits; what is lost is reported
    #[arg(long)]
    pub accept_loss: bool,
    /// Size of each of the three redo logs [default: 1/16 of the data, from 8M to 256M]
    #[arg(long, value_name = "SIZE")]
    pub redo_size: Option<Bytes>,
    /// Number of database writers
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub database_writers: u32,
}

/// `NAME=PATH,PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    pub name: String,
    /// The disks that fail together.
    pub paths: Vec<PathBuf>,
}

impl FromStr for FailureGroup {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, paths)) if !name.is_empty() && !paths.is_empty() => {
                let paths = paths.split(',').map(PathBuf::from).collect();
                Ok(Self { name: name.to_owned(), paths })
            }
            _ => Err(format!("`{text}` names no disks; write NAME=PATH,PATH")),
        }
    }
}

/// Lists the values of `--target`, one per line.
fn targets() -> String {
    let lines = registry::ALL.iter().map(|entry| format!("- {}: {}", entry.form(), entry.doc));
    let lines: Vec<_> = lines.collect();
    format!("Where the workload is sent\n\nPossible values:\n{}", lines.join("\n"))
}

fn target(text: &str) -> Result<String, String> {
    let known = registry::find(text).map_err(|error| error.to_string());
    known.map(|_| text.to_owned())
}

fn io() -> impl TypedValueParser<Value = Io> {
    one_of([Io::Direct, Io::Buffered].map(|it| (it.name(), "", it)))
}

fn redundancy() -> impl TypedValueParser<Value = Redundancy> {
    one_of(
        [Redundancy::External, Redundancy::Normal, Redundancy::High].map(|it| (it.name(), "", it)),
    )
}

fn torn_protection() -> impl TypedValueParser<Value = TornProtection> {
    let all = [TornProtection::FullPage, TornProtection::DoubleWrite, TornProtection::None];
    one_of(all.map(|it| (it.name(), "", it)))
}
