//! PostgreSQL servers that each hold a part of a table, the cells, and one that joins them with
//! `postgres_fdw`, the host. All are private: they are started for a measurement and removed after
//! it.
//!
//! Statements are sent to the host, whose backend queries those of the cells over TCP. The counters
//! of these processes and connections are read before and after a statement, while all are idle:
//! the connections stay open in between.

mod counted;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::units::Bytes;
use blockstone_sys::process;
use blockstone_sys::thread::scoped;
use postgres::SimpleQueryMessage;

pub use counted::{Counted, Ends, Moved};

use crate::options::DatabaseOptions;
use crate::postgres::Client;
use crate::postgres::address::Address;
use crate::postgres::cluster::Cluster;
use crate::postgres::views::value;
use crate::spec::{Place, TargetSpec};
use crate::sql::error::{During, SqlError};
use crate::sql::host::ServerAddress;
use crate::sql::private::PrivateServer;

/// Rows that the host fetches from a cell at a time; the server's own default is 100.
const FETCH: u32 = 10_000;
/// The first port to use where no other program can have it.
const PORT: u16 = 54_321;
/// A backend reports its counters at most once per second.
const STATISTICS: Duration = Duration::from_millis(1_100);
const LOOK: Duration = Duration::from_millis(10);
/// Before this version, backends send their statistics over the loopback interface, and only at the
/// end of a statement.
const QUIET_SINCE: u32 = 15;
/// The first version whose foreign scans can run concurrently.
const ASYNC_SINCE: u32 = 14;

/// Settings of cells and host: one process per session, and no background activity.
const SETTINGS: &[(&str, &str)] = &[
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("max_wal_size", "1GB"),
    ("checkpoint_timeout", "1h"),
    ("autovacuum", "off"),
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("synchronize_seqscans", "off"),
];

/// These servers have no other users than this program.
const NAMES: &str = "SET search_path = public; SET client_min_messages = error";

#[derive(Clone, Debug)]
pub struct CellsSpec {
    /// Directories of the host and of each cell, which must not exist yet.
    pub places: Vec<PathBuf>,
    /// Directory of the programs; `None` searches the usual places.
    pub programs: Option<PathBuf>,
    /// Settings of all servers, appended to those that this module needs.
    pub settings: Vec<(String, String)>,
    /// Shared buffers of each server.
    pub cache: Bytes,
    /// Whether the calling thread has its own network namespace.
    pub apart: bool,
}

/// A host and its cells. Dropping it stops them and removes their directories.
#[derive(Debug)]
pub struct Cells {
    nodes: Vec<Node>,
    host: Node,
    version: u32,
    release: String,
    apart: bool,
}

struct Node {
    link: Client,
    server: PrivateServer<Address>,
    port: u16,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("port", &self.port).finish_non_exhaustive()
    }
}

/// A session of the host, with a connection to each of its cells.
pub struct Session<'a> {
    cells: &'a mut [Node],
    host: &'a mut Node,
    link: Client,
    /// Pids of the backends: the host's, then that of each cell.
    backends: Vec<u32>,
    version: u32,
    apart: bool,
}

/// Time that a server may take to exit after its connections closed.
const ENDING: Duration = Duration::from_millis(500);

/// Called before each longer step with its name; returns false to stop the work.
pub type GoOn<'a> = dyn FnMut(&str) -> bool + 'a;

/// Produces the rows of a cell in the format of COPY. Each call fills the buffer, and breaks after
/// the last row.
pub type Rows<'a> = dyn FnMut(&mut Vec<u8>) -> ControlFlow<bool> + 'a;

impl Cells {
    /// Starts all servers. If a program is missing or `go_on` returns false, it fails and leaves
    /// nothing behind.
    pub fn start(spec: &CellsSpec, go_on: &mut GoOn<'_>) -> Result<Self, SqlError> {
        const ASK: &str = "SELECT current_setting('server_version_num')::int / 10000, \
                           current_setting('server_version')";
        let mut servers = Vec::new();
        for (at, place) in spec.places.iter().enumerate() {
            if !go_on(&format!("server {} of {}", at + 1, spec.places.len())) {
                return Err(SqlError::Interrupted);
            }
            servers.push(Node::start(spec, place, at)?);
        }
        let mut host = servers.remove(0);
        let row = host.link.query_one(ASK, &[]).during("query its version")?;
        let version = u32::try_from(value::<i32>(&row, 0)?).unwrap_or(0);
        let release = value(&row, 1)?;
        host.link.batch_execute("CREATE EXTENSION postgres_fdw").map_err(|error| {
            let why = crate::sql::error::DriverError::said(&error);
            let hint = "install PostgreSQL's contrib modules, or name other programs with --pg-bin";
            SqlError::unsuitable("the host", why, hint)
        })?;
        for (at, cell) in servers.iter().enumerate() {
            let text = cell.foreign_server(at + 1, version);
            host.link.batch_execute(&text).during(&format!("name cell {} to the host", at + 1))?;
        }
        let apart = spec.apart && version >= QUIET_SINCE;
        Ok(Self { nodes: servers, host, version, release, apart })
    }

