//! All targets. To add one, add a file and a line here.

use std::path::PathBuf;
use std::sync::Arc;

pub use crate::family::{Family, OptionValue, TargetOption};
pub use crate::spec::Storage;
use crate::spec::{Kept, TargetSpec};
use crate::sql::host::without_password;
use crate::sql::server;
use crate::sql::target::SqlTarget;
use crate::target::{Demand, Progress, ReadSize, Scans, Target, TargetError};
use crate::{instance, mariadb, null, postgres, sqlite};

#[derive(Debug)]
pub struct Entry {
    pub name: &'static str,
    /// The part after the name and a colon, as shown by the help; empty if there is none.
    pub address: &'static str,
    pub doc: &'static str,
    pub family: &'static Family,
    /// Whether its rows take space in the given places.
    pub takes_space: bool,
    /// How its sessions can scan a whole table. May query the server.
    pub scans: fn(&TargetSpec) -> Result<Scans, TargetError>,
    /// Where its data are or will be. May query the server.
    pub storage: fn(&TargetSpec) -> Result<Storage, TargetError>,
    /// Checks a spec and returns its demand for space. Writes nothing.
    pub demand: fn(&TargetSpec) -> Result<Demand, TargetError>,
    /// Removes what a killed run left at the address, and returns whether there was anything;
    /// `None` if nothing can be left.
    pub remove_left: Option<RemoveLeft>,
    /// Finds what an earlier run kept in these places, if it belongs to this target; `None` if
    /// nothing can be kept.
    pub kept: Option<Find>,
    /// Creates it without rows, or opens what was kept. If that fails or is interrupted, nothing
    /// new is left behind.
    pub open: Open,
}

pub type RemoveLeft = fn(&str) -> Result<bool, TargetError>;
pub type Find = fn(&[PathBuf]) -> Result<Option<Kept>, TargetError>;
pub type Open = fn(&TargetSpec, &mut Progress<'_>) -> Result<Arc<dyn Target>, TargetError>;

/// Defaults for most targets.
const ORDINARY: Entry = Entry {
    name: "",
    address: "",
    doc: "",
    family: &null::FAMILY,
    takes_space: true,
    scans: |_| Ok(Scans::Never),
    storage: named,
    demand: null::demand,
    remove_left: None,
    kept: None,
    open: null::open,
};

/// A MariaDB or MySQL server.
const MARIADB: Entry = Entry {
    family: &mariadb::FAMILY,
    storage: server::storage::<mariadb::Address>,
    demand: mariadb::demand,
    scans: |_| Ok(fixed("InnoDB has no setting for the size of its reads")),
    remove_left: Some(server::remove_left::<mariadb::Address>),
    open: SqlTarget::<mariadb::Mariadb>::open,
    ..ORDINARY
};

/// Every target; the first is the default.
pub const ALL: &[Entry] = &[
    Entry {
        name: "instance",
        doc: "The miniature database instance in this process.",
        family: &instance::FAMILY,
        scans: |_| Ok(Scans::Direct),
        demand: instance::demand,
        kept: Some(instance::kept),
        open: instance::open,
        ..ORDINARY
    },
    Entry {
        name: "null",
        doc: "Nothing; measures the cost of the load generator itself.",
        takes_space: false,
        ..ORDINARY
    },
    Entry {
        name: "sqlite",
        address: "DIRECTORY",
        doc: "SQLite in this process, in WAL mode, in a file in that directory.",
        family: &sqlite::FAMILY,
        storage: sqlite::storage,
        demand: sqlite::demand,
        scans: |_| Ok(fixed("SQLite reads one page after the other")),
        open: SqlTarget::<sqlite::Sqlite>::open,
        ..ORDINARY
    },
    Entry {
        name: "postgres",
        address: "//user@host/db or postgres:scratch",
        doc: "PostgreSQL 13 or later: a server, or a private cluster created for the run.",
        family: &postgres::FAMILY,
        storage: server::storage::<postgres::Address>,
        demand: postgres::demand,
        scans: postgres::scans,
        remove_left: Some(server::remove_left::<postgres::Address>),
        open: SqlTarget::<postgres::Postgres>::open,
        ..ORDINARY
    },
    Entry {
        name: "mariadb",
        address: "//user@host or mariadb:scratch",
        doc: "MariaDB 10.11 or later: a server, or a private one created for the run.",
        ..MARIADB
    },
    Entry {
        name: "mysql",
        address: "//user@host",
        doc: "MySQL 8 or MariaDB: a server.",
        ..MARIADB
    },
];

#[allow(clippy::unnecessary_wraps, reason = "others have to ask a server")]
fn named(_: &TargetSpec) -> Result<Storage, TargetError> {
    Ok(Storage::Named)
}

fn fixed(why: &str) -> Scans {
    Scans::Statement(ReadSize::Fixed(why.to_owned()))
}

/// Finds the target named by `text`: its name, or its name, a colon and an address.
pub fn find(text: &str) -> Result<&'static Entry, TargetError> {
    let (name, address) = parts(text);
    let name = if name == "postgresql" { "postgres" } else { name };
    let known = ALL.iter().find(|entry| entry.name == name);
    known.filter(|entry| address.is_empty() || !entry.address.is_empty()).ok_or_else(|| {
        let known = ALL.iter().map(Entry::form).collect::<Vec<_>>().join(", ");
        TargetError::Unknown { name: without_password(text), known }
    })
}

