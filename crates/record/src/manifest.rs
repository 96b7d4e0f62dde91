//! The manifest: everything about a recording that is not a series. It is rewritten atomically each
//! time a phase ends, so that a crash leaves a manifest that is correct up to that phase.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::{io, iter};

use blockstone_base::capability::Capability;
pub use blockstone_base::column::Unmeasured;
use blockstone_base::column::{Kind, Schema, Unit};
use blockstone_base::hint::Hint;
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
    /// Short random id, also the suffix of the directory's name.
    pub id: String,
    /// Version of Blockstone that wrote it.
    pub tool_version: String,
    /// Command that was run, such as `calibrate`.
    pub verb: String,
    /// Command line, as given.
    pub argv: Vec<String>,
    /// Settings after defaults, under the names in the [`Parameters`](crate::Parameters) of the
    /// verb.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Seed of all random choices and data.
    pub seed: u64,
    /// Wall-clock start, RFC 3339; every `_ns` instant counts from it on `CLOCK_MONOTONIC`.
    pub started_at: String,
    /// Wall-clock end, RFC 3339; null while running or after a crash.
    pub ended_at: Option<String>,
    pub end: End,
    pub host: Host,
    /// Source of the measurements, if they are not Blockstone's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// Place of this process among several that applied one load together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// Recordings that this one was merged from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
    /// Target of the measurement; for several targets, the first one with the devices of all, those
    /// at the top of a chain first.
    pub target: StorageTarget,
    /// Targets of a calibration that measured several as one; empty for a single one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Measured>,
    /// The test file and its layout on the device.
    pub file: Option<FileEvidence>,
    /// Files or devices that a database used as disks, with their layout once it was loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disk_files: Vec<FileEvidence>,
    /// Files in which a database on this machine stores the rows that are visited, once loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_files: Vec<FileEvidence>,
    /// Capabilities of the measurement, with the reasons for those that were missing.
    pub capabilities: Vec<NamedCapability>,
    /// Rows before this instant were dropped during the recording; those of series of states, and
    /// of a segment that extends beyond it, are still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_before_ns: Option<u64>,
    /// The phases in order; a row's `phase` is an index into them.
    pub phases: Vec<Phase>,
    /// Readings of the machine's clocks at the start, after each phase and at the end; empty in
    /// recordings of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockReading>,
    /// Readings of the `NVMe` controllers beneath the target at the start and at the end; empty if
    /// there are none, if they could not be asked, and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<DriveReading>,
    pub probes: Vec<ProbeInfo>,
    /// Derived figures, by name.
    pub summary: BTreeMap<String, Figure>,
    pub verdicts: Vec<Verdict>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum End {
    /// The recording has not ended: either it is still running or it was killed.
    Running,
    /// All phases ran.
    #[default]
    Complete,
    /// A signal ended it early; everything measured until then was recorded.
    Interrupted { signal: String },
    /// An error ended it early; everything measured until then was recorded.
    Failed {
        error: String,
        /// Hint about it, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// Number of the operating system's error that caused it (errno(3)), if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        errno: Option<i32>,
    },
}

impl End {
    /// Returns `Interrupted` if there was a signal, otherwise `Complete`.
    pub fn by(signal: Option<&str>) -> Self {
        signal.map_or(Self::Complete, |name| Self::Interrupted { signal: name.to_owned() })
    }

    /// Returns `Failed` by this error, with the number of the system's error among its causes.
    pub fn failed(error: &(impl Hint + 'static)) -> Self {
        Self::failed_by(error, error.hint().map(Cow::into_owned))
    }

    /// Returns `Failed` by an error whose hint is known from elsewhere.
    pub fn failed_by(error: &(dyn Error + 'static), hint: Option<String>) -> Self {
        let mut causes = iter::successors(Some(error), |&error| error.source());
        let errno = causes.find_map(|cause| cause.downcast_ref::<io::Error>()?.raw_os_error());
        Self::Failed { error: error.to_string(), hint, errno }
    }

    /// Returns the number of the system's error that ended it.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Failed { errno: Some(errno), .. } => Some(*errno),
            Self::Failed { error, errno: None, .. } => before::errno(error),
            _ => None,
        }
    }

