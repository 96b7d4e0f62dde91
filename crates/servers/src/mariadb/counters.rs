//! Counters of the server, and resource usage of its threads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::column::{Cell, Reading, Unmeasured};
use blockstone_base::database::{EVENT, INSTANCE, ROLE, ROW_LOCK, SQL};
use blockstone_sys::account;
use mysql::Conn;
use mysql::prelude::Queryable;

use super::{answer, product};
use crate::sql::error::{During, SqlError};
use crate::sql::kernel::SampledThreads;
use crate::sql::processes::{Processes, SESSION};
use crate::sql::session::COUNTED_BY_SESSIONS;
use crate::sql::waits::SampledWaits;
use crate::sql::{CounterValues, Member, Watcher};
use crate::target::Description;
use crate::unmeasured::{Missing, absent, some};

const SETTINGS: &str = include_str!("../../sql/mariadb/settings.sql");
const WAITS: &str = include_str!("../../sql/mariadb/waits.sql");
/// Asks whether the server records the waits of its sessions.
const KNOWS_WAITS: &str = "SELECT COUNT(*) FROM performance_schema.setup_consumers
    WHERE NAME = 'events_waits_current' AND ENABLED = 'YES' AND @@performance_schema = 1";
/// Waits that sessions usually have.
const USUAL_WAITS: [&str; 3] = [
    "wait/io/file/innodb/innodb_data_file",
    "wait/io/file/innodb/innodb_log_file",
    "wait/io/file/sql/binlog",
];

/// Our columns and the status variables they are read from.
pub const STATISTICS: [(&str, &str); 9] = [
    ("logical_reads", "Innodb_buffer_pool_read_requests"),
    ("physical_reads", "Innodb_pages_read"),
    ("single_block_reads", "Innodb_buffer_pool_reads"),
    ("block_changes", "Innodb_rows_updated"),
    ("physical_writes", "Innodb_pages_written"),
    ("redo_bytes", "Innodb_os_log_written"),
    ("redo_writes", "Innodb_log_writes"),
    ("dirty_blocks", "Innodb_buffer_pool_pages_dirty"),
    ("flushes", "Innodb_data_fsyncs"),
];
const MS_NS: u64 = 1_000_000;
pub const DOUBLE_WRITES: &str = "Innodb_dblwr_pages_written";
/// Requests of all kinds, for the whole server.
pub const TRANSFERS: [&str; 4] =
    ["Innodb_data_reads", "Innodb_data_read", "Innodb_data_writes", "Innodb_data_written"];

/// Completed waits for row locks, and their sum in milliseconds, over all sessions.
const ROW_LOCKS: [&str; 2] = ["Innodb_row_lock_waits", "Innodb_row_lock_time"];

pub struct Counters {
    link: Conn,
    pid: Option<u32>,
    /// Whether the run is the only user of the server, so that the server's counters are those of
    /// the run.
    is_private: bool,
    page_bytes: u64,
    processes: Processes,
    /// `None` if the server does not record waits, or does not show them to us.
    waits: Option<SampledWaits>,
    /// `None` if the threads are not on this machine.
    threads: Option<SampledThreads>,
}

impl Counters {
    /// Creates counters over `link` for the server in process `pid`.
    pub fn new(mut link: Conn, pid: Option<u32>, is_private: bool, page_bytes: u64) -> Self {
        let waits = knows_waits(&mut link).then(|| SampledWaits::new(&USUAL_WAITS));
        let threads = pid.map(|_| SampledThreads::default());
        Self { link, pid, is_private, page_bytes, processes: Processes::default(), waits, threads }
    }

    fn sample_waits(&mut self) -> Result<Vec<Reading>, SqlError> {
        let Some(waits) = &mut self.waits else { return Ok(Vec::new()) };
        let waiting = answer::rows::<(String, String, u64)>(&mut self.link, WAITS);
        Ok(waits.add(waiting.during("sample waits")?))
    }
}

/// Returns the threads of the server with their roles; empty if it is on another machine.
fn members(pid: Option<u32>, sessions: &[Member]) -> Vec<(Member, String)> {
    let Some(pid) = pid else { return Vec::new() };
    let named = account::threads(Path::new("/"), pid).into_iter().map(|(thread, name)| {
        let member = Member { pid, thread: Some(thread) };
        let role = if sessions.contains(&member) { SESSION } else { role(&name) };
        (member, role.to_owned())
    });
    named.collect()
}

/// Returns the role of a server's thread by its name.
pub fn role(name: &str) -> &str {
    match name {
        "connection" | "one_connection" | "mysqld" | "mariadbd" => "server",
        // The kernel's io_uring workers for the server come and go, each with its own number.
        worker if worker.starts_with("iou-") => "io_uring",
        other => other,
    }
}

impl Watcher for Counters {
    fn look(&mut self, sessions: &[Member], exact: bool) -> Result<CounterValues, SqlError> {
        let values = status(&mut self.link)?;
        let mut seen = CounterValues::default();
        for (column, name) in STATISTICS {
            seen.statistics.extend(values.get(name).map(|value| (column, *value)));
        }
        let pages = values.get(DOUBLE_WRITES);
        let protection = pages.map(|pages| ("protection_bytes", pages * self.page_bytes));
        seen.statistics.extend(protection);
        let [reads, read, writes, written] = TRANSFERS.map(|name| values.get(name).copied());
        let cells = [reads, read, None, writes, written, None].map(Cell::from);
        let (object, cells) = ("server".to_owned(), cells.into());
        seen.readings.push(Reading { probe: ROLE.probe, object, cells });
        seen.readings.extend(row_locks(&values).filter(|_| self.is_private));
        self.between(sessions);
        seen.readings.extend(self.threads.iter().flat_map(SampledThreads::readings));
        seen.readings.extend(self.sample_waits()?);
        let outside = self.waits.as_ref().map(|waits| ("outside_sampled_ns", waits.outside_ns()));
        seen.statistics.extend(outside);
        seen.readings.extend(self.processes.look(exact, || members(self.pid, sessions)));
        Ok(seen)
    }

