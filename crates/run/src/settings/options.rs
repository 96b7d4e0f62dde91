//! The options of a run, each declared once: the command line fills them in, the run reads them,
//! and the manifest stores them under the names of the fields. Options of the database are in
//! [`DatabaseOptions`](blockstone_servers::DatabaseOptions), those of the SLOB method, which a file
//! can set too, in [`Wanted`](blockstone_workload::Wanted).

use std::str::FromStr;

use blockstone_base::units::{Bytes, Nanos, positive};
use blockstone_workload::noise::{self, NoiseMode};
use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use serde::Serialize;

/// Default length of a window: of a single one, of each of two, of each in a matrix.
const RUN_TIME: Nanos = Nanos::millis(30_000);
const RUN_TIME_OF_TWO: Nanos = Nanos::millis(15_000);
const RUN_TIME_OF_MANY: Nanos = Nanos::millis(4_000);
/// Default numbers of sessions that share a scan.
const PARALLEL: [u32; 2] = [1, 16];

/// Options that select the form of the measurement. The text on each is its help.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize)]
#[command(next_help_heading = "Measurement")]
pub struct FormOptions {
    /// Imitate this store, judge by its limits; or --for STORE
    ///
    /// The load is like that of this database or store, and its limits are checked;
    /// `--for help` lists them with their sources.
    #[arg(long, value_name = "STORE", value_parser = blockstone_stores::named(),
          hide_possible_values = true)]
    #[arg(conflicts_with_all = ["profile", "noise", "conf", "target", "awr_info"])]
    pub store: Option<String>,
    /// Work of the sessions
    #[arg(long, value_enum, default_value_t = Profile::Slob)]
    pub profile: Profile,
    /// Blocks per read, for --profile scan: of the instance, and from PostgreSQL 17 on (its
    /// `io_combine_limit`) [default: 4,8,16 and the largest possible read]
    #[arg(long = "multiblock", value_name = "BLOCKS", value_delimiter = ',')]
    pub scan_multiblock: Option<Vec<u32>>,
    /// Sessions that share the scan, for --profile scan [default: 1,16]
    #[arg(long = "parallel", value_name = "SESSIONS", value_delimiter = ',')]
    pub scan_parallel: Option<Vec<u32>>,
    /// Reads that each session keeps in flight, for --profile scan of the instance [default: 2]
    #[arg(long = "slots", value_name = "N")]
    pub scan_slots: Option<u32>,
    /// Processor time that a session spends on each row of the scan, one in a block, while its
    /// reads go on: 20us is about what count(*) takes for the rows of a block of 8K; for --profile
    /// scan of the instance [default: none]
    #[arg(long = "row-cost", value_name = "TIME")]
    pub scan_row_cost_ns: Option<Nanos>,
    /// Measure twice: without noise, then beside N writers that each loop over their own area
    /// [default N: 2]. The writes of `redo` are durable, like those of the log writers of other
    /// databases; `direct` writes bypass the page cache without a flush, and `buffered` ones go
    /// through it, like those of dd
    #[arg(long, value_name = "redo|direct|buffered[:N]")]
    #[serde(flatten)]
    pub noise: Option<Noise>,
    /// Area that each noise writer loops over: an array with a write cache absorbs smaller areas
    /// [default: 256M, or an eighth of the free space over all writers]
    #[arg(long = "noise-area", value_name = "SIZE", requires = "noise")]
    pub noise_area_bytes: Option<Bytes>,
    /// Bytes per write of the noise [default: 128K]
    #[arg(long = "noise-write", value_name = "SIZE", requires = "noise")]
    pub noise_write_bytes: Option<Bytes>,
}

/// Options of the files and of the way to them. The text on each is its help.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize)]
pub struct StorageOptions {
    /// Keep the files, for a later run that names them as PATH
    #[arg(long, help_heading = "Disks")]
    pub keep: bool,
    /// Speed of the link to the storage in MB/s, if the kernel does not know it
    #[arg(long = "link-mbps", value_name = "MB/S", help_heading = "Disks",
          value_parser = positive.map(|mb_per_s| mb_per_s * 1e6))]
    pub link_bytes_per_s: Option<f64>,
}

impl FormOptions {
    /// Returns the length of a window unless one is requested.
    pub fn run_time(&self) -> Nanos {
        match (self.profile, self.noise) {
            (Profile::Scan, _) => RUN_TIME_OF_MANY,
            (_, Some(_)) => RUN_TIME_OF_TWO,
            (_, None) => RUN_TIME,
        }
    }

    /// Returns the numbers of sessions that share a scan.
    pub fn parallel(&self) -> &[u32] {
        self.scan_parallel.as_deref().unwrap_or(&PARALLEL)
    }

    /// Returns the bytes per write of the noise.
    pub fn noise_write(&self) -> Bytes {
        self.noise_write_bytes.unwrap_or(noise::WRITE)
    }
}

/// Work of the sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Select and update rows, as SLOB does
    #[default]
    Slob,
    /// Transactions of order entry: of 100, 45 new orders, 43 payments, 4 order status, 4
    /// deliveries and 4 stock levels; no think time unless --think gives one
    Oltp,
    /// Make tables of existing rows (create table as select), one after the other: each is made,
    /// flushed to the medium and dropped
    BulkWrite,
    /// Scan one table with every combination of read size and number of sessions: of the instance
    /// past the buffer cache, of a database by a statement
    Scan,
}

/// `redo` or `redo:N`, and the same for the other modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Noise {
    #[serde(rename = "noise_mode")]
    pub mode: NoiseMode,
    #[serde(rename = "noise_writers")]
    pub writers: u32,
}

impl FromStr for Noise {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mode, writers) = text.split_once(':').unwrap_or((text, "2"));
        let mode = NoiseMode::ALL.iter().find(|known| known.name() == mode);
        let why = || {
            format!(
                "unknown noise `{text}`; write redo, direct or buffered, or redo:4 for four writers"
            )
        };
        let (mode, writers) = mode.zip(writers.parse().ok()).ok_or_else(why)?;
        Ok(Self { mode: *mode, writers })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manifest_stores_what_was_given_under_the_names_of_the_fields() {
        let options = FormOptions {
            profile: Profile::BulkWrite,
            noise: "redo:3".parse().ok(),
            noise_area_bytes: Some(Bytes::mib(1)),
            ..FormOptions::default()
        };
        let expected = json!({
            "store": null, "profile": "bulk-write", "scan_multiblock": null, "scan_parallel": null,
            "scan_slots": null, "scan_row_cost_ns": null, "noise_mode": "redo", "noise_writers": 3,
            "noise_area_bytes": 1 << 20, "noise_write_bytes": null,
        });
        assert_eq!(json!(options), expected);
    }

    #[test]
    fn noise_is_a_mode_and_a_number_of_writers() {
        let parsed = |text: &str| text.parse::<Noise>().map(|noise| (noise.mode, noise.writers));
        assert_eq!(parsed("direct"), Ok((NoiseMode::Direct, 2)));
        assert_eq!(parsed("buffered:4"), Ok((NoiseMode::Buffered, 4)));
        assert!(parsed("loud").unwrap_err().contains("redo:4"));
    }
}
