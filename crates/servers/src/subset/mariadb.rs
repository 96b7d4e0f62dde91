//! `MariaDB` and `MySQL` with `InnoDB` as a source and a destination of subsets. The source is only
//! read, in one snapshot.

mod catalogue;
mod columns;
mod ddl;
mod draw;
mod export;
mod load;
mod packed;
mod rights;
mod rows;
mod schema;
mod staging;
mod statements;
mod values;

use blockstone_subset::{Catalogue, CatalogueError, Plan, Row, Scan, Source, Transform};
use blockstone_sys::held::HeldDir;
use mysql::Conn;
use mysql::prelude::Queryable;

use super::manifest::Sequence;
use super::source::{Expected, Exported, SubsetSource, Tell};
use crate::mariadb::{Address, DENIED, answer, product};
use crate::sql::error::{DriverError, During, SqlError};
use crate::sql::host::ServerAddress;
use catalogue::Known;
use ddl::quoted;
pub use load::{load, write_script};

/// The oldest supported versions of both products.
const MARIADB_MIN: (u16, u16) = (10, 6);
const MYSQL_MIN: (u16, u16) = (8, 0);

/// Values are compared and written as text, which must not depend on the server's settings. A
/// reader may be slow.
const SETTINGS: &str = "SET NAMES utf8mb4, SESSION time_zone = '+00:00', sql_mode = '', \
    sql_quote_show_create = 1, net_write_timeout = 3600, net_read_timeout = 3600, \
    wait_timeout = 86400, autocommit = 1";
/// Settings that only one product has.
const MARIADB_SETTINGS: &str = "SET SESSION max_statement_time = 0";
const MYSQL_SETTINGS: &str = "SET SESSION max_execution_time = 0";
const ISOLATE: &str = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
const BEGIN: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";

/// A connection to the database named by an address.
struct Server {
    address: Address,
    link: Conn,
    database: String,
    version: String,
    is_mariadb: bool,
}

impl Server {
    fn open(address: &str) -> Result<Self, SqlError> {
        let (_, rest) = address.split_once(':').unwrap_or((address, ""));
        let address = Address::parse(rest)?;
        let Some(database) = address.database.clone() else {
            return Err(SqlError::Address {
                address: address.name,
                why: "it names no database".to_owned(),
                hint: "mysql://user@host/database",
            });
        };
        let (link, version, is_mariadb) =
            address.within_limit(|| Self::admitted(&address, &database))?;
        Ok(Self { address, link, database, version, is_mariadb })
    }

    /// Opens and sets up a connection; returns it with the server's version and whether that is
    /// MariaDB's.
    fn admitted(address: &Address, database: &str) -> Result<(Conn, String, bool), SqlError> {
        let mut link = address.connect()?;
        let version: Option<String> =
            answer::first(&mut link, "SELECT @@version").during("query its version")?;
        let version = version.unwrap_or_default();
        let (is_mariadb, numbers) = product(&version);
        if numbers < if is_mariadb { MARIADB_MIN } else { MYSQL_MIN } {
            let hint = "MariaDB 10.6 and MySQL 8.0 and later are supported";
            let why = format!("it is version {version}");
            return Err(SqlError::unsuitable(&address.name, why, hint));
        }
        let own = if is_mariadb { MARIADB_SETTINGS } else { MYSQL_SETTINGS };
        for settings in [SETTINGS, own] {
            link.query_drop(settings).during("set up the session")?;
        }
        let used = link.query_drop(format!("USE {}", quoted(database)));
        used.map_err(|error| {
            let hint = "name a database that is there, and that this user may use";
            SqlError::unsuitable(&address.name, error.said(), hint)
        })?;
        Ok((link, version, is_mariadb))
    }

    /// Returns the product with its version, such as `MariaDB 10.11.6`.
    fn product(&self) -> String {
        let number = self.version.split('-').next().unwrap_or_default();
        format!("{} {number}", if self.is_mariadb { "MariaDB" } else { "MySQL" })
    }

    /// Returns a function that cancels the running statement, so that its answer need not be read
    /// to the end.
    fn cancel(&mut self) -> impl Fn() + use<> {
        let (address, session) = (self.address.clone(), self.link.connection_id());
        move || {
            // The statement also ends if the server is gone.
            let _ =
                address.connect().map(|mut link| link.query_drop(format!("KILL QUERY {session}")));
        }
    }
}

