//! The user's settings, with every default filled in.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::RunDir;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoroughness {
    /// At most 20 s: fewer points, shorter windows.
    Quick,
    /// At most 90 s.
    Standard,
    /// Three interleaved rounds with longer windows; the intervals are computed from the repeats.
    Full,
}

impl Thoroughness {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A directory (a test file is created in it), or a regular file or block device that is only
    /// read.
    Path(PathBuf),
    /// A test file that Blockstone kept from an earlier run: read and written.
    TestFile(PathBuf),
    /// A block device whose content may be destroyed.
    Destroy(PathBuf),
}

impl Subject {
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::Path(path) | Self::TestFile(path) | Self::Destroy(path) => path,
        }
    }
}

/// Random reads at a fixed rate, measured in addition to the closed-loop points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenLoop {
    pub rate_per_s: f64,
    /// Exponential gaps when true, constant gaps when false.
    pub poisson: bool,
}

/// Writes before the measurement that bring flash to its steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preconditioning {
    /// Longest time for all of it.
    pub limit: Nanos,
    /// Length of each round of random writes.
    pub round: Nanos,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Subjects to measure: one, or several as one.
    pub subjects: Vec<Subject>,
    pub thoroughness: Thoroughness,
    pub block: Bytes,
    /// Size of the test file, in each of several directories; `None` derives it from the free
    /// space.
    pub size: Option<Bytes>,
    /// Latency that bounds `max_iops` (mean) and the knee (p99).
    pub max_latency: Nanos,
    /// Whether to use the page cache, to show its effect on the numbers.
    pub buffered: bool,
    pub read_only: bool,
    pub keep: bool,
    /// Whether to measure small and large reads together.
    pub matrix: bool,
    /// Whether to also write sequentially through the page cache.
    pub buffered_writes: bool,
    /// Whether to also measure how many cached blocks are visited per second of processor time.
    pub cpu: bool,
    /// Numbers of large reads in flight, sequential and random; empty for those of the plan.
    pub streams: Vec<u32>,
    /// How much of a read-only file or device is visited; `None` for all of it.
    pub span: Option<Bytes>,
    /// Offset at which the visited part starts.
    pub offset: Bytes,
    /// Mixes of random reads and writes to measure: number of reads in 100 operations.
    pub mixes: Vec<u32>,
    /// Additional random reads at a fixed rate.
    pub open_loop: Option<OpenLoop>,
    pub precondition: Option<Preconditioning>,
    /// Decimal MB/s of the link to the storage, if the kernel cannot know it.
    pub link_mb_per_s: Option<f64>,
    pub seed: u64,
    pub argv: Vec<String>,
    /// Directory of the recording, which must be empty or not exist.
    pub recording: RunDir,
}
