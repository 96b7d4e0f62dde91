//! Flash devices: how and when garbage collection affects the writes and reads of a database.
//!
//! Pure: no I/O, no clock, no threads; the same seed gives the same bytes. The crate knows nothing
//! of command lines or reports. Formulas are in [`theory`], the translation layer with its two
//! engines in [`ftl`].
//!
//! ```
//! use blockstone_flash::ftl::{Config, Ftl, Write};
//!
//! // 1,024 blocks of 64 pages, of which the host sees five sixths.
//! let config = Config::plain(1024 * 64 * 5 / 6, 64, 1, 1024);
//! let mut ftl = Ftl::exact(config, &|_| {})?;
//! let fill: Vec<Write> = (0..1024 * 64 * 5 / 6).map(|page| Write { page, stream: 0 }).collect();
//! for _ in 0..3 {
//!     ftl.write_many(&fill)?;
//! }
//! // Overwriting in order leaves whole blocks stale: nothing has to be moved.
//! assert_eq!(ftl.totals().amplification(), Some(1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod cliff;
pub mod device;
pub mod dies;
pub mod estimate;
pub mod fio;
pub mod fit;
pub mod ftl;
pub mod policy;
pub mod preset;
pub mod simulate;
pub mod sweep;
pub mod theory;
mod tournament;
pub mod toy;
pub mod trace;
pub mod workload;

pub use policy::Policy;
