//! The user's settings, with every default filled in: [`Options`] from the command line, and
//! everything around them.

use std::path::{Path, PathBuf};

use blockstone_base::units::Nanos;
use blockstone_record::RunDir;

use crate::heldfile::HeldFile;

mod options;

pub use options::{Arrivals, Options};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoroughness {
    /// A few seconds: one or two points of each kind.
    Brief,
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
            Self::Brief => "brief",
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }
}

#[derive(Clone, Debug)]
pub enum Subject {
    /// A directory (a test file is created in it), or a regular file or block device that is only
    /// read.
    Path(PathBuf),
    /// A test file that Blockstone kept from an earlier run: read and written.
    TestFile(PathBuf),
    /// A block device whose content may be destroyed.
    Destroy(PathBuf),
    /// The file of an earlier calibration; it can only be read (`--read-only`).
    Held(HeldFile),
}

impl Subject {
    pub fn path(&self) -> &Path {
        match self {
            Self::Path(path) | Self::TestFile(path) | Self::Destroy(path) => path,
            Self::Held(file) => file.path(),
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

#[derive(Clone, Debug)]
pub struct Settings {
    /// Subjects to measure: one, or several as one.
    pub subjects: Vec<Subject>,
    pub options: Options,
    pub seed: u64,
    pub argv: Vec<String>,
    /// Directory of the recording, which must be empty or not exist.
    pub recording: RunDir,
}
