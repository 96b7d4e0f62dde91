//! The options of `noise`.

use std::path::PathBuf;

use blockstone_run::noise::NoiseOptions;
use clap::{Args, ValueHint};

use crate::password::PasswordFile;
use crate::purpose::Purpose;

/// Arguments of `noise`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone noise /data                         2 writers, until Ctrl-C
  blockstone noise --buffered --for 60s /data    as dd does
  blockstone noise --sync --db run:last /data    what a run loses by it
  blockstone noise --db postgres://me@localhost/db --for 2m /data
  blockstone noise /dev/sdb --destroy /dev/sdb   an empty device")]
pub struct NoiseArgs {
    /// Directories, or block devices [default: .]
    ///
    /// In each directory a file is made and later removed.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Scratch)]
    pub path: Vec<PathBuf>,
    /// Name a block device again to let it be erased
    #[arg(long, value_name = "DEVICE")]
    #[arg(add = Purpose::Device)]
    pub destroy: Vec<PathBuf>,
    #[command(flatten)]
    pub options: NoiseOptions,
    #[command(flatten)]
    pub password: PasswordFile,
    /// Write the recording to this directory (new or empty)
    #[arg(long = "record", alias = "out", value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Directory)]
    pub out: Option<PathBuf>,
}
