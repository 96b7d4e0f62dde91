//! PostgreSQL, 13 and later: any server that lets a schema be made, or a private cluster.
//!
//! The fill factor makes each row lie in a page of its own; updates stay in their page. Plans are
//! pinned: a select by key walks the index and visits one page after the other, as keys have it,
//! not as pages lie.

pub mod address;
mod cluster;
mod counters;
mod session;
pub mod views;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use blockstone_base::units::Bytes;
use blockstone_sys::account;
use postgres::error::SqlState;
use postgres::{Client, NoTls};

use crate::family::{Family, OptionValue, TargetOption};
use crate::spec::{Storage, TargetSpec};
use crate::sql::content::{COLUMN_BYTES, COLUMNS, Content, ROW_BYTES};
use crate::sql::error::SqlError;
use crate::sql::host::without_password;
use crate::sql::private::{Holder, PrivateServer};
use crate::sql::target::SqlTarget;
use crate::sql::{
    Chunk, Database, Member, SCHEMA, Table, Texts, Watcher, columns, removed_left, table_name, with,
};
use crate::target::{Demand, Description, Progress, Target, TargetError};
use address::Address;
use cluster::Cluster;
use session::Session;

const CREATE: &str = include_str!("../sql/postgres/create.sql");
const INDEX: &str = include_str!("../sql/postgres/index.sql");
const SELECT: &str = include_str!("../sql/postgres/select.sql");
const UPDATE: &str = include_str!("../sql/postgres/update.sql");
const SCAN: &str = include_str!("../sql/postgres/scan.sql");
const VERIFY: &str = include_str!("../sql/postgres/verify.sql");

/// The comment by which a schema is known as a run's.
const MARK: &str = "made by blockstone run; may be removed";
/// Held by a run for as long as it lives.
const LOCK: i64 = 0x626c_6f63_6b73_746f;
/// The private cluster, in place of an address.
pub const SCRATCH: &str = "scratch";
/// The oldest version whose views are known.
pub const VERSION_MIN: u32 = 13;
/// Places that a loader takes on at once.
const CHUNK: u64 = 4096;
/// A fresh cluster with its log, and the index of the rows.
const ASIDE: u64 = 1200 << 20;

/// The settings of a session before its first statement: one page after the other, by the index,
/// and always the same way.
const PIN: &str = "
    SET enable_bitmapscan = off; SET enable_seqscan = off; SET enable_indexonlyscan = off;
    SET max_parallel_workers_per_gather = 0; SET jit = off;
    SET plan_cache_mode = force_generic_plan; SET lock_timeout = 0; SET statement_timeout = 0";

