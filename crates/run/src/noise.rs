//! Noise: sequential writes beside a load of ours, or beside whatever else uses the storage. In the
//! second case they are recorded alone, and if a database is watched too, phases without and with
//! noise alternate.
//!
//! ```no_run
//! use blockstone_measure::Observer;
//! use blockstone_run::noise::{NoiseError, Settings, prepare};
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

pub(crate) mod beside;
mod error;
mod hold;
mod places;
mod prepare;
mod run;
mod settings;

pub use error::NoiseError;
pub use prepare::{Prepared, prepare};
pub use settings::{NoiseOptions, Settings};
