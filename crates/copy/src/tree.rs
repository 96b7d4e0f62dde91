//! Trees to copy: files, directories, links, and which names belong to the same file; and the copy
//! of all of it, several files at a time.

mod kept;
mod pace;
mod plan;
mod run;
mod workshop;

use std::path::PathBuf;

use crate::CopyError;
use crate::attributes::Note;
use crate::file::{Copied, Kept};

pub use pace::{Steady, smooth_request};
pub use plan::{Entry, Kind, Plan, PlanError, pipe_target, plan, plan_into};
pub use run::{Settings, Step, copy};

/// Why one file could not be copied; the others are copied all the same.
#[derive(Debug)]
pub struct Failure {
    pub path: PathBuf,
    pub error: CopyError,
}

/// A file that was copied.
#[derive(Debug)]
pub struct CopiedFile {
    pub source: PathBuf,
    pub target: PathBuf,
    pub copied: Copied,
    /// None for one of several that were copied together.
    pub seconds: Option<f64>,
}

/// A file that an earlier copy completed and that was read again.
#[derive(Debug)]
pub struct KeptFile {
    pub target: PathBuf,
    pub kept: Kept,
}

/// The result of a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    pub files: Vec<CopiedFile>,
    /// Files that an earlier copy completed.
    pub kept_files: u64,
    pub kept_bytes: u64,
    /// Kept files that were read for a manifest or for verification.
    pub kept: Vec<KeptFile>,
    pub directories: u64,
    pub links: u64,
    /// Further names of files that were copied.
    pub hard_links: u64,
    /// Named pipes and devices.
    pub specials: u64,
    pub failed: Vec<Failure>,
    pub notes: Vec<Note>,
    pub interrupted: bool,
}
