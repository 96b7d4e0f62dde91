//! The options of `demo`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::purpose::Purpose;

/// Arguments of `demo`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone demo                          the storage of this directory
  blockstone demo /data --html demo.html   another one, also as a page
  blockstone report last                   the last of its figures in full")]
pub struct DemoArgs {
    /// A directory on the storage; a file of at most 512 MiB, and at most a quarter of the free
    /// space, is made in it and removed
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Scratch)]
    pub dir: PathBuf,
}
