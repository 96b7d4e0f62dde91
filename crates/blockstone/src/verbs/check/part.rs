//! The interface of a check to the verb, and what it passes to the report: its answer, and the
//! cells that the answer rests on.

use std::path::Path;

use anyhow::Result;
use blockstone_base::verdict::Verdict;
use blockstone_check::coherence::findings as coherence;
use blockstone_check::coherence::findings::WitnessOperation;
use blockstone_check::direct::findings as direct;
use blockstone_check::direct::findings::OpenFile;
use blockstone_check::durability::findings as durability;
use blockstone_check::iosize::findings as iosize;
use blockstone_check::metadata::findings as metadata;
use blockstone_check::order::findings as order;
use blockstone_report::{Section, Tone};
use clap::ArgMatches;
use schemars::JsonSchema;
use serde::Serialize;

use crate::progress::Progress;
use crate::verb::Context;

pub struct Check {
    pub name: &'static str,
    /// The question it answers, as one line of the help.
    pub about: &'static str,
    /// Adds its options and examples.
    pub options: fn(clap::Command) -> clap::Command,
    /// Runs the check as its options say.
    pub run: fn(&ArgMatches, &Context, &mut Progress) -> Result<Part>,
    /// Runs the part that takes seconds only, on this path.
    pub quick: fn(&Path, &mut Progress) -> Result<Part>,
}

impl Check {
    pub fn declaration(&self) -> clap::Command {
        (self.options)(clap::Command::new(self.name)).about(self.about)
    }
}

pub struct Part {
    /// The path, process or server that was checked.
    pub subject: String,
    /// The answer as a sentence.
    pub answer: String,
    pub tone: Tone,
    /// The environment in which it was made.
    pub identity: Vec<String>,
    pub cells: Vec<CellKeys>,
    pub files: Vec<OpenFile>,
    pub sections: Vec<Section>,
    pub verdicts: Vec<Verdict>,
    pub notes: Vec<String>,
    /// Whether the evidence does not settle the question.
    pub partial: bool,
    /// The signal that ended the check early.
    pub signal: Option<String>,
    /// Whether another process prints the result: rank 0 of those that a launcher started.
    pub printed_elsewhere: bool,
}

/// One case that was tried or observed.
#[derive(Serialize, JsonSchema)]
pub struct CellKeys {
    /// The check, as in `blockstone check CHECK`.
    pub check: &'static str,
    /// The case that was tried, or the path of an open file.
    pub case: String,
    pub class: Class,
    /// The observation, with numbers.
    pub evidence: String,
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// The classes of all checks.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Class {
    Direct(direct::Class),
    Metadata(metadata::Class),
    Growth(metadata::GrowthClass),
    Coherence(coherence::Class),
    Durability(durability::Class),
    Order(order::Class),
    Iosize(iosize::Class),
}

/// The numbers that the class rests on; null for those that the check does not have.
#[derive(Default, Serialize, JsonSchema)]
pub struct Numbers {
    /// Requests that succeeded.
    pub requests: Option<u64>,
    /// Error that the kernel returned for the first request that failed.
    pub error: Option<String>,
    /// Whether statx(2) reports that I/O of this shape can be direct.
    pub promised: Option<bool>,
    /// Pages of 4 KiB that the requests added to the page cache.
    pub added_pages: Option<u64>,
    /// Times the kernel entered its direct path.
    pub direct_ios: Option<u64>,
    /// Bytes of the file in the page cache before and after the requests.
    pub before_cached_bytes: Option<u64>,
    pub after_cached_bytes: Option<u64>,
    /// Bytes charged to the process per byte requested.
    pub charged_ratio: Option<f64>,
    /// Share of requests that added pages to the page cache.
    pub cached_share: Option<f64>,
    /// Operations per second of all ranks.
    pub ops_per_s: Option<f64>,
    /// 99th percentile of the latency of the operations, in ns.
    pub ns_p99: Option<u64>,
    /// Bytes charged to this process as read from storage.
    pub bytes_read: Option<u64>,
    /// Requests to the server of an NFS mount.
    pub rpcs: Option<u64>,
    /// Reads that did not return a write that was acknowledged before them.
    pub stale: Option<u64>,
    /// Time from the acknowledgement of a write to the end of the first read that returns it, in
    /// ns.
    pub lag_ns_p50: Option<u64>,
    pub lag_ns_p99: Option<u64>,
    pub lag_ns_max: Option<u64>,
    /// Two operations that contradict each other: the second should have seen the first.
    pub witness: Option<[WitnessOperation; 2]>,
    /// Writes that were acknowledged to the writer and known to the witness before a cut.
    pub acknowledged: Option<u64>,
    /// Acknowledged writes that are missing afterwards; for appends, those in whose place another
    /// was written.
    pub lost: Option<u64>,
    /// Acknowledged writes of which a part is missing.
    pub torn: Option<u64>,
    /// Threads that write to one file at the same time, or read it next to one writer.
    pub writers: Option<u32>,
    /// Whether these threads use the page cache.
    pub buffered: Option<bool>,
    /// Share of the threads' time in which they wait for the lock of the file, with one file and
    /// with files of their own.
    pub lock_time_share: Option<f64>,
    pub own_lock_time_share: Option<f64>,
    /// Context switches per request: times a thread gave up its processor.
    pub switches_per_request: Option<f64>,
    pub own_switches_per_request: Option<f64>,
    /// Requests per second.
    pub iops: Option<f64>,
    pub own_iops: Option<f64>,
    /// Mean bytes moved by a call, page fault or ring request.
    pub asked_bytes_mean: Option<f64>,
    /// Mean bytes of a request to the device.
    pub device_bytes_mean: Option<f64>,
    /// Requests to the device.
    pub device_requests: Option<u64>,
    /// Share of calls that begin where the previous call on this file ended.
    pub sequential_share: Option<f64>,
    /// Share of calls that begin and end at multiples of 4 KiB.
    pub aligned_share: Option<f64>,
    /// Exit code of the command, or 128 plus its signal.
    pub exit_code: Option<i32>,
}
