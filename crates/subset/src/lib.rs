//! Selects the rows of a database sample whose foreign keys hold: the closure of seeds over keys.
//!
//! Seeds are chosen by a keyed hash of the primary key, so the same seed chooses the same rows, and
//! a larger percentage only adds to them. Then tables are read, referencing tables before
//! referenced ones, and every row that a taken row references is taken too. Memory use grows with
//! the number of rows taken, not with that of the source, up to a limit.
//!
//! A [`Source`] supplies the columns of keys; this crate does no I/O. [`Mask`] replaces values of
//! its rows in a way that keeps the keys valid.
//!
//! ```
//! use blockstone_subset::mask::{Mask, Transform as _, file};
//! use blockstone_subset::{Catalogue, Column, Table};
//!
//! let id = Column { name: "id".into(), type_name: "integer".into(), ..Column::default() };
//! let table = Table { name: "public.customer".into(), columns: vec![id], ..Table::default() };
//! let catalogue = Catalogue { tables: vec![table], keys: Vec::new() };
//! let rules = file("masks.toml", "[[mask]]\ncolumn = \"customer.id\"\nmethod = \"hash\"")?;
//! let mask = Mask::new(b"secret", &rules, &catalogue)?;
//! let mut masked = Vec::new();
//! mask.line(0, b"17", &mut masked)?;
//! assert_ne!(masked, b"17");
//! # Ok::<(), blockstone_subset::MaskError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod catalogue;
mod closure;
pub mod expected;
mod graph;
mod hash;
mod hashes;
mod line;
pub mod mask;
mod memory;
mod naive;
pub mod null;
mod numbers;
pub mod oracle;
mod pending;
pub mod personal;
mod plan;
mod seeds;
mod settings;
mod shape;
mod source;
pub mod virtual_keys;
mod wanted;

pub use catalogue::{Catalogue, CatalogueError, Column, ForeignKey, Table, When};
pub use closure::close;
pub use graph::components;
pub use hash::Lot;
pub use mask::{Mask, MaskError, Transform};
pub use memory::MemoryError;
pub use naive::{NaiveKey, NaiveTable, Sampled, sample};
pub use numbers::Locators;
pub use plan::{KeyPlan, Plan, Rows, TablePlan};
pub use seeds::driver;
pub use settings::{Chosen, Settings};
pub use source::{Row, Scan, ScanKey, Source};
