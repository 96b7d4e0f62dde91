//! SQLite inside this process, with a write-ahead log.
//!
//! A table lies in the order of its places, an index finds a row by its key, and a ballast column
//! makes each row fill a page. SQLite keeps no count of its reads that a program may ask for, so
//! physical reads are what the sessions' threads read, as the kernel counts it.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use blockstone_base::column::Unmeasured;
use blockstone_base::database::{INSTANCE, SQL};
use blockstone_base::units::Bytes;
use blockstone_sys::account;
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};

use crate::family::{Family, OptionValue, TargetOption};
use crate::spec::{Storage, TargetSpec};
use crate::sql::content::{COLUMN_BYTES, COLUMNS, Change, Content, ROW_BYTES};
use crate::sql::error::SqlError;
use crate::sql::processes::{Processes, SESSION};
use crate::sql::target::SqlTarget;
use crate::sql::{
    Chunk, Database, Link, Member, Seen, Table, Texts, Trouble, Watcher, columns, with,
};
use crate::target::{Demand, Description, Progress, Target, TargetError};

const CREATE: &str = include_str!("../sql/sqlite/create.sql");
const INDEX: &str = include_str!("../sql/sqlite/index.sql");
const SELECT: &str = include_str!("../sql/sqlite/select.sql");
const UPDATE: &str = include_str!("../sql/sqlite/update.sql");
const SCAN: &str = include_str!("../sql/sqlite/scan.sql");
const VERIFY: &str = include_str!("../sql/sqlite/verify.sql");

/// The database within the directory that is its place.
const FILE: &str = "blockstone.db";
/// Page sizes that hold a row, and that SQLite knows.
const PAGES: [u64; 5] = [4096, 8192, 16384, 32768, 65536];
/// What a page, the header of its cell and the header of a record take from a page at most: a row
/// with this much less than a page lies whole in a leaf page, and no second one beside it.
const OVERHEAD_BYTES: usize = 128;
/// Rows of a transaction of the load.
const ROWS_AT_ONCE: u64 = 256;
/// How long a session waits for another's transaction before SQLite calls it busy.
const BUSY_MS: u64 = 10_000;
/// Space beside the rows: the index, the log at its usual size, half-filled pages.
const ASIDE: u64 = 16 << 20;

/// SQLite, as a target.
pub const FAMILY: Family = Family {
    name: "sqlite",
    in_process: true,
    options: &[TargetOption {
        name: "pragma",
        doc: "Set this SQLite pragma on each connection",
        value: OptionValue::Setting,
    }],
    durable_settings: &[("synchronous", &["2", "3"])],
};

/// Where it is.
pub fn storage(spec: &TargetSpec) -> Result<Storage, TargetError> {
    if spec.address.is_empty() {
        return Err(TargetError::own(SqlError::Address {
            address: "sqlite".to_owned(),
            why: "no directory for the database is named".to_owned(),
            hint: "sqlite:DIRECTORY creates it in that directory",
        }));
    }
    Ok(Storage::At(PathBuf::from(&spec.address)))
}

/// What it would take of its place.
pub fn demand(spec: &TargetSpec) -> Result<Demand, TargetError> {
    let page = spec.block.get();
    if !PAGES.contains(&page) {
        return Err(TargetError::own(SqlError::Unsuitable {
            server: "SQLite".to_owned(),
            why: format!("its pages cannot be {page} bytes"),
            hint: "--block-size is 4K, 8K, 16K, 32K or 64K".to_owned(),
        }));
    }
    let rows = Content::new(spec).all_rows();
    let mut places = vec![Bytes(0); spec.places.len()];
    if let Some(first) = places.first_mut() {
        *first = Bytes(rows.saturating_mul(page + 64).saturating_add(ASIDE));
    }
    Ok(Demand { places })
}

pub fn open(
    spec: &TargetSpec,
    _progress: &mut Progress<'_>,
) -> Result<Arc<dyn Target>, TargetError> {
    let content = Content::new(spec);
    let sqlite = Sqlite::create(spec, content.clone()).map_err(TargetError::own)?;
    Ok(Arc::new(SqlTarget::new(sqlite, content)))
}

