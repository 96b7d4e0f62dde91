//! PostgreSQL 13 and later: any server that permits creating a schema, or a private cluster.
//!
//! The fill factor gives each row its own page, and updates stay in their page. Plans are pinned: a
//! select by key walks the index and reads one page after the other in the order of keys, not of
//! pages.

pub mod address;
mod client;
pub mod cluster;
mod counters;
mod frames;
mod session;
mod tls;
pub mod views;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use blockstone_base::units::Bytes;
use blockstone_sys::account;
use postgres::error::SqlState;

use crate::family::{Family, OptionValue, TargetOption};
use crate::spec::TargetSpec;
use crate::sql::border::Border;
use crate::sql::content::{COLUMN_BYTES, COLUMNS, Content, LOADED_TABLES, ROW_BYTES};
use crate::sql::error::{DriverError, During, FREE_SPACE, SqlError};
use crate::sql::host::ServerAddress;
use crate::sql::server::{self, Owned};
use crate::sql::{
    Chunk, Database, Member, Prepared, SCHEMA, Table, Templates, Texts, Watcher, columns, sample,
    table_name, with,
};
use crate::target::{Demand, Description, ReadSize, Scans, TargetError};
pub use address::Address;
use address::MARK;
pub use client::Client;
use cluster::Cluster;
use session::Session;
use views::value;

const CREATE: &str = include_str!("../sql/postgres/create.sql");
const CREATE_ORDERS: &str = include_str!("../sql/postgres/create_orders.sql");
const INDEX: &str = include_str!("../sql/postgres/index.sql");
const STATEMENTS: Templates = Templates {
    select: include_str!("../sql/postgres/select.sql"),
    update: include_str!("../sql/postgres/update.sql"),
    scan: include_str!("../sql/postgres/scan.sql"),
    insert_order: include_str!("../sql/postgres/insert_order.sql"),
    orders: include_str!("../sql/postgres/orders.sql"),
    delete_order: include_str!("../sql/postgres/delete_order.sql"),
};
const VERIFY: &str = include_str!("../sql/postgres/verify.sql");

/// The oldest version with known views.
pub const VERSION_MIN: u32 = 13;
/// Rows per chunk of a loader.
const CHUNK: u64 = 4096;
/// Space for a fresh cluster with its log, and for the index of the rows.
const ASIDE: u64 = 1200 << 20;

/// Settings of a session, made before its first statement: read one page after the other by the
/// index, always with the same plan.
const PIN: &str = "
    SET enable_bitmapscan = off; SET enable_seqscan = off; SET enable_indexonlyscan = off;
    SET max_parallel_workers_per_gather = 0; SET jit = off;
    SET plan_cache_mode = force_generic_plan; SET lock_timeout = 0; SET statement_timeout = 0";

/// Makes ANALYZE sample 300 rows instead of 30,000. Each row fills a block, so the default would
/// take 240 MB in the server, more than a limited page cache leaves. Plans are pinned anyway.
const SAMPLE_LITTLE: &str = "SET default_statistics_target = 1";

pub const FAMILY: Family = Family {
    name: "postgres",
    in_process: false,
    samples_sessions: false,
    through_page_cache: true,
    io_bounded: None,
    io: Cluster::io,
    options: &[
        TargetOption {
            name: "pg-conf",
            doc: "Start the private PostgreSQL cluster with this setting",
            value: OptionValue::Setting,
        },
        TargetOption {
            name: "pg-bin",
            doc: "Directory of the PostgreSQL programs [default: the highest version in the usual \
                  places]",
            value: OptionValue::Programs,
        },
    ],
    durable_settings: &[
        ("fsync", &["on"]),
        ("synchronous_commit", &["on", "remote_apply", "remote_write", "local"]),
    ],
};

pub fn demand(spec: &TargetSpec) -> Result<Demand, TargetError> {
    if spec.options.block_bytes != Bytes::kib(8) {
        let why = format!("its pages are 8K, not {}", spec.options.block_bytes);
        Err(SqlError::unsuitable("PostgreSQL", why, "omit --block-size"))?;
    }
    server::demand(spec, &FAMILY, spec.options.block_bytes.get() + 64, ASIDE)
}

/// The first version with a setting for the read size, and its maximum at that version.
const SIZED_SINCE: u32 = 17;
const READ_MOST: u32 = 32;
/// The first version with a limit of the server itself, and its maximum.
const SERVER_BOUND_SINCE: u32 = 18;
const SERVER_BOUND_MOST: u32 = 128;

