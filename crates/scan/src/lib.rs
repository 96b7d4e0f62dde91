//! Files → counts: finds files, reads them, counts their blocks, saves the counts and continues
//! from them later.
//!
//! It must not know what an array is, or how findings are shown: it feeds the counter of
//! `blockstone-reduce` with the data read by the streams of `blockstone-engine`.
//!
//! [`survey`] finds files, [`scan`] counts them, [`resume`] continues a saved scan, [`merge`]
//! counts several as one.
//!
//! ```
//! use blockstone_base::Bytes;
//! use blockstone_reduce::plan::Plan;
//! use blockstone_scan::Look;
//!
//! let dir = tempfile::tempdir()?;
//! std::fs::write(dir.path().join("a"), vec![7; 65536])?;
//! let survey = blockstone_scan::survey(&[dir.path().to_owned()], Look::All, None, &mut |_| true)?;
//! let plan = Plan::new(&[Bytes(8192)], &[0], Bytes(8192))?;
//! let outcome = blockstone_scan::scan(&survey, plan, &Default::default(), &mut |_| true)?;
//! assert_eq!(outcome.counter.grids()[0].table.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod error;
mod free;
mod generate;
mod pending;
mod resume;
mod saved;
mod scan;
mod survey;
mod workers;

pub use error::ScanError;
pub use free::free_space;
pub use generate::generate;
pub use resume::{merge, read, resume};
pub use saved::Position;
pub use scan::{Outcome, Progress, Settings, scan, table_bytes};
pub use survey::{Found, Look, Survey, Surveying, survey};
