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
    /// The base: a recording's directory, its id, or `last`; of what was watched also a part of its
    /// time, `night@10m..12m`
    pub a: String,
    /// The one that is compared with it
    pub b: String,
}
