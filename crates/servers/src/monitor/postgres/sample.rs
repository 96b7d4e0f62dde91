//! Samples of the activity of sessions.

use std::collections::{BTreeSet, HashMap, VecDeque};

use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::{SESSION, SESSIONS};
use postgres::Row;

use super::link::{Link, Query};
use crate::monitor::reported::Reported;
use crate::monitor::text::{Dialect, identity, normalised};
use crate::monitor::values::level;
use crate::postgres::views::{Forms, value};
use crate::sql::error::SqlError;
use crate::sql::processes::SESSION as CLIENT;

const SAMPLE: &Forms = &[
    (13, include_str!("../../../sql/monitor/postgres/sessions_13.sql")),
    (14, include_str!("../../../sql/monitor/postgres/sessions_14.sql")),
];
/// Maximum number of recently sampled statements.
const AT_WORK_MAX: usize = 100;
const DATABASES: &str = "SELECT oid, datname::text FROM pg_database";

#[derive(Default)]
pub struct Sample {
    query: Query,
    names: Query,
    databases: HashMap<u32, String>,
    /// Statements whose text was reported.
    pub reported: Reported,
    /// Sampled statements whose text was not reported yet.
    pub untold: BTreeSet<i64>,
    /// Whether the texts of some of them are available nowhere else: statements that never ended.
    pub wants_texts: bool,
    /// Recently sampled statements, the latest last.
    pub at_work: VecDeque<i64>,
    /// Whether the server is configured not to track the activity of sessions.
    pub is_untracked: bool,
}

impl Sample {
    pub fn new(version: u32) -> Self {
        Self {
            query: Query::new(SAMPLE, version),
            names: Query::from_text(Some(DATABASES.to_owned())),
            ..Self::default()
        }
    }

    /// Appends a sample to `readings`, and calls `works` with the process ID of each client session
    /// in it. `has_texts` says whether the texts of statements come from elsewhere, so that the
    /// sample need not contain them.
    pub fn look(
        &mut self,
        link: &mut Link,
        has_texts: bool,
        readings: &mut Vec<Reading>,
        mut works: impl FnMut(u32),
    ) -> Result<(), SqlError> {
        let wants_texts = self.wants_texts || !has_texts;
        let rows = link.ask(&mut self.query, &[&wants_texts])?;
        let Some(first) = rows.first() else { return Ok(()) };
        readings.push(self.totals(first, link.sees_all)?);
        for sample in &rows {
            let Some(pid) = value::<Option<i32>>(sample, 7)? else { continue };
            let (role, pid) = (role(value(sample, 11)?), pid as u32);
            if role == CLIENT {
                works(pid);
            }
            let query_id = self.statement(sample, readings)?;
            let database = self.database(link, value(sample, 8)?)?;
            readings.push(session(sample, pid, role, query_id, database)?);
        }
        Ok(())
    }

    fn totals(&mut self, first: &Row, sees_all: bool) -> Result<Reading, SqlError> {
        let hidden = !sees_all && value::<i64>(first, 0)? > 0;
        self.is_untracked = value::<i64>(first, 1)? > 0;
        let count = |index: usize| match (hidden, self.is_untracked) {
            (false, false) => value(first, index).map(|count| level(Some(count))),
            _ => Ok(Cell::Unmeasured),
        };
        let cells = (2..7).map(count).collect::<Result<_, _>>()?;
        Ok(Reading { probe: SESSIONS.probe, object: String::new(), cells })
    }

    /// Returns the identity of a session's statement, and reports its text if it is new.
    fn statement(&mut self, sample: &Row, readings: &mut Vec<Reading>) -> Result<String, SqlError> {
        let (id, text): (Option<i64>, Option<String>) = (value(sample, 15)?, value(sample, 16)?);
        let text =
            text.map(|text| normalised(&text, Dialect::Postgres)).filter(|text| !text.is_empty());
        let name = match (id, &text) {
            (Some(id), _) => id.to_string(),
            (None, Some(text)) => identity(text),
            (None, None) => return Ok(String::new()),
        };
        if let Some(id) = id.filter(|id| !self.at_work.contains(id)) {
            self.at_work.push_back(id);
            if self.at_work.len() > AT_WORK_MAX {
                self.at_work.pop_front();
            }
        }
        match (id, text) {
            (_, Some(text)) => self.reported.tell(&name, &text, readings),
            (Some(id), None) if !self.reported.knows(&name) => {
                self.untold.insert(id);
            }
            _ => {}
        }
        Ok(name)
    }

    /// Returns the name of a database; empty if there is none.
    fn database(&mut self, link: &mut Link, oid: Option<u32>) -> Result<String, SqlError> {
        let Some(oid) = oid.filter(|oid| *oid != 0) else { return Ok(String::new()) };
        if !self.databases.contains_key(&oid) {
            let rows = link.ask(&mut self.names, &[])?;
            let names = rows.iter().map(|row| Ok((value(row, 0)?, value(row, 1)?)));
            self.databases = names.collect::<Result<_, SqlError>>()?;
            // An empty name keeps a dropped database from being looked up again.
            self.databases.entry(oid).or_default();
        }
        Ok(self.databases[&oid].clone())
    }
}

/// Returns our name for a backend type.
pub fn role(backend_type: String) -> String {
    if backend_type == "client backend" { CLIENT.to_owned() } else { backend_type }
}

fn session(
    sample: &Row,
    pid: u32,
    role: String,
    query_id: String,
    database: String,
) -> Result<Reading, SqlError> {
    let said = |index: usize, none: &str| {
        let text: Option<String> = value(sample, index)?;
        Ok::<_, SqlError>(Cell::Text(text.unwrap_or_else(|| none.to_owned())))
    };
    let cells = vec![
        Cell::Text(role),
        said(9, "")?,
        Cell::Text(database),
        said(10, "")?,
        // Background processes have no state; they work in the database assigned to them.
        said(12, "active")?,
        said(13, "On CPU")?,
        said(14, "")?,
        Cell::Text(query_id),
        said(17, "")?,
        Cell::from(u64::from(pid)),
        level(value(sample, 18)?),
        level(value(sample, 19)?),
    ];
    Ok(Reading { probe: SESSION.probe, object: pid.to_string(), cells })
}
