//! What `check coherence` finds: which writes of one rank the others see, and when, by how they
//! write and read. Data only: it is measured elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use blockstone_base::named;
use blockstone_base::rule::Judged;

named! {
    /// What readers may rely on, from the strongest to the weakest.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Class {
        /// Every read returns what was acknowledged before it.
        Linearizable = "linearizable",
        /// Late, by less than a second, and never back to an older version.
        Sequential = "sequential",
        /// Fresh as soon as the reader opens the file again (close-to-open).
        Reopen = "reopen",
        /// Fresh after a time.
        Timer = "timer",
        /// Not fresh for as long as was waited.
        Never = "never",
        /// Data that nobody wrote, two versions in one block, an older version after a newer one,
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
        /// The same, then fdatasync(2).
        Fdatasync = "fdatasync",
        /// The same with `RWF_DSYNC`.
        Dsync = "dsync",
        /// With `O_DIRECT`.
        Direct = "direct",
        /// To memory that is mapped to the file (mmap(2)), then msync(2).
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
    /// Whether it goes on with what it opened once, so that opening the file again may show more.
    pub const fn stays_open(self) -> bool {
        matches!(self, Self::Held | Self::Mapped)
    }
}

/// A read or write of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WitnessOperation {
    pub rank: u32,
    /// `write`, `read`, or what was done to a name.
    pub operation: String,
    /// The block, or the name.
    pub subject: String,
    /// The version that it wrote or returned.
    pub version: u64,
    /// Nanoseconds since the check started, on the clock of rank 0.
    pub start_ns: u64,
    /// Null for one that was not acknowledged.
    pub end_ns: Option<u64>,
}

/// One thing that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// `ping-pong/buffered/held`: how data were written and how they were read.
    pub case: String,
    pub class: Class,
    /// What was seen, with numbers.
    pub evidence: String,
    /// Operations that were judged.
    pub operations: u64,
    /// Reads that did not return what was acknowledged before them.
    pub stale: u64,
    /// The error of the kernel, where it could not be tried.
    pub error: Option<String>,
    /// From the acknowledgement of a write to the end of the first read that returns it; null for
    /// fewer than two reads, and where a write was not seen.
    pub lag_ns_p50: Option<u64>,
    pub lag_ns_p99: Option<u64>,
    pub lag_ns_max: Option<u64>,
    /// The two operations that contradict coherence: the second should have seen the first.
    pub witness: Option<[WitnessOperation; 2]>,
}

impl Cell {
    /// Whether readers can miss what was acknowledged.
    pub fn is_incoherent(&self) -> bool {
        !matches!(self.class, Class::Linearizable | Class::Unknown)
    }
}

/// What `check coherence` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoherenceFindings {
    /// The paths.
    pub subject: String,
    /// Each rank: its path and what is there.
    pub ranks: Vec<String>,
    /// How far the clocks of the ranks may be apart; 0 where they share one.
    pub clock_bound_ns: u64,
    /// The longest time for which a reader waited for a write.
    pub patience_ns: u64,
    pub cells: Vec<Cell>,
    /// What could not be tried, and why.
    pub notes: Vec<String>,
    /// Not all was tried: that would have taken too long.
    pub unfinished: bool,
    /// The signal that ended it early.
    pub signal: Option<String>,
}

impl Judged for CoherenceFindings {
    const VERB: &'static str = "check coherence";
}