#[derive(Debug)]
struct Sqlite {
    file: PathBuf,
    page_bytes: u64,
    cache_bytes: u64,
    pragmas: Vec<(String, String)>,
    content: Content,
    /// Locked for as long as the run lives.
    _directory: File,
}

impl Sqlite {
    fn create(spec: &TargetSpec, content: Content) -> Result<Self, SqlError> {
        let place = spec.places.first().map(|place| place.path.clone()).unwrap_or_default();
        let directory = crate::sql::scratch::directory(&place)?;
        let sqlite = Self {
            file: place.join(FILE),
            page_bytes: spec.block.get(),
            // Each connection has a cache of its own.
            cache_bytes: spec.cache.get() / u64::from(spec.sessions.max(1)),
            pragmas: spec.settings.clone(),
            content,
            _directory: directory,
        };
        let made = sqlite.make_tables();
        if made.is_err() {
            // A target that fails to open leaves its place as it was.
            let _ = std::fs::remove_dir_all(&place);
        }
        made.map(|()| sqlite)
    }

    fn make_tables(&self) -> Result<(), SqlError> {
        let link = self.connect()?;
        for schema in 0..self.content.schemas() {
            for table in [Table::Rows, Table::Scan] {
                let values = [("table", name(schema, table)), ("columns", columns("BLOB"))];
                let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
                let made = link.execute(&with(CREATE, &values), []);
                made.map_err(|error| statement("create a table", &error))?;
            }
        }
        Ok(())
    }

    fn connect(&self) -> Result<Connection, SqlError> {
        let failed = |error: rusqlite::Error| SqlError::Connect {
            server: self.file.display().to_string(),
            why: error.to_string(),
            hint: "check that the directory exists and is on a local file system".to_owned(),
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let link = Connection::open_with_flags(&self.file, flags).map_err(failed)?;
        let kib = i64::try_from(self.cache_bytes / 1024).unwrap_or(i64::MAX);
        let given = [
            ("page_size", self.page_bytes.to_string()),
            ("journal_mode", "WAL".to_owned()),
            ("synchronous", "FULL".to_owned()),
            ("busy_timeout", BUSY_MS.to_string()),
            ("cache_size", (-kib).to_string()),
            ("mmap_size", "0".to_owned()),
        ];
        let asked = self.pragmas.iter().map(|(name, value)| (name.as_str(), value.clone()));
        for (name, value) in given.into_iter().chain(asked) {
            let set = link.pragma_update_and_check(None, name, &value, |_| Ok(()));
            match set {
                // Some answer with their new value, some with nothing.
                Ok(()) | Err(rusqlite::Error::QueryReturnedNoRows) => {}
                Err(error) => {
                    return Err(statement(&format!("set pragma {name} to {value}"), &error));
                }
            }
        }
        Ok(link)
    }

    fn texts(&self) -> Texts {
        let texts = [SELECT, UPDATE, SCAN];
        Texts::new(texts, self.content.schemas(), self.content.changed(), name, placeholder)
    }

    fn plan(link: &Connection, text: &str) -> Result<String, SqlError> {
        let failed = |error| statement("explain a statement", &error);
        // Parameters may stay unbound: the plan does not depend on them.
        let mut explain = link.prepare(&format!("EXPLAIN QUERY PLAN {text}")).map_err(failed)?;
        let lines = explain.raw_query().mapped(|row| row.get::<_, String>(3));
        Ok(lines.collect::<Result<Vec<_>, _>>().map_err(failed)?.join("\n"))
    }
}

impl Database for Sqlite {
    type Link = Session;

    fn link(&self) -> Result<Session, SqlError> {
        let link = self.connect()?;
        link.set_prepared_statement_cache_capacity(3 * self.content.schemas() as usize + 3);
        let member = Member { pid: std::process::id(), thread: Some(account::current_thread()) };
        Ok(Session { link, member, texts: self.texts() })
    }

    fn loaders(&self) -> (usize, u64) {
        // SQLite has one writer at a time.
        (1, u64::MAX)
    }