/// PostgreSQL, as targets.
pub const FAMILY: Family = Family {
    name: "postgres",
    in_process: false,
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

/// Where its data are.
pub fn storage(spec: &TargetSpec) -> Result<Storage, TargetError> {
    if spec.address == SCRATCH {
        return Ok(Storage::Named);
    }
    let address = address::parse(&spec.address).map_err(TargetError::own)?;
    let mut link = connect(&address).map_err(TargetError::own)?;
    let known = link.query_one("SELECT current_setting('data_directory')", &[]);
    let dir = known.ok().and_then(|row| row.try_get::<_, String>(0).ok()).map(PathBuf::from);
    Ok(Storage::Served(dir.filter(|dir| address.local && dir.is_dir())))
}

/// What it would take of its place.
pub fn demand(spec: &TargetSpec) -> Result<Demand, TargetError> {
    if spec.block != Bytes::kib(8) {
        return Err(TargetError::own(SqlError::Unsuitable {
            server: "PostgreSQL".to_owned(),
            why: format!("its pages are 8K, not {}", spec.block),
            hint: "omit --block-size".to_owned(),
        }));
    }
    let mut places = vec![Bytes(0); spec.places.len()];
    if spec.address == SCRATCH {
        if let Some(first) = places.first_mut() {
            let row = spec.block.get() + 64;
            let rows = Content::new(spec).all_rows();
            *first = Bytes(rows.saturating_mul(row).saturating_add(ASIDE));
        }
    } else if !spec.settings.is_empty() {
        return Err(TargetError::own(SqlError::Unsuitable {
            server: format!("postgres:{}", without_password(&spec.address)),
            why: "settings cannot be given to a running server".to_owned(),
            hint: "--pg-conf is for postgres:scratch".to_owned(),
        }));
    }
    Ok(Demand { places })
}

/// Connects to the server, or makes one, and makes the empty tables.
pub fn open(
    spec: &TargetSpec,
    _progress: &mut Progress<'_>,
) -> Result<Arc<dyn Target>, TargetError> {
    let content = Content::new(spec);
    let database = Postgres::open(spec, content.clone()).map_err(TargetError::own)?;
    Ok(Arc::new(SqlTarget::new(database, content)))
}

/// Removes the schema that a run left on the server; says whether there was one.
pub fn remove_left(address: &str) -> Result<bool, TargetError> {
    let removed = || -> Result<bool, SqlError> {
        let address = address::parse(address)?;
        let mut owner = connect(&address)?;
        take(&address, &mut owner)?;
        let found = schema_comment(&mut owner)?;
        if found.is_some() {
            owner
                .batch_execute(&format!("DROP SCHEMA {SCHEMA} CASCADE"))
                .map_err(|error| statement("remove the schema blockstone", &error))?;
        }
        Ok(found.is_some())
    };
    removed().map_err(TargetError::own)
}

#[derive(Debug)]
struct Postgres {
    address: Address,
    version: u32,
    content: Content,
    /// Holds the lock and cleans up; none once that is done.
    owner: Mutex<Option<Owner>>,
    cluster: Holder<Address>,
    /// What a reader should know of how it began.
    notes: Vec<String>,
}

struct Owner(Client);

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Owner")
    }
}

impl Postgres {
    fn open(spec: &TargetSpec, content: Content) -> Result<Self, SqlError> {
        let cluster = if spec.address == SCRATCH {
            Some(PrivateServer::make(&Cluster::find(spec)?, spec)?)
        } else {
            None
        };
        let address = match &cluster {
            Some(cluster) => cluster.address.clone(),
            None => address::parse(&spec.address)?,
        };
        let (owner, version, notes) = Self::prepare(&address, spec, &content)?;
        let (owner, cluster) = (Mutex::new(Some(Owner(owner))), Holder::new(cluster));
        Ok(Self { address, version, content, owner, cluster, notes })
    }

    fn prepare(
        address: &Address,
        spec: &TargetSpec,
        content: &Content,
    ) -> Result<(Client, u32, Vec<String>), SqlError> {
        let mut owner = connect(address)?;
        let version = check(address, &mut owner, spec)?;
        take(address, &mut owner)?;
        let mut notes = Vec::new();
        match schema_comment(&mut owner)? {
            None => {}
            Some(comment) if comment == MARK => {
                let left = owner.batch_execute(&format!("DROP SCHEMA {SCHEMA} CASCADE"));
                left.map_err(|error| statement("remove leftovers of a run", &error))?;
                notes.push(removed_left(&address.name));
            }
            Some(_) => return Err(SqlError::not_ours(&address.name)),
        }
        let made = Self::make_tables(&mut owner, content);
        if made.is_err() {
            let _ = owner.batch_execute(&format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"));
        }
        made.map(|()| (owner, version, notes))
    }

    fn make_tables(owner: &mut Client, content: &Content) -> Result<(), SqlError> {
        // Made and marked at one stroke: no unmarked schema can be left behind.
        let schema = format!(
            "BEGIN; CREATE SCHEMA {SCHEMA}; COMMENT ON SCHEMA {SCHEMA} IS '{MARK}'; COMMIT"
        );
        owner
            .batch_execute(&schema)
            .map_err(|error| statement("create the schema blockstone", &error))?;
        for schema in 0..content.schemas() {
            for table in [Table::Rows, Table::Scan] {
                let columns = columns("bytea");
                let name = table_name(schema, table);
                let create = with(CREATE, &[("table", &name), ("columns", &columns)]);
                // Values that were moved out of line would not be read with their row.
                let plain: String = (1..=COLUMNS)
                    .map(|index| format!("ALTER COLUMN c{index} SET STORAGE PLAIN"))
                    .collect::<Vec<_>>()
                    .join(", ");
                owner
                    .batch_execute(&format!("{create}; ALTER TABLE {name} {plain}"))
                    .map_err(|error| statement(&format!("create table {name}"), &error))?;
            }
        }
        Ok(())
    }

    fn texts(&self) -> Texts {
        let texts = [SELECT, UPDATE, SCAN];
        Texts::new(texts, self.content.schemas(), self.content.changed(), table_name, placeholder)
    }

    /// The size and layout of a table, looked at after the load.
    fn verify(&self, link: &mut Client, schema: u32, kind: Table) -> Result<(), SqlError> {
        let (table, rows) = (table_name(schema, kind), self.content.rows(kind));
        let found = link
            .query_one(&with(VERIFY, &[("table", &table)]), &[])
            .map_err(|error| statement(&format!("verify {table}"), &error))?;
        let (held, pages) = (found.get::<_, i64>(0) as u64, found.get::<_, i64>(1) as u64);
        if (held, pages) == (rows, rows) {
            return Ok(());
        }
        Err(SqlError::Layout { table, rows: held, pages })
    }
}

impl Database for Postgres {
    type Link = Session;