    /// Returns the version as reported by the server, such as `15.14 (Debian 15.14-0+deb12u1)`.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// Returns why the counters of the namespace's interface include more than the connections;
    /// `None` if they do not.
    pub fn not_apart(&self) -> Option<&'static str> {
        (self.version < QUIET_SINCE)
            .then_some("PostgreSQL 13 and 14 send their statistics over the same interface")
    }

    /// Executes statements on cell `at`, counted from zero.
    pub fn on_cell(&mut self, at: usize, text: &str) -> Result<(), SqlError> {
        self.nodes[at].link.batch_execute(text).during(&format!("prepare cell {}", at + 1))
    }

    pub fn on_host(&mut self, text: &str) -> Result<(), SqlError> {
        self.host.link.batch_execute(text).during("prepare the host")
    }

    /// Recreates a table of cell `at` with the column list `columns` and fills it, without logging
    /// its rows (`wal_level` is minimal). Returns the number of its rows and the size of its file
    /// in bytes.
    pub fn fill(
        &mut self,
        at: usize,
        (table, columns): (&str, &str),
        rows: &mut Rows<'_>,
    ) -> Result<(u64, u64), SqlError> {
        let cell = &mut self.nodes[at];
        let what = format!("load cell {}", at + 1);
        let failed = |error: postgres::Error| SqlError::statement(&what, &error);
        let make = format!("DROP TABLE IF EXISTS {table}; CHECKPOINT");
        cell.link.batch_execute(&make).map_err(failed)?;
        let mut load = cell.link.transaction().map_err(failed)?;
        load.batch_execute(&format!("CREATE TABLE {table} ({columns})")).map_err(failed)?;
        let loaded = {
            use std::io::Write as _;
            let mut writer = load.copy_in(&format!("COPY {table} FROM STDIN")).map_err(failed)?;
            let mut chunk = Vec::new();
            loop {
                chunk.clear();
                let flow = rows(&mut chunk);
                writer.write_all(&chunk).map_err(|error| SqlError::Statement {
                    what: what.clone(),
                    why: error.to_string(),
                    hint: crate::sql::error::FREE_SPACE.to_owned(),
                })?;
                match flow {
                    ControlFlow::Continue(()) => {}
                    ControlFlow::Break(true) => break writer.finish().map_err(failed)?,
                    ControlFlow::Break(false) => return Err(SqlError::Interrupted),
                }
            }
        };
        load.commit().map_err(failed)?;
        let settle = format!("VACUUM (FREEZE, ANALYZE) {table}; CHECKPOINT");
        for statement in settle.split("; ") {
            cell.link.batch_execute(statement).map_err(failed)?;
        }
        let ask = "SELECT pg_relation_size($1::text::regclass)";
        let row = cell.link.query_one(ask, &[&table]).map_err(failed)?;
        Ok((loaded, value::<i64>(&row, 0)? as u64))
    }

    /// Opens a session of the host with connections to its first `cells` cells, whose foreign
    /// tables are `cell_1` and so on.
    pub fn session(&mut self, cells: usize) -> Result<Session<'_>, SqlError> {
        const ASK: &str = "SELECT pid FROM pg_stat_activity WHERE backend_type = \
                           'client backend' AND pid <> pg_backend_pid() AND \
                           application_name = 'postgres_fdw' ORDER BY backend_start DESC";
        let mut connect = || {
            let mut link = self.host.server.address.connect()?;
            let mut backends = vec![backend(&mut link)?];
            link.batch_execute(NAMES).during("set up the session")?;
            for (at, cell) in self.nodes[..cells].iter_mut().enumerate() {
                let what = format!("connect the host to cell {}", at + 1);
                let open = format!("SELECT 1 FROM cell_{} LIMIT 1", at + 1);
                link.query_opt(&open, &[]).during(&what)?;
                let row = cell.link.query(ASK, &[]).during(&what)?;
                let row = row.first().ok_or_else(|| {
                    SqlError::unsuitable("a cell", "it shows no session of the host", "try again")
                })?;
                backends.push(value::<i32>(row, 0)? as u32);
            }
            Ok((link, backends))
        };
        let connected = connect();
        let taken = &mut self.nodes[..cells];
        let (link, backends) =
            connected.map_err(|error| explained(error, taken, &mut self.host))?;
        let (version, apart) = (self.version, self.apart);
        Ok(Session { cells: taken, host: &mut self.host, link, backends, version, apart })
    }
}

