//! How far an array would reduce files, and what limits it: deduplication and compression of
//! blocks, counted in one pass over any number of bytes, in bounded memory.
//!
//! It is given bytes and gives back counts. It must not know where bytes come from, how they are
//! read, or how findings are shown: no I/O, no clock, no threads.
//!
//! [`digest`] makes fingerprints, [`grid`] cuts a stream into blocks of several sizes and offsets,
//! [`table`] counts contents, [`mask`] takes the fields of database pages out, which [`page`]
//! knows, and [`generate`] makes data sets whose numbers are known.
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