/// Returns every family, in the order of its first target.
pub fn families() -> impl Iterator<Item = &'static Family> {
    let is_first = |(index, entry): &(usize, &Entry)| {
        ALL[..*index].iter().all(|before| before.family.name != entry.family.name)
    };
    ALL.iter().enumerate().filter(is_first).map(|(_, entry)| entry.family)
}

/// Splits `name:address` into the name of a target and its address.
pub fn parts(text: &str) -> (&str, &str) {
    text.split_once(':').unwrap_or((text, ""))
}

impl Entry {
    pub fn form(&self) -> String {
        match self.address {
            "" => self.name.to_owned(),
            address => format!("{}:{address}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::options::Io;

    #[test]
    fn every_family_reads_and_writes_as_asked_or_says_why_not() {
        let scratch = TargetSpec { address: "scratch".to_owned(), ..TargetSpec::default() };
        let served = TargetSpec { address: "//me@db/x".to_owned(), ..TargetSpec::default() };
        let settings = vec![("innodb-flush-method".to_owned(), "O_DSYNC".to_owned())];
        let twice = TargetSpec { settings, ..scratch.clone() };
        let said = |name: &str, io: Io, spec: &TargetSpec| {
            let family = find(name).unwrap().family;
            (family.io)(io, spec).map_err(|refused| {
                assert!(!refused.hint.is_empty());
                refused.why
            })
        };
        for io in [Io::Direct, Io::Buffered] {
            assert_eq!(said("instance", io, &scratch), Ok(Vec::new()));
            assert!(said("null", io, &scratch).unwrap_err().contains("nothing"));
            for server in ["postgres", "mariadb"] {
                assert!(said(server, io, &served).unwrap_err().contains("not started by"));
            }
            let own = said("mariadb", io, &scratch).unwrap();
            assert_eq!(own[0].0, "innodb_flush_method");
            assert!(said("mariadb", io, &twice).unwrap_err().contains("given too"));
        }
        assert_eq!(said("sqlite", Io::Buffered, &scratch), Ok(Vec::new()));
        assert_eq!(said("postgres", Io::Buffered, &scratch), Ok(Vec::new()));
    }

    #[test]
    fn an_option_belongs_to_one_family() {
        let options: Vec<_> = families().flat_map(|family| family.options).collect();
        let names: BTreeSet<_> = options.iter().map(|option| option.name).collect();
        assert!(!names.is_empty() && names.len() == options.len(), "{options:?}");
        let registered: BTreeSet<_> = ALL.iter().map(|entry| entry.family.name).collect();
        assert_eq!(registered.len(), families().count());
    }

    #[test]
    fn every_database_but_ours_says_what_makes_its_commits_durable() {
        for family in families() {
            let ours = ["instance", "null"].contains(&family.name);
            assert_eq!(family.durable_settings.is_empty(), ours, "{}", family.name);
            let empty = |(_, values): &(&str, &[&str])| values.is_empty();
            assert!(!family.durable_settings.iter().any(empty), "{}", family.name);
        }
    }
}
