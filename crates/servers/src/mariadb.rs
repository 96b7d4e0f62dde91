//! `MariaDB` 10.11 and later and `MySQL` 8, with `InnoDB`: any server that permits creating a
//! schema, or a private server.
//!
//! `InnoDB` insists on room for two rows in each page. So each accessed row has a neighbour that is
//! never accessed, and both are so long that a third does not fit: no page holds two accessed rows.
//! The clustered index follows the places; a second index finds rows by key, and neighbours have no
//! key.

pub mod address;
pub mod answer;
pub mod counters;
mod programs;
mod session;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use blockstone_base::units::Bytes;
use blockstone_sys::{account, held};
use mysql::prelude::Queryable;
use mysql::{Conn, Value};

use crate::spec::TargetSpec;
use crate::sql::border::Border;
use crate::sql::content::{COLUMN_BYTES, COLUMNS, Content, ContentRow, LOADED_TABLES, ROW_BYTES};
use crate::sql::error::{DriverError, During, FREE_SPACE, SqlError};
use crate::sql::host::ServerAddress;
use crate::sql::server::{self, Owned};
use crate::sql::{
    Chunk, Database, Member, Prepared, SCHEMA, Table, Templates, Texts, Watcher, columns, kernel,
    sample, table_name, with,
};
use crate::target::{Demand, Description, TargetError};
pub use address::Address;
use address::MARK;
pub use programs::FAMILY;
use programs::Programs;
use session::Session;

const CREATE: &str = include_str!("../sql/mariadb/create.sql");
const CREATE_ORDERS: &str = include_str!("../sql/mariadb/create_orders.sql");
const INDEX: &str = include_str!("../sql/mariadb/index.sql");
const STATEMENTS: Templates = Templates {
    select: include_str!("../sql/mariadb/select.sql"),
    update: include_str!("../sql/mariadb/update.sql"),
    scan: include_str!("../sql/mariadb/scan.sql"),
    insert_order: include_str!("../sql/mariadb/insert_order.sql"),
    orders: include_str!("../sql/mariadb/orders.sql"),
    delete_order: include_str!("../sql/mariadb/delete_order.sql"),
};
const VERIFY: &str = include_str!("../sql/mariadb/verify.sql");

/// The oldest supported versions of both products.
pub const MARIADB_MIN: (u16, u16) = (10, 11);
const MYSQL_MIN: (u16, u16) = (8, 0);
const NO_SUCH_COLUMN: u16 = 1054;
/// Page sizes that hold two rows.
const PAGES: [u64; 3] = [8192, 16384, 32768];
/// Length of a row or neighbour in thousandths of a page: more than a third, less than a half.
const ROW_PER_MILLE: u64 = 460;
/// Bytes of the headers of a record and its columns.
const RECORD_BYTES: u64 = 64;
/// Pairs of rows and neighbours per statement of the load, and statements per transaction.
const PAIRS: u64 = 8;
const BATCHES: u64 = 64;
/// Space for a fresh server with its redo log, and for the index of the rows.
const ASIDE: u64 = 400 << 20;

/// Settings of a session, made before its first statement.
const PIN: [&str; 2] = [
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION optimizer_switch = 'mrr=off'",
];

/// Errors after which a transaction can be repeated: deadlock, lock wait timeout, and a row that
/// changed since the snapshot.
const AGAIN: [u16; 3] = [1213, 1205, 1020];

/// The error of a statement ended by `KILL QUERY`.
const KILLED: u16 = 1317;

/// Maximum size of a pid file.
const PID_MOST: Bytes = Bytes(64);

/// Errors about missing privileges.
pub const DENIED: [u16; 4] = [1044, 1142, 1227, 1370];

pub fn demand(spec: &TargetSpec) -> Result<Demand, TargetError> {
    let page = spec.options.block_bytes.get();
    if !PAGES.contains(&page) {
        let why = format!("two rows do not fit into pages of {page} bytes");
        Err(SqlError::unsuitable("InnoDB", why, "--block-size is 8K, 16K or 32K"))?;
    }
    server::demand(spec, &FAMILY, page + page / 8, ASIDE)
}

#[derive(Debug)]
pub struct Mariadb {
    server: Owned<Address>,
    content: Content,
    page_bytes: u64,
    /// The server's process, if it is on this machine.
    pid: Option<u32>,
    /// Whether the process list shows the ids of system threads: MariaDB's does.
    knows_tid: bool,
}

impl Mariadb {
    fn texts(&self) -> Texts {
        let (schemas, changed) = (self.content.schemas(), self.content.changed());
        Texts::new(&STATEMENTS, schemas, changed, table_name, |_| "?".to_owned())
    }

