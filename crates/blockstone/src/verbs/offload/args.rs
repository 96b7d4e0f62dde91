//! The options of `offload`.

use std::path::PathBuf;

use blockstone_offload::Unit;
use clap::{Args, Subcommand, ValueHint};

use crate::choice::{Choice, one_of};

/// Arguments of `offload`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone offload account awr.html                 from a report of a database
  blockstone offload account counters.csv --unit GiB  from counters before and after runs")]
pub struct OffloadArgs {
    /// What to do
    #[command(subcommand)]
    pub verb: OffloadVerb,
}

/// The verbs of `offload`.
#[derive(Debug, Subcommand)]
pub enum OffloadVerb {
    /// Show what became of the bytes of runs: skipped, read, filtered, returned, on the wire
    Account(AccountArgs),
}

/// Arguments of `offload account`.
#[derive(Args, Debug)]
pub struct AccountArgs {
    /// AWR reports, or tables of counters as CSV: run, time, instance, statistic, value, unit; `-`
    /// is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// In which counters of bytes are given in a CSV without a column of units
    #[arg(long, value_parser = one_of(UNITS), default_value = Unit::Bytes.name())]
    pub unit: Unit,
}

const UNITS: [Choice<Unit>; Unit::ALL.len()] = {
    let mut choices = [("", "", Unit::Bytes); Unit::ALL.len()];
    let mut at = 0;
    while at < choices.len() {
        choices[at] = (Unit::ALL[at].name(), "", Unit::ALL[at]);
        at += 1;
    }
    choices
};
