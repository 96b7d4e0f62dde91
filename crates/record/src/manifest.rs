//! The manifest: everything about a recording that is not a series. Rewritten atomically, each time
//! a phase ends, so that a crash leaves a manifest that is true up to that phase.

use std::collections::BTreeMap;

use blockstone_base::capability::Capability;
pub use blockstone_base::column::Unmeasured;
use blockstone_base::column::{Kind, Schema, Unit};
use blockstone_base::identity::{FileMap, Host, ProcessorUse, StorageTarget};
use blockstone_base::load::LoadSpec;
use blockstone_base::stats::Estimate;
use blockstone_base::verdict::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const FORMAT: &str = "blockstone.recording/1";

pub const MANIFEST: &str = "manifest.json";

/// The content of [`MANIFEST`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`] at the time of writing.
    pub format: String,
    /// Short random identity, also the end of the directory's name.
    pub id: String,
    /// Version of Blockstone that wrote it.
    pub tool_version: String,
    /// The command: `calibrate`.
    pub verb: String,
    /// The command line, as given.
    pub argv: Vec<String>,
    /// The settings after defaults, as the [`Parameters`](crate::Parameters) of the verb name them.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Seed of all random choices and data.
    pub seed: u64,
    /// Wall-clock start, RFC 3339; every `_ns` instant counts from it on `CLOCK_MONOTONIC`.
    pub started_at: String,
    /// Wall-clock end, RFC 3339; none while running or after a crash.
    pub ended_at: Option<String>,
    pub end: End,
    pub host: Host,
    /// Whose measurements these are, if they are not Blockstone's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// What was measured; of several targets, the first of them with the devices of all, those at
    /// the top of a chain first.
    pub target: StorageTarget,
    /// The targets of a calibration that measured several as one; empty for one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Measured>,
    /// The file that was read and written, as it lay on the device.
    pub file: Option<FileEvidence>,
    /// The files or devices that served a database as disks, as they lay once it was loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disk_files: Vec<FileEvidence>,
    /// Files in which a database on this machine keeps the rows that are visited, once loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_files: Vec<FileEvidence>,
    /// What the measurement could do, and what not and why.
    pub capabilities: Vec<NamedCapability>,
    /// Rows before this instant were dropped while it was recorded; those of series of states, and
    /// of a segment that reaches beyond it, are still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_before_ns: Option<u64>,
    /// The phases in order; a row's `phase` is an index into them.
    pub phases: Vec<Phase>,
    /// The machine's clocks at the start, after each phase and at the end; none in recordings of
    /// older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockReading>,
    pub probes: Vec<ProbeInfo>,
    /// The figures that were derived, by name.
    pub summary: BTreeMap<String, Figure>,
    pub verdicts: Vec<Verdict>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum End {
    /// It has not ended: either it still runs or it was killed.
    Running,
    /// All phases ran.
    #[default]
    Complete,
    /// A signal ended it early; all that was measured until then is here.
    Interrupted { signal: String },
    /// An error ended it early; all that was measured until then is here.
    Failed { error: String },
}

impl End {
    /// Ended by this signal, if any.
    pub fn by(signal: Option<&str>) -> Self {
        signal.map_or(Self::Complete, |name| Self::Interrupted { signal: name.to_owned() })
    }
}

/// Where a recording comes from that Blockstone did not measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// The tool that measured: `collectl`, `sar`, `iostat`.
    pub tool: String,
    /// Its version, where the file says it.
    pub tool_version: Option<String>,
    /// The file, as it was named.
    pub file: String,
    /// What the file holds: counters, or rates.
    pub holds: String,
    /// What was left out, and what was taken for what.
    pub notes: Vec<String>,
}

impl Imported {
    pub fn told_by(&self) -> String {
        let version = self.tool_version.iter().map(String::as_str);
        std::iter::once(self.tool.as_str()).chain(version).collect::<Vec<_>>().join(" ")
    }

    pub fn line(&self) -> String {
        let (by, file, holds) = (self.told_by(), &self.file, &self.holds);
        let line = format!("imported, not measured by Blockstone: {by}, {file}: {holds}");
        std::iter::once(&line).chain(&self.notes).cloned().collect::<Vec<_>>().join("; ")
    }
}

/// A capability by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedCapability {
    /// What: `direct-io`, `engine-uring`, `fiemap`.
    pub name: String,
    /// Whether and why not.
    #[serde(flatten)]
    pub capability: Capability,
}

/// The file under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileEvidence {
    pub path: String,
    /// Whether Blockstone wrote it (only then is it ever written to, and stamps can be verified).
    pub ours: bool,
    /// How it lies on the device.
    pub map: FileMap,
    /// What its data look like.
    pub sample: Option<DataSample>,
}

/// One of several files, directories or devices that were measured as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    pub target: StorageTarget,
    /// Whether the page cache was bypassed.
    pub direct: Capability,
    /// The file that was read and written, as it lay on the device; none before it was examined.
    pub file: Option<FileEvidence>,
}

/// A look at the data themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DataSample {
    /// Bytes looked at.
    pub sampled_bytes: u64,
    /// Bytes in blocks of zeros only.
    pub zero_bytes: u64,
    /// Bytes left after LZ4 on each block.
    pub lz4_bytes: u64,
    /// Bytes in blocks that occur a second time in the sample.
    pub duplicate_bytes: u64,
}

/// How far the machine's clocks were ahead of the monotonic one that counts `t_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Since the recording began.
    pub t_ns: u64,
    /// `CLOCK_REALTIME` − `CLOCK_MONOTONIC`: changes when the wall clock is set or the machine was
    /// suspended.
    pub realtime_offset_ns: i64,
    /// `CLOCK_BOOTTIME` − `CLOCK_MONOTONIC`: how long the machine was suspended since it started.
    pub boottime_offset_ns: i64,
}

