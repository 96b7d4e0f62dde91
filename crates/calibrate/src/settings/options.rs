//! The options of a calibration, each declared once: the command line fills them in, the plan reads
//! them, and the manifest stores them under the names of the fields.

use std::collections::BTreeMap;

use blockstone_base::units::{Bytes, Nanos, positive};
use clap::builder::TypedValueParser;
use clap::{Args, Command, FromArgMatches, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use super::{OpenLoop, Preconditioning, Thoroughness};

/// Options of a calibration. The text on each is its help.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Options {
    /// Take a few seconds: too few points to rely on, enough for tests of what is made of
    /// a calibration
    #[arg(long, hide = true, conflicts_with_all = ["quick", "full"])]
    #[serde(skip)]
    pub brief: bool,
    /// Finish within 20 s: fewer points, shorter windows
    #[arg(long, conflicts_with = "full", help_heading = "Duration")]
    #[serde(skip)]
    pub quick: bool,
    /// Three interleaved rounds with longer windows (about 6 minutes)
    #[arg(long, help_heading = "Duration")]
    #[serde(skip)]
    pub full: bool,
    /// Database block size
    #[arg(
        long = "block-size",
        default_value = "8K",
        value_name = "SIZE",
        help_heading = "Measurement"
    )]
    pub block_bytes: Bytes,
    /// Size of the test file [default: 4G, or less]
    ///
    /// In each directory. The default is the least of 4G, a quarter of the free space, and what can
    /// be written in the time limit.
    #[arg(long = "size", value_name = "SIZE", help_heading = "Measurement")]
    pub asked_size_bytes: Option<Bytes>,
    /// Longest read to accept: p99 at the knee, mean at `max_iops`
    ///
    /// The knee is the load beyond which more requests in flight only wait longer.
    #[arg(
        long = "max-latency",
        default_value = "20ms",
        value_name = "TIME",
        help_heading = "Measurement"
    )]
    pub max_latency_ns: Nanos,
    /// Also measure small and large reads together, as Orion's matrix does (adds about 20 s, with
    /// --quick 8 s)
    #[arg(long, help_heading = "Measurement")]
    pub matrix: bool,
    /// Also write in order through the page cache, and show how fast write(2) returned and how fast
    /// the data were flushed, beside direct writes (adds up to 6 s)
    #[arg(long, conflicts_with_all = ["read_only", "buffered"], help_heading = "Measurement")]
    pub buffered_writes: bool,
    /// Also measure how many cached blocks a session visits per second of processor time, alone and
    /// with one session on each processor: a yardstick for processors (adds about 4 s)
    #[arg(long, help_heading = "Measurement")]
    pub cpu: bool,
    /// Numbers of 1 MiB reads in flight, in order and at random, each reader in a part of its own
    /// [default: 1,2,4,8; with --quick 1,4]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', num_args = 1,
          value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Measurement")]
    pub streams: Vec<u32>,
    /// Measure only this much of a file or device that is only read (short stroking)
    #[arg(
        long = "span",
        value_name = "SIZE",
        conflicts_with = "asked_size_bytes",
        help_heading = "Measurement"
    )]
    pub asked_span_bytes: Option<Bytes>,
    /// Measure from this offset of a file or device that is only read (zones of a disk)
    #[arg(
        long = "offset",
        value_name = "SIZE",
        default_value = "0",
        hide_default_value = true,
        conflicts_with = "asked_size_bytes",
        help_heading = "Measurement"
    )]
    pub offset_bytes: Bytes,
    /// Also measure these mixes of random reads and writes, and reads and writes alone, with as
    /// many in flight as at `max_iops` (adds up to 9 s for each mix, and 18 s for those alone)
    #[arg(long = "mix", value_name = "READS:WRITES", value_delimiter = ',', value_parser = mix,
          conflicts_with = "read_only", help_heading = "Measurement")]
    pub mixes_read_pct: Vec<u32>,
    /// Also imitate this store, judge by its limits; or --for STORE
    ///
    /// The loads are like those of this database or store, and its limits are checked;
    /// `--for help` lists them with their sources.
    #[arg(long, value_name = "STORE", value_parser = blockstone_stores::named(),
          hide_possible_values = true,
          conflicts_with_all = ["read_only", "buffered"], help_heading = "Measurement")]
    pub store: Option<String>,
    /// Also measure random reads started at this fixed rate per second, even if the storage cannot
    /// keep up
    #[arg(long = "rate", value_name = "IOPS", value_parser = positive,
          help_heading = "Measurement")]
    pub rate_per_s: Option<f64>,
    /// Distribution of the gaps between the operations of --rate
    #[arg(long, value_enum, default_value_t = Arrivals::Poisson, requires = "rate_per_s",
          help_heading = "Measurement")]
    #[serde(skip)]
    pub arrivals: Arrivals,
    /// Skip all measurements that write
    ///
    /// For a block device whose content is needed.
    #[arg(long, help_heading = "Measurement")]
    pub read_only: bool,
    /// Use the page cache, to see its effect on the results
    #[arg(long, help_heading = "Measurement")]
    pub buffered: bool,
    /// Keep the test file, for a later --file
    #[arg(long, help_heading = "Test file")]
    pub keep: bool,
    /// Speed of the link to the storage in MB/s, if the kernel does not know it
    #[arg(long = "link-mbps", value_name = "MB/S", help_heading = "Measurement",
          value_parser = positive.map(|mb_per_s| mb_per_s * 1e6))]
    pub link_bytes_per_s: Option<f64>,
    /// First write the whole device or test file twice, then at random in rounds until the rate has
    /// settled, as SNIA's Performance Test Specification does; beneath a file system only the test
    /// file is written
    #[arg(long, conflicts_with_all = ["read_only", "buffered"],
          help_heading = "Preconditioning")]
    pub precondition: bool,
    /// Longest time of --precondition
    #[arg(long = "precondition-limit", value_name = "TIME", default_value = "12h",
          requires = "precondition", help_heading = "Preconditioning",
          conflicts_with_all = ["read_only", "buffered"])]
    pub precondition_limit_ns: Nanos,
    /// Length of each round of --precondition, of which there are 25 at most
    #[arg(long = "precondition-round", value_name = "TIME", default_value = "60s",
          requires = "precondition", value_parser = round, help_heading = "Preconditioning",
          conflicts_with_all = ["read_only", "buffered"])]
    pub precondition_round_ns: Nanos,
}

