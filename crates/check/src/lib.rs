//! Checks of what a path, or a process that uses it, really does: short experiments whose answer is
//! a class with its evidence, not a rate. Evidence comes from inside the kernel if that is
//! permitted, from the second best source otherwise, and if neither decides the class is `unknown`.
//!
//! Each check is a module: [`direct`] determines whether I/O that asks to bypass the page cache
//! does, [`order`] whether several writers of one file wait for each other, [`coherence`] which
//! writes others see, and when, [`durability`] whether flushed data survives, [`metadata`] what
//! operations on names and inodes cost and where their answers come from, [`iosize`] in which sizes
//! programs request I/O and in which it reaches the device. Sides of a check on several hosts
//! [`meet`] over TCP. A check returns findings, which are declared in its module `findings`. It
//! does not know the command line, judge or render, leaves nothing behind, and is bounded in time.
//!
//! ```no_run
//! use blockstone_check::{CheckError, direct};
//! use blockstone_measure::Observer;
//!
//! struct Silent;
//! impl Observer for Silent {}
//!
//! fn count_direct(path: &std::path::Path) -> Result<usize, CheckError> {
//!     let findings = direct::of_path(path, 1, &mut Silent)?;
//!     let direct = findings.cells.iter().filter(|cell| cell.class.name() == "direct");
//!     Ok(direct.count())
//! }
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod coherence;
pub mod direct;
pub mod durability;
mod error;
mod evidence;
pub mod iosize;
pub mod meet;
pub mod metadata;
pub mod order;

pub use error::CheckError;