    fn pinned(&self) -> Result<Conn, SqlError> {
        let mut link = self.server.address.connect()?;
        for set in PIN {
            link.query_drop(set).during("pin the plans")?;
        }
        Ok(link)
    }

    /// Verifies that no page holds two accessed rows: between them is a neighbour, and three rows
    /// are longer than a page. The server's own page count must not contradict that.
    fn verify(&self, link: &mut Conn, schema: u32, kind: Table) -> Result<(), SqlError> {
        let (table, rows) = (table_name(schema, kind), self.content.rows(kind));
        let ballast = ballast_bytes(self.page_bytes);
        let text = with(
            VERIFY,
            &[
                ("table", &table),
                ("name", table.rsplit('.').next().unwrap_or_default()),
                ("ballast", &ballast.to_string()),
            ],
        );
        let found: Option<(u64, u64, u64, u64)> =
            answer::first(link, &text).during(&format!("verify {table}"))?;
        let (held, neighbours, least, data_bytes) = found.unwrap_or_default();
        let apart = 3 * (least + ROW_BYTES as u64) > self.page_bytes;
        let pages = data_bytes / self.page_bytes;
        if (held, neighbours) == (rows, rows) && apart && pages >= rows {
            return Ok(());
        }
        Err(SqlError::Layout { table, rows: held, pages })
    }
}

impl Database for Mariadb {
    type Link = Session;

    fn open(spec: &TargetSpec, content: Content) -> Result<Self, SqlError> {
        let page_bytes = spec.options.block_bytes.get();
        let (server, (knows_tid, found)) = Owned::open::<Programs, _>(
            spec,
            |address, link| Ok((check(address, link, spec)?, process_of(address, link))),
            |owner| make_tables(owner, &content, page_bytes),
        )?;
        let pid = server.pid.or(found);
        Ok(Self { server, content, page_bytes, pid, knows_tid })
    }

    fn border(&self) -> Border {
        self.server.address.border()
    }

    fn link(&self) -> Result<Session, SqlError> {
        let mut link = self.pinned()?;
        // The server's views tell our sessions from others by their schema.
        let used = link.query_drop(format!("USE {SCHEMA}"));
        used.during("use the schema blockstone")?;
        let ask = if self.knows_tid {
            "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()"
        } else {
            "SELECT THREAD_OS_ID FROM performance_schema.threads
             WHERE PROCESSLIST_ID = CONNECTION_ID()"
        };
        let thread: Option<u32> = answer::first(&mut link, ask).ok().flatten();
        let member = self.pid.zip(thread).map(|(pid, tid)| Member { pid, thread: Some(tid) });
        let directory: Option<String> = answer::first(&mut link, "SELECT @@datadir").ok().flatten();
        let directory = directory.filter(|_| self.server.address.local).map(PathBuf::from);
        let (page_bytes, prepared) = (self.page_bytes, Prepared::new(self.texts()));
        let address = self.server.address.clone();
        Ok(Session { link, address, page_bytes, directory, member, prepared })
    }

    fn loaders(&self) -> (usize, u64) {
        // A table grows at its end: rows inserted out of order would split pages.
        (std::thread::available_parallelism().map_or(1, usize::from).clamp(2, 8), u64::MAX)
    }

    fn fill(
        &self,
        chunk: &Chunk,
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), SqlError> {
        let table = table_name(chunk.schema, chunk.table);
        let load = &format!("load {table}");
        let mut link = self.server.address.connect()?;
        let one = format!("({})", vec!["?"; COLUMNS + 3].join(","));
        let insert = |pairs: u64| {
            let rows = vec![one.as_str(); 2 * pairs as usize].join(",");
            format!("INSERT INTO {table} VALUES {rows}")
        };
        let whole = link.prep(insert(PAIRS)).during(load)?;
        let ballast = ballast_bytes(self.page_bytes) as usize;
        let mut rows = self.content.rows_of(chunk, ballast).peekable();
        link.query_drop("BEGIN").during(load)?;
        let mut statements = 0;
        while rows.peek().is_some() {
            let mut values = Vec::with_capacity(2 * PAIRS as usize * (COLUMNS + 3));
            let mut pairs = 0;
            for ContentRow { place, key, bytes } in rows.by_ref().take(PAIRS as usize) {
                push_pair(&mut values, place, key, &bytes);
                pairs += 1;
            }
            if pairs == PAIRS {
                link.exec_drop(&whole, values).during(load)?;
            } else {
                link.exec_drop(insert(pairs), values).during(load)?;
            }
            statements += 1;
            if statements % BATCHES == 0 {
                link.query_drop("COMMIT").during(load)?;
                link.query_drop("BEGIN").during(load)?;
            }
            if tell(pairs).is_break() {
                return Err(SqlError::Interrupted);
            }
        }
        link.query_drop("COMMIT").during(load)
    }