impl Options {
    /// Returns what a command line of these words asks for.
    pub fn parse(words: &[&str]) -> Result<Self, clap::Error> {
        let command = Self::augment_args(Command::new("calibrate").no_binary_name(true));
        Self::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    pub fn thoroughness(&self) -> Thoroughness {
        match self {
            Self { brief: true, .. } => Thoroughness::Brief,
            Self { quick: true, .. } => Thoroughness::Quick,
            Self { full: true, .. } => Thoroughness::Full,
            _ => Thoroughness::Standard,
        }
    }

    pub fn open_loop(&self) -> Option<OpenLoop> {
        let poisson = self.arrivals == Arrivals::Poisson;
        self.rate_per_s.map(|rate_per_s| OpenLoop { rate_per_s, poisson })
    }

    pub fn preconditioning(&self) -> Option<Preconditioning> {
        let (limit, round) = (self.precondition_limit_ns, self.precondition_round_ns);
        self.precondition.then_some(Preconditioning { limit, round })
    }

    /// Returns them as a manifest stores them: without those that have no effect.
    pub fn settings(&self) -> BTreeMap<String, Value> {
        let Ok(Value::Object(all)) = serde_json::to_value(self) else { return BTreeMap::new() };
        let has_effect = |name: &str, value: &Value| match name {
            "buffered_writes" | "cpu" => *value == true,
            "offset_bytes" => *value != 0,
            "streams" | "mixes_read_pct" => value.as_array().is_some_and(|all| !all.is_empty()),
            "asked_span_bytes" | "rate_per_s" | "link_bytes_per_s" | "store" => !value.is_null(),
            "precondition_limit_ns" | "precondition_round_ns" => self.precondition,
            _ => true,
        };
        let mut settings: BTreeMap<String, Value> =
            all.into_iter().filter(|(name, value)| has_effect(name, value)).collect();
        if let Some(OpenLoop { poisson, .. }) = self.open_loop() {
            settings.insert("poisson".to_owned(), poisson.into());
        }
        settings.insert("thoroughness".to_owned(), self.thoroughness().name().into());
        settings
    }
}

/// Parses the length of a round.
fn round(text: &str) -> Result<Nanos, String> {
    let length: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    let bounds = Nanos::millis(1_000)..=Nanos::millis(3_600_000);
    bounds.contains(&length).then_some(length).ok_or_else(|| "it must be between 1s and 1h".into())
}

/// Parses a mix such as `70:30` and returns how many of 100 operations are reads.
fn mix(text: &str) -> Result<u32, String> {
    let (reads, writes) = text.split_once(':').ok_or("it has no colon: write 70:30")?;
    let part = |text: &str| text.parse::<u32>().map_err(|error| format!("{text}: {error}"));
    let (reads, writes) = (part(reads)?, part(writes)?);
    if reads.checked_add(writes) != Some(100) {
        return Err("its parts do not add up to 100".into());
    }
    let both = reads > 0 && writes > 0;
    both.then_some(reads).ok_or_else(|| "reads and writes alone are measured beside any mix".into())
}

/// Gaps between operations at a fixed rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arrivals {
    /// Exponential: independent users.
    Poisson,
    /// Constant.
    Fixed,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(words: &[&str]) -> Value {
        json!(Options::parse(words).unwrap().settings())
    }

    #[test]
    fn a_manifest_stores_what_has_an_effect_under_the_names_of_the_fields() {
        let usual = json!({
            "asked_size_bytes": null, "block_bytes": 8192, "buffered": false, "keep": false,
            "matrix": false, "max_latency_ns": 20_000_000, "precondition": false,
            "read_only": false, "thoroughness": "standard",
        });
        assert_eq!(stored(&[]), usual);
        let all = stored(&[
            "--quick",
            "--size=1G",
            "--cpu",
            "--streams=1,6",
            "--mix=70:30",
            "--rate=50",
            "--arrivals=fixed",
            "--link-mbps=1200",
            "--precondition",
        ]);
        let more = json!({
            "asked_size_bytes": 1 << 30, "cpu": true, "streams": [1, 6], "mixes_read_pct": [70],
            "rate_per_s": 50.0, "poisson": false, "link_bytes_per_s": 1.2e9, "precondition": true,
            "precondition_limit_ns": 43_200_000_000_000_u64,
            "precondition_round_ns": 60_000_000_000_u64, "thoroughness": "quick",
        });
        for (name, value) in more.as_object().unwrap() {
            assert_eq!(&all[name], value, "{name}");
        }
    }

    #[test]
    fn mixes_and_rounds_are_checked() {
        for words in ["--mix=70:31", "--mix=100:0", "--mix=70", "--precondition-round=0s"] {
            assert!(Options::parse(&["--precondition", words]).is_err(), "{words}");
        }
    }
}
