//! Arguments of `run`: SLOB's parameters under SLOB's names, and the parameters of the instance.

use std::path::PathBuf;
use std::str::FromStr;

use blockstone_run::{FormOptions, StorageOptions};
use blockstone_servers::{DatabaseOptions, TargetError, registry};
use blockstone_workload::Wanted;
use clap::{Args, ValueHint};

use super::target::TargetOptions;
use crate::password::PasswordFile;
use crate::purpose::Purpose;
use crate::ranks::options::RankOptions;

/// Arguments of `run`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  blockstone run .                                the storage of this directory
  blockstone run --for postgresql /data           fast enough for it? yes or no
  blockstone run --for postgresql --ladder /data  and up to how many commits/s?
  blockstone run --sessions 64 --update-pct 25 --for 60s /data
  blockstone run --readers 128 /d1 /d2 /d3 /d4    read-only sessions, four disks
  blockstone run --redundancy normal --failure-group a=/d1 --failure-group b=/d2
  blockstone run --conf slob.conf --for 60s /data
  blockstone run --profile oltp --sessions 32 /data
  blockstone run --profile bulk-write /data       tables made of rows (CTAS)
  blockstone run --profile scan --multiblock 4,8,16,128 --parallel 1,16 /data
  blockstone run --noise redo:2 /data             without, then with two writers
  blockstone run --for etcd /mnt/new              the same for another store
  blockstone run --rate 500 --json . | jq .figures.read_iops.value")]
pub struct RunArgs {
    /// Directories not in production, devices, --keep files [default: .]
    ///
    /// The load takes all that the storage gives: a database on the same disks becomes slower. A
    /// file is created in each directory; a file that an earlier run kept (--keep) is used again
    /// where it is named.
    #[arg(value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Scratch)]
    pub path: Vec<PathBuf>,
    #[command(flatten)]
    pub form: FormOptions,
    #[command(flatten)]
    pub method: Wanted,
    /// Read settings from a slob.conf, a pgio.conf, a script for hammerdbcli or options of
    /// sysbench; command-line options take precedence
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Workload")]
    #[arg(add = Purpose::Input)]
    pub conf: Option<PathBuf>,
    #[command(flatten)]
    pub instance: InstanceArgs,
    /// Name a block device again to let it be erased
    #[arg(long, value_name = "DEVICE", help_heading = "Disks")]
    #[arg(add = Purpose::Device)]
    pub destroy: Vec<PathBuf>,
    /// Disks that fail together; do not list them as PATH as well [default: each disk is its own
    /// group]
    #[arg(long, value_name = "NAME=PATH[,PATH]", help_heading = "Disks")]
    #[arg(add = Purpose::Scratch)]
    pub failure_group: Vec<FailureGroup>,
    /// Run every combination of these settings, for example update=0,20 sessions=1,8,64
    /// target=instance,postgres:scratch: any option of `run` that has a value, by its name without
    /// dashes; `none` omits an option that has no default. PATH must precede this option
    #[arg(long, value_name = "NAME=VALUE,VALUE", num_args = 1.., help_heading = "Measurement",
          conflicts_with_all = ["awr_info", "keep", "ranks", "require"])]
    pub matrix: Vec<String>,
    /// Repetitions of each combination of --matrix, interleaved
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        requires = "matrix",
        help_heading = "Measurement"
    )]
    #[arg(conflicts_with_all = ["awr_info", "keep", "ranks", "require"])]
    pub repeat: u32,
    /// Repeat the load with twice the sessions each time, up to N [default N: 64], until a latency
    /// is beyond its limit of --for or --expect: how much the storage carries within its limits
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
          default_missing_value = "64", help_heading = "Measurement")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    #[arg(conflicts_with_all = ["awr_info", "keep", "matrix", "noise", "ranks", "readers",
          "require", "sessions", "threads", "writers"])]
    pub ladder: Option<u32>,
    /// Write the recording to this directory (new or empty)
    #[arg(long = "record", alias = "out", value_name = "DIR", value_hint = ValueHint::DirPath,
          help_heading = "Output")]
    #[arg(add = Purpose::Directory)]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub storage: StorageOptions,
    #[command(flatten)]
    pub ranks: RankOptions,
    /// Print only SLOB's `awr_info` columns: a header line and a line of values
    #[arg(long, conflicts_with_all = ["json", "csv", "html"], help_heading = "Output")]
    pub awr_info: bool,
    /// Exit with code 4 unless these capabilities are available: direct-io, root
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Measurement")]
    pub require: Vec<String>,
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
    #[command(flatten)]
    pub options: DatabaseOptions,
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

fn target(text: &str) -> Result<String, TargetError> {
    registry::find(text).map(|_| text.to_owned())
}
