//! Counters of the performance schema if it is enabled: database time, I/O by file, waits,
//! statements.

use std::time::Instant;

use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::{EVENT, IO, ROLE, STATEMENT};

use super::link::Link;
use crate::monitor::pace::Pace;
use crate::monitor::reported::Reported;
use crate::monitor::values::row;
use crate::sql::error::SqlError;

const TIME: &str = include_str!("../../../sql/monitor/mariadb/time.sql");
const FILES: &str = include_str!("../../../sql/monitor/mariadb/files.sql");
const WAITS: &str = include_str!("../../../sql/monitor/mariadb/waits.sql");
const STATEMENTS: &str = include_str!("../../../sql/monitor/mariadb/statements.sql");
/// The server's name for the I/O of data files.
const DATA: &str = "innodb/innodb_data_file";

/// Columns counted for each statement.
pub const OF_STATEMENTS: [&str; 3] = ["calls", "total_ns", "rows"];

/// Returns the index of a column among the counters of a file, which are those of a role.
pub fn of_file(column: &str) -> Option<usize> {
    ROLE.columns.iter().position(|known| known.name == column)
}

#[derive(Debug, Default)]
pub struct Counted {
    pace: Pace,
    /// Database time of our own earlier sessions.
    before_ns: u64,
    own_ns: u64,
}

/// Times of reads and of writes on data files.
pub type Times = Option<[u64; 2]>;

impl Counted {
    pub fn db_time_ns(&mut self, link: &mut Link) -> Result<Option<u64>, SqlError> {
        let rows: Vec<(Option<u64>, Option<u64>)> = link.ask(TIME)?;
        let Some((Some(all), own)) = rows.into_iter().next() else { return Ok(None) };
        self.own_ns = own.unwrap_or(self.own_ns);
        Ok(Some(all.saturating_sub(self.before_ns.saturating_add(self.own_ns))))
    }

    /// Call after a new session has replaced the last one.
    pub fn reconnected(&mut self) {
        self.before_ns = self.before_ns.saturating_add(std::mem::take(&mut self.own_ns));
    }

    /// Appends I/O by file and waits; returns the times of data files.
    pub fn look(
        &mut self,
        link: &mut Link,
        reported: &mut Reported,
        readings: &mut Vec<Reading>,
    ) -> Result<Times, SqlError> {
        let mut times = None;
        for (name, reads, read_bytes, read_ns, writes, write_bytes, write_ns) in
            link.ask::<(String, u64, u64, u64, u64, u64, u64)>(FILES)?
        {
            if name == DATA {
                times = Some([read_ns, write_ns]);
            }
            let values = [reads, read_bytes, read_ns, writes, write_bytes, write_ns];
            readings.push(row(&IO, format!("server/{name}"), |column| {
                Cell::from(of_file(column).map(|at| values[at]))
            }));
        }
        for (event, waits, ns) in link.ask::<(String, u64, u64)>(WAITS)? {
            let cells = vec![Cell::from(waits), Cell::from(ns)];
            readings.push(Reading { probe: EVENT.probe, object: format!("server/{event}"), cells });
        }
        if self.pace.is_due() {
            let started = Instant::now();
            statements(link, reported, readings)?;
            self.pace.done(started);
        }
        Ok(times)
    }
}

fn statements(
    link: &mut Link,
    reported: &mut Reported,
    readings: &mut Vec<Reading>,
) -> Result<(), SqlError> {
    for (id, text, calls, total_ns, rows) in
        link.ask::<(String, Option<String>, u64, u64, u64)>(STATEMENTS)?
    {
        reported.tell(&id, &text.unwrap_or_default(), readings);
        let values = [calls, total_ns, rows];
        readings.push(row(&STATEMENT, id, |column| {
            let at = OF_STATEMENTS.iter().position(|known| *known == column);
            Cell::from(at.map(|at| values[at]))
        }));
    }
    Ok(())
}
