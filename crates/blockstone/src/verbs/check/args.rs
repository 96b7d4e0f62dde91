//! The options of `check`; each check declares its own options next to its code.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use blockstone_base::units::Nanos;
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::purpose::Purpose;

/// Arguments of `check`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone check /data                           all checks, in seconds
  blockstone check direct /data                    is I/O direct?
  blockstone check durability /data                is a flush durable?
  blockstone check direct --pid 4711 --for 10s     the open files of a process
  blockstone check direct --db postgres://me@localhost/db
  blockstone check coherence /mnt/a /mnt/b         who sees which write?
  blockstone check metadata /data --files 1M       names, up to a million files
  blockstone check write-order /data               do writers wait?
  blockstone check iosize -- tar -cf b.tar /data   the sizes of I/O of a command
  blockstone check /data --json | jq -r '.tables.answers[].answer'")]
pub struct CheckArgs {
    /// A directory, for scratch files, or a file or device, which is only read
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    #[arg(add = Purpose::Scratch)]
    pub path: Option<PathBuf>,
}

/// Default time for which a process is observed.
const DURATION: Nanos = Nanos::millis(5_000);
/// Longest time for which a process is observed; longer observations are the purpose of `watch`.
const DURATION_MAX: Nanos = Nanos::millis(3_600_000);

/// A process that runs already.
#[derive(Args, Debug)]
pub struct Observed {
    /// Observe this process and its children instead
    #[arg(long, value_name = "PID",
          value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pub pid: Option<u32>,
    /// Count the I/O of the process for this time [default: 5s]
    #[arg(long = "for", alias = "duration", value_name = "TIME")]
    duration: Option<Nanos>,
}

impl Observed {
    pub fn duration(&self) -> Result<Duration> {
        let duration = self.duration.unwrap_or(DURATION);
        if duration.get() == 0 || duration > DURATION_MAX {
            bail!(Failure::new(
                format!("observe for {duration}: it must be more than nothing, and at most 1h"),
                "--for 5s"
            ));
        }
        Ok(Duration::from_nanos(duration.get()))
    }
}
