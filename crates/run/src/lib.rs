//! A run: a workload sent to a target on the user's storage, from settings to a recording.
//!
//! It does not know the command line, judge or render. [`prepare`] checks everything that
//! can be checked before anything is written; [`Prepared::run`] sets the target up, loads it, lets
//! the sessions run and records. Nor does it know any target by name: the settings name one of the
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

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

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
pub use settings::{DiskSetting, NoiseSetting, ScanMatrix, Settings};
