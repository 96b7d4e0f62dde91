//! The options of `compare`.

use clap::Args;

/// Arguments of `compare`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone compare 20260101-… last
  blockstone compare night@..2h night@2h..         before and after, in one recording
  blockstone compare monday@9h..10h tuesday@9h..10h")]
pub struct CompareArgs {
    /// The baseline: the directory or id of a recording, or `last`; `night@10m..12m` is a part of
    /// the recording `night`
    pub a: String,
    /// The recording that is compared with the baseline
    pub b: String,
}
