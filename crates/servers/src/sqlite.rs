//! SQLite in this process, with a write-ahead log.
//!
//! A table is stored in the order of its places, an index finds rows by key, and a ballast column
//! makes each row fill a page. SQLite has no read counter available to programs, so physical reads
//! are those of the sessions' threads as counted by the kernel; with direct I/O, those of the
//! database file.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_base::capability::Capability;
use blockstone_base::column::Unmeasured;
use blockstone_base::database::{DIRECT_DATA, INSTANCE, SQL};
use blockstone_sys::page_cache::{PageCacheBound, PageCacheError};
use blockstone_sys::scratch::ScratchDir;
use blockstone_sys::{account, sqlite_vfs, survey};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params_from_iter};

use crate::family::{Family, IoRefused, OptionValue, Settings, TargetOption};
use crate::options::Io;
use crate::spec::{Storage, TargetSpec};
use crate::sql::content::{
    COLUMN_BYTES, COLUMNS, Change, Content, ContentRow, LOADED_TABLES, ROW_BYTES,
};
use crate::sql::error::{DriverError, During, FREE_SPACE, SqlError};
use crate::sql::processes::{Processes, SESSION};
use crate::sql::session::COUNTED_BY_SESSIONS;
use crate::sql::{
    Chunk, CounterValues, Database, Link, Made, Member, Table, Templates, Texts, Trouble, Watcher,
    columns, copy_text, with,
};
use crate::target::{Canceller, Demand, Description, TargetError};
use crate::unmeasured::{Missing, absent};

const CREATE: &str = include_str!("../sql/sqlite/create.sql");
const CREATE_ORDERS: &str = include_str!("../sql/sqlite/create_orders.sql");
const COPY: &str = include_str!("../sql/sqlite/copy.sql");
const INDEX: &str = include_str!("../sql/sqlite/index.sql");
const STATEMENTS: Templates = Templates {
    select: include_str!("../sql/sqlite/select.sql"),
    update: include_str!("../sql/sqlite/update.sql"),
    scan: include_str!("../sql/sqlite/scan.sql"),
    insert_order: include_str!("../sql/sqlite/insert_order.sql"),
    orders: include_str!("../sql/sqlite/orders.sql"),
    delete_order: include_str!("../sql/sqlite/delete_order.sql"),
};
const VERIFY: &str = include_str!("../sql/sqlite/verify.sql");

/// Name of the database in the directory that is its place.
const FILE: &str = "blockstone.db";
/// Page sizes that hold a row and are supported by SQLite.
const PAGES: [u64; 5] = [4096, 8192, 16384, 32768, 65536];
/// Upper limit on the headers of a page, a cell and a record: a row shorter than a page by this
/// much fits in a leaf page as a whole, and no second one fits next to it.
const OVERHEAD_BYTES: usize = 128;
/// Rows per transaction of the load.
const ROWS_AT_ONCE: u64 = 256;
/// How long a session waits for another's transaction before SQLite reports it busy.
const BUSY_MS: u64 = 10_000;
/// Space in addition to the rows: the index, the log at its usual size, half-filled pages.
const ASIDE: u64 = 16 << 20;

pub const FAMILY: Family = Family {
    name: "sqlite",
    in_process: true,
    samples_sessions: false,
    through_page_cache: true,
    // Each commit invalidates the caches of all other connections. What they then read again is in
    // the page cache, however small that is.
    io_bounded: Some(Io::Direct),
    io,
    options: &[TargetOption {
        name: "pragma",
        doc: "Set this SQLite pragma on each connection",
        value: OptionValue::Setting,
    }],
    durable_settings: &[("synchronous", &["2", "3"])],
};

/// Checks whether the path supports the direct I/O of [`sqlite_vfs`].
fn io(io: Io, spec: &TargetSpec) -> Result<Settings, IoRefused> {
    // The run reports a path that cannot be surveyed.
    let surveyed = survey::target(Path::new("/"), Path::new(&spec.address)).ok();
    let Some(found) = surveyed.filter(|_| io == Io::Direct) else { return Ok(Settings::new()) };
    let (direct, page) = (found.direct_io, spec.options.block_bytes);
    let why = match direct.capability {
        Capability::Degraded { why } => why,
        Capability::Full if page.get() % u64::from(direct.offset_align_bytes.max(1)) != 0 => {
            format!("pages of {page} are no multiple of {} bytes", direct.offset_align_bytes)
        }
        Capability::Full => return Ok(Settings::new()),
    };
    IoRefused::of(why, "omit --io direct, or name a directory on ext4 or XFS")
}

