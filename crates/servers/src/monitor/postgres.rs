//! PostgreSQL 13 and later: its views, and the operating system's accounts of its processes if they
//! are on this machine.

mod io;
mod link;
mod missing;
mod sample;
mod statements;

use std::time::Instant;

use blockstone_base::column::{Cell, Reading, Schema};
use blockstone_base::database::{DATABASE, INSTANCE, MONITORED, SESSION_STATISTICS, SQL};
use postgres::Row;

use super::accounts::{Accounts, Charges};
use super::behind::Behind;
use super::own::Own;
use super::pace::Pace;
use super::recent::{Recent, charged};
use super::steady::Steady;
use super::values::{Values, row, whole};
use super::{APPLICATION, Monitor, Server, instance};
use crate::postgres::Address;
use crate::postgres::FAMILY;
use crate::postgres::views::{CHECKPOINTS, Forms, OTHERS, WAL, processes, statistics, value};
use crate::sql::Member;
use crate::sql::error::SqlError;
use crate::sql::host::ServerAddress;
use crate::sql::processes::SESSION as CLIENT;
use crate::sql::trust::Trust;
use crate::unmeasured::Missing;
use link::{Link, Query};
use sample::Sample;
use statements::Statements;

const TOTALS: &Forms = &[
    (13, include_str!("../../sql/monitor/postgres/database_13.sql")),
    (14, include_str!("../../sql/monitor/postgres/database_14.sql")),
];
const REDO: &Forms = &[(13, include_str!("../../sql/monitor/postgres/redo.sql"))];
const MAINTENANCE: &Forms = &[(13, include_str!("../../sql/monitor/postgres/maintenance.sql"))];
const PER_SESSION: &Forms =
    &[(18, include_str!("../../sql/monitor/postgres/session_statistics_18.sql"))];
/// Publishes the counters of this session immediately, so that they can be subtracted.
const HAND_OVER: &Forms = &[(15, "SELECT pg_stat_force_next_flush()")];

const UNTIMED: &str = "track_io_timing is off";

fn connect(address: &Address) -> Result<(Link, Queries), SqlError> {
    address.within_limit(|| {
        let mut link = Link::open(address)?;
        let queries = Queries::new(&mut link)?;
        Ok((link, queries))
    })
}

pub fn open(rest: &str) -> Result<Box<dyn Monitor>, SqlError> {
    open_at(Address::parse(rest)?)
}

/// Connects to a server that was found on this machine, without a password.
pub fn open_trusted(rest: &str, trust: Trust) -> Result<Box<dyn Monitor>, SqlError> {
    open_at(Address::trusted(rest, trust)?)
}

fn open_at(mut address: Address) -> Result<Box<dyn Monitor>, SqlError> {
    address.config.application_name(APPLICATION);
    let (link, queries) = connect(&address)?;
    let monitor = Postgres {
        address: address.clone(),
        link,
        queries,
        maintenance_runs: None,
        tracked: Tracked::default(),
        values: Values::new(),
        recent: Recent::default(),
        accounts: Accounts::default(),
        steady: Steady::default(),
    };
    Ok(Box::new(Behind::new(address, monitor)))
}

struct Postgres {
    address: Address,
    link: Link,
    queries: Queries,
    /// The value when last queried.
    maintenance_runs: Option<u64>,
    tracked: Tracked,
    /// Values of the whole server at the last look.
    values: Values,
    recent: Recent,
    accounts: Accounts,
    steady: Steady,
}

/// All queries of one connection.
struct Queries {
    hand_over: Query,
    totals: Query,
    redo: Query,
    checkpoints: Query,
    wal: Query,
    maintenance: Query,
    maintenance_pace: Pace,
    io: Query,
    per_session: Query,
    sample: Sample,
    statements: Statements,
}

/// Statistics that the server collects, which a reload may change.
#[derive(Clone, Copy, Debug, Default)]
struct Tracked {
    counts: bool,
    io_times: bool,
    redo_times: bool,
    /// Redo is flushed by separate calls, not by its writes.
    redo_flushes: bool,
}

impl Queries {
    fn new(link: &mut Link) -> Result<Self, SqlError> {
        let query = |forms| Query::new(forms, link.version);
        Ok(Self {
            hand_over: query(HAND_OVER),
            totals: query(TOTALS),
            redo: query(REDO),
            checkpoints: query(CHECKPOINTS),
            wal: query(WAL),
            maintenance: query(MAINTENANCE),
            maintenance_pace: Pace::default(),
            io: query(io::FORMS),
            per_session: query(PER_SESSION),
            sample: Sample::new(link.version),
            statements: Statements::find(link)?,
        })
    }
}

impl Postgres {
    fn look(&mut self) -> Result<(), SqlError> {
        let (link, queries) = (&mut self.link, &mut self.queries);
        link.ask(&mut queries.hand_over, &[])?;
        let mut values = Values::new();
        for query in [&mut queries.totals, &mut queries.checkpoints, &mut queries.wal] {
            values.extend(link.ask(query, &[])?.iter().flat_map(statistics));
        }
        if let Some(row) = link.ask(&mut queries.redo, &[])?.first() {
            self.tracked = Tracked {
                counts: value(row, "counts")?,
                io_times: value(row, "io_times")?,
                redo_times: value(row, "redo_times")?,
                redo_flushes: value(row, "redo_flushes_apart")?,
            };
            values.extend(statistics(row));
        }
        if queries.maintenance_pace.is_due() {
            let started = Instant::now();
            let rows = link.ask(&mut queries.maintenance, &[])?;
            let runs = rows.iter().flat_map(statistics).map(|(_, runs)| runs).next();
            self.maintenance_runs = runs.or(self.maintenance_runs);
            queries.maintenance_pace.done(started);
        }
        values.extend(self.maintenance_runs.map(|runs| ("maintenance_runs", runs)));
        for (name, off) in [
            ("commits", Own::off_commits as fn(&mut Own, u64) -> u64),
            ("db_time_ns", Own::off_time),
        ] {
            values.entry(name).and_modify(|value| *value = off(&mut link.own, *value));
        }
        values.retain(|name, _| missing::off(name, self.tracked).is_none());
        self.values = values;
        Ok(())
    }