/// Returns the limits on the read size of a sequential scan: the settings of a running server, or
/// what the programs of a private one support.
pub fn scans(spec: &TargetSpec) -> Result<Scans, TargetError> {
    let fixed = |version: u32| {
        ReadSize::Fixed(format!(
            "PostgreSQL {version} reads one page after the other; from {SIZED_SINCE} on \
             io_combine_limit is the size of a read"
        ))
    };
    let most = |blocks| ReadSize::Most { blocks, allowed_by: None };
    let size = if spec.address == server::SCRATCH {
        match Cluster::version(spec)? {
            None => ReadSize::Fixed("the version of its programs is not known".to_owned()),
            Some(version) if version < SIZED_SINCE => fixed(version),
            Some(version) if version < SERVER_BOUND_SINCE => most(READ_MOST),
            Some(_) => ReadSize::Most {
                blocks: SERVER_BOUND_MOST,
                allowed_by: Some("io_max_combine_limit"),
            },
        }
    } else {
        const ASK: &str = "SELECT current_setting('server_version_num')::int / 10000,
            coalesce(current_setting('io_max_combine_limit', true), '')";
        let address = Address::parse(&spec.address)?;
        let mut link = address.connect()?;
        let (version, bound): (i32, String) = address.within_limit(|| {
            let row = link.query_one(ASK, &[]).during("query its version")?;
            Ok((value(&row, 0)?, value(&row, 1)?))
        })?;
        match (version as u32, in_blocks(&bound)) {
            (version, _) if version < SIZED_SINCE => fixed(version),
            (_, Some(bound)) => most(bound),
            (_, None) => most(READ_MOST),
        }
    };
    Ok(Scans::Statement(size))
}

/// Parses a setting in the server's format, such as `128kB` or `1MB`, into blocks.
fn in_blocks(shown: &str) -> Option<u32> {
    let (digits, kib) = match (shown.strip_suffix("kB"), shown.strip_suffix("MB")) {
        (Some(digits), _) => (digits, 1),
        (None, Some(digits)) => (digits, 1024),
        (None, None) => return None,
    };
    Some(digits.parse::<u32>().ok()?.checked_mul(kib)? / 8)
}

#[derive(Debug)]
pub struct Postgres {
    server: Owned<Address>,
    version: u32,
    content: Content,
}

impl Postgres {
    fn make_tables(owner: &mut Client, content: &Content) -> Result<(), SqlError> {
        // Created and marked in one transaction, so that no unmarked schema can be left behind.
        let schema = format!(
            "BEGIN; CREATE SCHEMA {SCHEMA}; COMMENT ON SCHEMA {SCHEMA} IS '{MARK}'; COMMIT"
        );
        owner.batch_execute(&schema).during("create the schema blockstone")?;
        for schema in 0..content.schemas() {
            for table in LOADED_TABLES {
                let columns = columns("bytea");
                let name = table_name(schema, table);
                let create = with(CREATE, &[("table", &name), ("columns", &columns)]);
                // Values moved out of line would not be read with their row.
                let plain = |index| format!("ALTER COLUMN c{index} SET STORAGE PLAIN");
                let plain = (1..=COLUMNS).map(plain).collect::<Vec<_>>().join(", ");
                let create = format!("{create}; ALTER TABLE {name} {plain}");
                owner.batch_execute(&create).during(&format!("create table {name}"))?;
            }
            if content.has_orders() {
                let name = table_name(schema, Table::Orders);
                let create = with(CREATE_ORDERS, &[("table", &name)]);
                owner.batch_execute(&create).during(&format!("create table {name}"))?;
            }
        }
        Ok(())
    }

    fn texts(&self) -> Texts {
        let (schemas, changed) = (self.content.schemas(), self.content.changed());
        Texts::new(&STATEMENTS, schemas, changed, table_name, placeholder)
    }

    /// Verifies the size and layout of a table after the load.
    fn verify(&self, link: &mut Client, schema: u32, kind: Table) -> Result<(), SqlError> {
        let (table, rows) = (table_name(schema, kind), self.content.rows(kind));
        let found = link
            .query_one(&with(VERIFY, &[("table", &table)]), &[])
            .during(&format!("verify {table}"))?;
        let (held, pages) = (value::<i64>(&found, 0)? as u64, value::<i64>(&found, 1)? as u64);
        if (held, pages) == (rows, rows) {
            return Ok(());
        }
        Err(SqlError::Layout { table, rows: held, pages })
    }
}

impl Database for Postgres {
    type Link = Session;

