//! A run: a workload aimed at a target on somebody's storage, from settings to a recording.
//!
//! It must not know the command line, nor judge, nor render. [`prepare`] checks everything that
//! can be checked before anything is written; [`Prepared::run`] sets the target up, loads it, lets
//! the sessions run and records. It knows no target by name either: the settings name one of the
//! registry.
//!
//! ```no_run
//! use blockstone_measure::Observer;
//! use blockstone_run::{RunError, Settings, prepare};
//!
//! struct Silent;
//! impl Observer for Silent {}
//!
//! fn run(settings: &Settings) -> Result<(), RunError> {
//!     let recording = prepare(settings)?.run(&mut Silent)?;
//!     assert!(recording.join("manifest.json").exists());
//!     Ok(())
//! }
//! ```

mod error;
mod files;
mod hold;
mod latencies;
mod loading;
mod manifest;
mod noise;
mod prepare;
mod reuse;
mod run;
mod scan;
mod settings;

pub use error::RunError;
pub use prepare::{Prepared, disks, prepare};
pub use settings::{DiskSetting, ScanMatrix, Settings};
