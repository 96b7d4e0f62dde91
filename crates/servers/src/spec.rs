//! Specification of a target: size, number of sessions, and location.

use std::path::PathBuf;

use blockstone_base::units::Bytes;
use blockstone_instance::RedoStress;
use blockstone_instance::group::Redundancy;
use serde::Serialize;

use crate::options::DatabaseOptions;

/// Request to a target. A manifest stores it under the names of its fields, without what
/// others store: the address, which may hold a password, and the sizes, which follow from the
/// workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetSpec {
    /// The part after the target's name on the command line: a path, or the address of a server
    /// without its scheme.
    #[serde(skip)]
    pub address: String,
    /// Settings with which the database is started or opened, in order.
    #[serde(skip)]
    pub settings: Vec<(String, String)>,
    /// Directory of the database's programs; `None` searches the usual places.
    #[serde(skip)]
    pub programs: Option<PathBuf>,
    /// Locations of the data: files that do not exist yet, or devices that may be overwritten.
    #[serde(rename = "disks")]
    pub places: Vec<Place>,
    /// Number of schemas, each with its own table.
    pub schemas: u32,
    /// Rows per table; each fills one block.
    #[serde(skip)]
    pub rows: u64,
    /// Rows of the second table of each schema, which is the one scanned.
    #[serde(skip)]
    pub scan_rows: u64,
    /// Rows at the end of each schema reserved for the orders of transactions; zero without orders.
    /// A database with tables stores orders in their own table and does not use these rows.
    #[serde(skip)]
    pub order_rows: u64,
    /// Number of tables that exist at a time as copies of a schema's rows; zero if none are
    /// created. If it is not zero, the second table is not scanned, because copies may occupy it.
    #[serde(skip)]
    pub copies: u32,
    /// Number of sessions connected at a time.
    pub sessions: u32,
    /// Maximum number of rows that one operation accesses.
    #[serde(skip)]
    pub work_unit: u32,
    #[serde(flatten)]
    pub options: DatabaseOptions,
    pub redo_stress: RedoStress,
    /// Incompressible part of each row, from 0 to 1.
    pub obfuscate: f64,
    /// Seed of the data and of the order of the rows.
    #[serde(skip)]
    pub seed: u64,
    /// Whether to open what an earlier run kept in the places instead of creating it.
    #[serde(rename = "reused")]
    pub reuse: bool,
}

/// Location of a target's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In the places named by the user.
    Named,
    /// In a place that is created in this directory.
    At(PathBuf),
    /// On a server, in this directory if it is on this machine and known.
    Served(Option<PathBuf>),
}

/// A target that an earlier run kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kept {
    /// Number of loaded schemas.
    pub schemas: u32,
    pub rows: u64,
    pub scan_rows: u64,
    pub block: Bytes,
    pub obfuscate: f64,
    pub redo: Bytes,
    pub redundancy: Redundancy,
    pub allocation_unit: Bytes,
    pub seed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// A file that does not exist yet, or a block device.
    #[serde(skip)]
    pub path: PathBuf,
    /// Its name in counters: the path that the user gave.
    #[serde(rename = "path")]
    pub name: String,
    /// Group of places that fail together; `None` makes each place its own group.
    pub failure_group: Option<String>,
}

impl TargetSpec {
    /// Returns the location of a database that uses a single place.
    pub fn first_place(&self) -> PathBuf {
        self.places.first().map(|place| place.path.clone()).unwrap_or_default()
    }
}

impl Default for TargetSpec {
    fn default() -> Self {
        Self {
            address: String::new(),
            settings: Vec::new(),
            programs: None,
            places: Vec::new(),
            schemas: 1,
            rows: 1024,
            scan_rows: 128,
            order_rows: 0,
            copies: 0,
            sessions: 1,
            work_unit: 64,
            options: DatabaseOptions::default(),
            redo_stress: RedoStress::Lite,
            obfuscate: 1.0,
            seed: 0,
            reuse: false,
        }
    }
}