    fn open(spec: &TargetSpec, content: Content) -> Result<Self, SqlError> {
        let (server, version) = Owned::open::<Cluster, _>(
            spec,
            |address, link| check(address, link, spec),
            |owner| Self::make_tables(owner, &content),
        )?;
        Ok(Self { server, version, content })
    }

    fn border(&self) -> Border {
        self.server.address.border()
    }

    fn link(&self) -> Result<Session, SqlError> {
        let mut link = self.server.address.connect()?;
        link.batch_execute(PIN).during("pin the plans")?;
        if self.version >= 14 {
            // The server notices within a second that this program is gone.
            let _ = link.batch_execute("SET client_connection_check_interval = 1000");
        }
        let member = member(&self.server.address, &mut link);
        let (prepared, can_hand_over) = (Prepared::new(self.texts()), self.version >= 15);
        let tls = self.server.address.tls.clone();
        Ok(Session { link, tls, member, prepared, can_hand_over })
    }

    fn loaders(&self) -> (usize, u64) {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        (processors.clamp(2, 8), CHUNK)
    }

    fn fill(
        &self,
        chunk: &Chunk,
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), SqlError> {
        const TELL_ROWS: u64 = 256;
        let mut link = self.server.address.connect()?;
        let table = table_name(chunk.schema, chunk.table);
        let what = format!("load {table}");
        let copy = format!("COPY {table} FROM STDIN (FORMAT binary)");
        let mut writer = link.copy_in(&copy).during(&what)?;
        let failed = |error: std::io::Error| {
            // The I/O error wraps the server's error.
            match error.get_ref().and_then(|inner| inner.downcast_ref::<postgres::Error>()) {
                Some(inner) => SqlError::statement(&what, inner),
                None => SqlError::Statement {
                    what: what.clone(),
                    why: error.to_string(),
                    hint: "see the server's log".to_owned(),
                },
            }
        };
        writer.write_all(&copy_header()).map_err(failed)?;
        let mut row = Vec::with_capacity(ROW_BYTES * 2);
        for (index, loaded) in (1..).zip(self.content.rows_of(chunk, 0)) {
            copy_row(loaded.key, &loaded.bytes, &mut row);
            writer.write_all(&row).map_err(failed)?;
            let told = if index % TELL_ROWS == 0 { TELL_ROWS } else { 0 };
            let last = if index == chunk.rows { index % TELL_ROWS } else { 0 };
            if told + last > 0 && tell(told + last).is_break() {
                return Err(SqlError::Interrupted);
            }
        }
        writer.write_all(&(-1_i16).to_be_bytes()).map_err(failed)?;
        writer.finish().map(|_| ()).during(&what)
    }

    fn settle(&self) -> Result<(), SqlError> {
        let mut link = self.server.address.connect()?;
        link.batch_execute(SAMPLE_LITTLE).during("set up the session")?;
        for schema in 0..self.content.schemas() {
            let table = table_name(schema, Table::Rows);
            link.batch_execute(&with(INDEX, &[("table", &table)]))
                .during(&format!("index {table}"))?;
            for kind in LOADED_TABLES {
                let table = table_name(schema, kind);
                // Sets hint bits and freezes rows now, not during the measurement.
                link.batch_execute(&format!("VACUUM (FREEZE, ANALYZE) {table}"))
                    .during(&format!("vacuum {table}"))?;
                self.verify(&mut link, schema, kind)?;
            }
        }
        match link.batch_execute("CHECKPOINT") {
            // Needs a privilege; the description explains the consequences.
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(()),
            done => done.during("checkpoint"),
        }
    }

    fn watcher(&self) -> Result<Box<dyn Watcher>, SqlError> {
        let mut link = self.server.address.connect()?;
        let member = member(&self.server.address, &mut link);
        Ok(Box::new(counters::Counters::new(link, self.version, member)))
    }