pub fn storage(spec: &TargetSpec) -> Result<Storage, TargetError> {
    if spec.address.is_empty() {
        Err(SqlError::Address {
            address: "sqlite".to_owned(),
            why: "no directory for the database is named".to_owned(),
            hint: "sqlite:DIRECTORY creates it in that directory",
        })?;
    }
    Ok(Storage::At(PathBuf::from(&spec.address)))
}

pub fn demand(spec: &TargetSpec) -> Result<Demand, TargetError> {
    let page = spec.options.block_bytes.get();
    if !PAGES.contains(&page) {
        let why = format!("its pages cannot be {page} bytes");
        Err(SqlError::unsuitable("SQLite", why, "--block-size is 4K, 8K, 16K, 32K or 64K"))?;
    }
    let content = Content::new(spec);
    // A created table is first stored in the log as a whole, then in the database.
    let logged = content.copied_rows().saturating_mul(page + 64);
    Ok(content.demand(spec, page + 64, ASIDE.saturating_add(logged)))
}

#[derive(Debug)]
pub struct Sqlite {
    /// For messages and reports; access is through the open directory.
    file: PathBuf,
    page_bytes: u64,
    cache_bytes: u64,
    pragmas: Vec<(String, String)>,
    /// The file, if it is read and written with direct I/O.
    direct: Option<sqlite_vfs::Database>,
    content: Content,
    /// Locked as long as the run lives, and private to this user. The owner of its parent directory
    /// can rename it, but cannot change its contents, or which files a connection opens.
    directory: Arc<ScratchDir>,
    /// This process is a member until the database is closed.
    _page_cache: Option<PageCacheBound>,
}

impl Sqlite {
    /// Returns a path to the file that is valid in this process while the directory is open.
    fn held(&self) -> PathBuf {
        Path::new(&self.directory.short()).join(FILE)
    }

    fn make(&mut self, is_direct: bool) -> Result<(), SqlError> {
        let failed = |what, hint| {
            let path = self.file.clone();
            move |source| SqlError::File { what, path, source, hint }
        };
        // An empty file, as SQLite itself creates it.
        let made = self.directory.secret(FILE, "", None);
        made.map_err(failed("create", "name a directory on a local file system"))?;
        if is_direct {
            let opened = sqlite_vfs::Database::open(&self.held());
            let hint = "if the file system refuses that, use ext4 or XFS, or --io buffered";
            self.direct = Some(opened.map_err(failed("open past the page cache", hint))?);
        }
        self.make_tables()
    }

    fn make_tables(&self) -> Result<(), SqlError> {
        let link = self.connect()?;
        for schema in 0..self.content.schemas() {
            for table in LOADED_TABLES {
                let values = [("table", table.name(schema)), ("columns", columns("BLOB"))];
                let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
                let made = link.execute(&with(CREATE, &values), []);
                made.during("create a table")?;
            }
            if self.content.has_orders() {
                let name = Table::Orders.name(schema);
                let made = link.execute(&with(CREATE_ORDERS, &[("table", &name)]), []);
                made.during("create a table")?;
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
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let vfs = if self.direct.is_some() { sqlite_vfs::direct() } else { sqlite_vfs::held() };
        let link = Connection::open_with_flags_and_vfs(self.held(), flags, vfs).map_err(failed)?;
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
            // Some pragmas return their new value, others return nothing.
            let set = link.pragma_update_and_check(None, name, &value, |_| Ok(())).optional();
            set.during(&format!("set pragma {name} to {value}"))?;
        }
        Ok(link)
    }

    fn texts(&self) -> Texts {
        let (schemas, changed) = (self.content.schemas(), self.content.changed());
        let name = |schema, table: Table| table.name(schema);
        Texts::new(&STATEMENTS, schemas, changed, name, placeholder)
    }

    fn plan(link: &Connection, text: &str) -> Result<String, SqlError> {
        // Parameters may stay unbound, because the plan does not depend on them.
        let mut explain =
            link.prepare(&format!("EXPLAIN QUERY PLAN {text}")).during("explain a statement")?;
        let lines = explain.raw_query().mapped(|row| row.get::<_, String>(3));
        Ok(lines.collect::<Result<Vec<_>, _>>().during("explain a statement")?.join("\n"))
    }
}

impl Database for Sqlite {
    type Link = Session;

