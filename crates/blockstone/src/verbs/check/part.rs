//! What a check is to the verb, and what it hands over to the report: its answer, and the cells
//! that it rests on.

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
    /// What it answers, in one line of the help.
    pub about: &'static str,
    /// Adds its options and examples.
    pub options: fn(clap::Command) -> clap::Command,
    /// As its options say.
    pub run: fn(&ArgMatches, &Context, &mut Progress) -> Result<Part>,
    /// On this path, what takes seconds.
    pub quick: fn(&Path, &mut Progress) -> Result<Part>,
}

impl Check {
    pub fn declaration(&self) -> clap::Command {
        (self.options)(clap::Command::new(self.name)).about(self.about)
    }
}

pub struct Part {
    /// The path, process or server.
    pub subject: String,
    /// The answer in a sentence.
    pub answer: String,
    pub tone: Tone,
    /// What it was made on.
    pub identity: Vec<String>,
    pub cells: Vec<CellKeys>,
    pub files: Vec<OpenFile>,
    pub sections: Vec<Section>,
    pub verdicts: Vec<Verdict>,
    pub notes: Vec<String>,
    /// Whether the evidence does not decide what was asked.
    pub partial: bool,
    /// The signal that ended it early.
    pub signal: Option<String>,
    /// Whether another process prints it: rank 0 of those that a launcher started.
    pub printed_elsewhere: bool,
}

/// One thing that was tried or observed.
#[derive(Serialize, JsonSchema)]
pub struct CellKeys {
    /// The check, as in `blockstone check CHECK`.
    pub check: &'static str,
    /// What was tried, or the path of an open file.
    pub case: String,
    pub class: Class,
    /// What was seen, with numbers.
    pub evidence: String,
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// The classes of each check.
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

/// What the class rests on; null what the check does not have.
#[derive(Default, Serialize, JsonSchema)]
pub struct Numbers {
    /// Requests that succeeded.
    pub requests: Option<u64>,
    /// What the kernel answered to the first that did not.
    pub error: Option<String>,
    /// Whether statx(2) says that this shape can be direct.
    pub promised: Option<bool>,
    /// Pages of 4 KiB that the requests added to the page cache.
    pub added_pages: Option<u64>,
    /// Times the kernel entered its direct path.
    pub direct_ios: Option<u64>,
    /// Bytes of the file in the page cache.
    pub before_cached_bytes: Option<u64>,
    pub after_cached_bytes: Option<u64>,
    /// Bytes charged to the process for each byte asked for.
    pub charged_ratio: Option<f64>,
    /// The share of requests that added pages to the page cache.
    pub cached_share: Option<f64>,
    /// Operations a second, of all ranks.
    pub ops_per_s: Option<f64>,
    /// The 99th percentile of their latency.
    pub ns_p99: Option<u64>,
    /// Bytes charged to this process as fetched from storage.
    pub bytes_read: Option<u64>,
    /// Requests to the server of an NFS mount.
    pub rpcs: Option<u64>,
    /// Reads that did not return what was acknowledged before them.
    pub stale: Option<u64>,
    /// From the acknowledgement of a write to the end of the first read that returns it.
    pub lag_ns_p50: Option<u64>,
    pub lag_ns_p99: Option<u64>,
    pub lag_ns_max: Option<u64>,
    /// Two operations that contradict each other: the second should have seen the first.
    pub witness: Option<[WitnessOperation; 2]>,
    /// Writes that were acknowledged to the writer and known to the witness before a cut.
    pub acknowledged: Option<u64>,
    /// Of these, those that are missing afterwards; of appends, those in whose place another was
    /// written.
    pub lost: Option<u64>,
    /// Of these, those of which a part is missing.
    pub torn: Option<u64>,
    /// Threads that write to one file at the same time, or read it beside one writer.
    pub writers: Option<u32>,
    /// Whether they use the page cache.
    pub buffered: Option<bool>,
    /// The share of the threads' time in which they wait for the lock of the file, with one file
    /// and with files of their own.
    pub lock_time_share: Option<f64>,
    pub own_lock_time_share: Option<f64>,
    /// Times a thread gave its processor away, for each request.
    pub switches_per_request: Option<f64>,
    pub own_switches_per_request: Option<f64>,
    /// Requests per second.
    pub iops: Option<f64>,
    pub own_iops: Option<f64>,
    /// Mean of what a call, page fault or ring request moved.
    pub asked_bytes_mean: Option<f64>,
    /// Mean of a request to the device.
    pub device_bytes_mean: Option<f64>,
    /// Requests to the device.
    pub device_requests: Option<u64>,
    /// The share of calls that begin where the last one of this file ended.
    pub sequential_share: Option<f64>,
    /// The share of calls that begin and end at multiples of 4 KiB.
    pub aligned_share: Option<f64>,
    /// How the command ended: its exit code, or 128 and its signal.
    pub exit_code: Option<i32>,
}
