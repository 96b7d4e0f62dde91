//! A calibration: how many IOPS, MB/s and commits per second storage can do, and at what latency,
//! measured in phases and recorded raw.
//!
//! This crate is independent of the command line, judging and rendering: it takes [`Settings`] and
//! creates a recording. [`prepare`] checks everything that can be checked before anything is
//! written; [`Prepared::run`] measures.
//!
//! ```no_run
//! use blockstone_calibrate::{Settings, prepare};
//! use blockstone_measure::Observer;
//!
//! struct Silent;
//! impl Observer for Silent {}
//!
//! fn calibrate(settings: &Settings) -> Result<(), blockstone_calibrate::CalibrateError> {
//!     let recording = prepare(settings)?.run(&mut Silent)?;
//!     assert!(recording.join("manifest.json").exists());
//!     Ok(())
//! }
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod buffered;
mod confirm;
mod cpu;
mod error;
mod flush;
mod heldfile;
mod hold;
mod plan;
mod prepare;
mod run;
mod settings;
mod testfile;
mod testset;

pub use error::CalibrateError;
pub use heldfile::HeldFile;
pub use prepare::{Prepared, prepare};
pub use settings::{Arrivals, OpenLoop, Options, Preconditioning, Settings, Subject, Thoroughness};
