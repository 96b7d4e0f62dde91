//! Samples of the activity of sessions.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::{SESSION, SESSIONS};
use mysql::{Row, Statement};

use super::class::{Signs, class, system_state};
use super::link::{Link, Schema};
use crate::monitor::pace::Pace;
use crate::monitor::reported::Reported;
use crate::monitor::text::{Dialect, identity, normalised};
use crate::monitor::values::level;
use crate::sql::error::SqlError;
use crate::sql::processes::SESSION as CLIENT;
use crate::sql::{Member, with};

const SAMPLE: &str = include_str!("../../../sql/monitor/mariadb/sessions.sql");
/// The same without transactions.
const BRIEF: &str = include_str!("../../../sql/monitor/mariadb/sessions_brief.sql");
/// A query of the transactions within a tenth of a second of the last one returns the same rows and
/// delays the next refresh.
const TRANSACTIONS: Duration = Duration::from_millis(150);
const THREADS: &str = "
    LEFT JOIN performance_schema.threads AS h ON h.PROCESSLIST_ID = p.ID";
const WAITS: &str = "
    LEFT JOIN performance_schema.events_waits_current AS w
        ON w.THREAD_ID = h.THREAD_ID AND w.END_EVENT_ID IS NULL
            AND w.EVENT_NAME NOT LIKE 'wait/io/table/%'";
const STATEMENTS: &str = "
    LEFT JOIN performance_schema.events_statements_current AS s
        ON s.THREAD_ID = h.THREAD_ID AND s.END_EVENT_ID IS NULL";
const NAMES: &str = "SELECT PROCESSLIST_ID, ATTR_VALUE AS blockstone_watch
    FROM performance_schema.session_connect_attrs WHERE ATTR_NAME = 'program_name'";

#[derive(Default)]
pub struct Sample {
    /// The statement with transactions, and the one without.
    prepared: [Option<Statement>; 2],
    /// Time of the last look at transactions, and the sessions that had one.
    open: Option<(Instant, Vec<SessionRow>)>,
    /// Names that clients report for themselves.
    names: HashMap<u32, String>,
    names_pace: Pace,
    /// Whether the waits of all sessions were unknown at the last look.
    pub blind: bool,
}

#[derive(Clone)]
struct SessionRow {
    number: u32,
    user: String,
    database: String,
    command: String,
    stage: String,
    text: String,
    age_ms: f64,
    thread: Option<u32>,
    lock_state: String,
    transaction_age_us: Option<i64>,
    blockers: String,
    wait: Option<String>,
    digest: Option<String>,
}

impl Sample {
    /// Appends a sample, and calls `works` with each working session and its thread.
    pub fn look(
        &mut self,
        link: &mut Link,
        reported: &mut Reported,
        readings: &mut Vec<Reading>,
        mut works: impl FnMut(u32, Option<Member>),
    ) -> Result<(), SqlError> {
        let (sessions, connected) = self.ask(link)?;
        let Some(connected) = connected else { return Ok(()) };
        readings.push(totals(connected, &sessions, link.sees_all));
        self.name(link, &sessions)?;
        self.blind = false;
        for session in sessions {
            let id = statement(&session, reported, readings);
            let member = link.pid.filter(|_| session.thread.is_some());
            let member = member.map(|pid| Member { pid, thread: session.thread });
            works(session.number, member);
            let reading = self.session(&session, id, member, link);
            readings.push(reading);
        }
        Ok(())
    }

    /// Returns the sessions that work or have a transaction, and the number of all sessions.
    fn ask(&mut self, link: &mut Link) -> Result<(Vec<SessionRow>, Option<i64>), SqlError> {
        let fresh = self.open.as_ref().is_some_and(|(at, _)| at.elapsed() < TRANSACTIONS);
        let is_brief = fresh || !link.sees_all;
        let prepared = &mut self.prepared[usize::from(is_brief)];
        if prepared.is_none() {
            *prepared = Some(link.prepare(&text(link, is_brief))?);
        }
        let rows = prepared.as_ref().map(|prepared| link.send(prepared)).transpose()?;
        let (mut sessions, mut connected) = (Vec::<SessionRow>::new(), None);
        for row in rows.unwrap_or_default() {
            match seen(&row) {
                // Nested waits have their own rows.
                Some(seen) if sessions.iter().any(|known| known.number == seen.number) => {}
                Some(seen) => sessions.push(seen),
                None => connected = cell::<i64>(&row, 7),
            }
        }
        match &self.open {
            Some((at, open)) if is_brief => remember(open, at.elapsed(), &mut sessions),
            _ => {
                let open = sessions.iter().filter(|one| one.transaction_age_us.is_some());
                self.open = Some((Instant::now(), open.cloned().collect()));
            }
        }
        Ok((sessions, connected))
    }

    /// Looks up the names of new clients.
    fn name(&mut self, link: &mut Link, sessions: &[SessionRow]) -> Result<(), SqlError> {
        let new = sessions.iter().any(|session| !self.names.contains_key(&session.number));
        if new && link.schema.is_usable() && self.names_pace.is_due() {
            let started = Instant::now();
            self.names = link.ask::<(u32, String)>(NAMES)?.into_iter().collect();
            self.names_pace.done(started);
        }
        Ok(())
    }