    /// Appends the recently active sessions and the background processes, one by one.
    fn look_at_each(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError> {
        let sessions = self.recent.take();
        let pids: Vec<i32> = sessions.iter().map(|(pid, _)| *pid as i32).collect();
        let mut rows = Vec::new();
        if !pids.is_empty() {
            rows = self.link.ask(&mut self.queries.per_session, &[&pids])?;
        }
        let is = |row: &Row, pid| row.try_get::<_, i32>(0).is_ok_and(|of| of as u32 == pid);
        let of = |pid: u32| rows.iter().find(|row| is(row, pid));
        for (pid, member) in sessions {
            let (charged, counted) = (member.and_then(charged), of(pid));
            let has_ended = if member.is_some() { charged.is_none() } else { counted.is_none() };
            if !has_ended {
                readings.push(self.each(pid, CLIENT, charged, counted));
            }
        }
        for (member, role, charged) in self.accounts.background() {
            readings.push(self.each(member.pid, role, Some(charged), None));
        }
        Ok(())
    }

    fn each(
        &self,
        pid: u32,
        role: &str,
        charged: Option<Charges>,
        counted: Option<&Row>,
    ) -> Reading {
        let charged = charged.unwrap_or_default();
        row(&SESSION_STATISTICS, pid.to_string(), |name| {
            if name == "role" {
                return Cell::Text(role.to_owned());
            }
            if let Some((_, cell)) = charged.iter().find(|(known, _)| *known == name) {
                return cell.clone();
            }
            if missing::off(name, self.tracked).is_some() {
                return Cell::Unmeasured;
            }
            let value = counted.and_then(|row| row.try_get::<_, Option<i64>>(name).ok().flatten());
            Cell::from(value.map(|value| value as u64))
        })
    }
}

/// Returns the server's processes with their roles, without our own.
fn members(postmaster: Option<u32>, own: Option<Member>) -> Vec<(Member, String)> {
    let Some(postmaster) = postmaster else { return Vec::new() };
    let children = processes(postmaster).into_iter().filter(|(member, _)| Some(*member) != own);
    let named = |(member, role)| {
        let role = if role == OTHERS { CLIENT } else { role };
        (member, role.to_owned())
    };
    let main = (Member { pid: postmaster, thread: None }, "postmaster".to_owned());
    std::iter::once(main).chain(children.map(named)).collect()
}

impl Monitor for Postgres {
    fn series(&self) -> &'static [&'static Schema] {
        MONITORED
    }

    fn counters(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError> {
        let first = readings.len();
        self.look()?;
        readings.extend([&INSTANCE, &SQL, &DATABASE].map(|schema| whole(schema, &self.values)));
        if self.queries.io.is_answered() {
            let rows = self.link.ask(&mut self.queries.io, &[])?;
            readings.extend(io::readings(&rows, self.tracked)?);
        } else {
            let block_bytes = self.link.block_bytes();
            readings.extend(io::old_readings(&self.values, block_bytes));
        }
        let Link { postmaster, own_process, .. } = self.link;
        self.accounts.look(readings, || members(postmaster, own_process));
        self.look_at_each(readings)?;
        let Queries { statements, sample, .. } = &mut self.queries;
        statements.look(&mut self.link, sample, self.tracked.io_times, readings)?;
        self.steady.hold(MONITORED, &mut readings[first..]);
        Ok(())
    }

    fn sessions(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError> {
        let Queries { statements, sample, .. } = &mut self.queries;
        let (recent, is_local) = (&mut self.recent, self.link.own_process.is_some());
        sample.look(&mut self.link, statements.has_texts(), readings, |pid| {
            recent.works(pid, is_local.then_some(Member { pid, thread: None }));
        })
    }

    fn unmeasured(&self) -> Missing {
        missing::missing(self)
    }

    fn describe(&self) -> Server {
        Server {
            address: self.address.name.clone(),
            product: "PostgreSQL".to_owned(),
            family: FAMILY.name,
            instance: instance(FAMILY.name, &self.address.peers(), self.link.own_process.is_some()),
            version: self.link.release.clone(),
            settings: self.link.settings.clone(),
            is_local: self.link.own_process.is_some(),
            pid: self.link.postmaster,
        }
    }

    fn processes(&mut self) -> Vec<(Member, String)> {
        members(self.link.postmaster, self.link.own_process)
    }

    fn reconnect(&mut self) -> Result<(), SqlError> {
        let (mut link, queries) = connect(&self.address)?;
        self.queries = queries;
        std::mem::swap(&mut link.own, &mut self.link.own);
        link.own.reconnected();
        self.link = link;
        self.recent.forget();
        Ok(())
    }
}
