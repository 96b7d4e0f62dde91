//! Findings of `check coherence`: which writes of one rank the others see, and when, by how they
//! write and read. Data only: it is measured elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use blockstone_base::named;
use blockstone_base::rule::Judged;

named! {
    /// Guarantee that readers may rely on, from the strongest to the weakest.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Class {
        /// Every read returns what was acknowledged before it.
        Linearizable = "linearizable",
        /// Late, by less than a second, and never back to an older version.
        Sequential = "sequential",
        /// Fresh once the reader opens the file again (close-to-open).
        Reopen = "reopen",
        /// Fresh after a time.
        Timer = "timer",
        /// Not fresh within the time waited.
        Never = "never",
        /// Data that no rank wrote, two versions in one block, an older version after a newer one,
        /// or the write of a neighbour undone.
        Torn = "torn",
        /// It could not be tried.
        Unknown = "unknown",
    }
}

named! {
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    WriteMode {
        /// write(2), through the page cache.
        Buffered = "buffered",
        /// Like `Buffered`, then fdatasync(2).
        Fdatasync = "fdatasync",
        /// Like `Buffered`, with `RWF_DSYNC`.
        Dsync = "dsync",
        /// With `O_DIRECT`.
        Direct = "direct",
        /// To memory mapped to the file (mmap(2)), then msync(2).
        Mapped = "mapped",
    }
}

named! {
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    ReadMode {
        /// Through the page cache, from a descriptor that stays open.
        Held = "held",
        /// Through the page cache, from a descriptor that is opened for each read.
        Reopened = "reopened",
        /// With `O_DIRECT`.
        Direct = "direct",
        /// From memory that stays mapped to the file.
        Mapped = "mapped",
    }
}

impl ReadMode {
    /// Returns whether it continues with what it opened once, so that opening the file again may
    /// show more.
    pub const fn stays_open(self) -> bool {
        matches!(self, Self::Held | Self::Mapped)
    }
}

/// A read or write of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WitnessOperation {
    pub rank: u32,
    /// `write`, `read`, or the operation on a name.
    pub operation: String,
    /// Block or name that was accessed.
    pub subject: String,
    /// Version that the operation wrote or returned.
    pub version: u64,
    /// Nanoseconds since the check started, on the clock of rank 0.
    pub start_ns: u64,
    /// Nanoseconds since the check started; null for an operation that was not acknowledged.
    pub end_ns: Option<u64>,
}

/// One case that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Name of the case: `ping-pong/buffered/held` states how data were written and how they were
    /// read.
    pub case: String,
    pub class: Class,
    /// Observations, with numbers.
    pub evidence: String,
    /// Operations that were judged.
    pub operations: u64,
    /// Reads that did not return what was acknowledged before them.
    pub stale: u64,
    /// Error of the kernel, if the case could not be tried.
    pub error: Option<String>,
    /// Median nanoseconds from the acknowledgement of a write to the end of the first read that
    /// returns it; null for fewer than two reads, and if a write was not seen.
    pub lag_ns_p50: Option<u64>,
    pub lag_ns_p99: Option<u64>,
    pub lag_ns_max: Option<u64>,
    /// The two operations that contradict coherence: the second should have seen the first.
    pub witness: Option<[WitnessOperation; 2]>,
}

impl Cell {
    /// Returns whether readers can miss what was acknowledged.
    pub fn is_incoherent(&self) -> bool {
        !matches!(self.class, Class::Linearizable | Class::Unknown)
    }
}

/// Findings of `check coherence`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoherenceFindings {
    /// Paths that were checked.
    pub subject: String,
    /// Each rank, with its path and the storage there.
    pub ranks: Vec<String>,
    /// Maximum difference between the clocks of the ranks, in nanoseconds; 0 if they share one.
    pub clock_bound_ns: u64,
    /// Longest time for which a reader waited for a write, in nanoseconds.
    pub patience_ns: u64,
    pub cells: Vec<Cell>,
    /// Cases that could not be tried, and why.
    pub notes: Vec<String>,
    /// Whether something was left out because it would have taken too long.
    pub unfinished: bool,
    /// Signal that ended the check early.
    pub signal: Option<String>,
}

impl Judged for CoherenceFindings {
    const VERB: &'static str = "check coherence";
}
