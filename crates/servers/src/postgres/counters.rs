//! Counters from the server's views, by version, and sampled waits.

use std::path::PathBuf;

use blockstone_base::column::{Cell, Reading, Unmeasured};
use blockstone_base::database::{INSTANCE, ROLE, SQL};
use postgres::{Row, Statement};

use super::Client;
use super::views::{
    CHECKPOINTS, Forms, WAL, form, identity, old_transfers, postmaster, processes, statistics,
    value,
};
use crate::sql::error::{During, SqlError};
use crate::sql::processes::{Processes, SESSION};
use crate::sql::session::COUNTED_BY_SESSIONS;
use crate::sql::waits::SampledWaits;
use crate::sql::{CounterValues, Member, Watcher};
use crate::target::Description;
use crate::unmeasured::{Missing, absent, some};

const STATISTICS: &str = include_str!("../../sql/postgres/statistics.sql");
const WAITS: &str = include_str!("../../sql/postgres/waits.sql");

/// Page size of a target's server; servers with another are refused.
const BLOCK_BYTES: u64 = 8192;

/// Reads and writes of each kind of process.
const IO: &Forms = &[
    (16, include_str!("../../sql/postgres/io_16.sql")),
    (18, include_str!("../../sql/postgres/io_18.sql")),
];

const READ_COUNTERS: &str = "read the counters";

/// Waits that sessions usually have.
const USUAL_WAITS: [&str; 14] = [
    "IO/DataFileExtend",
    "IO/DataFileRead",
    "IO/DataFileWrite",
    "IO/WALRead",
    "IO/WALSync",
    "IO/WALWrite",
    "IO/WalSync",
    "IO/WalWrite",
    "LWLock/BufferContent",
    "LWLock/BufferMapping",
    "LWLock/WALInsert",
    "LWLock/WALWrite",
    "Lock/transactionid",
    "Lock/tuple",
];

pub struct Counters {
    link: Client,
    version: u32,
    postmaster: Option<u32>,
    own: Option<Member>,
    processes: Processes,
    statements: Option<Vec<Statement>>,
    waits: SampledWaits,
}

impl Counters {
    /// Creates counters over `link`, whose process is `own`.
    pub fn new(link: Client, version: u32, own: Option<Member>) -> Self {
        let postmaster = postmaster(own);
        Self {
            link,
            version,
            postmaster,
            own,
            processes: Processes::default(),
            statements: None,
            waits: SampledWaits::new(&USUAL_WAITS),
        }
    }

    /// Prepares the statements for the waits, the views of one row, and last `pg_stat_io` if this
    /// version has it.
    fn prepare(&mut self) -> Result<Vec<Statement>, SqlError> {
        if let Some(statements) = &self.statements {
            return Ok(statements.clone());
        }
        let later = [CHECKPOINTS, WAL, IO].map(|forms| form(forms, self.version));
        let texts = [WAITS, STATISTICS].into_iter().chain(later.into_iter().flatten());
        let prepared = texts.map(|text| self.link.prepare(text)).collect::<Result<Vec<_>, _>>();
        Ok(self.statements.insert(prepared.during(READ_COUNTERS)?).clone())
    }

    fn sample_waits(&mut self, waits: &Statement) -> Result<Vec<Reading>, SqlError> {
        let rows = self.link.query(waits, &[]).during("sample waits")?;
        let waiting = rows.iter().map(|row| (row.get(0), row.get(1), row.get::<_, i64>(2) as u64));
        Ok(self.waits.add(waiting))
    }

    fn members(&self, sessions: &[Member]) -> Vec<(Member, String)> {
        let ours = sessions.iter().map(|&member| (member, SESSION.to_owned()));
        let all = self.postmaster.map(processes).unwrap_or_default().into_iter();
        let others =
            all.filter(|(member, _)| !sessions.contains(member) && Some(*member) != self.own);
        let others = others.map(|(member, role)| (member, role.to_owned()));
        ours.chain(others).collect()
    }
}

impl Watcher for Counters {
    fn look(&mut self, sessions: &[Member], exact: bool) -> Result<CounterValues, SqlError> {
        let statements = self.prepare()?;
        let [waits, rest @ ..] = statements.as_slice() else { return Ok(CounterValues::default()) };
        let (plain, io) = match form(IO, self.version) {
            Some(_) => rest.split_at(rest.len() - 1),
            None => (rest, &[][..]),
        };
        let mut seen = CounterValues::default();
        for one in plain {
            let row = self.link.query_one(one, &[]).during(READ_COUNTERS)?;
            seen.statistics.extend(statistics(&row));
        }
        match io.first() {
            Some(io) => {
                let rows = self.link.query(io, &[]).during("read pg_stat_io")?;
                for row in &rows {
                    seen.readings.push(transfers(row)?);
                }
            }
            None => seen.readings.extend(old_transfers(&seen.statistics, BLOCK_BYTES)),
        }
        seen.readings.extend(self.sample_waits(waits)?);
        seen.statistics.push(("outside_sampled_ns", self.waits.outside_ns()));
        let mut processes = std::mem::take(&mut self.processes);
        seen.readings.extend(processes.look(exact, || self.members(sessions)));
        self.processes = processes;
        Ok(seen)
    }
}

