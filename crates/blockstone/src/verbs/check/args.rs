//! The options of `check`; each check declares its own beside what it does.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Arguments of `check`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone check /data                             all checks, in seconds
  blockstone check direct /data                      every operation in every shape
  blockstone check direct --pid 4711 --for 10s       the open files of a process and its children
  blockstone check direct --db postgres://me@localhost/db
  blockstone check /data --json | jq -r '.cells[] | [.case, .class] | @tsv'")]
pub struct CheckArgs {
    /// A directory, in which scratch files without a name are used, or a file or block device,
    /// which is only read
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub path: Option<PathBuf>,
}