    fn describe(&self) -> Result<Description, SqlError> {
        let mut link = self.server.address.connect()?;
        link.batch_execute(PIN).during("pin the plans")?;
        let mut description = counters::describe(&mut link, self.version)?;
        for (kind, text) in self.texts().first() {
            description.plans.push((kind, plan(&mut link, kind, text, self.content.changed())?));
        }
        description.notes.clone_from(&self.server.notes);
        description.notes.extend(sample(comment(&mut link)?.as_deref()));
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

fn comment(link: &mut Client) -> Result<Option<String>, SqlError> {
    const ASK: &str = "SELECT shobj_description(oid, 'pg_database') FROM pg_database \
        WHERE datname = current_database()";
    let row = link.query_one(ASK, &[]).during("query the comment on the database")?;
    value(&row, 0)
}

/// Checks whether this server can be used; returns its major version.
fn check(address: &Address, link: &mut Client, spec: &TargetSpec) -> Result<u32, SqlError> {
    const ASK: &str = "SELECT current_setting('server_version_num')::int, pg_is_in_recovery(),
        has_database_privilege(current_database(), 'CREATE'), current_setting('block_size')::bigint,
        current_setting('server_version'), current_user::text, current_database()::text";
    let row = link.query_one(ASK, &[]).during("query its version")?;
    let version = value::<i32>(&row, 0)? as u32 / 10_000;
    let unsuitable = |why: String, hint: &str| Err(SqlError::unsuitable(&address.name, why, hint));
    if version < VERSION_MIN {
        let known: String = value(&row, 4)?;
        let hint = format!("PostgreSQL {VERSION_MIN} and later are supported");
        return unsuitable(format!("it is version {known}"), &hint);
    }
    if value(&row, 1)? {
        let why = "it is in recovery and takes no writes";
        return unsuitable(why.to_owned(), "name the primary server");
    }
    if !value::<bool>(&row, 2)? {
        let (user, database): (String, String) = (value(&row, 5)?, value(&row, 6)?);
        let why = format!("{user} may not create a schema in database {database}");
        return unsuitable(why, &format!("GRANT CREATE ON DATABASE {database} TO {user}"));
    }
    let block = value::<i64>(&row, 3)? as u64;
    if block != spec.options.block_bytes.get() {
        let why = format!("its pages are {}", Bytes(block));
        return unsuitable(why, "servers with pages of 8K are supported");
    }
    Ok(version)
}

pub fn member(address: &Address, link: &mut Client) -> Option<Member> {
    let row = link.query_one("SELECT pg_backend_pid()", &[]).ok()?;
    let pid = row.try_get::<_, i32>(0).ok()? as u32;
    let here = account::process(Path::new("/"), pid)?.title.starts_with("postgres");
    (address.local && here).then_some(Member { pid, thread: None })
}

/// Returns the generic plan of a statement, for all keys.
fn plan(link: &mut Client, kind: &str, text: &str, changed: usize) -> Result<String, SqlError> {
    let explain_kind = &format!("explain the {kind}");
    let (types, values) = match kind {
        "scan" => (String::new(), String::new()),
        "select" => ("(bigint, bigint)".to_owned(), "(0, 63)".to_owned()),
        _ => (
            format!("(bigint, bigint{})", ", bytea".repeat(changed)),
            format!("(0, 63{})", ", ''".repeat(changed)),
        ),
    };
    let name = format!("blockstone_{kind}");
    link.batch_execute(&format!("PREPARE {name}{types} AS {text}")).during(explain_kind)?;
    let explain = format!("EXPLAIN (COSTS OFF) EXECUTE {name}{values}");
    let said = link.simple_query(&explain).during(explain_kind)?;
    let lines = said.iter().filter_map(|message| match message {
        postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the placeholder of a changed column; the first two parameters are the keys.
fn placeholder(index: usize) -> String {
    format!("${}", index + 3)
}

/// Returns the header of COPY's binary format: signature, no flags, no extension.
fn copy_header() -> Vec<u8> {
    [b"PGCOPY\n\xff\r\n\0".as_slice(), &[0; 8]].concat()
}

fn copy_row(key: u64, bytes: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend((COLUMNS as i16 + 1).to_be_bytes());
    out.extend(8_i32.to_be_bytes());
    out.extend((key as i64).to_be_bytes());
    for column in bytes.chunks(COLUMN_BYTES) {
        out.extend((column.len() as i32).to_be_bytes());
        out.extend(column);
    }
}

impl DriverError for postgres::Error {
    fn words(&self) -> String {
        match self.as_db_error() {
            Some(db) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
            None => address::cause(self),
        }
    }

    fn hint(&self) -> &'static str {
        match self.code() {
            Some(code) if *code == SqlState::DISK_FULL => FREE_SPACE,
            Some(code) if *code == SqlState::OUT_OF_MEMORY => {
                "give the server more memory; if it lacks locks, raise max_locks_per_transaction"
            }
            Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                "GRANT CREATE ON DATABASE … TO this user"
            }
            Some(code) if ![SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN].contains(code) => {
                "see the server's log"
            }
            _ => "the server ended or closed the connection; see its log",
        }
    }

    fn is_conflict(&self) -> bool {
        let states = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        self.code().is_some_and(|code| states.contains(code))
    }

    fn is_cancelled(&self) -> bool {
        self.is_closed() || self.code() == Some(&SqlState::QUERY_CANCELED)
    }
}