    fn link(&self) -> Result<Session, SqlError> {
        let mut link = connect(&self.address)?;
        link.batch_execute(PIN).map_err(|error| statement("pin the plans", &error))?;
        if self.version >= 14 {
            // The server sees within a second that this program is gone.
            let _ = link.batch_execute("SET client_connection_check_interval = 1000");
        }
        let member = member(&self.address, &mut link);
        let schemas = self.content.schemas() as usize;
        Ok(Session {
            link,
            member,
            texts: self.texts(),
            prepared: [vec![None; schemas], vec![None; schemas], vec![None; schemas]],
            can_hand_over: self.version >= 15,
        })
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
        let mut link = connect(&self.address)?;
        let table = table_name(chunk.schema, chunk.table);
        let what = format!("load {table}");
        let copy = format!("COPY {table} FROM STDIN (FORMAT binary)");
        let mut writer = link.copy_in(&copy).map_err(|error| statement(&what, &error))?;
        let failed = |error: std::io::Error| {
            // The answer of the server is inside.
            match error.get_ref().and_then(|inner| inner.downcast_ref::<postgres::Error>()) {
                Some(inner) => statement(&what, inner),
                None => SqlError::Statement {
                    what: what.clone(),
                    why: error.to_string(),
                    hint: "see the server's log".to_owned(),
                },
            }
        };
        writer.write_all(&copy_header()).map_err(failed)?;
        let mut row = Vec::with_capacity(ROW_BYTES * 2);
        for (index, (_, key, bytes)) in (1..).zip(self.content.rows_of(chunk, 0)) {
            copy_row(key, &bytes, &mut row);
            writer.write_all(&row).map_err(failed)?;
            let told = if index % TELL_ROWS == 0 { TELL_ROWS } else { 0 };
            let last = if index == chunk.rows { index % TELL_ROWS } else { 0 };
            if told + last > 0 && tell(told + last).is_break() {
                return Err(SqlError::Interrupted);
            }
        }
        writer.write_all(&(-1_i16).to_be_bytes()).map_err(failed)?;
        writer.finish().map(|_| ()).map_err(|error| statement(&what, &error))
    }

    fn settle(&self) -> Result<(), SqlError> {
        let mut link = connect(&self.address)?;
        for schema in 0..self.content.schemas() {
            let table = table_name(schema, Table::Rows);
            link.batch_execute(&with(INDEX, &[("table", &table)]))
                .map_err(|error| statement(&format!("index {table}"), &error))?;
            for kind in [Table::Rows, Table::Scan] {
                let table = table_name(schema, kind);
                // Hint bits are set and rows frozen now, not under the measurement.
                link.batch_execute(&format!("VACUUM (FREEZE, ANALYZE) {table}"))
                    .map_err(|error| statement(&format!("vacuum {table}"), &error))?;
                self.verify(&mut link, schema, kind)?;
            }
        }
        match link.batch_execute("CHECKPOINT") {
            // Only some users may; the description says what that means.
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(()),
            done => done.map_err(|error| statement("checkpoint", &error)),
        }
    }

