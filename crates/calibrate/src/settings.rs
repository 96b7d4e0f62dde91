//! What the user asked for, with every default filled in.

use std::path::PathBuf;

use blockstone_base::units::{Bytes, Nanos};
use blockstone_record::RunDir;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoroughness {
    /// At most 20 s: fewer points, shorter windows.
    Quick,
    /// At most 90 s.
    Standard,
    /// Three interleaved rounds with longer windows; the intervals come from the repeats.
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
    /// The longest that all of it may take.
    pub limit: Nanos,
    /// How long each round of random writes takes.
    pub round: Nanos,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What is measured: one, or several as one.
    pub subjects: Vec<Subject>,
    pub thoroughness: Thoroughness,
    pub block: Bytes,
    /// Size of the test file, in each of several directories; none lets the free space decide.
    pub size: Option<Bytes>,
    /// The latency that bounds `max_iops` (mean) and the knee (p99).
    pub max_latency: Nanos,
    /// Use the page cache, to show what it does to the numbers.
    pub buffered: bool,
    pub read_only: bool,
    pub keep: bool,
    /// Measure small and large reads together.
    pub matrix: bool,
    /// Also write in order through the page cache.
    pub buffered_writes: bool,
    /// Also measure how many cached blocks are visited for a second of processor time.
    pub cpu: bool,
    /// Numbers of large reads in flight, in order and at random; none for those of the plan.
    pub streams: Vec<u32>,
    /// How much of a file or device that is only read is visited; none for all of it.
    pub span: Option<Bytes>,
    /// Where that begins.
    pub offset: Bytes,
    /// Mixes of random reads and writes to measure: how many of 100 operations are reads.
    pub mixes: Vec<u32>,
    /// Also measure at a fixed rate.
    pub open_loop: Option<OpenLoop>,
    pub precondition: Option<Preconditioning>,
    /// Decimal MB/s of the link to the storage, where the kernel cannot know it.
    pub link_mb_per_s: Option<f64>,
    pub seed: u64,
    pub argv: Vec<String>,
    /// Where the recording goes: a directory that does not exist or is empty.
    pub recording: RunDir,
}