    fn between(&mut self, sessions: &[Member]) -> Option<Duration> {
        self.threads.as_mut().map(|threads| threads.sample(sessions))
    }
}

/// With other users on the server, these counters would include the waits of their sessions.
fn row_locks(values: &HashMap<String, u64>) -> impl Iterator<Item = Reading> {
    let [waits, ms] = ROW_LOCKS.map(|name| values.get(name));
    let cells = waits.zip(ms).map(|(waits, ms)| vec![Cell::from(*waits), Cell::from(ms * MS_NS)]);
    let object = format!("{SESSION}/{ROW_LOCK}");
    cells.map(|cells| Reading { probe: EVENT.probe, object, cells }).into_iter()
}

fn knows_waits(link: &mut Conn) -> bool {
    answer::first::<u32>(link, KNOWS_WAITS).ok().flatten().is_some_and(|count| count > 0)
}

fn status(link: &mut Conn) -> Result<HashMap<String, u64>, SqlError> {
    let rows = answer::rows::<(String, String)>(link, "SHOW GLOBAL STATUS LIKE 'Innodb%'");
    let rows = rows.during("read the counters")?;
    let numbers = rows.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?)));
    Ok(numbers.collect())
}

const READ_SETTINGS: &str = "read settings";

pub fn settings(link: &mut Conn) -> Result<Vec<(String, String)>, SqlError> {
    answer::rows(link, SETTINGS).during(READ_SETTINGS)
}

/// Returns version and settings, and the columns that this version does not count.
pub fn describe(link: &mut Conn) -> Result<Description, SqlError> {
    let version: Option<String> = answer::first(link, "SELECT @@version").during(READ_SETTINGS)?;
    let version = version.unwrap_or_default();
    let product = if product(&version).0 { "MariaDB" } else { "MySQL" };
    let settings = settings(link)?;
    let known = status(link)?;
    let blind = (!knows_waits(link)).then(|| {
        "waits are not sampled: performance_schema with its consumer events_waits_current is off, \
         or not readable by this user"
            .to_owned()
    });
    Ok(Description {
        server: format!("{product} {version}"),
        unmeasured: unmeasured(&known, blind.is_none()),
        settings,
        notes: blind.into_iter().collect(),
        ..Description::default()
    })
}

/// Returns the paths of the files of `tables` if they are on this machine and each has its own.
pub fn files(link: &mut Conn, tables: impl Iterator<Item = String>) -> Vec<PathBuf> {
    let directory: Option<String> = answer::first(link, "SELECT @@datadir").ok().flatten();
    let Some(directory) = directory.map(PathBuf::from) else { return Vec::new() };
    tables.map(|table| directory.join(format!("{}.ibd", table.replace('.', "/")))).collect()
}

fn unmeasured(known: &HashMap<String, u64>, knows_waits: bool) -> Missing {
    let counted = |column: &str| {
        (column == "outside_sampled_ns" && knows_waits)
            || COUNTED_BY_SESSIONS.contains(&column)
            || (column == "protection_bytes" && known.contains_key(DOUBLE_WRITES))
            || STATISTICS.iter().any(|(name, from)| *name == column && known.contains_key(*from))
    };
    let why = |_: &str| Unmeasured::NotInVersion("the server does not count it".to_owned());
    let untimed = Unmeasured::NotInVersion("InnoDB does not time its I/O".to_owned());
    [absent(&[&INSTANCE, &SQL], counted, why), some(&ROLE, &["read_ns", "write_ns"], &untimed)]
        .concat()
}

/// Waits until the changes of the load in `tables` are written, which otherwise happens in the
/// window.
pub fn write_out(link: &mut Conn, tables: &[String]) -> Result<(), SqlError> {
    // Writes all pages of the tables as fast as the storage allows; with a limit on dirty pages,
    // they would be written at innodb_io_capacity, a minute for each 100 MB. Needs a privilege.
    let exported = link.query_drop(format!("FLUSH TABLES {} FOR EXPORT", tables.join(", ")));
    if exported.and_then(|()| link.query_drop("UNLOCK TABLES")).is_ok() {
        return Ok(());
    }
    write_out_slowly(link)
}

fn write_out_slowly(link: &mut Conn) -> Result<(), SqlError> {
    const DIRTY: &str = "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'";
    const PATIENCE: Duration = Duration::from_mins(1);
    const FLUSH: &str = "flush the loaded data";
    let before: Option<String> =
        answer::first(link, "SELECT @@innodb_max_dirty_pages_pct").during(FLUSH)?;
    let before = before.unwrap_or_default();
    if link.query_drop("SET GLOBAL innodb_max_dirty_pages_pct = 0").is_err() {
        return Ok(()); // Needs a privilege.
    }
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let dirty: Option<(String, u64)> = answer::first(link, DIRTY).during(FLUSH)?;
        if dirty.is_none_or(|(_, pages)| pages < 64) {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    link.query_drop(format!("SET GLOBAL innodb_max_dirty_pages_pct = {before}")).during(FLUSH)
}
