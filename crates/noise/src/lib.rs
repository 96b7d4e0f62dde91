//! Noise alone: sequential writes alongside whatever else uses the storage, and their recording; if
//! a database is watched too, phases without and with noise alternate.
//!
//! This crate is independent of the command line, judging and rendering: it takes [`Settings`] and
//! creates a recording. [`prepare()`] checks everything that can be checked before anything is
//! written; [`Prepared::run`] writes.
//!
//! ```no_run
//! use blockstone_measure::Observer;
//! use blockstone_noise::{NoiseError, Settings, prepare};
//!
//! struct Silent;
//! impl Observer for Silent {}
//!
//! fn disturb(settings: &Settings) -> Result<(), NoiseError> {
//!     let recording = prepare(settings)?.run(&mut Silent)?;
//!     assert!(recording.join("manifest.json").exists());
//!     Ok(())
//! }
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod error;
mod hold;
mod places;
mod prepare;
mod run;
mod settings;

pub use error::NoiseError;
pub use prepare::{Prepared, prepare};
pub use settings::Settings;
