//! The options of `calibrate`.

use std::path::PathBuf;

use blockstone_calibrate::Options;
use clap::{Args, ValueHint};

use crate::purpose::Purpose;

/// Options that make no sense for a test file that is there.
const OF_NEW_FILES: [&str; 9] = [
    "paths",
    "destroy",
    "asked_size_bytes",
    "asked_span_bytes",
    "offset_bytes",
    "keep",
    "precondition",
    "precondition_limit_ns",
    "precondition_round_ns",
];

/// Arguments of `calibrate`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone calibrate .                             this directory
  blockstone calibrate --quick /mnt/new              in at most 20 s
  blockstone calibrate /data/system01.dbf            a file, only read
  blockstone calibrate --max-latency 5ms /data       with p99 ≤ 5 ms
  blockstone calibrate /dev/sdb --destroy /dev/sdb   an empty device
  blockstone calibrate --precondition /dev/sdb --destroy /dev/sdb
                                                     a drive in its steady state
  blockstone calibrate --read-only --offset 900G --span 100G /dev/sdb
                                                     a zone of a disk in use
  blockstone calibrate /data1 /data2 /data3          as one storage
  blockstone calibrate --mix 70:30,50:50 /data       reads and writes together
  blockstone calibrate --json . | jq .figures.max_iops.value")]
pub struct CalibrateArgs {
    /// A directory, a file (which is only read) or a block device
    ///
    /// The load takes all that the storage gives: a database on the same disks becomes slower.
    /// Several are measured as one, and any load is spread over them evenly.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath,
          required_unless_present = "file")]
    #[arg(add = Purpose::Scratch)]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub options: Options,
    /// Also write the matrix into this directory as Orion does: iops.csv, mbps.csv and lat.csv (in
    /// microseconds), a line for each number of large reads and a column for each number of small
    /// ones
    #[arg(long, value_name = "DIR", requires = "matrix", value_hint = ValueHint::DirPath,
          help_heading = "Measurement")]
    #[arg(add = Purpose::Directory)]
    pub orion: Option<PathBuf>,
    /// Reuse a test file that an earlier run kept
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_NEW_FILES,
          value_hint = ValueHint::FilePath, help_heading = "Test file")]
    #[arg(add = Purpose::Scratch)]
    pub file: Option<PathBuf>,
    /// Name a block device again to let it be erased
    #[arg(long, value_name = "DEVICE", help_heading = "Test file",
          conflicts_with_all = ["asked_span_bytes", "offset_bytes", "read_only", "keep"])]
    #[arg(add = Purpose::Device)]
    pub destroy: Vec<PathBuf>,
    /// Write the recording to this directory (new or empty)
    #[arg(long = "record", alias = "out", value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Directory)]
    pub out: Option<PathBuf>,
    /// Seed of all random choices [default: random, stored in the manifest]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Exit with code 4 unless these capabilities are available, for example direct-io,root
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub require: Vec<String>,
}