/// What kind of question a phase answers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// The tool's own cost per I/O, on the null engine.
    Overhead,
    /// Writing the test file.
    Layout,
    /// Writes that bring flash to its steady state: a pass before the layout, and random rounds
    /// after it.
    Precondition,
    /// The same reference point at several times of the run: drift.
    Reference,
    RandomRead,
    LargeRead,
    RandomWrite,
    /// Durable writes.
    Commit,
    /// Flushes by what was written before them.
    FlushSlope,
    /// Sequential writes through the page cache, beside direct ones.
    BufferedWrite,
    /// Visits of cached blocks, which need no storage: what processor time gives.
    CachedVisits,
    /// Random reads in working sets of growing size.
    CacheMap,
    /// Small and large reads together.
    Matrix,
    /// Random reads and writes in a fixed proportion, and either alone with as many in flight.
    Mix,
    /// Random reads at a given rate, whatever the device does.
    OpenLoop,
    /// Cached against direct sequential reads.
    CachedRead,
    /// Longer looks at the points that became headlines.
    Confirm,
    /// Setting a database up and filling its schemas.
    Load,
    /// A workload's sessions on a database.
    Workload,
    /// Sessions that share one scan past the buffer cache: a point of the direct-path matrix.
    Scan,
    /// Sequential writes beside whatever else uses the storage.
    Noise,
    /// The same storage and whoever uses it, while the noise pauses.
    Quiet,
    /// A host watched, whatever ran on it.
    Watch,
}

/// One phase: a load held for a while, or a preparation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Names the point, the same in every repeat: `random-read/psync/8K/x4`.
    pub label: String,
    pub group: Group,
    /// 0 for the first time this label is measured, 1 for the second …
    pub repeat: u32,
    /// The load; none for a preparation.
    pub load: Option<LoadSpec>,
    /// A second load that ran beside it (the large reads of a matrix cell, the noise beside a
    /// workload); its series rows have the object `background`.
    pub background: Option<LoadSpec>,
    /// When the load started, in nanoseconds since the recording began.
    pub start_ns: u64,
    /// When warm-up was over: the window's first edge. Every probe has a row at this very `t_ns`.
    pub window_start_ns: u64,
    /// The window's second edge, while the load still ran. Every probe has a row at this `t_ns`.
    pub window_end_ns: u64,
    /// When the load had stopped.
    pub end_ns: u64,
    pub stop: Stop,
    /// True where the rate was shown to be level, before the window or in it; false where it moved
    /// in the window. None where neither was shown, without a warm-up, and in recordings of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<bool>,
    /// What the processors did in the window; none where it was not read, and in recordings of
    /// older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<ProcessorUse>,
    /// The first I/O error, if any, with operation, offset and cause.
    pub first_error: Option<String>,
    /// What a reader should know about this phase.
    pub note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The 95 % interval of the rate became narrower than asked for.
    IntervalReached,
    TimeLimit,
    /// All its work was done (a layout, an append that reached its size).
    WorkDone,
    Interrupted,
    /// It could not go on.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeInfo {
    /// Its name, and its file in `series/`; where several instances of a database are watched, with
    /// the name of the instance behind an `@`: `event@postgres@5432`.
    pub probe: String,
    /// What it observes.
    pub doc: String,
    pub columns: Vec<ColumnInfo>,
    pub ticks: u64,
    /// Ticks whose deadline passed before they could be taken.
    pub missed_ticks: u64,
}

impl ProbeInfo {
    /// The series of one of several instances of a database.
    pub fn of_instance(schema: &Schema, instance: &str) -> Self {
        Self { probe: series_of(schema.probe, Some(instance)), ..Self::of(schema) }
    }

    /// Its name without that of an instance.
    pub fn kind(&self) -> &str {
        kind_and_instance(&self.probe).0
    }

    /// The instance that it is of; none where there is only one.
    pub fn instance(&self) -> Option<&str> {
        kind_and_instance(&self.probe).1
    }

    pub fn of(schema: &Schema) -> Self {
        let columns = schema.columns.iter().map(|column| ColumnInfo {
            name: column.name.to_owned(),
            unit: column.unit,
            kind: column.kind,
            source: column.source.to_owned(),
            doc: column.doc.to_owned(),
            unmeasured: None,
        });
        Self {
            probe: schema.probe.to_owned(),
            doc: schema.doc.to_owned(),
            columns: columns.collect(),
            ticks: 0,
            missed_ticks: 0,
        }
    }
}

/// The name of a probe's series of an instance.
pub fn series_of(probe: &str, instance: Option<&str>) -> String {
    instance.map_or_else(|| probe.to_owned(), |instance| format!("{probe}@{instance}"))
}

/// What [`series_of`] made a name of.
pub fn kind_and_instance(series: &str) -> (&str, Option<&str>) {
    series.split_once('@').map_or((series, None), |(kind, instance)| (kind, Some(instance)))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnInfo {
    pub name: String,
    pub unit: Unit,
    /// How it behaves in time.
    pub kind: Kind,
    pub source: String,
    pub doc: String,
    /// Why its cells are empty, when they are.
    pub unmeasured: Option<Unmeasured>,
}

/// A derived number with everything a reader needs to believe it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// What it is, for people: `Most random reads a second`.
    pub title: String,
    /// Its unit as printed: `IOPS`, `MB/s`, `ns`.
    pub unit: String,
    /// The number with its interval and sample.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Label of the phase it was read from.
    pub phase: String,
    /// Rules that condemn it; empty when it stands.
    pub condemned_by: Vec<String>,
}
