//! `MariaDB` 10.11 and later and `MySQL` 8, with `InnoDB`: any server that lets a schema be made,
//! or a private server.
//!
//! `InnoDB` insists on room for two rows in each page. So each row that is visited has a neighbour
//! that is not, and both are so long that a third does not fit: no page holds two rows that are
//! visited. The clustered index follows the places; a second index finds a row by its key, and the
//! neighbours have none.

pub mod counters;
mod server;
mod session;

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use blockstone_base::units::Bytes;
use blockstone_sys::account;
use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder, Value};

use crate::spec::{Storage, TargetSpec};
use crate::sql::content::{COLUMN_BYTES, COLUMNS, Content, ROW_BYTES};
use crate::sql::error::SqlError;
use crate::sql::host::{NAME_HINT, resolve, without_password};
use crate::sql::private::{Holder, PrivateServer};
use crate::sql::target::SqlTarget;
use crate::sql::{
    Chunk, Database, Member, SCHEMA, Table, Texts, Watcher, columns, removed_left, table_name, with,
};
use crate::target::{Demand, Description, Progress, Target, TargetError};
pub use server::FAMILY;
use server::Programs;
use session::Session;

const CREATE: &str = include_str!("../sql/mariadb/create.sql");
const INDEX: &str = include_str!("../sql/mariadb/index.sql");
const SELECT: &str = include_str!("../sql/mariadb/select.sql");
const UPDATE: &str = include_str!("../sql/mariadb/update.sql");
const SCAN: &str = include_str!("../sql/mariadb/scan.sql");
const VERIFY: &str = include_str!("../sql/mariadb/verify.sql");

/// A table by which the schema is known as a run's.
const MARK: &str = "made_by_a_run";
/// The private server, in place of an address.
pub const SCRATCH: &str = "scratch";
/// The oldest versions that are supported, of either product.
pub const MARIADB_MIN: (u16, u16) = (10, 11);
const MYSQL_MIN: (u16, u16) = (8, 0);
/// Sizes of pages that hold two rows.
const PAGES: [u64; 3] = [8192, 16384, 32768];
/// What a row and its neighbour take of a page, each: more than a third, less than a half.
const ROW_PER_MILLE: u64 = 460;
/// Headers of a record, and of its columns.
const RECORD_BYTES: u64 = 64;
/// Rows with their neighbours in a statement of the load, and statements in a transaction.
const PAIRS: u64 = 8;
const STATEMENTS: u64 = 64;
/// A fresh server with its redo log, and the index of the rows.
const ASIDE: u64 = 400 << 20;
/// How long a connection may take, and how long the network may be silent.
const PATIENCE: Duration = Duration::from_secs(10);
const SILENCE_MS: u32 = 30_000;

/// The settings of a session before its first statement.
const PIN: [&str; 2] = [
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION optimizer_switch = 'mrr=off'",
];

/// Errors after which a transaction may be sent again: deadlock, lock wait timeout, and a row that
/// changed under a snapshot.
const AGAIN: [u16; 3] = [1213, 1205, 1020];

pub fn storage(spec: &TargetSpec) -> Result<Storage, TargetError> {
    if spec.address == SCRATCH {
        return Ok(Storage::Named);
    }
    let found = || -> Result<Option<PathBuf>, SqlError> {
        let address = Address::parse(&spec.address)?;
        let mut link = address.connect()?;
        let known: Option<String> = link.query_first("SELECT @@datadir").ok().flatten();
        Ok(known.map(PathBuf::from).filter(|dir| address.local && dir.is_dir()))
    };
    Ok(Storage::Served(found().map_err(TargetError::own)?))
}

pub fn demand(spec: &TargetSpec) -> Result<Demand, TargetError> {
    let unsuitable = |why: String, hint: &str| {
        let (server, hint) = ("InnoDB".to_owned(), hint.to_owned());
        TargetError::own(SqlError::Unsuitable { server, why, hint })
    };
    let page = spec.block.get();
    if !PAGES.contains(&page) {
        let why = format!("two rows do not fit into pages of {page} bytes");
        return Err(unsuitable(why, "--block-size is 8K, 16K or 32K"));
    }
    let mut places = vec![Bytes(0); spec.places.len()];
    if spec.address == SCRATCH {
        if let Some(first) = places.first_mut() {
            let rows = Content::new(spec).all_rows();
            *first = Bytes(rows.saturating_mul(page + page / 8).saturating_add(ASIDE));
        }
    } else if !spec.settings.is_empty() {
        let why = "settings cannot be given to a running server".to_owned();
        return Err(unsuitable(why, "--mariadb-conf is for mariadb:scratch"));
    }
    Ok(Demand { places })
}

