//! The options of `trace`.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use clap::{Args, ValueEnum, ValueHint};

use super::what_if::Change;
use crate::purpose::Purpose;

/// Arguments of `trace`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone trace orcl_ora_4711.trc             where its time went
  blockstone trace --style tkprof orcl_ora_4711.trc.gz
  blockstone trace old.trc --against new.trc     two traces, by statement
  blockstone trace --what-if array=100,500 --what-if read=0.5 orcl.trc
  blockstone trace /var/log/mysql/slow.log.*     several files as one log
  zcat postgresql.csv.gz | blockstone trace --html trace.html -
  blockstone trace --calibration last orcl.trc   its reads, and the device
  blockstone trace --json slow.log | jq -r '.tables.statements[].text'")]
pub struct TraceArgs {
    /// SQL traces of Oracle, slow logs of MySQL, or logs of PostgreSQL
    ///
    /// Slow logs also of MariaDB; plain or compressed by gzip, bzip2, xz or zstd, or in an archive
    /// (tar, zip). Several of one kind are read as one. `-` is standard input.
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Input)]
    pub files: Vec<PathBuf>,
    /// Compare with these files
    ///
    /// The report shows what each component and statement took in both.
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath,
          conflicts_with_all = ["style", "what_if", "calibration", "memory_cost", "top",
                                "block_size"])]
    #[arg(add = Purpose::Input)]
    pub against: Vec<PathBuf>,
    /// Statements shown with all their components
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub top: u16,
    /// The order of the report
    #[arg(long, value_enum, value_name = "STYLE", conflicts_with_all = ["json", "csv"])]
    pub style: Option<Style>,
    /// Show statements with their literals, otherwise they are `?`
    ///
    /// They may be confidential.
    #[arg(long)]
    pub keep_text: bool,
    /// The share of executions that the server logged, where the log does not say it:
    /// `auto_explain.sample_rate`, or 1 ÷ `log_slow_rate_limit`
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub sample_rate: Option<f64>,
    /// Time of a logical read, in place of the one derived from statements that read nothing from
    /// storage
    #[arg(long, value_name = "TIME", help_heading = "Predictions")]
    pub memory_cost: Option<Nanos>,
    /// Predict the response time with other conditions
    ///
    /// array=ROWS[,ROWS…] a fetch, round-trip=TIME, read=FACTOR of the time of single-block reads,
    /// hits=SHARE of these reads.
    #[arg(long, value_name = "CHANGE", help_heading = "Predictions")]
    pub what_if: Vec<Change>,
    /// Compare reads of the trace with this calibration: a directory, an id or `last`
    #[arg(long, value_name = "RECORDING", help_heading = "Predictions")]
    pub calibration: Option<String>,
    /// Size of a block of the traced database [default: 8K; 16K for slow logs, as `InnoDB` has]
    #[arg(long, value_name = "SIZE", help_heading = "Predictions")]
    pub block_size: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// Statement after statement, each with its calls, its row sources and its waits
    Tkprof,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "a share is greater than 0 and at most 1, for example 0.1".to_owned())
}
