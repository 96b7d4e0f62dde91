//! What a target is to be: how much it holds, for how many, and where.

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
    /// What follows the name of the target on the command line: a path, or the address of a server
    /// without its scheme.
    pub address: String,
    /// Settings that the target's database is started or opened with, in their order.
    pub settings: Vec<(String, String)>,
    /// Where the programs of a database server are; none looks in the usual places.
    pub programs: Option<PathBuf>,
    /// Where it keeps its data: files that do not exist yet, or devices that may be overwritten.
    pub places: Vec<Place>,
    /// Schemas, each with a table of its own.
    pub schemas: u32,
    /// Rows of a table; each fills one block.
    pub rows: u64,
    /// Rows of the second table of each schema, the one that is scanned.
    pub scan_rows: u64,
    /// Room for the orders of transactions, in the last rows of each schema; zero where there are
    /// none. A database with tables has one for them, and leaves these rows alone.
    pub order_rows: u64,
    /// Tables that sessions make of all rows of a schema, of each schema at a time; zero where no
    /// table is made. Where there are such, the second table is not scanned: they may lie in it.
    pub copies: u32,
    /// Sessions that will be connected at a time.
    pub sessions: u32,
    /// The most rows that one operation visits.
    pub work_unit: u32,
    pub block: Bytes,
    pub redo_stress: RedoStress,
    /// The part of each row that does not compress, 0 to 1.
    pub obfuscate: f64,
    pub cache: Bytes,
    /// The most page cache that its processes have together; none bounds it by the memory.
    pub page_cache: Option<Bytes>,
    pub redundancy: Redundancy,
    pub allocation_unit: Bytes,
    /// What protects a block against a write that was cut off.
    pub torn_protection: TornProtection,
    /// Size of each redo log.
    pub redo: Bytes,
    pub writers: u32,
    /// How it reads and writes its files; none is as it does by itself.
    pub io: Option<Io>,
    /// Seed of the data and of the order of the rows.
    pub seed: u64,
    /// The places hold what an earlier run kept, which is opened instead of made again.
    pub reuse: bool,
    /// What was kept is opened even when damage has lost commits of it.
    pub accept_loss: bool,
}

/// Where a target's data are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In the places that the user names.
    Named,
    /// In this directory, in which its place is made.
    At(PathBuf),
    /// Behind a server, in this directory if that is on this machine and may be known.
    Served(Option<PathBuf>),
}

/// What an earlier run kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kept {
    /// Schemas that are loaded.
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
    /// What it is called in counters: the path that the user gave.
    pub name: String,
    /// Places that fail together; none makes each place a group of its own.
    pub failure_group: Option<String>,
}

impl TargetSpec {
    /// Where a database with a single place keeps its data.
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