    fn session(
        &mut self,
        session: &SessionRow,
        id: String,
        member: Option<Member>,
        link: &Link,
    ) -> Reading {
        let sleeps = session.command == "Sleep";
        let signs = Signs {
            sleeps,
            waits_for_row: session.lock_state == "LOCK WAIT",
            stage: &session.stage,
            wait: session.wait.as_deref(),
            has_waits: link.schema.has_waits,
            system: member.and_then(system_state),
        };
        let known = class(&signs);
        self.blind |= known.is_none();
        let (class, event) = known.unzip();
        let class = class.map_or(Cell::Unmeasured, |class| Cell::Text(class.to_owned()));
        let event = Cell::Text(event.unwrap_or_else(|| session.stage.clone()));
        let state = if sleeps { "idle in transaction" } else { "active" };
        let name = match self.names.get(&session.number) {
            Some(name) => Cell::Text(name.clone()),
            None if link.schema.is_usable() => Cell::Text(String::new()),
            None => Cell::Unmeasured,
        };
        let age_ns = |ns: f64| level(Some(ns as i64));
        let cells = vec![
            Cell::Text(session.role()),
            Cell::Text(session.user.clone()),
            Cell::Text(session.database.clone()),
            name,
            Cell::Text(state.to_owned()),
            class,
            event,
            Cell::Text(id),
            Cell::Text(session.blockers.clone()),
            Cell::from(session.thread.map(u64::from)),
            level(session.transaction_age_us.map(|us| us.saturating_mul(1000))),
            if sleeps { Cell::Unmeasured } else { age_ns(session.age_ms * 1e6) },
        ];
        Reading { probe: SESSION.probe, object: session.number.to_string(), cells }
    }
}

impl SessionRow {
    fn role(&self) -> String {
        if self.user == "system user" { self.command.to_lowercase() } else { CLIENT.to_owned() }
    }

    fn waits_for_lock(&self) -> bool {
        let stage = &self.stage;
        self.lock_state == "LOCK WAIT"
            || stage == "User lock"
            || (stage.starts_with("Waiting for") && stage.contains("lock"))
    }
}

/// Adds transactions from an earlier look to sessions that were sampled without transactions.
fn remember(open: &[SessionRow], ago: Duration, sessions: &mut Vec<SessionRow>) {
    for known in open {
        let age_us = known.transaction_age_us.map(|us| us.saturating_add(ago.as_micros() as i64));
        match sessions.iter_mut().find(|session| session.number == known.number) {
            // The statement is the same if it began before that look.
            Some(now) if now.age_ms >= ago.as_secs_f64() * 1e3 => {
                now.transaction_age_us = age_us;
                now.lock_state.clone_from(&known.lock_state);
                now.blockers.clone_from(&known.blockers);
            }
            Some(now) => now.transaction_age_us = age_us,
            None if known.command == "Sleep" => {
                sessions.push(SessionRow { transaction_age_us: age_us, ..known.clone() });
            }
            None => {}
        }
    }
}

/// Returns the query that this server and this user can answer.
fn text(link: &Link, is_brief: bool) -> String {
    let schema = if link.sees_all { link.schema } else { Schema::default() };
    let mut joins = String::new();
    for (wanted, join) in [
        (schema.has_waits || schema.has_statements, THREADS),
        (schema.has_waits, WAITS),
        (schema.has_statements, STATEMENTS),
    ] {
        if wanted {
            joins.push_str(join);
        }
    }
    let or_null = |wanted: bool, name| if wanted { name } else { "NULL" };
    with(
        if is_brief { BRIEF } else { SAMPLE },
        &[
            ("event", or_null(schema.has_waits, "w.EVENT_NAME")),
            ("digest", or_null(schema.has_statements, "s.DIGEST")),
            ("joins", &joins),
        ],
    )
}

fn cell<T: mysql::prelude::FromValue>(row: &Row, index: usize) -> Option<T> {
    row.get_opt::<Option<T>, _>(index)?.ok()?
}

/// Parses a row of the query; `None` for the last one, which holds the number of sessions.
fn seen(row: &Row) -> Option<SessionRow> {
    let said = |index| cell::<String>(row, index).unwrap_or_default();
    Some(SessionRow {
        number: cell(row, 0)?,
        user: said(1),
        database: said(2),
        command: said(3),
        stage: said(4),
        text: said(5),
        age_ms: cell(row, 6).unwrap_or_default(),
        thread: cell(row, 7),
        lock_state: said(8),
        transaction_age_us: cell(row, 9),
        blockers: said(10),
        wait: cell(row, 11),
        digest: cell(row, 12),
    })
}

fn totals(connected: i64, sessions: &[SessionRow], sees_all: bool) -> Reading {
    let clients = || sessions.iter().filter(|session| session.user != "system user");
    let count = |of: &dyn Fn(&&SessionRow) -> bool| clients().filter(of).count() as i64;
    let open = count(&|session| session.command == "Sleep");
    let active = count(&|session| session.command != "Sleep");
    let waiting = count(&|session| session.waits_for_lock());
    let idle = connected.saturating_sub(active + open);
    let values = [connected, active, idle, open, waiting];
    let cells = values.map(|value| if sees_all { level(Some(value)) } else { Cell::Unmeasured });
    Reading { probe: SESSIONS.probe, object: String::new(), cells: cells.into() }
}

/// Returns the identity of a session's statement, and reports its text if it is new.
fn statement(session: &SessionRow, reported: &mut Reported, readings: &mut Vec<Reading>) -> String {
    let text = normalised(&session.text, Dialect::Mysql);
    if text.is_empty() {
        return String::new();
    }
    let id = session.digest.clone().unwrap_or_else(|| identity(&text));
    reported.tell(&id, &text, readings);
    id
}