    fn open(spec: &TargetSpec, content: Content) -> Result<Self, SqlError> {
        let place = spec.first_place();
        let bound = |most| -> Result<_, PageCacheError> {
            let mut bound = PageCacheBound::create(Path::new("/"), most)?;
            bound.join().map(|()| bound)
        };
        let page_cache = spec.options.page_cache_bytes.map(bound).transpose()?;
        let directory = Arc::new(crate::sql::scratch::directory(&place, None)?);
        let mut sqlite = Self {
            file: place.join(FILE),
            page_bytes: spec.options.block_bytes.get(),
            // Each connection has its own cache.
            cache_bytes: spec.options.cache_bytes.get() / u64::from(spec.sessions.max(1)),
            pragmas: spec.settings.clone(),
            direct: None,
            content,
            directory,
            _page_cache: page_cache,
        };
        let made = sqlite.make(spec.options.io == Some(Io::Direct));
        if made.is_err() {
            // If opening a target fails, its place is left as it was.
            let _ = sqlite.directory.remove();
        }
        made.map(|()| sqlite)
    }

    fn link(&self) -> Result<Session, SqlError> {
        let link = self.connect()?;
        link.set_prepared_statement_cache_capacity(6 * self.content.schemas() as usize + 3);
        let member = Member { pid: std::process::id(), thread: Some(account::current_thread()) };
        let (page_bytes, texts) = (self.page_bytes, self.texts());
        Ok(Session { link, member, page_bytes, texts, _directory: Arc::clone(&self.directory) })
    }

    fn loaders(&self) -> (usize, u64) {
        // SQLite allows one writer at a time.
        (1, u64::MAX)
    }

    fn fill(
        &self,
        chunk: &Chunk,
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), SqlError> {
        let mut link = self.connect()?;
        let ballast = (self.page_bytes as usize).saturating_sub(ROW_BYTES + OVERHEAD_BYTES);
        let table = chunk.table.name(chunk.schema);
        let values = vec!["?"; COLUMNS + 3].join(", ");
        let insert = format!("INSERT INTO {table} VALUES ({values})");
        for first in (chunk.first..chunk.first + chunk.rows).step_by(ROWS_AT_ONCE as usize) {
            let rows = ROWS_AT_ONCE.min(chunk.first + chunk.rows - first);
            let transaction = link.transaction().during("load rows")?;
            {
                let mut insert = transaction.prepare_cached(&insert).during("load rows")?;
                for ContentRow { place, key, bytes } in
                    self.content.rows_of(&Chunk { first, rows, ..*chunk }, ballast)
                {
                    let (columns, ballast) = bytes.split_at(ROW_BYTES);
                    insert.raw_bind_parameter(1, place).during("load rows")?;
                    insert.raw_bind_parameter(2, key).during("load rows")?;
                    let cells = columns.chunks(COLUMN_BYTES).chain([ballast]);
                    for (index, cell) in (3..).zip(cells) {
                        insert.raw_bind_parameter(index, cell).during("load rows")?;
                    }
                    insert.raw_execute().during("load rows")?;
                }
            }
            transaction.commit().during("load rows")?;
            if tell(rows).is_break() {
                return Err(SqlError::Interrupted);
            }
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), SqlError> {
        let link = self.connect()?;
        for schema in 0..self.content.schemas() {
            let table = Table::Rows.name(schema);
            let made = link.execute(&with(INDEX, &[("table", &table)]), []);
            made.during(&format!("index {table}"))?;
        }
        link.execute_batch("ANALYZE").during("analyse and checkpoint")?;
        link.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .during("analyse and checkpoint")?;
        for schema in 0..self.content.schemas() {
            for kind in LOADED_TABLES {
                let (table, rows) = (kind.name(schema), self.content.rows(kind));
                let found = link.query_row(VERIFY, [&table], |row| Ok((row.get(0)?, row.get(1)?)));
                let (held, pages): (u64, u64) = found.during(&format!("verify {table}"))?;
                // The only page of a table of one row or none is its root.
                if (held, pages) != (rows, rows.max(1)) {
                    return Err(SqlError::Layout { table, rows: held, pages });
                }
            }
        }
        Ok(())
    }

    fn watcher(&self) -> Result<Box<dyn Watcher>, SqlError> {
        let direct = self.direct.clone();
        let processes = Processes::default();
        Ok(Box::new(Threads { processes, direct, page_bytes: self.page_bytes }))
    }

    fn capabilities(&self) -> Vec<(&'static str, Capability)> {
        self.direct.iter().map(|_| (DIRECT_DATA, Capability::Full)).collect()
    }

    fn describe(&self) -> Result<Description, SqlError> {
        let link = self.connect()?;
        let mut plans = Vec::new();
        for (kind, text) in self.texts().first() {
            plans.push((kind, Self::plan(&link, text)?));
        }
        let mut settings = Vec::new();
        for name in ["page_size", "journal_mode", "synchronous", "cache_size", "mmap_size"] {
            let value = link.pragma_query_value(None, name, |row| row.get::<_, Value>(0));
            let value = value.during(&format!("read pragma {name}"))?;
            let text = match value {
                Value::Integer(number) => number.to_string(),
                Value::Text(text) => text,
                other => format!("{other:?}"),
            };
            settings.push((name.to_owned(), text));
        }
        Ok(Description {
            server: format!("SQLite {}", rusqlite::version()),
            plans,
            settings,
            unmeasured: unmeasured(),
            files: vec![self.file.clone()],
            places: vec![self.file.clone()],
            ..Description::default()
        })
    }

    fn tear_down(&self) -> Result<(), SqlError> {
        // The last connection has written the log to the database when it closed.
        Ok(())
    }
}

fn unmeasured() -> Missing {
    let known = |name: &str| name == "physical_reads" || COUNTED_BY_SESSIONS.contains(&name);
    let why = |_: &str| Unmeasured::NotInVersion("SQLite does not count it".to_owned());
    absent(&[&INSTANCE, &SQL], known, why)
}

/// Returns the placeholder of a changed column; the first two parameters are the keys.
fn placeholder(index: usize) -> String {
    format!("?{}", index + 3)
}

impl DriverError for rusqlite::Error {
    fn words(&self) -> String {
        self.to_string()
    }