/// Connects to the server, or makes one, and makes the empty tables.
pub fn open(
    spec: &TargetSpec,
    _progress: &mut Progress<'_>,
) -> Result<Arc<dyn Target>, TargetError> {
    let content = Content::new(spec);
    let database = Mariadb::open(spec, content.clone()).map_err(TargetError::own)?;
    Ok(Arc::new(SqlTarget::new(database, content)))
}

/// Removes the schema that a run left on the server; says whether there was one.
pub fn remove_left(address: &str) -> Result<bool, TargetError> {
    let removed = || -> Result<bool, SqlError> {
        let address = Address::parse(address)?;
        let mut owner = address.connect()?;
        take(&address, &mut owner)?;
        let found = found_schema(&mut owner)?.is_some();
        if found {
            drop_schema(&mut owner)?;
        }
        Ok(found)
    };
    removed().map_err(TargetError::own)
}

/// A server, as the user names it, and how to connect to it.
#[derive(Clone, Debug)]
pub struct Address {
    /// For messages; without the password.
    pub name: String,
    opts: Opts,
    local: bool,
}

impl Address {
    pub fn parse(rest: &str) -> Result<Self, SqlError> {
        let name = format!("mysql:{}", without_password(rest));
        let refuse = |why: String| SqlError::Address {
            address: name.clone(),
            why,
            hint: "mysql://user@host, mysql://user@localhost?socket=/run/mysqld/mysqld.sock, or \
                   mariadb:scratch",
        };
        let given = Opts::from_url(&format!("mysql:{rest}")).map_err(|e| refuse(e.to_string()))?;
        let password = std::env::var("MYSQL_PWD").ok();
        let password = given.get_pass().map(str::to_owned).or(password);
        let mut opts = OptsBuilder::from_opts(given.clone()).pass(password);
        let mut local = true;
        if given.get_socket().is_none() {
            let host = given.get_ip_or_hostname().into_owned();
            let address = resolve(&host).map_err(|why| SqlError::Connect {
                server: name.clone(),
                why,
                hint: NAME_HINT.to_owned(),
            })?;
            local = address.is_loopback();
            opts = opts.ip_or_hostname(Some(address.to_string()));
        }
        Ok(Self { opts: usual(opts).into(), name, local })
    }

    /// The same, for a client that calls itself `application`.
    pub fn named(self, application: &str) -> Self {
        let attributes = [("program_name".to_owned(), application.to_owned())];
        let opts = OptsBuilder::from_opts(self.opts.clone());
        let opts = opts.connect_attrs(Some(attributes.into_iter().collect()));
        Self { opts: opts.into(), ..self }
    }

    pub fn connect(&self) -> Result<Conn, SqlError> {
        Conn::new(self.opts.clone()).map_err(|error| {
            let hint = match &error {
                mysql::Error::MySqlError(said) if said.code == 1045 => {
                    "give the password in the address or in MYSQL_PWD"
                }
                mysql::Error::MySqlError(said) if said.code == 1040 => {
                    "raise max_connections of the server, or ask for fewer sessions"
                }
                mysql::Error::MySqlError(_) => {
                    "check that this user may connect from here without TLS"
                }
                _ => "check that the server is running and listens there",
            };
            let (server, hint) = (self.name.clone(), hint.to_owned());
            SqlError::Connect { server, why: said(&error), hint }
        })
    }
}

/// What every connection is like: rows that match are counted, not only those that change.
fn usual(opts: OptsBuilder) -> OptsBuilder {
    opts.prefer_socket(false)
        .db_name(None::<String>)
        .tcp_connect_timeout(Some(PATIENCE))
        .tcp_user_timeout_ms(Some(SILENCE_MS))
        .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
        .stmt_cache_size(0)
}

struct Mariadb {
    address: Address,
    content: Content,
    page_bytes: u64,
    /// Holds the lock and cleans up; none once that is done.
    owner: Mutex<Option<Conn>>,
    scratch: Holder<Address>,
    /// The server's process, where it is on this machine.
    pid: Option<u32>,
    /// Whether its process list shows the threads of the system: MariaDB's does.
    knows_tid: bool,
    notes: Vec<String>,
}

impl fmt::Debug for Mariadb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mariadb").field("address", &self.address.name).finish_non_exhaustive()
    }
}