    fn settle(&self) -> Result<(), SqlError> {
        let mut link = self.server.address.connect()?;
        let mut tables = Vec::new();
        for schema in 0..self.content.schemas() {
            let table = table_name(schema, Table::Rows);
            link.query_drop(with(INDEX, &[("table", &table)])).during(&format!("index {table}"))?;
            for kind in LOADED_TABLES {
                let table = table_name(schema, kind);
                let analysed = link.query_drop(format!("ANALYZE TABLE {table}"));
                analysed.during(&format!("analyse {table}"))?;
                self.verify(&mut link, schema, kind)?;
                tables.push(table);
            }
        }
        counters::write_out(&mut link, &tables)
    }

    fn watcher(&self) -> Result<Box<dyn Watcher>, SqlError> {
        let link = self.server.address.connect()?;
        let is_private = self.server.pid.is_some();
        Ok(Box::new(counters::Counters::new(link, self.pid, is_private, self.page_bytes)))
    }

    fn describe(&self) -> Result<Description, SqlError> {
        let mut link = self.pinned()?;
        let mut description = counters::describe(&mut link)?;
        for (kind, text) in self.texts().first() {
            // The plan does not depend on the keys, because the index is forced.
            let text = text.replacen("BETWEEN ? AND ?", "BETWEEN 0 AND 63", 1).replace('?', "''");
            let explained = answer::first(&mut link, &format!("EXPLAIN {text}"));
            let row: Option<mysql::Row> = explained.during(&format!("explain the {kind}"))?;
            description.plans.extend(row.map(|row| (kind, plan(&row))));
        }
        description.unmeasured.extend(kernel::unseen(self.pid));
        description.notes.extend_from_slice(&self.server.notes);
        if let Some(database) = &self.server.address.database {
            description.notes.extend(sample(comment(&mut link, database)?.as_deref()));
        }
        if self.server.address.local {
            let tables = (0..self.content.schemas()).map(|schema| table_name(schema, Table::Rows));
            description.files = counters::files(&mut link, tables);
            description.places = Address::data_directory(&mut link).into_iter().collect();
        }
        Ok(description)
    }

    fn explained(&self, error: SqlError) -> SqlError {
        self.server.explained(error)
    }

    fn tear_down(&self) -> Result<(), SqlError> {
        self.server.tear_down()
    }
}

/// Returns the comment on a database; MySQL has none.
pub fn comment(link: &mut Conn, database: &str) -> Result<Option<String>, SqlError> {
    const ASK: &str =
        "SELECT SCHEMA_COMMENT FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?";
    match answer::executed(link, ASK, (database,)) {
        Err(mysql::Error::MySqlError(error)) if error.code == NO_SUCH_COLUMN => Ok(None),
        answered => answered.during("query the comment on the database"),
    }
}

/// Returns the bytes of ballast that bring a row to its share of a page.
fn ballast_bytes(page_bytes: u64) -> u64 {
    page_bytes * ROW_PER_MILLE / 1000 - ROW_BYTES as u64 - RECORD_BYTES
}

/// Appends the values of an accessed row, and of its neighbour without a key.
fn push_pair(values: &mut Vec<Value>, place: u64, key: u64, bytes: &[u8]) {
    let (columns, ballast) = bytes.split_at(ROW_BYTES);
    for (place, key) in [(2 * place, Value::UInt(key)), (2 * place + 1, Value::NULL)] {
        values.extend([Value::UInt(place), key]);
        values.extend(columns.chunks(COLUMN_BYTES).map(|column| Value::Bytes(column.to_vec())));
        values.push(Value::Bytes(ballast.to_vec()));
    }
}

fn make_tables(owner: &mut Conn, content: &Content, page_bytes: u64) -> Result<(), SqlError> {
    const CREATE_SCHEMA: &str = "create the schema blockstone";
    owner.query_drop(format!("CREATE DATABASE {SCHEMA}")).during(CREATE_SCHEMA)?;
    owner.query_drop(format!("CREATE TABLE {SCHEMA}.{MARK} (n int)")).during(CREATE_SCHEMA)?;
    let ballast = ballast_bytes(page_bytes).to_string();
    for schema in 0..content.schemas() {
        for table in LOADED_TABLES {
            let (name, columns) = (table_name(schema, table), columns("varbinary(128)"));
            let values = [("table", &name), ("columns", &columns), ("ballast", &ballast)];
            let create = with(CREATE, &values.map(|(name, value)| (name, value.as_str())));
            owner.query_drop(create).during(&format!("create table {name}"))?;
        }
        if content.has_orders() {
            let name = table_name(schema, Table::Orders);
            let create = with(CREATE_ORDERS, &[("table", &name)]);
            owner.query_drop(create).during(&format!("create table {name}"))?;
        }
    }
    Ok(())
}

