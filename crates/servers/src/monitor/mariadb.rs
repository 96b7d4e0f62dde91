//! MariaDB 10.11 and later: its status, its process list, its performance schema if enabled, and
//! the operating system's accounts of its threads if they are on this machine.

mod class;
mod link;
mod missing;
mod sample;
mod schema;
mod status;

use std::collections::HashMap;
use std::path::Path;

use blockstone_base::column::{Cell, Reading, Schema};
use blockstone_base::database::{DATABASE, INSTANCE, MONITORED, ROLE, SESSION_STATISTICS, SQL};
use blockstone_sys::account;

use super::accounts::Accounts;
use super::behind::Behind;
use super::recent::{Recent, charged};
use super::reported::Reported;
use super::steady::Steady;
use super::values::{Values, row, whole};
use super::{APPLICATION, Monitor, Server};
use crate::mariadb::counters::role;
use crate::mariadb::{self, Address};
use crate::sql::Member;
use crate::sql::error::SqlError;
use crate::sql::host::ServerAddress;
use crate::sql::processes::SESSION as CLIENT;
use crate::sql::trust::Trust;
use crate::unmeasured::Missing;
use link::Link;
use sample::Sample;
use schema::Counted;
use status::Status;

const THREADS: &str = include_str!("../../sql/monitor/mariadb/threads.sql");
/// The threads of sessions, if only the process list shows them.
const SESSIONS: &str = "SELECT TID AS blockstone_watch, 'one_connection', ID
    FROM information_schema.PROCESSLIST WHERE TID > 0 AND COMMAND <> 'Daemon'";

pub fn open(rest: &str) -> Result<Box<dyn Monitor>, SqlError> {
    open_at(Address::parse(rest)?)
}

/// Connects to a server that was found on this machine, without a password.
pub fn open_trusted(rest: &str, trust: Trust) -> Result<Box<dyn Monitor>, SqlError> {
    open_at(Address::trusted(rest, trust)?)
}

fn open_at(address: Address) -> Result<Box<dyn Monitor>, SqlError> {
    let address = address.named(APPLICATION);
    let link = address.within_limit(|| Link::open(&address))?;
    let monitor = Mariadb {
        address: address.clone(),
        link,
        status: Status::default(),
        counted: Counted::default(),
        sample: Sample::default(),
        reported: Reported::default(),
        values: Values::new(),
        recent: Recent::default(),
        accounts: Accounts::default(),
        steady: Steady::default(),
    };
    Ok(Box::new(Behind::new(address, monitor)))
}

struct Mariadb {
    address: Address,
    link: Link,
    status: Status,
    counted: Counted,
    sample: Sample,
    reported: Reported,
    /// Values of the whole server at the last look.
    values: Values,
    recent: Recent,
    accounts: Accounts,
    steady: Steady,
}

impl Mariadb {
    /// Reads the counters of the whole server, with its I/O as the only role.
    fn look(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError> {
        let status::Reported { mut values, transfers } = self.status.look(&mut self.link)?;
        let mut times = None;
        if self.link.schema.is_usable() {
            let db_time_ns = self.counted.db_time_ns(&mut self.link)?;
            values.extend(db_time_ns.map(|ns| ("db_time_ns", ns)));
            times = self.counted.look(&mut self.link, &mut self.reported, readings)?;
        }
        if let Some([read_ns, write_ns]) = times {
            values.extend([("read_ns", read_ns), ("write_ns", write_ns)]);
        }
        let [reads, read, writes, written] = transfers;
        let [read_ns, write_ns] = [0, 1].map(|index| times.map(|times| times[index]));
        let cells = [reads, read, read_ns, writes, written, write_ns].map(Cell::from);
        let object = "server".to_owned();
        readings.push(Reading { probe: ROLE.probe, object, cells: cells.into() });
        self.values = values;
        readings.extend([&INSTANCE, &SQL, &DATABASE].map(|schema| whole(schema, &self.values)));
        Ok(())
    }

    /// Appends the recently active sessions and the background threads, one by one.
    fn look_at_each(&mut self, readings: &mut Vec<Reading>) {
        for (number, member) in self.recent.take() {
            match member.map(charged) {
                Some(None) => {} // It has ended.
                charges => {
                    let charges = charges.flatten().unwrap_or_default();
                    readings.push(each(number.to_string(), CLIENT, &charges));
                }
            }
        }
        for (member, role, charges) in self.accounts.background() {
            let thread = member.thread.unwrap_or(member.pid);
            readings.push(each(format!("thread {thread}"), role, &charges));
        }
    }
}

fn each(object: String, role: &str, charges: &[(&'static str, Cell)]) -> Reading {
    row(&SESSION_STATISTICS, object, |name| {
        if name == "role" {
            return Cell::Text(role.to_owned());
        }
        let known = charges.iter().find(|(known, _)| *known == name);
        known.map_or(Cell::Unmeasured, |(_, cell)| cell.clone())
    })
}

/// Returns the threads of the server with their roles, without our own.
fn members(link: &mut Link) -> Vec<(Member, String)> {
    let Some(pid) = link.pid else { return Vec::new() };
    let query = if link.schema.is_usable() { THREADS } else { SESSIONS };
    let known: Vec<(u32, String, Option<u32>)> = link.ask(query).unwrap_or_default();
    let known: HashMap<u32, (String, bool)> =
        known.into_iter().map(|(thread, name, of)| (thread, (name, of.is_some()))).collect();
    let threads = account::threads(Path::new("/"), pid).into_iter();
    let others = threads.filter(|(thread, _)| Some(*thread) != link.own_thread);
    let named = others.map(|(thread, name)| {
        let role = match known.get(&thread) {
            Some((_, true)) => CLIENT,
            Some((name, false)) => name,
            None => role(&name),
        };
        (Member { pid, thread: Some(thread) }, role.to_owned())
    });
    named.collect()
}

impl Monitor for Mariadb {
    fn series(&self) -> &'static [&'static Schema] {
        MONITORED
    }

    fn counters(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError> {
        let first = readings.len();
        self.look(readings)?;
        self.accounts.look(readings, || members(&mut self.link));
        self.look_at_each(readings);
        self.steady.hold(MONITORED, &mut readings[first..]);
        Ok(())
    }

    fn sessions(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError> {
        let recent = &mut self.recent;
        self.sample.look(&mut self.link, &mut self.reported, readings, |number, member| {
            recent.works(number, member);
        })
    }

    fn unmeasured(&self) -> Missing {
        missing::missing(self)
    }

    fn describe(&self) -> Server {
        Server {
            address: self.address.name.clone(),
            product: "MariaDB".to_owned(),
            family: mariadb::FAMILY.name,
            instance: self.link.instance(&self.address),
            version: self.link.release.clone(),
            settings: self.link.settings.clone(),
            is_local: self.link.pid.is_some(),
            pid: self.link.pid,
        }
    }

    fn processes(&mut self) -> Vec<(Member, String)> {
        members(&mut self.link)
    }

    fn reconnect(&mut self) -> Result<(), SqlError> {
        self.link = self.address.within_limit(|| Link::open(&self.address))?;
        self.status.reconnected();
        self.counted.reconnected();
        self.sample = Sample::default();
        self.recent.forget();
        Ok(())
    }
}