    fn watcher(&self) -> Result<Box<dyn Watcher>, SqlError> {
        let mut link = connect(&self.address)?;
        let member = member(&self.address, &mut link);
        Ok(Box::new(counters::Counters::new(link, self.version, member)))
    }

    fn describe(&self) -> Result<Description, SqlError> {
        let mut link = connect(&self.address)?;
        link.batch_execute(PIN).map_err(|error| statement("pin the plans", &error))?;
        let mut description = counters::describe(&mut link, self.version)?;
        for (kind, text) in self.texts().first() {
            description.plans.push((kind, plan(&mut link, kind, text, self.content.changed())?));
        }
        description.notes.clone_from(&self.notes);
        if self.address.local {
            let tables = (0..self.content.schemas()).map(|schema| table_name(schema, Table::Rows));
            description.files = counters::files(&mut link, tables);
        }
        Ok(description)
    }

    fn explained(&self, error: SqlError) -> SqlError {
        self.cluster.explained(error)
    }

    fn tear_down(&self) -> Result<(), SqlError> {
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if self.cluster.end() {
            return Ok(());
        }
        let Some(Owner(mut owner)) = owner else { return Ok(()) };
        let drop_schema = format!("DROP SCHEMA {SCHEMA} CASCADE");
        if !owner.is_closed() && owner.batch_execute(&drop_schema).is_ok() {
            return Ok(());
        }
        // The server may have come back since.
        let again = connect(&self.address).and_then(|mut owner| {
            let dropped = owner.batch_execute(&drop_schema);
            dropped.map_err(|error| statement("remove the schema blockstone", &error))
        });
        again.map_err(|error| SqlError::remains(&self.address.name, &error))
    }
}

pub fn connect(address: &Address) -> Result<Client, SqlError> {
    address.config.connect(NoTls).map_err(|error| {
        let hint = match error.code() {
            Some(code) if *code == SqlState::INVALID_PASSWORD => {
                "give the password in the address or in PGPASSWORD"
            }
            Some(code) if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                "see pg_hba.conf of the server: it must allow this user from here without TLS"
            }
            Some(code) if *code == SqlState::TOO_MANY_CONNECTIONS => {
                "raise max_connections of the server, or ask for fewer sessions"
            }
            Some(code) if *code == SqlState::INVALID_CATALOG_NAME => {
                "name a database that exists: postgres://user@host/database"
            }
            Some(code) if *code == SqlState::CANNOT_CONNECT_NOW => {
                "the server starts, stops or recovers; wait until it is ready"
            }
            _ => {
                "check that the server is running and listens there; see listen_addresses and port"
            }
        };
        SqlError::Connect { server: address.name.clone(), why: said(&error), hint: hint.to_owned() }
    })
}

/// Whether this server can be used, and its major version.
fn check(address: &Address, link: &mut Client, spec: &TargetSpec) -> Result<u32, SqlError> {
    const ASK: &str = "SELECT current_setting('server_version_num')::int, pg_is_in_recovery(),
        has_database_privilege(current_database(), 'CREATE'), current_setting('block_size')::bigint,
        current_setting('server_version'), current_user::text, current_database()::text";
    let row = link.query_one(ASK, &[]).map_err(|error| statement("query its version", &error))?;
    let version = row.get::<_, i32>(0) as u32 / 10_000;
    let unsuitable = |why: String, hint: String| {
        Err(SqlError::Unsuitable { server: address.name.clone(), why, hint })
    };
    if version < VERSION_MIN {
        let known: String = row.get(4);
        return unsuitable(
            format!("it is version {known}"),
            format!("PostgreSQL {VERSION_MIN} and later are supported"),
        );
    }
    if row.get(1) {
        return unsuitable(
            "it is in recovery and takes no writes".to_owned(),
            "name the primary server".to_owned(),
        );
    }
    if !row.get::<_, bool>(2) {
        let (user, database): (String, String) = (row.get(5), row.get(6));
        return unsuitable(
            format!("{user} may not create a schema in database {database}"),
            format!("GRANT CREATE ON DATABASE {database} TO {user}"),
        );
    }
    let block = row.get::<_, i64>(3) as u64;
    if block != spec.block.get() {
        return unsuitable(
            format!("its pages are {}", Bytes(block)),
            "servers with pages of 8K are supported".to_owned(),
        );
    }
    Ok(version)
}