    /// Returns the error that ended it, and what to do about it.
    pub fn failure(&self) -> Option<(&str, Option<&str>)> {
        match self {
            Self::Failed { error, hint: None, .. } => Some(before::parts(error)),
            Self::Failed { error, hint, .. } => Some((error, hint.as_deref())),
            _ => None,
        }
    }
}

/// For manifests that predate `errno` and `hint`.
mod before {
    /// Returns an error and its hint, which manifests had on a second line of the error.
    pub fn parts(error: &str) -> (&str, Option<&str>) {
        error.split_once("\nhint: ").map_or((error, None), |(error, hint)| (error, Some(hint)))
    }

    /// Returns the number that the standard library wrote into the text of an error.
    pub fn errno(error: &str) -> Option<i32> {
        let (_, number) = error.rsplit_once("(os error ")?;
        number.split(')').next()?.parse().ok()
    }
}

/// Source of a recording that Blockstone did not measure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// Tool that took the measurements: `collectl`, `sar`, `iostat`.
    pub tool: String,
    /// Version of the tool, if the file gives it.
    pub tool_version: Option<String>,
    /// Name of the imported file, as given.
    pub file: String,
    /// Contents of the file: counters, or rates.
    pub holds: String,
    /// Data that was left out, and assumptions made.
    pub notes: Vec<String>,
    /// Databases whose own history was imported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ImportedObject>,
}

/// A database whose own history was imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedObject {
    /// Its name in the objects of series, before the instance.
    pub name: String,
    /// Reports that it was imported from: `awr`, `awr-global`, `statspack`, `awr-miner`, `csv`, or
    /// several of them, such as `awr+statspack`.
    pub kind: String,
    /// Name of the pluggable database, if the reports are only of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Whether the time of its interval is unknown: it begins in 1970.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undated: bool,
}

impl ImportedObject {
    /// Whether a series is of this database: its objects are named `name/instance`.
    pub fn is_of(&self, object: &str) -> bool {
        object.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl Imported {
    pub fn told_by(&self) -> String {
        let version = self.tool_version.iter().map(String::as_str);
        iter::once(self.tool.as_str()).chain(version).collect::<Vec<_>>().join(" ")
    }

    pub fn line(&self) -> String {
        let (by, file, holds) = (self.told_by(), &self.file, &self.holds);
        let line = format!("imported, not measured by Blockstone: {by}, {file}: {holds}");
        iter::once(&line).chain(&self.notes).cloned().collect::<Vec<_>>().join("; ")
    }
}

/// Place of a process among several, the ranks, that applied one load together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// Number of this rank, from 0 on.
    pub rank: u32,
    /// Number of all ranks.
    pub ranks: u32,
    /// Source of these two numbers: `options`, or the name of a launcher, such as `slurm`.
    pub launcher: String,
    /// Hash of version, seed and settings, in which all ranks must agree, in hexadecimal.
    pub plan: String,
    /// Wall-clock time at which the load of all ranks was to begin, RFC 3339; null if none was
    /// agreed.
    pub start_at: Option<String>,
    /// How far the wall clock may have been from UTC, in nanoseconds, according to the kernel; null
    /// if nothing synchronises it.
    pub clock_bound_ns: Option<u64>,
}

/// Origin of a recording that was merged from those of several ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Merged {
    /// Number of ranks that applied the load; `ranks` has fewer if the merge is partial.
    pub expected: u32,
    /// Reasons why the merge is partial, one for each rank that is missing; empty if none is.
    pub missing: Vec<String>,
    /// Smallest share of a rank's window that the common window covers, 0 to 1, in any phase with a
    /// load.
    pub overlap_ratio: f64,
    /// The same by the label of each phase.
    pub overlaps: BTreeMap<String, f64>,
    /// Series and phases that could not be merged, and why.
    pub left_out: Vec<String>,
    /// How far apart the clocks of two ranks may have been, in nanoseconds: the window of each rank
    /// was cut by its own bound. Null if that of a rank is unknown.
    pub clock_bound_ns: Option<u64>,
    /// Label of the phase that `ranks` describes.
    pub phase: String,
    pub ranks: Vec<MergedRank>,
}

