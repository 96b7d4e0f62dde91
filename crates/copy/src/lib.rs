//! Copies of files with large direct requests, many in flight: for database administrators who move
//! datafiles, archived logs and backups next to a running database, without displacing what the
//! page cache holds for it.
//!
//! [`file`] moves the bytes of one file and records how far it got; [`tree`] finds what is to be
//! copied and gives each target its names, owners and times; [`attributes`] are what a file carries
//! besides its bytes. This crate must not know the command line, judging or rendering. The main
//! types are [`tree::Plan`] and [`file::Copier`].
//!
//! ```
//! use blockstone_copy::file::Options;
//! use blockstone_copy::tree::{Settings, copy, plan};
//!
//! let dir = tempfile::tempdir()?;
//! let (from, to) = (dir.path().join("from"), dir.path().join("to"));
//! std::fs::write(&from, "data")?;
//! let settings = Settings { file: Options::default(), jobs: 2, rate: None };
//! let copied = copy(plan(&[from], &to, &settings.file)?, &settings, &mut |_| true);
//! assert!(copied.failed.is_empty());
//! assert_eq!(std::fs::read(&to)?, b"data");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod against;
pub mod attributes;
pub mod cost;
pub mod device;
mod error;
pub mod file;
pub mod tree;

pub use error::CopyError;
