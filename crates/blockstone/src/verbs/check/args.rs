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
  blockstone check coherence /mnt/a /mnt/b           which writes two mounts see, and when
  blockstone check direct --db postgres://me@localhost/db
  blockstone check metadata /data --files 1M         names and inodes, up to a million files
  blockstone check write-order /data                 do writers of one file wait for each other
  blockstone check iosize -- tar -cf b.tar /data     the sizes in which a command does I/O
  blockstone check /data --json | jq -r '.cells[] | [.case, .class] | @tsv'")]
pub struct CheckArgs {
    /// A directory, in which scratch files are used and removed, or a file or block device,
    /// which is only read
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub path: Option<PathBuf>,
}