/// One rank of a merged recording, in the common window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergedRank {
    pub rank: u32,
    pub host: String,
    /// Id of its recording.
    pub recording: String,
    /// Operations a second; null if they were not measured.
    pub ops_per_s: Option<f64>,
    /// Mean latency, in nanoseconds; null without an operation.
    pub latency_ns_mean: Option<f64>,
    /// 99th percentile of the latency, in nanoseconds; null with too few operations.
    pub latency_ns_p99: Option<u64>,
    /// Share of its window that the common window covers, 0 to 1.
    pub overlap_ratio: f64,
    /// How far its wall clock may have been from UTC, in nanoseconds; null if unknown.
    pub clock_bound_ns: Option<u64>,
    /// Its operations a second ÷ the median of all ranks, if that sets it apart from them.
    pub outlier_ratio: Option<f64>,
    /// Whether its recording has verdicts.
    pub is_judged: bool,
    /// Rules that condemned any of its figures.
    pub condemned_by: Vec<String>,
    /// Rules that warned of any of its figures.
    pub warned_by: Vec<String>,
}

/// A capability and its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedCapability {
    /// Name of the capability: `direct-io`, `engine-uring`, `fiemap`.
    pub name: String,
    /// Whether it is available, and if not, why.
    #[serde(flatten)]
    pub capability: Capability,
}

/// The file under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileEvidence {
    pub path: String,
    /// Whether Blockstone wrote it (only then is it ever written to, and can stamps be verified).
    pub ours: bool,
    /// Layout of the file on the device.
    pub map: FileMap,
    /// Sample of its data.
    pub sample: Option<DataSample>,
}

/// One of several files, directories or devices that were measured as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    pub target: StorageTarget,
    /// Whether the page cache was bypassed.
    pub direct: Capability,
    /// The test file and its layout on the device; null before it was examined.
    pub file: Option<FileEvidence>,
}

/// Properties of a sample of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DataSample {
    /// Bytes sampled.
    pub sampled_bytes: u64,
    /// Bytes in blocks that consist only of zeros.
    pub zero_bytes: u64,
    /// Bytes left after LZ4 on each block.
    pub lz4_bytes: u64,
    /// Bytes in blocks that repeat an earlier block of the sample.
    pub duplicate_bytes: u64,
}

/// Offsets of the machine's clocks from the monotonic one that `t_ns` is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Time since the recording began, in nanoseconds.
    pub t_ns: u64,
    /// `CLOCK_REALTIME` − `CLOCK_MONOTONIC`: changes when the wall clock is set or the machine has
    /// been suspended.
    pub realtime_offset_ns: i64,
    /// `CLOCK_BOOTTIME` − `CLOCK_MONOTONIC`: time the machine has been suspended since it booted.
    pub boottime_offset_ns: i64,
}

/// Heat and power of an `NVMe` controller, from its SMART log and its features.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveReading {
    /// Time since the recording began, in nanoseconds.
    pub t_ns: u64,
    /// Kernel name, such as `nvme0`.
    pub controller: String,
    pub temperature_kelvin: Option<u16>,
    /// Whether it warns of its temperature.
    pub is_hot: bool,
    /// Minutes of its life above the temperature that it warns of, and above the critical one.
    pub warm_minutes: u32,
    pub critical_minutes: u32,
    /// How often in its life it slowed itself down to cool: lightly, and at any cost.
    pub throttled: [u32; 2],
    /// Seconds of its life for which it did.
    pub throttled_s: [u32; 2],
    /// Power state, if it serves I/O in it; 0 is the one of most power.
    pub power_state: Option<u8>,
    /// Most power that it may take in that state, in milliwatts.
    pub power_mw_max: Option<u64>,
}