impl Mariadb {
    fn open(spec: &TargetSpec, content: Content) -> Result<Self, SqlError> {
        let scratch = if spec.address == SCRATCH {
            Some(PrivateServer::make(&Programs::find(spec)?, spec)?)
        } else {
            None
        };
        let address = match &scratch {
            Some(scratch) => scratch.address.clone(),
            None => Address::parse(&spec.address)?,
        };
        let mut owner = address.connect()?;
        let knows_tid = check(&address, &mut owner, spec)?;
        take(&address, &mut owner)?;
        let mut notes = Vec::new();
        match found_schema(&mut owner)? {
            None => {}
            Some(true) => {
                drop_schema(&mut owner)?;
                notes.push(removed_left(&address.name));
            }
            Some(false) => return Err(SqlError::not_ours(&address.name)),
        }
        let pid = match &scratch {
            Some(scratch) => Some(scratch.pid()),
            None => process_of(&address, &mut owner),
        };
        let page_bytes = spec.block.get();
        if let Err(error) = make_tables(&mut owner, &content, page_bytes) {
            let _ = drop_schema(&mut owner);
            return Err(error);
        }
        let (owner, scratch) = (Mutex::new(Some(owner)), Holder::new(scratch));
        Ok(Self { address, content, page_bytes, owner, scratch, pid, knows_tid, notes })
    }

    fn texts(&self) -> Texts {
        let texts = [SELECT, UPDATE, SCAN];
        Texts::new(texts, self.content.schemas(), self.content.changed(), table_name, |_| {
            "?".to_owned()
        })
    }

    fn pinned(&self) -> Result<Conn, SqlError> {
        let mut link = self.address.connect()?;
        for set in PIN {
            link.query_drop(set).map_err(|error| statement("pin the plans", &error))?;
        }
        Ok(link)
    }

    /// Two rows that are visited share no page: between them lies a neighbour, and three rows are
    /// longer than a page. The server's own count of pages must not contradict that.
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
            link.query_first(text).map_err(|e| statement(&format!("verify {table}"), &e))?;
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

    fn link(&self) -> Result<Session, SqlError> {
        let mut link = self.pinned()?;
        // By it, the server's views tell our sessions from those of others.
        let used = link.query_drop(format!("USE {SCHEMA}"));
        used.map_err(|error| statement("use the schema blockstone", &error))?;
        let ask = if self.knows_tid {
            "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()"
        } else {
            "SELECT THREAD_OS_ID FROM performance_schema.threads
             WHERE PROCESSLIST_ID = CONNECTION_ID()"
        };
        let thread: Option<u32> = link.query_first(ask).ok().flatten();
        let member = self.pid.zip(thread).map(|(pid, tid)| Member { pid, thread: Some(tid) });
        let schemas = self.content.schemas() as usize;
        let prepared = [vec![None; schemas], vec![None; schemas], vec![None; schemas]];
        Ok(Session { link, member, texts: self.texts(), prepared })
    }

    fn loaders(&self) -> (usize, u64) {
        // A table grows at its end: rows that are not inserted in order would split pages.
        (std::thread::available_parallelism().map_or(1, usize::from).clamp(2, 8), u64::MAX)
    }

    fn fill(
        &self,
        chunk: &Chunk,
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), SqlError> {
        let table = table_name(chunk.schema, chunk.table);
        let failed = |error: mysql::Error| statement(&format!("load {table}"), &error);
        let mut link = self.address.connect()?;
        let one = format!("({})", vec!["?"; COLUMNS + 3].join(","));
        let insert = |pairs: u64| {
            let rows = vec![one.as_str(); 2 * pairs as usize].join(",");
            format!("INSERT INTO {table} VALUES {rows}")
        };
        let whole = link.prep(insert(PAIRS)).map_err(failed)?;
        let ballast = ballast_bytes(self.page_bytes) as usize;
        let mut rows = self.content.rows_of(chunk, ballast).peekable();
        link.query_drop("BEGIN").map_err(failed)?;
        let mut statements = 0;
        while rows.peek().is_some() {
            let mut values = Vec::with_capacity(2 * PAIRS as usize * (COLUMNS + 3));
            let mut pairs = 0;
            for (place, key, bytes) in rows.by_ref().take(PAIRS as usize) {
                push_pair(&mut values, place, key, &bytes);
                pairs += 1;
            }
            if pairs == PAIRS {
                link.exec_drop(&whole, values).map_err(failed)?;
            } else {
                link.exec_drop(insert(pairs), values).map_err(failed)?;
            }
            statements += 1;
            if statements % STATEMENTS == 0 {
                link.query_drop("COMMIT").map_err(failed)?;
                link.query_drop("BEGIN").map_err(failed)?;
            }
            if tell(pairs).is_break() {
                return Err(SqlError::Interrupted);
            }
        }
        link.query_drop("COMMIT").map_err(failed)
    }