    fn fill(
        &self,
        chunk: &Chunk,
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), SqlError> {
        let failed = |error: rusqlite::Error| statement("load rows", &error);
        let mut link = self.connect()?;
        let ballast = (self.page_bytes as usize).saturating_sub(ROW_BYTES + OVERHEAD_BYTES);
        let table = name(chunk.schema, chunk.table);
        let values = vec!["?"; COLUMNS + 3].join(", ");
        let insert = format!("INSERT INTO {table} VALUES ({values})");
        for first in (chunk.first..chunk.first + chunk.rows).step_by(ROWS_AT_ONCE as usize) {
            let rows = ROWS_AT_ONCE.min(chunk.first + chunk.rows - first);
            let transaction = link.transaction().map_err(failed)?;
            {
                let mut insert = transaction.prepare_cached(&insert).map_err(failed)?;
                for (place, key, bytes) in
                    self.content.rows_of(&Chunk { first, rows, ..*chunk }, ballast)
                {
                    let (columns, ballast) = bytes.split_at(ROW_BYTES);
                    insert.raw_bind_parameter(1, place).map_err(failed)?;
                    insert.raw_bind_parameter(2, key).map_err(failed)?;
                    let cells = columns.chunks(COLUMN_BYTES).chain([ballast]);
                    for (index, cell) in (3..).zip(cells) {
                        insert.raw_bind_parameter(index, cell).map_err(failed)?;
                    }
                    insert.raw_execute().map_err(failed)?;
                }
            }
            transaction.commit().map_err(failed)?;
            if tell(rows).is_break() {
                return Err(SqlError::Interrupted);
            }
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), SqlError> {
        let link = self.connect()?;
        for schema in 0..self.content.schemas() {
            let table = name(schema, Table::Rows);
            let made = link.execute(&with(INDEX, &[("table", &table)]), []);
            made.map_err(|error| statement(&format!("index {table}"), &error))?;
        }
        let failed = |error: rusqlite::Error| statement("analyse and checkpoint", &error);
        link.execute_batch("ANALYZE").map_err(failed)?;
        link.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failed)?;
        for schema in 0..self.content.schemas() {
            for kind in [Table::Rows, Table::Scan] {
                let (table, rows) = (name(schema, kind), self.content.rows(kind));
                let found = link.query_row(VERIFY, [&table], |row| Ok((row.get(0)?, row.get(1)?)));
                let (held, pages): (u64, u64) =
                    found.map_err(|error| statement(&format!("verify {table}"), &error))?;
                // The leaf of a table of one row or none is its root.
                if (held, pages) != (rows, rows.max(1)) {
                    return Err(SqlError::Layout { table, rows: held, pages });
                }
            }
        }
        Ok(())
    }

    fn watcher(&self) -> Result<Box<dyn Watcher>, SqlError> {
        Ok(Box::new(Threads { processes: Processes::default(), page_bytes: self.page_bytes }))
    }

    fn describe(&self) -> Result<Description, SqlError> {
        let link = self.connect()?;
        let mut plans = Vec::new();
        for (kind, text) in self.texts().first() {
            plans.push((kind, Self::plan(&link, text)?));
        }
        let mut settings = Vec::new();
        for name in ["page_size", "journal_mode", "synchronous", "cache_size", "mmap_size"] {
            let value =
                link.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
            let value = value.map_err(|error| statement(&format!("read pragma {name}"), &error))?;
            let text = match value {
                rusqlite::types::Value::Integer(number) => number.to_string(),
                rusqlite::types::Value::Text(text) => text,
                other => format!("{other:?}"),
            };
            settings.push((name.to_owned(), text));
        }
        Ok(Description {
            server: format!("SQLite {}", rusqlite::version()),
            plans,
            settings,
            unmeasured: unmeasured(),
            notes: Vec::new(),
            files: vec![self.file.clone()],
        })
    }