/// Kind of question that a phase answers.
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
    /// The same reference point at several times during the run, to detect drift.
    Reference,
    RandomRead,
    LargeRead,
    RandomWrite,
    /// Durable writes.
    Commit,
    /// Flushes, by the amount written before them.
    FlushSlope,
    /// Sequential writes through the page cache, compared with direct ones.
    BufferedWrite,
    /// Visits of cached blocks, which need no storage: the rate that processor time allows.
    CachedVisits,
    /// Random reads in working sets of growing size.
    CacheMap,
    /// Small and large reads together.
    Matrix,
    /// Random reads and writes in a fixed proportion, and each of them alone at the same queue
    /// depth.
    Mix,
    /// Loads of the store that the storage is measured for.
    Store,
    /// Random reads at a given rate, whatever the device does.
    OpenLoop,
    /// Cached against direct sequential reads.
    CachedRead,
    /// Longer measurements of the points that became headlines.
    Confirm,
    /// Setting a database up and filling its schemas.
    Load,
    /// A workload's sessions on a database.
    Workload,
    /// Sessions that share one scan past the buffer cache: a point of the direct-path matrix.
    Scan,
    /// Sequential writes alongside other users of the storage.
    Noise,
    /// The same storage and users while the noise pauses.
    Quiet,
    /// A host under observation, whatever ran on it.
    Watch,
}

/// A phase: a load held for a while, or a preparation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name of the point, the same in every repeat: `random-read/psync/8K/x4`.
    pub label: String,
    pub group: Group,
    /// 0 for the first measurement of this label, 1 for the second …
    pub repeat: u32,
    /// Load of the phase; null for a preparation.
    pub load: Option<LoadSpec>,
    /// A second load that ran at the same time (the large reads of a matrix cell, the noise during
    /// a workload); its series rows have the object `background`.
    pub background: Option<LoadSpec>,
    /// Start of the load, in nanoseconds since the recording began.
    pub start_ns: u64,
    /// End of warm-up and first edge of the window. Every probe has a row at exactly this `t_ns`.
    pub window_start_ns: u64,
    /// Second edge of the window, while the load was still running. Every probe has a row at this
    /// `t_ns`.
    pub window_end_ns: u64,
    /// Time at which the load had stopped.
    pub end_ns: u64,
    pub stop: Stop,
    /// True if the rate was shown to be level, before the window or in it; false if it moved in the
    /// window. Null if neither was shown, without a warm-up, and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<bool>,
    /// Use of the processors in the window; null if it was not read, and in recordings of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<ProcessorUse>,
    /// The first I/O error, if any, with operation, offset and cause.
    pub first_error: Option<String>,
    /// Remark about this phase for readers.
    pub note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The 95 % interval of the rate became narrower than required.
    IntervalReached,
    TimeLimit,
    /// All its work was done (a layout, an append that reached its size).
    WorkDone,
    Interrupted,
    /// An error made it impossible to continue.
    Failed,
}

impl Stop {
    /// Returns the words for people and documents.
    pub const fn words(self) -> &'static str {
        match self {
            Self::IntervalReached => "narrow interval",
            Self::TimeLimit => "time limit",
            Self::WorkDone => "work done",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeInfo {
    /// Name of the probe, and of its file in `series/`; if several instances of a database are
    /// watched, followed by `@` and the name of the instance: `event@postgres@5432`.
    pub probe: String,
    /// Description of what it observes.
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

    /// Returns its name without that of an instance.
    pub fn kind(&self) -> &str {
        kind_and_instance(&self.probe).0
    }

    /// Returns the instance it belongs to; `None` if there is only one.
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

/// Returns the name of a probe's series for an instance.
pub fn series_of(probe: &str, instance: Option<&str>) -> String {
    instance.map_or_else(|| probe.to_owned(), |instance| format!("{probe}@{instance}"))
}

/// Splits a name made by [`series_of`] into probe and instance.
pub fn kind_and_instance(series: &str) -> (&str, Option<&str>) {
    series.split_once('@').map_or((series, None), |(kind, instance)| (kind, Some(instance)))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnInfo {
    pub name: String,
    pub unit: Unit,
    /// Behaviour over time.
    pub kind: Kind,
    pub source: String,
    pub doc: String,
    /// Why its cells are empty, if they are.
    pub unmeasured: Option<Unmeasured>,
}

/// A derived number with everything a reader needs to trust it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Title for people: `Most random reads a second`.
    pub title: String,
    /// Unit as printed: `IOPS`, `MB/s`, `ns`.
    pub unit: String,
    /// The number with its interval and sample.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Label of the phase it was derived from.
    pub phase: String,
    /// Rules that condemn it; empty if it stands.
    pub condemned_by: Vec<String>,
}