    fn hint(&self) -> &'static str {
        match self.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => FREE_SPACE,
            _ => "a wrong --pragma, a full disk or a removed file are the usual causes",
        }
    }

    fn is_conflict(&self) -> bool {
        let code = self.sqlite_error_code();
        matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    fn is_cancelled(&self) -> bool {
        self.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
    }
}

pub struct Session {
    link: Connection,
    member: Member,
    page_bytes: u64,
    texts: Texts,
    /// When it closes, the connection removes its log by a path through this directory.
    _directory: Arc<ScratchDir>,
}

impl Session {
    fn number(&self, text: &str) -> Result<u64, Trouble> {
        self.link.query_row(text, [], |row| row.get(0)).attempting("query a size")
    }

    /// Returns the number of pages in use in the database.
    fn pages_in_use(&self) -> Result<u64, Trouble> {
        let pages = self.number("PRAGMA page_count")?;
        Ok(pages.saturating_sub(self.number("PRAGMA freelist_count")?))
    }

    fn count(&self, text: &str, keys: &[u64]) -> Result<u64, Trouble> {
        let mut select = self.link.prepare_cached(text).attempting("select")?;
        select.query_row(params_from_iter(keys), |row| row.get(0)).attempting("select")
    }
}

impl Link for Session {
    const BLOCKS_HERE: bool = true;

    fn member(&self) -> Option<Member> {
        Some(self.member)
    }

    fn canceller(&self) -> Canceller {
        let statement = self.link.get_interrupt_handle();
        Canceller::new(move || statement.interrupt())
    }

    fn select(&mut self, schema: u32, first_key: u64, rows: u32) -> Result<u64, Trouble> {
        self.count(
            &self.texts.select[schema as usize],
            &[first_key, first_key + u64::from(rows) - 1],
        )
    }

    fn begin(&mut self, writes: bool) -> Result<(), Trouble> {
        // A transaction that began as a reader cannot become a writer after another's commit.
        let begin = if writes { "BEGIN IMMEDIATE" } else { "BEGIN" };
        self.link.execute_batch(begin).attempting("begin a transaction")
    }

