//! Observation of a machine during a load: this process, the host, the processes of databases and
//! the block layer.
//!
//! A [`Probe`] keeps its files open and returns one [`Row`] per object at each tick: raw counters
//! as the kernel keeps them, made monotonic where the kernel lets them wrap. It knows neither the
//! load that runs nor what its rows are used for, and it never derives a rate. A value that the
//! kernel does not report is [`Cell::Unmeasured`], with the reason in [`Probe::unmeasured`]; it is
//! never zero.
//!
//! To add a probe, write one file with its `SCHEMA` and add one line in `registry.rs`.
//!
//! ```
//! use blockstone_probe::{Context, registry};
//!
//! let context = Context::of_host("/".as_ref());
//! let mut rows = Vec::new();
//! for entry in registry::of(&context) {
//!     let mut probe = (entry.open)(&context);
//!     rows.clear();
//!     probe.sample(&mut rows);
//!     assert!(rows.iter().all(|row| row.cells.len() == entry.schema.columns.len()));
//! }
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod active_set;
pub mod block;
pub mod cached_files;
pub mod cgroup;
mod counted;
pub mod cpu;
pub mod host;
pub mod interrupts;
pub mod io;
pub mod memory;
pub mod network;
pub mod nfs;
pub mod nvme;
mod page;
pub mod page_cache;
mod pages;
pub mod process;
pub mod processes;
pub mod profile;
pub mod registry;
pub mod resources;
mod rising;
pub mod roles;
mod servers;
mod source;

use std::path::{Path, PathBuf};

pub use blockstone_base::column::{Cell, Schema, Unmeasured};
pub use page::columns_page;
pub use pages::Pages;
pub use roles::Roles;

#[derive(Clone, Debug)]
pub struct Context {
    /// Root of `/proc` and `/sys`: `/` on a machine, a fixture tree in a test.
    pub root: PathBuf,
    pub scope: Scope,
}

#[derive(Clone, Debug)]
pub enum Scope {
    /// One target: the devices of its chain by their kernel names, top first.
    Target(Vec<String>),
    /// The whole host: every device, interface and mount, including those that appear later, and
    /// the processes that these rules name.
    Host(Roles),
    /// Saved files of some machine at some time; nothing of this machine.
    Pages(Pages),
}

impl Context {
    /// Creates a context of the devices of one target's chain on the machine at `root`.
    pub fn of_target(root: &Path, devices: Vec<String>) -> Self {
        Self { root: root.to_owned(), scope: Scope::Target(devices) }
    }

    /// Creates a context of the saved files of a machine.
    pub fn of_pages(pages: Pages) -> Self {
        Self { root: PathBuf::new(), scope: Scope::Pages(pages) }
    }

    /// Creates a context of the whole machine at `root`, with the processes of every database that
    /// is recognised.
    pub fn of_host(root: &Path) -> Self {
        Self { root: root.to_owned(), scope: Scope::Host(Roles::default()) }
    }

    /// Returns the rules by which processes are watched; for a target, those of recognised
    /// databases.
    fn roles(&self) -> Roles {
        match &self.scope {
            Scope::Host(roles) => roles.clone(),
            Scope::Target(_) | Scope::Pages(_) => Roles::default(),
        }
    }
}

/// State of one object at one tick, as seen by a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Name of the object, such as a device; empty if there is only one.
    pub object: String,
    /// One cell for each column of the schema, in its order.
    pub cells: Vec<Cell>,
}

pub trait Probe: Send {
    /// Returns its name and columns; always the same.
    fn schema(&self) -> &'static Schema;

    /// Reads everything now and appends one row per object. Counters never decrease from one call
    /// to the next. Values that cannot be read are unmeasured from then on; the call never fails as
    /// a whole.
    fn sample(&mut self, rows: &mut Vec<Row>);

    /// Returns the columns that are not measured (for all objects) and why, as of the last sample.
    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)>;
}