/// Adds the purpose of a statement to its error, and the privilege that this user needs for it.
fn failed<'a>(what: &'a str, grant: &'a str) -> impl Fn(mysql::Error) -> SqlError + 'a {
    /// Denied access to a column, through a view, or to the server, in addition to the errors for
    /// whole tables.
    const MORE_DENIED: [u16; 3] = [1143, 1356, 1045];
    const FULL: [u16; 3] = [1021, 1114, 3];
    const CHANGED: [u16; 2] = [1412, 1146];
    move |error| {
        let code = match &error {
            mysql::Error::MySqlError(said) => said.code,
            _ => 0,
        };
        match SqlError::statement(what, &error) {
            SqlError::Statement { what, why, hint } => {
                let hint = if DENIED.contains(&code) || MORE_DENIED.contains(&code) {
                    grant.to_owned()
                } else if FULL.contains(&code) {
                    "free some space on the server".to_owned()
                } else if CHANGED.contains(&code) {
                    "a table was changed meanwhile; take the subset again".to_owned()
                } else {
                    hint
                };
                SqlError::Statement { what, why, hint }
            }
            other => other,
        }
    }
}

/// A database as seen by one snapshot.
pub struct MariadbSource<'a> {
    server: Server,
    known: Known,
    catalogue: Catalogue,
    conditions: Vec<Option<String>>,
    notes: Vec<String>,
    tell: &'a mut Tell<'a>,
}

impl<'a> MariadbSource<'a> {
    /// Connects, takes a snapshot, and reads the catalogue of tables and keys.
    pub fn open(address: &str, tell: &'a mut Tell<'a>) -> Result<Self, SqlError> {
        let mut server = Server::open(address)?;
        for begin in [ISOLATE, BEGIN] {
            server.link.query_drop(begin).during("begin a snapshot")?;
        }
        let (known, catalogue, notes) = catalogue::read(&mut server)?;
        let conditions = vec![None; catalogue.tables.len()];
        Ok(Self { server, known, catalogue, conditions, notes, tell })
    }

    fn told(&mut self, text: &str, rows: u64) -> Result<(), SqlError> {
        if (self.tell)(text, rows, None) { Ok(()) } else { Err(SqlError::Interrupted) }
    }
}

impl SubsetSource for MariadbSource<'_> {
    fn name(&self) -> &str {
        &self.server.address.name
    }

    fn product(&self) -> String {
        self.server.product()
    }

    fn names(&self, table: usize) -> (&str, &str, bool) {
        let known = &self.known.tables[table];
        (&self.server.database, &known.name, known.partitioned)
    }

    fn add_keys(&mut self, text: &str, what: &str) -> Result<(), CatalogueError> {
        blockstone_subset::virtual_keys::add(&mut self.catalogue, text, what)
    }

    fn set_condition(&mut self, table: usize, condition: &str) {
        if let Some(place) = self.conditions.get_mut(table) {
            *place = Some(condition.to_owned());
        }
    }

    fn set_null(&mut self, table: usize, columns: &[usize]) {
        if let Some(table) = self.catalogue.tables.get_mut(table) {
            table.nulled.extend(columns);
        }
    }

    fn prove(&self) -> Result<(), SqlError> {
        // There are no user-defined column types, and generated columns call no routines.
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn start_dump(&mut self) -> Result<(), SqlError> {
        schema::read(self).map(|_| ())
    }

    fn dump_schema(&mut self, dir: &HeldDir) -> Result<(), SqlError> {
        self.told("schema", 0)?;
        schema::read(self)?.write(dir)
    }

    fn sequences(&mut self) -> Result<Vec<Sequence>, SqlError> {
        schema::sequences(&mut self.server)
    }

    fn expect(&mut self, plan: &Plan, _readers: usize) -> Result<Option<Expected>, SqlError> {
        export::expect(self, plan)
    }

    fn export(
        &mut self,
        plan: &Plan,
        dir: &HeldDir,
        _readers: usize,
        transform: Option<&dyn Transform>,
    ) -> Result<Exported, SqlError> {
        export::export(self, plan, dir, transform)
    }
}

impl Source for MariadbSource<'_> {
    type Error = SqlError;

    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn draws(&self) -> bool {
        true
    }

    fn count(&mut self, table: usize) -> Result<u64, SqlError> {
        let name = self.catalogue.tables[table].name.clone();
        self.told(&format!("rows of {name} counted"), 0)?;
        rows::count(self, table)
    }

    fn scan(&mut self, scan: &Scan, each: &mut dyn FnMut(Row<'_>)) -> Result<(), SqlError> {
        let text = format!("keys of {}", self.catalogue.tables[scan.table].name);
        self.told(&text, 0)?;
        rows::scan(self, scan, &text, each)
    }

    fn fetch(
        &mut self,
        scan: &Scan,
        by: usize,
        values: &[Box<[u8]>],
        each: &mut dyn FnMut(Row<'_>),
    ) -> Result<(), SqlError> {
        let text = format!("rows of {} by key", self.catalogue.tables[scan.table].name);
        self.told(&text, values.len() as u64)?;
        rows::fetch(self, scan, by, values, &text, each)
    }
}
