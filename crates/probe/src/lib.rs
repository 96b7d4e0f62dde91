//! What is observed beside the load: this process, the host and the block layer.
//!
//! A [`Probe`] keeps its files open and gives, at each tick, one [`Row`] an object: raw counters as
//! the kernel keeps them, made monotonic where the kernel lets them wrap. It knows neither the load
//! that runs nor what becomes of its rows, and it never derives a rate. What the kernel does not
//! tell is [`Cell::Unmeasured`], with the reason in [`Probe::unmeasured`]; it is never zero.
//!
//! To add a probe: one file with its `SCHEMA`, one line in `registry.rs`.
//!
//! ```
//! use blockstone_probe::{Context, registry};
//!
//! let context = Context { root: "/".into(), devices: Vec::new() };
//! let mut rows = Vec::new();
//! for entry in registry::ALL {
//!     let mut probe = (entry.open)(&context);
//!     rows.clear();
//!     probe.sample(&mut rows);
//!     assert!(rows.iter().all(|row| row.cells.len() == entry.schema.columns.len()));
//! }
//! ```

pub mod block;
pub mod host;
pub mod io;
mod page;
pub mod process;
pub mod registry;
mod rising;
mod source;

use std::path::PathBuf;

pub use blockstone_base::column::{Cell, Schema, Unmeasured};
pub use page::columns_page;

/// Where probes look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Root of `/proc` and `/sys`: `/` on a machine, a fixture tree in a test.
    pub root: PathBuf,
    /// Kernel names of the devices to observe: the target's chain, top first.
    pub devices: Vec<String>,
}

/// What a probe saw of one object at one tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is about, as a device name; empty when there is only one.
    pub object: String,
    /// One cell for each column of the schema, in its order.
    pub cells: Vec<Cell>,
}

/// A source of raw counters and levels.
pub trait Probe: Send {
    /// Its name and columns; always the same.
    fn schema(&self) -> &'static Schema;

    /// Reads everything now and appends one row an object. Counters never decrease from one call
    /// to the next. What fails to be read is unmeasured from then on; this never fails as a whole.
    fn sample(&mut self, rows: &mut Vec<Row>);

    /// The columns that are not measured (for all objects) and why, as of the last sample.
    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)>;
}
