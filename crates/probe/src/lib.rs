//! What is observed beside the load: this process, the host, the processes of databases and the
//! block layer.
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
    /// What lies beneath one target: the devices of its chain by their kernel names, top first.
    Target(Vec<String>),
    /// All of the host: every device, interface and mount, those included that come later, and the
    /// processes that these rules name.
    Host(Roles),
    /// What these files tell of some machine, at some time; nothing of this one.
    Pages(Pages),
}

impl Context {
    /// The devices of one target's chain on the machine at `root`.
    pub fn of_target(root: &Path, devices: Vec<String>) -> Self {
        Self { root: root.to_owned(), scope: Scope::Target(devices) }
    }

    /// What was written down of a machine's files.
    pub fn of_pages(pages: Pages) -> Self {
        Self { root: PathBuf::new(), scope: Scope::Pages(pages) }
    }

    /// All of the machine at `root`, with the processes of every database that is recognised.
    pub fn of_host(root: &Path) -> Self {
        Self { root: root.to_owned(), scope: Scope::Host(Roles::default()) }
    }

    /// The rules by which processes are watched; those of recognised databases beside a target.
    fn roles(&self) -> Roles {
        match &self.scope {
            Scope::Host(roles) => roles.clone(),
            Scope::Target(_) | Scope::Pages(_) => Roles::default(),
        }
    }
}

/// What a probe saw of one object at one tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is about, as a device name; empty when there is only one.
    pub object: String,
    /// One cell for each column of the schema, in its order.
    pub cells: Vec<Cell>,
}

pub trait Probe: Send {
    /// Its name and columns; always the same.
    fn schema(&self) -> &'static Schema;

    /// Reads everything now and appends one row an object. Counters never decrease from one call
    /// to the next. What fails to be read is unmeasured from then on; this never fails as a whole.
    fn sample(&mut self, rows: &mut Vec<Row>);

    /// The columns that are not measured (for all objects) and why, as of the last sample.
    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)>;
}