    fn settle(&self) -> Result<(), SqlError> {
        let mut link = self.address.connect()?;
        let mut tables = Vec::new();
        for schema in 0..self.content.schemas() {
            let table = table_name(schema, Table::Rows);
            link.query_drop(with(INDEX, &[("table", &table)]))
                .map_err(|error| statement(&format!("index {table}"), &error))?;
            for kind in [Table::Rows, Table::Scan] {
                let table = table_name(schema, kind);
                let analysed = link.query_drop(format!("ANALYZE TABLE {table}"));
                analysed.map_err(|error| statement(&format!("analyse {table}"), &error))?;
                self.verify(&mut link, schema, kind)?;
                tables.push(table);
            }
        }
        counters::write_out(&mut link, &tables)
    }

    fn watcher(&self) -> Result<Box<dyn Watcher>, SqlError> {
        let link = self.address.connect()?;
        Ok(Box::new(counters::Counters::new(link, self.pid, self.page_bytes)))
    }

    fn describe(&self) -> Result<Description, SqlError> {
        let mut link = self.pinned()?;
        let mut description = counters::describe(&mut link)?;
        for (kind, text) in self.texts().first() {
            // A plan does not depend on the keys: the index is forced.
            let text = text.replacen("BETWEEN ? AND ?", "BETWEEN 0 AND 63", 1).replace('?', "''");
            let explained = link.query_first(format!("EXPLAIN {text}"));
            let row: Option<mysql::Row> =
                explained.map_err(|error| statement(&format!("explain the {kind}"), &error))?;
            description.plans.push((kind, row.map(|row| plan(&row)).unwrap_or_default()));
        }
        description.notes.extend_from_slice(&self.notes);
        if self.address.local {
            let tables = (0..self.content.schemas()).map(|schema| table_name(schema, Table::Rows));
            description.files = counters::files(&mut link, tables);
        }
        Ok(description)
    }

    fn explained(&self, error: SqlError) -> SqlError {
        self.scratch.explained(error)
    }

    fn tear_down(&self) -> Result<(), SqlError> {
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if self.scratch.end() {
            return Ok(());
        }
        let Some(mut owner) = owner else { return Ok(()) };
        if drop_schema(&mut owner).is_ok() {
            return Ok(());
        }
        // The server may have come back since.
        let again = self.address.connect().and_then(|mut owner| drop_schema(&mut owner));
        again.map_err(|error| SqlError::remains(&self.address.name, &error))
    }
}

/// What a row's ballast adds so that it takes its part of a page.
fn ballast_bytes(page_bytes: u64) -> u64 {
    page_bytes * ROW_PER_MILLE / 1000 - ROW_BYTES as u64 - RECORD_BYTES
}

/// A row that is visited, and its neighbour without a key.
fn push_pair(values: &mut Vec<Value>, place: u64, key: u64, bytes: &[u8]) {
    let (columns, ballast) = bytes.split_at(ROW_BYTES);
    for (place, key) in [(2 * place, Value::UInt(key)), (2 * place + 1, Value::NULL)] {
        values.extend([Value::UInt(place), key]);
        values.extend(columns.chunks(COLUMN_BYTES).map(|column| Value::Bytes(column.to_vec())));
        values.push(Value::Bytes(ballast.to_vec()));
    }
}

fn make_tables(owner: &mut Conn, content: &Content, page_bytes: u64) -> Result<(), SqlError> {
    let failed = |error: mysql::Error| statement("create the schema blockstone", &error);
    owner.query_drop(format!("CREATE DATABASE {SCHEMA}")).map_err(failed)?;
    owner.query_drop(format!("CREATE TABLE {SCHEMA}.{MARK} (n int)")).map_err(failed)?;
    let ballast = ballast_bytes(page_bytes).to_string();
    for schema in 0..content.schemas() {
        for table in [Table::Rows, Table::Scan] {
            let (name, columns) = (table_name(schema, table), columns("varbinary(128)"));
            let values = [("table", &name), ("columns", &columns), ("ballast", &ballast)];
            let create = with(CREATE, &values.map(|(name, value)| (name, value.as_str())));
            owner
                .query_drop(create)
                .map_err(|error| statement(&format!("create table {name}"), &error))?;
        }
    }
    Ok(())
}

