//! Common parts of every measurement: a recording with its clock and ticks, an observer, the claims
//! made before anything is written, holding a load until it is measured, the names of temporary
//! files, how files are laid out on the device, and the capabilities of this user on this machine.
//!
//! This crate must not know what is measured: the caller passes its own readings at each tick, and
//! they are recorded with the same timestamp as those of all probes. The main types are [`Session`]
//! and [`hold::Loaded`].
//!
//! ```no_run
//! use blockstone_base::column::{Cell, Reading, Schema};
//! use blockstone_base::units::Nanos;
//! use blockstone_measure::{Session, SessionSpec};
//! use blockstone_record::manifest::{End, Manifest};
//! # fn manifest() -> Manifest { panic!("this example is compiled, never run") }
//!
//! const STEPS: Schema = Schema { probe: "steps", doc: "Steps taken.", columns: &[/* … */] };
//!
//! let mut session = Session::start(SessionSpec {
//!     dir: "run".as_ref(),
//!     manifest: manifest(),
//!     devices: vec!["vda".into()],
//!     series: &[&STEPS],
//!     through_page_cache: false,
//!     tick: Nanos::millis(50),
//! })?;
//! session.start_ticks();
//! for steps in 0..10 {
//!     session.wait_for_tick();
//!     session.tick(|readings| {
//!         let cells = vec![Cell::Value(steps)];
//!         readings.push(Reading { probe: "steps", object: String::new(), cells });
//!     })?;
//! }
//! session.close(End::Complete)?;
//! # Ok::<(), blockstone_record::RecordError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod capability;
pub mod claim;
pub mod contents;
pub mod evidence;
pub mod hold;
mod layout;
mod observer;
mod opening;
mod purpose;
pub mod ranks;
pub mod scratch;
mod session;
mod settling;
mod ticks;

pub use layout::Layout;
pub use observer::{Live, Observer, Rate};
pub use opening::Opening;
pub use purpose::Purpose;
pub use ranks::RankSettings;
pub use session::{Session, SessionSpec};
pub use ticks::Ticks;