    fn update(
        &mut self,
        schema: u32,
        first_key: u64,
        rows: u32,
        change: &Change,
    ) -> Result<u64, Trouble> {
        let text = &self.texts.update[schema as usize];
        let mut update = self.link.prepare_cached(text).attempting("update")?;
        update.raw_bind_parameter(1, first_key).attempting("update")?;
        update.raw_bind_parameter(2, first_key + u64::from(rows) - 1).attempting("update")?;
        for (index, column) in (3..).zip(change.columns()) {
            update.raw_bind_parameter(index, column).attempting("update")?;
        }
        update.raw_execute().map(|rows| rows as u64).attempting("update")
    }

    fn insert_order(&mut self, schema: u32, number: u64, order: &[u8]) -> Result<u64, Trouble> {
        let text = &self.texts.insert_order[schema as usize];
        let mut insert = self.link.prepare_cached(text).attempting("insert")?;
        insert.execute((number, order)).map(|rows| rows as u64).attempting("insert")
    }

    fn orders(&mut self, schema: u32, first: u64, count: u32) -> Result<u64, Trouble> {
        let last = first + u64::from(count) - 1;
        self.count(&self.texts.orders[schema as usize], &[first, last])
    }

    fn delete_order(&mut self, schema: u32, number: u64) -> Result<u64, Trouble> {
        let text = &self.texts.delete_order[schema as usize];
        let mut delete = self.link.prepare_cached(text).attempting("delete")?;
        delete.execute([number]).map(|rows| rows as u64).attempting("delete")
    }

    fn commit(&mut self) -> Result<(), Trouble> {
        self.link.execute_batch("COMMIT").attempting("commit")
    }

    fn roll_back(&mut self) -> Result<(), SqlError> {
        if self.link.is_autocommit() {
            return Ok(());
        }
        self.link.execute_batch("ROLLBACK").during("roll back")
    }

    fn scan(&mut self, schema: u32) -> Result<u64, Trouble> {
        self.count(&self.texts.scan[schema as usize], &[])
    }

    fn create_table(&mut self, schema: u32, table: u32) -> Result<Made, Trouble> {
        let before = self.pages_in_use()?;
        let text = copy_text(COPY, (schema, table), |schema, table| table.name(schema));
        self.link.execute_batch(&text).attempting("create a table")?;
        let pages = self.pages_in_use()?.saturating_sub(before);
        // SQLite does not count the rows of CREATE TABLE AS; row ids start at 1.
        let name = Table::Copy(table).name(schema);
        let rows = self.number(&format!("SELECT coalesce(max(rowid), 0) FROM {name}"))?;
        Ok(Made { rows, bytes: pages * self.page_bytes })
    }

    /// Takes a checkpoint of the whole log, which flushes the log before and the database after it.
    fn flush_table(&mut self, _schema: u32, _table: u32) -> Result<(), Trouble> {
        let checkpoint = "PRAGMA wal_checkpoint(FULL)";
        // It cannot complete while another session writes or reads an older snapshot.
        let is_busy = self.number(checkpoint)? != 0;
        if is_busy { Err(Trouble::Again) } else { Ok(()) }
    }

    fn drop_table(&mut self, schema: u32, table: u32) -> Result<(), Trouble> {
        let name = Table::Copy(table).name(schema);
        self.link.execute_batch(&format!("DROP TABLE {name}")).attempting("drop a table")
    }
}

/// SQLite runs on the threads of its sessions: its work is what the kernel charges to them.
struct Threads {
    processes: Processes,
    /// The database, if its reads are counted separately from those of its log.
    direct: Option<sqlite_vfs::Database>,
    page_bytes: u64,
}

impl Watcher for Threads {
    fn look(&mut self, sessions: &[Member], exact: bool) -> Result<CounterValues, SqlError> {
        let sessions = || sessions.iter().map(|&member| (member, SESSION.to_owned())).collect();
        let readings = self.processes.look(exact, sessions);
        let read = match &self.direct {
            Some(database) => Some(database.read_bytes()),
            None => self.processes.requested_read_bytes(SESSION),
        };
        let blocks = read.map(|bytes| ("physical_reads", bytes / self.page_bytes));
        Ok(CounterValues { statistics: blocks.into_iter().collect(), readings })
    }
}
