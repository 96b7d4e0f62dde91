//! Specification of a target: size, number of sessions, and location.

use std::path::PathBuf;

use blockstone_base::named;
use blockstone_base::units::Bytes;
pub use blockstone_instance::group::Redundancy;
pub use blockstone_instance::{RedoStress, TornProtection};

named! {
    /// How a database reads and writes its files.
    Io {
        Direct = "direct",
        Buffered = "buffered",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TargetSpec {
    /// The part after the target's name on the command line: a path, or the address of a server
    /// without its scheme.
    pub address: String,
    /// Settings with which the database is started or opened, in order.
    pub settings: Vec<(String, String)>,
    /// Directory of the database's programs; `None` searches the usual places.
    pub programs: Option<PathBuf>,
    /// Locations of the data: files that do not exist yet, or devices that may be overwritten.
    pub places: Vec<Place>,
    /// Number of schemas, each with its own table.
    pub schemas: u32,
    /// Rows per table; each fills one block.
    pub rows: u64,
    /// Rows of the second table of each schema, which is the one scanned.
    pub scan_rows: u64,
    /// Rows at the end of each schema reserved for the orders of transactions; zero without orders.
    /// A database with tables stores orders in their own table and does not use these rows.
    pub order_rows: u64,
    /// Number of tables that exist at a time as copies of a schema's rows; zero if none are
    /// created. If it is not zero, the second table is not scanned, because copies may occupy it.
    pub copies: u32,
    /// Number of sessions connected at a time.
    pub sessions: u32,
    /// Maximum number of rows that one operation accesses.
    pub work_unit: u32,
    pub block: Bytes,
    pub redo_stress: RedoStress,
    /// Incompressible part of each row, from 0 to 1.
    pub obfuscate: f64,
    pub cache: Bytes,
    /// Limit on the page cache of all its processes together; `None` leaves the memory as the only
    /// limit.
    pub page_cache: Option<Bytes>,
    pub redundancy: Redundancy,
    pub allocation_unit: Bytes,
    /// Protection of blocks against torn writes.
    pub torn_protection: TornProtection,
    /// Size of each redo log.
    pub redo: Bytes,
    pub writers: u32,
    /// How it reads and writes its files; `None` for the database's default.
    pub io: Option<Io>,
    /// Seed of the data and of the order of the rows.
    pub seed: u64,
    /// Whether to open what an earlier run kept in the places instead of creating it.
    pub reuse: bool,
    /// Whether to open what was kept even if damage has lost some of its commits.
    pub accept_loss: bool,
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// A file that does not exist yet, or a block device.
    pub path: PathBuf,
    /// Its name in counters: the path that the user gave.
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
            block: Bytes::kib(8),
            redo_stress: RedoStress::Lite,
            obfuscate: 1.0,
            cache: Bytes::mib(128),
            page_cache: None,
            redundancy: Redundancy::External,
            allocation_unit: Bytes::mib(1),
            torn_protection: TornProtection::FullPage,
            redo: Bytes::mib(16),
            writers: 1,
            io: None,
            seed: 0,
            reuse: false,
            accept_loss: false,
        }
    }
}
