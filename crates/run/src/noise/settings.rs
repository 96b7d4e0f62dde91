//! The user's settings: [`NoiseOptions`], each declared once, which the command line fills in and
//! the manifest stores under the names of the fields, and everything around them.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::RunDir;
use blockstone_workload::noise::NoiseMode;
use clap::Args;
use serde::Serialize;

/// Default length of a phase if phases without and with noise alternate …
const PHASE: Nanos = Nanos::millis(10_000);
/// … and the default length of all of them together, unless six phases are longer.
const DURATION: Nanos = Nanos::millis(60_000);
const PHASES: u64 = 6;
/// Default number of writers, at least one for each path.
const WRITERS: u32 = 2;

/// Options of noise. The text on each is its help. A manifest stores the mode, the phases and the
/// server instead of the options that determine them.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NoiseOptions {
    /// Make each write durable before the next, as log writers do
    ///
    /// With `O_DSYNC`; otherwise writes bypass the page cache without a flush.
    #[arg(long, conflicts_with = "buffered", help_heading = "Writes")]
    #[serde(skip)]
    pub sync: bool,
    /// Write through the page cache without a flush, as dd does
    #[arg(long, help_heading = "Writes")]
    #[serde(skip)]
    pub buffered: bool,
    /// Writers, spread over the paths [default: 2, or one for each path]
    #[arg(long, alias = "sessions", value_name = "N", help_heading = "Writes")]
    pub writers: Option<u32>,
    /// Area that each writer loops over: as large as the redo logs, and larger than a write cache
    /// that could hold it
    #[arg(long = "area", default_value = "1G", value_name = "SIZE", help_heading = "Writes")]
    pub area_bytes: Bytes,
    /// Bytes per write
    #[arg(
        long = "write-size",
        default_value = "128K",
        value_name = "SIZE",
        help_heading = "Writes"
    )]
    pub write_bytes: Bytes,
    /// End after this time [default: at Ctrl-C]
    ///
    /// With --db or --phase, the default is 60s, or six phases.
    #[arg(long = "for", aliases = ["run-time", "duration"], value_name = "TIME")]
    #[arg(help_heading = "Measurement")]
    #[serde(skip)]
    pub duration_ns: Option<Nanos>,
    /// Also watch this database, without and with noise
    ///
    /// The report compares what it did: `postgres://user@host/db`, `mysql://user@host` or
    /// `run:RUN`.
    #[arg(long, value_name = "ADDRESS", help_heading = "Measurement")]
    #[serde(skip)]
    pub db: Option<String>,
    /// Alternate phases of this length without and with noise, the first quarter of each at most
    /// being warm-up, and compare the reads of the device [default with --db: 10s]
    #[arg(long = "phase", value_name = "TIME", help_heading = "Measurement")]
    pub phase_ns: Option<Nanos>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Devices, and directories in which a file is created.
    pub places: Vec<PathBuf>,
    /// Those of the devices that were named a second time: their content may be destroyed.
    pub destroy: Vec<PathBuf>,
    pub options: NoiseOptions,
    /// Address of the database that is watched too: of a run, where it can be reached.
    pub database: Option<String>,
    pub seed: u64,
    pub argv: Vec<String>,
    /// Directory of the recording, which must be empty or not exist.
    pub recording: RunDir,
}

impl NoiseOptions {
    pub fn mode(&self) -> NoiseMode {
        match (self.sync, self.buffered) {
            (true, _) => NoiseMode::Redo,
            (_, true) => NoiseMode::Buffered,
            _ => NoiseMode::Direct,
        }
    }

    /// Returns the length of a phase, if phases without and with noise alternate.
    pub fn phase(&self) -> Option<Nanos> {
        self.phase_ns.or(self.db.as_ref().map(|_| PHASE))
    }

    /// Returns the total length, not counting the layout of the areas; `None` to run until a
    /// signal.
    pub fn duration(&self) -> Option<Nanos> {
        let phases = |phase: Nanos| DURATION.max(Nanos(phase.get().saturating_mul(PHASES)));
        self.duration_ns.or_else(|| self.phase().map(phases))
    }
}

impl Settings {
    pub fn writers(&self) -> u32 {
        self.options.writers.unwrap_or_else(|| WRITERS.max(self.places.len() as u32))
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};
    use serde_json::json;

    use super::*;

    fn parsed(words: &[&str]) -> NoiseOptions {
        let command = NoiseOptions::augment_args(Command::new("noise").no_binary_name(true));
        NoiseOptions::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    #[test]
    fn phases_and_their_number_follow_from_what_is_given() {
        let of = |words: &[&str]| (parsed(words).phase(), parsed(words).duration());
        assert_eq!(of(&[]), (None, None));
        assert_eq!(of(&["--db=run:last"]), (Some(PHASE), Some(DURATION)));
        let minute = Nanos::millis(60_000);
        assert_eq!(of(&["--phase=60s"]), (Some(minute), Some(Nanos::millis(360_000))));
        assert_eq!(of(&["--for=9s"]), (None, Some(Nanos::millis(9_000))));
    }

    #[test]
    fn a_manifest_has_them_under_the_names_of_the_fields() {
        let expected = json!({
            "writers": 3, "area_bytes": 1 << 30, "write_bytes": 128 << 10,
            "phase_ns": 5_000_000_000_u64,
        });
        let options = parsed(&["--writers=3", "--phase=5s", "--sync", "--db=mysql://u:word@h"]);
        assert_eq!(json!(options), expected);
        assert_eq!(options.mode(), NoiseMode::Redo);
    }
}
