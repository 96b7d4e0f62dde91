//! All monitors. To add one, add a file and a line here.

use super::{Monitor, mariadb, postgres, run};
use crate::sql::error::SqlError;

#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub schemes: &'static [&'static str],
    /// The part of an address after the scheme and a colon, as shown by the help.
    pub address: &'static str,
    pub doc: &'static str,
    pub open: fn(&str) -> Result<Box<dyn Monitor>, SqlError>,
}

pub const ALL: &[Entry] = &[
    Entry {
        schemes: &["postgres", "postgresql"],
        address: "//user@host/database",
        doc: "PostgreSQL 13 or later.",
        open: postgres::open,
    },
    Entry {
        schemes: &["mysql", "mariadb"],
        address: "//user@host",
        doc: "MariaDB 10.11 or later.",
        open: mariadb::open,
    },
    Entry {
        schemes: &["run"],
        address: "last",
        doc: "A run of Blockstone's own that is in progress, by its recording.",
        open: run::open,
    },
];

pub fn find(scheme: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.schemes.contains(&scheme))
}