    fn tear_down(&self) -> Result<(), SqlError> {
        // The last connection to close has written the log into the database already.
        Ok(())
    }
}

/// What SQLite keeps no count of.
fn unmeasured() -> Vec<(&'static str, &'static str, Unmeasured)> {
    let why = || Unmeasured::NotInVersion("SQLite does not count it".to_owned());
    let known = ["physical_reads", "commits", "db_time_ns", "retries", "commit_ns"];
    let instance = INSTANCE.columns.iter().map(|column| (INSTANCE.probe, column.name));
    let sql = SQL.columns.iter().map(|column| (SQL.probe, column.name));
    let columns = instance.chain(sql).filter(|(_, name)| !known.contains(name));
    columns.map(|(of, name)| (of, name, why())).collect()
}

/// The file's table of one kind of a schema.
fn name(schema: u32, table: Table) -> String {
    match table {
        Table::Rows => format!("rows_{schema}"),
        Table::Scan => format!("scan_{schema}"),
    }
}

/// The first two parameters are the keys.
fn placeholder(index: usize) -> String {
    format!("?{}", index + 3)
}

fn statement(what: &str, error: &rusqlite::Error) -> SqlError {
    let full = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
    let hint = if full {
        "free some space, or ask for less with --scale or --schemas"
    } else {
        "a wrong --pragma, a full disk or a removed file are the usual causes"
    };
    SqlError::Statement { what: what.to_owned(), why: error.to_string(), hint: hint.to_owned() }
}

struct Session {
    link: Connection,
    member: Member,
    texts: Texts,
}

impl Session {
    fn trouble(what: &str, error: &rusqlite::Error) -> Trouble {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Trouble::Again,
            _ => Trouble::Failed(statement(what, error)),
        }
    }

    fn count(&self, text: &str, keys: &[u64]) -> Result<u64, Trouble> {
        let failed = |error: rusqlite::Error| Self::trouble("select", &error);
        let mut select = self.link.prepare_cached(text).map_err(failed)?;
        select.query_row(params_from_iter(keys), |row| row.get(0)).map_err(failed)
    }
}

impl Link for Session {
    fn member(&self) -> Option<Member> {
        Some(self.member)
    }

    fn select(&mut self, schema: u32, first_key: u64, rows: u32) -> Result<u64, Trouble> {
        self.count(
            &self.texts.select[schema as usize],
            &[first_key, first_key + u64::from(rows) - 1],
        )
    }

    fn update(
        &mut self,
        schema: u32,
        first_key: u64,
        rows: u32,
        change: &Change,
    ) -> Result<u64, Trouble> {
        let failed = |error: rusqlite::Error| Self::trouble("update", &error);
        // A transaction that begins as a reader could not become a writer after another's commit.
        self.link.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        let text = &self.texts.update[schema as usize];
        let mut update = self.link.prepare_cached(text).map_err(failed)?;
        update.raw_bind_parameter(1, first_key).map_err(failed)?;
        update.raw_bind_parameter(2, first_key + u64::from(rows) - 1).map_err(failed)?;
        for (index, column) in (3..).zip(change.columns()) {
            update.raw_bind_parameter(index, column).map_err(failed)?;
        }
        update.raw_execute().map(|rows| rows as u64).map_err(failed)
    }

    fn commit(&mut self) -> Result<(), Trouble> {
        self.link.execute_batch("COMMIT").map_err(|error| Self::trouble("commit", &error))
    }

    fn roll_back(&mut self) -> Result<(), SqlError> {
        if self.link.is_autocommit() {
            return Ok(());
        }
        self.link.execute_batch("ROLLBACK").map_err(|error| statement("roll back", &error))
    }

    fn scan(&mut self, schema: u32) -> Result<u64, Trouble> {
        self.count(&self.texts.scan[schema as usize], &[])
    }
}

/// SQLite works on the threads of its sessions: what they did is what the kernel charges to them.
struct Threads {
    processes: Processes,
    page_bytes: u64,
}

impl Watcher for Threads {
    fn look(&mut self, sessions: &[Member], exact: bool) -> Result<Seen, SqlError> {
        let sessions = || sessions.iter().map(|&member| (member, SESSION.to_owned())).collect();
        let readings = self.processes.look(exact, sessions);
        let read = self.processes.requested_read_bytes(SESSION);
        let blocks = read.map(|bytes| ("physical_reads", bytes / self.page_bytes));
        Ok(Seen { statistics: blocks.into_iter().collect(), readings })
    }
}
