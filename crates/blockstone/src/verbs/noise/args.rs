//! The options of `noise`.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use clap::{Args, ValueHint};

use crate::password::PasswordFile;
use crate::purpose::Purpose;

/// Arguments of `noise`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone noise /data                             until Ctrl-C: 2 writers over 1 GiB each
  blockstone noise --buffered --for 60s /data        as dd bs=128k count=8192 conv=notrunc
  blockstone noise --sync --db run:last /data        what durable writes cost a run in progress
  blockstone noise --db postgres://me@localhost/db --for 2m /data
  blockstone noise /dev/sdb --destroy /dev/sdb       an empty device")]
pub struct NoiseArgs {
    /// Directories, in each of which a file is made and later removed, or block devices [default:
    /// .]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Scratch)]
    pub path: Vec<PathBuf>,
    /// Name a block device a second time, to allow its content to be destroyed
    #[arg(long, value_name = "DEVICE")]
    #[arg(add = Purpose::Device)]
    pub destroy: Vec<PathBuf>,
    /// Make each write durable before the next (`O_DSYNC`), as log writers do; otherwise writes
    /// bypass the page cache without a flush
    #[arg(long, conflicts_with = "buffered", help_heading = "Writes")]
    pub sync: bool,
    /// Write through the page cache without a flush, as dd does
    #[arg(long, help_heading = "Writes")]
    pub buffered: bool,
    /// Writers, spread over the paths [default: 2, or one for each path]
    #[arg(long, alias = "sessions", value_name = "N", help_heading = "Writes")]
    pub writers: Option<u32>,
    /// Area that each writer loops over: as large as the redo logs, and larger than a write cache
    /// that could hold it
    #[arg(long, default_value = "1G", value_name = "SIZE", help_heading = "Writes")]
    pub area: Bytes,
    /// Bytes per write
    #[arg(long, default_value = "128K", value_name = "SIZE", help_heading = "Writes")]
    pub write_size: Bytes,
    /// End after this time [default: 60s, or six phases, with --db or --phase; otherwise at Ctrl-C]
    #[arg(long = "for", aliases = ["run-time", "duration"], value_name = "TIME")]
    #[arg(help_heading = "Measurement")]
    pub duration: Option<Nanos>,
    /// Also watch this database, and compare what it did without and with noise:
    /// `postgres://user@host/db`, `mysql://user@host` or `run:RUN`
    #[arg(long, value_name = "ADDRESS", help_heading = "Measurement")]
    pub db: Option<String>,
    #[command(flatten)]
    pub password: PasswordFile,
    /// Alternate phases of this length without and with noise, the first quarter of each at most
    /// being warm-up, and compare the reads of the device [default with --db: 10s]
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub phase: Option<Nanos>,
    /// Write the recording to this directory (new or empty)
    #[arg(long = "record", alias = "out", value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Directory)]
    pub out: Option<PathBuf>,
}