impl Node {
    fn start(spec: &CellsSpec, place: &std::path::Path, at: usize) -> Result<Self, SqlError> {
        let port = if spec.apart { PORT + at as u16 } else { free_port()? };
        let setting = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let mut settings: Vec<(String, String)> = SETTINGS.iter().copied().map(setting).collect();
        settings.extend(spec.settings.iter().cloned());
        settings.push(setting(("listen_addresses", "127.0.0.1")));
        settings.push(setting(("port", &port.to_string())));
        let name = place.display().to_string();
        let places = vec![Place { path: place.to_owned(), name, failure_group: None }];
        let spec = TargetSpec {
            places,
            settings,
            programs: spec.programs.clone(),
            options: DatabaseOptions { cache_bytes: spec.cache, ..DatabaseOptions::default() },
            ..TargetSpec::default()
        };
        let server = PrivateServer::make::<Cluster>(&spec)?;
        let mut link = server.address.connect()?;
        link.batch_execute(NAMES).during("set up the session")?;
        Ok(Self { link, server, port })
    }

    /// Returns the statements that define this cell on the host as server `cell_N`.
    fn foreign_server(&self, number: usize, version: u32) -> String {
        let password = self.server.address.config.get_password().unwrap_or_default();
        let password = String::from_utf8_lossy(password);
        let at_once = if version < ASYNC_SINCE { "" } else { ", async_capable 'true'" };
        format!(
            "CREATE SERVER cell_{number} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host \
             '127.0.0.1', port '{}', dbname 'postgres', sslmode 'disable', gssencmode 'disable', \
             fetch_size '{FETCH}'{at_once}); CREATE USER MAPPING FOR CURRENT_USER SERVER \
             cell_{number} OPTIONS (user 'blockstone', password '{password}')",
            self.port
        )
    }
}

