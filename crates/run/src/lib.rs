//! A run: a workload sent to a target on the user's storage, from settings to a recording; and
//! [`noise`] alone.
//!
//! This crate is independent of the command line, judging and rendering. [`prepare`] checks
//! everything that can be checked before anything is written; [`Prepared::run`] sets up the target,
//! loads it, runs the sessions and records. It does not know any target by name either: the
//! settings name one in the registry.
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
pub mod noise;
mod prepare;
mod reuse;
mod run;
mod scan;
mod settings;

pub use error::RunError;
pub use prepare::{Prepared, disks, prepare};
pub use settings::{DiskSetting, FormOptions, Noise, Profile, Settings, StorageOptions};