/// Converts a row of `pg_stat_io`. Times are present only if the server measures them; without I/O,
/// a missing time is zero.
fn transfers(row: &Row) -> Result<Reading, SqlError> {
    let count =
        |index: usize| Ok::<_, SqlError>(value::<Option<i64>>(row, index)?.map(|it| it as u64));
    let ns = |index: usize, ios: Option<u64>| {
        let ms = value::<Option<f64>>(row, index)?;
        let is_time = |ms: &f64| *ms > 0.0 || ios == Some(0);
        Ok::<_, SqlError>(ms.filter(is_time).map(|ms| (ms * 1e6) as u64))
    };
    let (reads, writes) = (count(1)?, count(4)?);
    let values = [reads, count(2)?, ns(3, reads)?, writes, count(5)?, ns(6, writes)?];
    let backend: String = value(row, 0)?;
    let object = if backend == "client backend" { SESSION.to_owned() } else { backend };
    Ok(Reading { probe: ROLE.probe, object, cells: values.map(Cell::from).into() })
}

/// Returns version and settings, and the columns that this version does not count.
pub fn describe(link: &mut Client, version: u32) -> Result<Description, SqlError> {
    let (said, settings) = identity(link)?;
    Ok(Description {
        server: format!("PostgreSQL {said}"),
        unmeasured: unmeasured(version, &settings),
        settings,
        ..Description::default()
    })
}

/// Returns the first files of `tables` on this machine; none if the user may not know them.
pub fn files(link: &mut Client, tables: impl Iterator<Item = String>) -> Vec<PathBuf> {
    const WHERE: &str = "SELECT current_setting('data_directory') || '/'
        || pg_relation_filepath($1::text::regclass)";
    let file = |table: String| link.query_one(WHERE, &[&table]).ok()?.try_get(0).ok();
    tables.map_while(file).map(|path: String| path.into()).collect()
}

fn unmeasured(version: u32, settings: &[(String, String)]) -> Missing {
    const COUNTED: [&str; 8] = [
        "outside_sampled_ns",
        "logical_reads",
        "physical_reads",
        "block_changes",
        "redo_bytes",
        "physical_writes",
        "checkpoints",
        "maintenance_runs",
    ];
    const SINCE: [(u32, &[&str]); 2] =
        [(14, &["full_page_images", "redo_writes", "flushes"]), (18, &["redo_written_bytes"])];
    let later =
        |version: u32| Unmeasured::NotInVersion(format!("available from PostgreSQL {version}"));
    let since =
        |name: &str| SINCE.iter().find(|(_, names)| names.contains(&name)).map(|(since, _)| *since);
    let counted = |name: &str| {
        COUNTED.contains(&name)
            || COUNTED_BY_SESSIONS.contains(&name)
            || since(name).is_some_and(|since| since <= version)
    };
    let never = || Unmeasured::NotInVersion("PostgreSQL does not count it".to_owned());
    let mut missing =
        absent(&[&INSTANCE, &SQL], counted, |name| since(name).map_or_else(never, later));
    let is_timed = settings.iter().any(|(name, value)| name == "track_io_timing" && value == "on");
    let why = match version {
        ..16 => later(16),
        _ if is_timed => return missing,
        _ => Unmeasured::Off("track_io_timing is off".to_owned()),
    };
    missing.extend(some(&ROLE, &["read_ns", "write_ns"], &why));
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_view_of_io() {
        assert!(form(IO, 15).is_none());
        assert!(form(IO, 17).unwrap().contains("op_bytes"));
        assert!(form(IO, 18).unwrap().contains("read_bytes"));
    }

    #[test]
    fn what_a_version_lacks_is_said() {
        let names = |version: u32| -> Vec<&str> {
            unmeasured(version, &[]).into_iter().map(|(_, name, _)| name).collect()
        };
        assert!(names(13).contains(&"full_page_images"));
        assert!(!names(15).contains(&"full_page_images"));
        assert!(names(17).contains(&"redo_written_bytes") && names(17).contains(&"read_ns"));
        assert!(!names(18).contains(&"redo_written_bytes"));
    }
}