impl Session<'_> {
    /// Executes a statement and returns its first row with the counters that it moved.
    pub fn ask(&mut self, text: &str, go_on: &mut dyn FnMut() -> bool) -> Result<Moved, SqlError> {
        let moved = self.watched(text, go_on);
        moved.map_err(|error| explained(error, self.cells, self.host))
    }

    fn watched(&mut self, text: &str, go_on: &mut dyn FnMut() -> bool) -> Result<Moved, SqlError> {
        thread::sleep(STATISTICS);
        let before = self.look()?;
        let (answer, seconds) = self.answer(text, go_on)?;
        let mut after = self.look()?;
        if self.version < QUIET_SINCE {
            // Backends of these versions report with a later statement; this one reads a single
            // block.
            thread::sleep(STATISTICS);
            for at in 1..=self.cells.len() {
                let text = format!("SELECT 1 FROM cell_{at} LIMIT 1");
                self.link.simple_query(&text).during("have a cell report its counters")?;
            }
            thread::sleep(STATISTICS);
            (after.buffer_reads, after.buffer_hits) = self.blocks()?;
        }
        Ok(Moved::between(&before, &after, (answer, seconds)))
    }

    /// Returns the host's plan of a statement: one line per step, with the statements for the
    /// cells.
    pub fn plan(&mut self, text: &str) -> Result<Vec<String>, SqlError> {
        let explain = format!("EXPLAIN (VERBOSE, COSTS OFF) {text}");
        let said = self.link.simple_query(&explain).during("explain the statement")?;
        let line = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        Ok(said.iter().filter_map(line).collect())
    }

    fn answer(
        &mut self,
        text: &str,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(Vec<String>, f64), SqlError> {
        let (cancel, tls) = (self.link.cancel_token(), self.host.server.address.tls.clone());
        let link = &mut self.link;
        let asked = thread::scope(|scope| {
            let asking = scoped(scope, "cells", move || {
                let began = Instant::now();
                let said = link.simple_query(text);
                (said, began.elapsed().as_secs_f64())
            });
            let asking = asking.map_err(|error| SqlError::no_thread(&error))?;
            let mut stopped = false;
            while !asking.is_finished() {
                if !stopped && !go_on() {
                    stopped = true;
                    // The statement also ends if the server is gone.
                    let _ = cancel.cancel_query(tls.clone());
                }
                thread::sleep(LOOK);
            }
            Ok::<_, SqlError>((asking.join(), stopped))
        })?;
        let (Ok((said, seconds)), stopped) = asked else { return Err(SqlError::Interrupted) };
        if stopped {
            return Err(SqlError::Interrupted);
        }
        let said = said.during("query the cells")?;
        let values = said.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect())
            }
            _ => None,
        });
        Ok((values.unwrap_or_default(), seconds))
    }

    /// Returns the table blocks of all cells that were not in shared buffers, and those that were.
    fn blocks(&mut self) -> Result<(u64, u64), SqlError> {
        let (mut buffer_reads, mut buffer_hits) = (0, 0);
        for cell in self.cells.iter_mut() {
            const ASK: &str = "SELECT coalesce(sum(heap_blks_read), 0)::bigint, \
                               coalesce(sum(heap_blks_hit), 0)::bigint FROM pg_statio_user_tables";
            let row = cell.link.query_one(ASK, &[]).during("read the counters of a cell")?;
            buffer_reads += value::<i64>(&row, 0)? as u64;
            buffer_hits += value::<i64>(&row, 1)? as u64;
        }
        Ok((buffer_reads, buffer_hits))
    }

    fn look(&mut self) -> Result<Counted, SqlError> {
        let ports: Vec<u16> = self.cells.iter().map(|cell| cell.port).collect();
        let (interface_bytes, ends) = counted::connections(&ports, self.apart)?;
        let (buffer_reads, buffer_hits) = self.blocks()?;
        let cpu = |pid: &u32| process::cpu_ns(*pid).ok();
        Ok(Counted {
            interface_bytes,
            ends,
            buffer_reads,
            buffer_hits,
            cpu_ns: self.backends.iter().map(cpu).collect(),
            io: self.backends[1..].iter().map(|pid| counted::io_of(*pid)).collect(),
        })
    }
}

/// Names the server in the error if a server has exited.
fn explained(error: SqlError, cells: &mut [Node], host: &mut Node) -> SqlError {
    // Connections may close before their server exits.
    let until = Instant::now() + ENDING;
    loop {
        let running = cells.iter_mut().map(|cell| cell.server.is_running());
        let running: Vec<bool> = running.collect();
        let host = host.server.is_running();
        if (host && running.iter().all(|it| *it)) && Instant::now() < until {
            thread::sleep(LOOK);
        } else {
            return ended(error, &running, host);
        }
    }
}

/// Returns `error`, or an error that names the server that has exited.
fn ended(error: SqlError, running: &[bool], host: bool) -> SqlError {
    if matches!(error, SqlError::Interrupted) {
        return error;
    }
    let gone = running.iter().position(|it| !it);
    let gone = gone.map(|at| format!("cell {} of {}", at + 1, running.len()));
    let Some(server) = gone.or((!host).then(|| "the host".to_owned())) else { return error };
    SqlError::Program {
        what: "query the cells".to_owned(),
        why: format!("the server of {server} ended while it was read"),
        hint: "the log of the kernel may say why: dmesg".to_owned(),
    }
}

fn backend(link: &mut Client) -> Result<u32, SqlError> {
    let row = link.query_one("SELECT pg_backend_pid()", &[]).during("query its process")?;
    Ok(value::<i32>(&row, 0)? as u32)
}

/// Returns a port that no program uses at present.
fn free_port() -> Result<u16, SqlError> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let port = TcpListener::bind(any).and_then(|listener| Ok(listener.local_addr()?.port()));
    port.map_err(|error| SqlError::Program {
        what: "find a free port of the loopback interface".to_owned(),
        why: error.to_string(),
        hint: "check that the interface lo is up".to_owned(),
    })
}
