//! How far an array would reduce files, and what limits it: deduplication and compression of
//! blocks, counted in one pass over any number of bytes, in bounded memory.
//!
//! It takes bytes and returns counts. It must not know where the bytes come from, how they are
//! read, or how findings are shown: no I/O, no clock, no threads.
//!
//! [`digest`] computes fingerprints, [`grid`] cuts a stream into blocks of several sizes and
//! offsets, [`table`] counts contents, [`mask`] removes the fields of database pages that [`page`]
//! finds, and [`generate`] creates data sets whose figures are known.
//!
//! ```
//! use blockstone_reduce::digest;
//!
//! let (zeros, ones) = (vec![0; 8192], vec![1; 8192]);
//! assert_eq!(digest::block(&zeros), digest::Zeros::up_to(1).level(1));
//! assert_ne!(digest::block(&zeros), digest::block(&ones));
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod chunk;
pub mod compress;
pub mod counter;
pub mod digest;
pub mod estimate;
pub mod findings;
pub mod generate;
pub mod grid;
pub mod hash;
pub mod mask;
pub mod model;
pub mod page;
pub mod plan;
pub mod scanned;
pub mod sets;
pub mod table;
mod text;