/// Takes the lock that one run at a time holds.
fn take(address: &Address, owner: &mut Client) -> Result<(), SqlError> {
    let taken = owner.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]);
    let taken: bool = taken.map_err(|error| statement("take the lock of a run", &error))?.get(0);
    if taken {
        return Ok(());
    }
    Err(SqlError::Unsuitable {
        server: address.name.clone(),
        why: "another run uses this database".to_owned(),
        hint: "wait for its end, or name another database".to_owned(),
    })
}

/// The comment of the schema, if there is the schema; empty without a comment.
fn schema_comment(owner: &mut Client) -> Result<Option<String>, SqlError> {
    const ASK: &str = "SELECT coalesce(obj_description(oid, 'pg_namespace'), '')
        FROM pg_namespace WHERE nspname = $1";
    let found = owner.query_opt(ASK, &[&SCHEMA]);
    let found = found.map_err(|error| statement("look for leftovers of a run", &error))?;
    Ok(found.map(|row| row.get(0)))
}

/// The session's process, if it is one of this machine.
pub fn member(address: &Address, link: &mut Client) -> Option<Member> {
    let row = link.query_one("SELECT pg_backend_pid()", &[]).ok()?;
    let pid = row.get::<_, i32>(0) as u32;
    let here = account::process(Path::new("/"), pid)?.title.starts_with("postgres");
    (address.local && here).then_some(Member { pid, thread: None })
}

/// How the server executes a statement that it has planned once for all keys.
fn plan(link: &mut Client, kind: &str, text: &str, changed: usize) -> Result<String, SqlError> {
    let failed = |error: postgres::Error| statement(&format!("explain the {kind}"), &error);
    let (types, values) = match kind {
        "scan" => (String::new(), String::new()),
        "select" => ("(bigint, bigint)".to_owned(), "(0, 63)".to_owned()),
        _ => (
            format!("(bigint, bigint{})", ", bytea".repeat(changed)),
            format!("(0, 63{})", ", ''".repeat(changed)),
        ),
    };
    let name = format!("blockstone_{kind}");
    link.batch_execute(&format!("PREPARE {name}{types} AS {text}")).map_err(failed)?;
    let explain = format!("EXPLAIN (COSTS OFF) EXECUTE {name}{values}");
    let said = link.simple_query(&explain).map_err(failed)?;
    let lines = said.iter().filter_map(|message| match message {
        postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// The first two parameters are the keys.
fn placeholder(index: usize) -> String {
    format!("${}", index + 3)
}

/// The header of COPY's binary format: signature, no flags, no extension.
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

/// What the server or the system said, with the SQLSTATE.
fn said(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        None => match std::error::Error::source(error) {
            Some(source) => source.to_string(),
            None => error.to_string(),
        },
    }
}

/// An error of a statement.
pub fn statement(what: &str, error: &postgres::Error) -> SqlError {
    let code = error.code();
    let is = |state: &SqlState| code == Some(state);
    let hint = if is(&SqlState::DISK_FULL) {
        "free some space, or ask for less with --scale or --schemas"
    } else if is(&SqlState::INSUFFICIENT_PRIVILEGE) {
        "GRANT CREATE ON DATABASE … TO this user"
    } else if code.is_none() || is(&SqlState::ADMIN_SHUTDOWN) || is(&SqlState::CRASH_SHUTDOWN) {
        "the server ended or closed the connection; see its log"
    } else {
        "see the server's log"
    };
    SqlError::Statement { what: what.to_owned(), why: said(error), hint: hint.to_owned() }
}