/// Checks whether this server can be used; returns whether it is MariaDB.
fn check(address: &Address, link: &mut Conn, spec: &TargetSpec) -> Result<bool, SqlError> {
    let asked = answer::first(link, "SELECT @@version, @@read_only, @@innodb_page_size");
    let asked: Option<(String, u32, u64)> = asked.during("query its version")?;
    let (version, read_only, page) = asked.unwrap_or_default();
    let unsuitable = |why: String, hint: &str| Err(SqlError::unsuitable(&address.name, why, hint));
    let (is_mariadb, numbers) = product(&version);
    if numbers < if is_mariadb { MARIADB_MIN } else { MYSQL_MIN } {
        let hint = "MariaDB 10.11 and MySQL 8.0 and later are supported";
        return unsuitable(format!("it is version {version}"), hint);
    }
    if read_only != 0 {
        let why = "it is read-only: a replica, or in recovery";
        return unsuitable(why.to_owned(), "name the primary server");
    }
    if page != spec.options.block_bytes.get() {
        let hint = format!("use --block-size {page}B");
        return unsuitable(format!("its pages are {}", Bytes(page)), &hint);
    }
    Ok(is_mariadb)
}

/// Returns whether a version is MariaDB's, and its first two numbers.
pub fn product(version: &str) -> (bool, (u16, u16)) {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let numbers = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (version.to_lowercase().contains("mariadb"), numbers)
}

/// Returns the server's process, if it is on this machine and its pid file can be read.
pub fn process_of(address: &Address, link: &mut Conn) -> Option<u32> {
    let file: String = answer::first(link, "SELECT @@pid_file").ok()??;
    let datadir: String = answer::first(link, "SELECT @@datadir").ok()??;
    let said = held::read_file(&Path::new(&datadir).join(file), PID_MOST).ok()?;
    let pid = String::from_utf8(said).ok()?.trim().parse().ok()?;
    let title = account::process(Path::new("/"), pid)?.title;
    let known = title.contains("mariadbd") || title.contains("mysqld");
    (address.local && known).then_some(pid)
}

/// Describes one line of EXPLAIN in words.
fn plan(row: &mysql::Row) -> String {
    let cell = |name: &str| -> String {
        row.get_opt::<Option<String>, _>(name).and_then(Result::ok).flatten().unwrap_or_default()
    };
    let (kind, key, extra) = (cell("type"), cell("key"), cell("Extra"));
    let how = match (kind.as_str(), key.as_str()) {
        ("ALL", _) => "full table scan".to_owned(),
        ("index", key) => format!("full scan of index {key}"),
        (kind, key) => format!("{kind} by index {key}"),
    };
    if extra.is_empty() { how } else { format!("{how}; {extra}") }
}

impl DriverError for mysql::Error {
    fn words(&self) -> String {
        match self {
            Self::MySqlError(said) => {
                format!("{} (error {}, SQLSTATE {})", said.message, said.code, said.state)
            }
            // The driver's own text includes the name of its type.
            Self::DriverError(error) => error.to_string(),
            Self::TlsError(error) => error.to_string(),
            Self::IoError(error) => error.to_string(),
            Self::UrlError(error) => error.to_string(),
            Self::CodecError(error) => error.to_string(),
            Self::FromRowError(_) | Self::FromValueError(_) => {
                "the answer has other columns or types than were asked for".to_owned()
            }
        }
    }

    fn hint(&self) -> &'static str {
        const FULL: [u16; 3] = [1021, 1114, 3];
        match self {
            Self::MySqlError(said) if FULL.contains(&said.code) => FREE_SPACE,
            Self::MySqlError(said) if DENIED.contains(&said.code) => {
                "GRANT ALL ON blockstone.* TO this user"
            }
            Self::MySqlError(_) => "see the server's log",
            Self::FromRowError(_) | Self::FromValueError(_) => {
                "check that the server is MariaDB or MySQL, of a version that is supported"
            }
            _ => "the server ended or closed the connection; see its log",
        }
    }

    fn is_conflict(&self) -> bool {
        matches!(self, Self::MySqlError(said) if AGAIN.contains(&said.code))
    }

    fn is_cancelled(&self) -> bool {
        match self {
            Self::MySqlError(said) => said.code == KILLED,
            Self::DriverError(_) | Self::IoError(_) | Self::CodecError(_) => true,
            _ => false,
        }
    }
}
