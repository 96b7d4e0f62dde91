//! Description of a measured load, in the terms of the field. Written into every phase of a
//! recording, so that a point can be repeated from its record alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::column::{Origin, Schema, Unit};
use crate::named;

named! {
    /// Kind of an operation.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Op {
        Read = "read",
        /// A write without a promise of durability.
        Write = "write",
        /// A durable write: the write and its flush, timed as one.
        Commit = "commit",
        /// Reads and writes in a fixed proportion, see [`LoadSpec::read_pct`].
        Mixed = "mixed",
    }
}

/// Order in which blocks are visited.
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

named! {
    /// Way in which writes through the file descriptors are made durable.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    SyncFlag {
        /// By separate calls.
        None = "none",
        Dsync = "dsync",
        Sync = "sync",
    }
}

named! {
    /// Way in which a commit is made durable.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    SyncMethod {
        /// A write with `O_DSYNC` semantics (`RWF_DSYNC`).
        Dsync = "O_DSYNC",
        /// A write followed by fdatasync(2).
        Fdatasync = "fdatasync",
        /// A write followed by fsync(2).
        Fsync = "fsync",
    }
}

/// Start of the next operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "loop")]
pub enum Pacing {
    /// As soon as one completes: the device sets the pace.
    Closed,
    /// At intended times, whatever the device does; latency counts from the intended start.
    Open {
        /// Intended operations per second over all workers.
        rate_per_s: f64,
        /// Exponential gaps (Poisson arrivals) when true, constant gaps when false.
        poisson: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSpec {
    /// Engine that submitted the load: `psync`, `uring`, `null` or `sim`.
    pub engine: String,
    pub op: Op,
    /// Reads per 100 operations, for [`Op::Mixed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_pct: Option<u32>,
    /// Order in which blocks are visited.
    pub access: Access,
    /// Bytes per operation.
    pub block_bytes: u64,
    /// Threads (for `psync`: blocking readers, writers or committers).
    pub workers: u32,
    /// Operations in flight per worker.
    pub depth_per_worker: u32,
    /// Bytes of the file, from its start or `offset_bytes`, that the load visits (the working set).
    pub span_bytes: u64,
    /// Offset in the file at which these bytes begin.
    #[serde(default, skip_serializing_if = "at_start")]
    pub offset_bytes: u64,
    /// Way in which commits are made durable, for [`Op::Commit`].
    pub sync: Option<SyncMethod>,
    /// Whether the latency of a commit is that of the flush alone, as etcd and fio state it, and
    /// not also that of the write before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flush_alone: bool,
    /// Whether the page cache is bypassed (`O_DIRECT`).
    pub direct: bool,
    /// Rule for the start of operations.
    pub pacing: Pacing,
    /// Seed for the choice of blocks and for the data.
    pub seed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn at_start(offset_bytes: &u64) -> bool {
    *offset_bytes == 0
}

impl LoadSpec {
    /// Returns the operations in flight over all workers.
    pub fn in_flight(&self) -> u32 {
        self.workers * self.depth_per_worker
    }

    /// Returns whether `other` asks the same of the storage: everything but the seed, which only
    /// chooses other blocks.
    pub fn same_point(&self, other: &Self) -> bool {
        *self == Self { seed: self.seed, ..other.clone() }
    }
}

/// The series a load generator records about itself at every tick: cumulative over its phase.
pub const SERIES: Schema = Schema {
    probe: "load",
    doc: "What the load generator completed since the phase began.",
    columns: &[
        GENERATOR.count("completed_ops", "Operations completed without error."),
        GENERATOR.bytes("completed_bytes", "Bytes of those operations."),
        GENERATOR.count("failed_ops", "Operations that returned an error or too few bytes."),
        GENERATOR.time("latency_ns_sum", "Sum of latencies from the intended start."),
        GENERATOR.time("service_ns_sum", "Sum of latencies from the submission."),
        GENERATOR
            .time("lag_ns_sum", "Sum of the delays of submissions after their intended start."),
        GENERATOR.level(
            "lag_ns_max",
            Unit::Nanoseconds,
            "Longest delay of a submission behind its intended start since the phase began.",
        ),
        GENERATOR
            .count("stamps_verified", "Blocks read whose stamp (address, sequence) was checked."),
        GENERATOR.count("checksums_verified", "Blocks read whose whole payload was checked too."),
        GENERATOR.count("mismatches", "Blocks read that did not match what was written."),
        GENERATOR.time(
            "late_ns_sum",
            "The part of the lag that is the load generator's own: not spent waiting for an \
             operation in flight to end.",
        ),
        GENERATOR.time("spin_ns_sum", "Time in which workers spun until the next intended start."),
        GENERATOR.time(
            "last_completed_ns",
            "Time since the recording began at which the last of these operations completed; 0 \
             without one.",
        ),
    ],
};

/// Share of a load that each of several files, directories or devices had: a row for each at every
/// tick, whose object is its path. Cumulative over the phase.
pub const SHARES: Schema = Schema {
    probe: "load_share",
    doc: "What the load generator completed on each of several targets since the phase began.",
    columns: &[
        GENERATOR.count("completed_ops", "Operations completed without error."),
        GENERATOR.bytes("completed_bytes", "Bytes of those operations."),
        GENERATOR.count("failed_ops", "Operations that returned an error or too few bytes."),
        GENERATOR.time("latency_ns_sum", "Sum of latencies from the intended start."),
    ],
};

/// A row for each round of sequential writes, through the page cache and past it.
pub const BUFFERED: Schema = Schema {
    probe: "buffered_write",
    doc: "Rounds of sequential writes of the same bytes, through the page cache and past it.",
    columns: &[
        GENERATOR.level("written_bytes", Unit::Bytes, "Bytes written in each of the two ways."),
        GENERATOR.level(
            "returned_ns",
            Unit::Nanoseconds,
            "From the start until the last write(2) through the page cache returned.",
        ),
        GENERATOR.level(
            "flushed_ns",
            Unit::Nanoseconds,
            "From the start until fsync(2) after them returned.",
        ),
        GENERATOR.level("direct_ns", Unit::Nanoseconds, "How long the direct writes took."),
    ],
};

/// A row for each turn in which sessions visited blocks that are all in the buffer cache.
pub const VISITS: Schema = Schema {
    probe: "cached_visits",
    doc: "Turns in which sessions of the miniature instance visited blocks in its buffer cache.",
    columns: &[
        GENERATOR.level("sessions", Unit::Count, "Sessions at the same time, each in a thread."),
        GENERATOR.level("visits", Unit::Count, "Blocks that they visited together."),
        GENERATOR.level("cpu_ns", Unit::Nanoseconds, "Processor time of their threads together."),
        GENERATOR.level(
            "elapsed_ns",
            Unit::Nanoseconds,
            "Time of the turn for each session, added up.",
        ),
    ],
};

/// A row for each flush timed by the amount written before it.
pub const FLUSHES: Schema = Schema {
    probe: "flush",
    doc: "Single flushes, each after a number of bytes written past the page cache.",
    columns: &[
        GENERATOR.level(
            "unflushed_bytes",
            Unit::Bytes,
            "Written since the flush before it, past the page cache.",
        ),
        GENERATOR.level("flush_ns", Unit::Nanoseconds, "How long fdatasync(2) took."),
    ],
};

const GENERATOR: Origin = Origin("load generator");