fn found_schema(owner: &mut Conn) -> Result<Option<bool>, SqlError> {
    let failed = |error: mysql::Error| statement("look for leftovers of a run", &error);
    let ask = "SELECT 1 FROM information_schema.schemata WHERE schema_name = ?";
    let found: Option<u32> = owner.exec_first(ask, (SCHEMA,)).map_err(failed)?;
    if found.is_none() {
        return Ok(None);
    }
    let ask = "SELECT count(*), coalesce(sum(table_name = ?), 0) FROM information_schema.tables
        WHERE table_schema = ?";
    let known: Option<(u64, u64)> = owner.exec_first(ask, (MARK, SCHEMA)).map_err(failed)?;
    // Killed between the first two statements, a run leaves an empty schema.
    Ok(known.map(|(tables, marks)| tables == 0 || marks > 0))
}

fn drop_schema(owner: &mut Conn) -> Result<(), SqlError> {
    let dropped = owner.query_drop(format!("DROP DATABASE IF EXISTS {SCHEMA}"));
    dropped.map_err(|error| statement("remove the schema blockstone", &error))
}

/// Whether this server can be used, and is MariaDB.
fn check(address: &Address, link: &mut Conn, spec: &TargetSpec) -> Result<bool, SqlError> {
    let asked = link.query_first("SELECT @@version, @@read_only, @@innodb_page_size");
    let asked: Option<(String, u32, u64)> =
        asked.map_err(|error| statement("query its version", &error))?;
    let (version, read_only, page) = asked.unwrap_or_default();
    let unsuitable = |why: String, hint: String| {
        Err(SqlError::Unsuitable { server: address.name.clone(), why, hint })
    };
    let is_mariadb = version.to_lowercase().contains("mariadb");
    let mut numbers = version.split('.').map(|number| number.parse::<u16>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if (major, minor) < if is_mariadb { MARIADB_MIN } else { MYSQL_MIN } {
        let hint = "MariaDB 10.11 and MySQL 8.0 and later are supported".to_owned();
        return unsuitable(format!("it is version {version}"), hint);
    }
    if read_only != 0 {
        return unsuitable(
            "it is read-only: a replica, or in recovery".to_owned(),
            "name the primary server".to_owned(),
        );
    }
    if page != spec.block.get() {
        return unsuitable(
            format!("its pages are {}", Bytes(page)),
            format!("use --block-size {page}"),
        );
    }
    Ok(is_mariadb)
}

/// Takes the lock that one run at a time holds.
fn take(address: &Address, owner: &mut Conn) -> Result<(), SqlError> {
    let taken = owner.query_first("SELECT GET_LOCK('blockstone', 0)");
    let taken: Option<u32> = taken.map_err(|error| statement("take the lock of a run", &error))?;
    if taken == Some(1) {
        return Ok(());
    }
    Err(SqlError::Unsuitable {
        server: address.name.clone(),
        why: "another run uses it".to_owned(),
        hint: "wait for its end".to_owned(),
    })
}

/// The server's process, if it is one of this machine and says which.
pub fn process_of(address: &Address, link: &mut Conn) -> Option<u32> {
    let file: String = link.query_first("SELECT @@pid_file").ok()??;
    let datadir: String = link.query_first("SELECT @@datadir").ok()??;
    let pid = std::fs::read_to_string(Path::new(&datadir).join(file)).ok()?.trim().parse().ok()?;
    let title = account::process(Path::new("/"), pid)?.title;
    let known = title.contains("mariadbd") || title.contains("mysqld");
    (address.local && known).then_some(pid)
}

/// One line of what EXPLAIN says, in words.
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

/// What the server or the system said, with the error's number.
fn said(error: &mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(said) => {
            format!("{} (error {}, SQLSTATE {})", said.message, said.code, said.state)
        }
        error => error.to_string(),
    }
}

pub fn statement(what: &str, error: &mysql::Error) -> SqlError {
    const FULL: [u16; 3] = [1021, 1114, 3];
    const DENIED: [u16; 4] = [1044, 1142, 1227, 1370];
    let hint = match error {
        mysql::Error::MySqlError(said) if FULL.contains(&said.code) => {
            "free some space, or ask for less with --scale or --schemas"
        }
        mysql::Error::MySqlError(said) if DENIED.contains(&said.code) => {
            "GRANT ALL ON blockstone.* TO this user"
        }
        mysql::Error::MySqlError(_) => "see the server's log",
        _ => "the server ended or closed the connection; see its log",
    };
    SqlError::Statement { what: what.to_owned(), why: said(error), hint: hint.to_owned() }
}
