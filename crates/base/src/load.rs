//! What a measured load consisted of, in the field's terms. Written into every phase of a
//! recording, so that a point can be repeated from its record alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::column::{Column, Kind, Schema, Unit};

/// The direction of an operation.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    Read,
    /// A write without a promise of durability.
    Write,
    /// A durable write: the write and its flush, timed as one.
    Commit,
}

impl Op {
    /// Its name in recordings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Commit => "commit",
        }
    }
}

/// In which order blocks are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Uniformly random, aligned to the block size.
    Random,
    /// Ascending, each worker in its own part of the file.
    Sequential,
    /// Ascending, extending the file.
    Append,
}

/// How a commit is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SyncMethod {
    /// A write with `O_DSYNC` semantics (`RWF_DSYNC`).
    Dsync,
    /// A write followed by fdatasync(2).
    Fdatasync,
    /// A write followed by fsync(2).
    Fsync,
}

impl SyncMethod {
    /// As the field writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dsync => "O_DSYNC",
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
        }
    }
}

/// When the next operation starts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "loop")]
pub enum Pacing {
    /// As soon as one completes: the device sets the pace.
    Closed,
    /// At intended instants, whatever the device does; latency counts from the intended start.
    Open {
        /// Intended operations per second over all workers.
        rate_per_s: f64,
        /// Exponential gaps (Poisson arrivals) when true, constant gaps when false.
        poisson: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSpec {
    /// The engine that submitted it: `psync`, `uring`, `null` or `sim`.
    pub engine: String,
    pub op: Op,
    /// The order of the blocks.
    pub access: Access,
    /// Bytes an operation.
    pub block_bytes: u64,
    /// Threads (for `psync`: blocking readers, writers or committers).
    pub workers: u32,
    /// Operations in flight a worker.
    pub depth_per_worker: u32,
    /// Bytes of the file, from its start, that the load visits (the working set).
    pub span_bytes: u64,
    /// How commits are made durable, for [`Op::Commit`].
    pub sync: Option<SyncMethod>,
    /// Whether the page cache was bypassed (`O_DIRECT`).
    pub direct: bool,
    /// When operations start.
    pub pacing: Pacing,
    /// Seed of the block choice and the data.
    pub seed: u64,
}

impl LoadSpec {
    /// Operations in flight over all workers.
    pub fn in_flight(&self) -> u32 {
        self.workers * self.depth_per_worker
    }

    /// Whether `other` asks the same of the storage: everything but the seed, which only chooses
    /// other blocks.
    pub fn same_point(&self, other: &Self) -> bool {
        *self == Self { seed: self.seed, ..other.clone() }
    }
}

/// The series a load generator records about itself at every tick: cumulative over its phase.
pub const SERIES: Schema = Schema {
    probe: "load",
    doc: "What the load generator completed since the phase began.",
    columns: &[
        counter("completed_ops", Unit::Count, "Operations completed without error."),
        counter("completed_bytes", Unit::Bytes, "Bytes of those operations."),
        counter("failed_ops", Unit::Count, "Operations that returned an error or too few bytes."),
        counter("latency_ns_sum", Unit::Nanoseconds, "Sum of latencies from the intended start."),
        counter("service_ns_sum", Unit::Nanoseconds, "Sum of latencies from the submission."),
        counter(
            "lag_ns_sum",
            Unit::Nanoseconds,
            "Sum of how late operations were submitted after their intended start.",
        ),
        Column {
            name: "lag_ns_max",
            unit: Unit::Nanoseconds,
            kind: Kind::Gauge,
            source: "load generator",
            doc: "Longest delay of a submission behind its intended start since the phase began.",
        },
        counter(
            "stamps_verified",
            Unit::Count,
            "Blocks read whose stamp (address, sequence) was checked.",
        ),
        counter(
            "checksums_verified",
            Unit::Count,
            "Blocks read whose whole payload was checked too.",
        ),
        counter("mismatches", Unit::Count, "Blocks read that did not match what was written."),
    ],
};

const fn counter(name: &'static str, unit: Unit, doc: &'static str) -> Column {
    Column { name, unit, kind: Kind::Counter, source: "load generator", doc }
}
