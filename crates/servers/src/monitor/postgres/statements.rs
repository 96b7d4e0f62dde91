//! Counters for each statement, from `pg_stat_statements` if it is installed.

use std::collections::BTreeSet;
use std::time::Instant;

use blockstone_base::column::{Cell, Reading, Unmeasured};
use blockstone_base::database::STATEMENT;
use postgres::Row;

use super::link::{Link, MARK, Query};
use super::sample::Sample;
use crate::monitor::pace::Pace;
use crate::monitor::values::row;
use crate::postgres::views::{Forms, form, value};
use crate::sql::error::SqlError;
use crate::sql::with;
use crate::unmeasured::{Missing, all, some};

const STATEMENTS: &Forms = &[
    (13, include_str!("../../../sql/monitor/postgres/statements_13.sql")),
    (17, include_str!("../../../sql/monitor/postgres/statements_17.sql")),
];
const TEXTS: &str = include_str!("../../../sql/monitor/postgres/texts.sql");
/// The extension's schema, its owner, and whether the owner is unable to replace the extension's
/// functions with their own and have a superuser execute them.
const SCHEMA: &str = "SELECT quote_ident(n.nspname)::text, o.rolname::text,
        o.rolsuper OR o.rolname = current_user OR NOT u.rolsuper
    FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
        JOIN pg_database AS d ON d.datname = current_database()
        JOIN pg_roles AS u ON u.rolname = current_user
        JOIN pg_roles AS o ON o.oid = CASE
            WHEN n.nspowner::regrole::text = 'pg_database_owner' THEN d.datdba
            ELSE n.nspowner END
    WHERE extname = 'pg_stat_statements'";
pub const TIMED: [&str; 2] = ["read_ns", "write_ns"];

pub struct Statements {
    counts: Query,
    texts: Query,
    /// Statements sent by monitors.
    ours: BTreeSet<i64>,
    pace: Pace,
    /// The owner of the schema, if a superuser must not read it for that reason.
    owner: Option<String>,
}

impl Statements {
    /// Finds where the server keeps the statements, if it does.
    pub fn find(link: &mut Link) -> Result<Self, SqlError> {
        let rows = link.ask(&mut Query::from_text(Some(SCHEMA.to_owned())), &[])?;
        let (mut schema, mut owner) = (None, None);
        if let Some(row) = rows.first() {
            if value::<bool>(row, 2)? {
                schema = Some(value::<String>(row, 0)?);
            } else {
                owner = Some(value(row, 1)?);
            }
        }
        let query = |text: &str| {
            let text = schema.as_ref().map(|schema| with(text, &[("schema", schema)]));
            Query::from_text(text)
        };
        let counts = query(form(STATEMENTS, link.version).unwrap_or_default());
        let texts = query(TEXTS);
        Ok(Self { counts, texts, ours: BTreeSet::new(), pace: Pace::default(), owner })
    }

    pub fn has_texts(&self) -> bool {
        self.counts.is_answered() && self.texts.is_answered()
    }

    /// Appends statements that were sampled or took most time, and texts not reported before.
    pub fn look(
        &mut self,
        link: &mut Link,
        sample: &mut Sample,
        timed: bool,
        readings: &mut Vec<Reading>,
    ) -> Result<(), SqlError> {
        if !self.pace.is_due() {
            return Ok(());
        }
        let started = Instant::now();
        let known: Vec<i64> = self.ours.iter().copied().collect();
        // Statements seen at work come first: they may be new and have used little time so far.
        let at_work: Vec<i64> = sample.at_work.iter().copied().collect();
        let rows = link.ask(&mut self.counts, &[&known, &at_work])?;
        let mut unknown = std::mem::take(&mut sample.untold);
        // Statements of sessions that this user may not see have no identity.
        let ids: Vec<Option<i64>> =
            rows.iter().map(|row| value(row, 0)).collect::<Result<_, SqlError>>()?;
        unknown.extend(ids.iter().flatten());
        self.tell(link, sample, &unknown, readings)?;
        for (counts, id) in rows.iter().zip(ids) {
            let Some(id) = id else { continue };
            if !self.ours.contains(&id) {
                readings.push(statement(counts, id, timed));
            }
        }
        self.pace.done(started);
        Ok(())
    }

    /// Reports the texts of the `seen` statements that were not reported yet, except those of
    /// monitors.
    fn tell(
        &mut self,
        link: &mut Link,
        sample: &mut Sample,
        seen: &BTreeSet<i64>,
        readings: &mut Vec<Reading>,
    ) -> Result<(), SqlError> {
        let new = seen.iter().filter(|id| !self.ours.contains(id));
        let new: Vec<i64> =
            new.filter(|id| !sample.reported.knows(&id.to_string())).copied().collect();
        sample.wants_texts = false;
        if new.is_empty() {
            return Ok(());
        }
        for said in link.ask(&mut self.texts, &[&new])? {
            let (id, text): (i64, Option<String>) = (value(&said, 0)?, value(&said, 1)?);
            let text = text.unwrap_or_default();
            if text.contains(MARK) {
                self.ours.insert(id);
            } else {
                sample.reported.tell(&id.to_string(), &text, readings);
            }
        }
        let is_told = |id: &i64| self.ours.contains(id) || sample.reported.knows(&id.to_string());
        sample.wants_texts = !new.iter().all(is_told);
        Ok(())
    }

    pub fn missing(&self, link: &Link, timed: bool) -> Missing {
        if let Some(why) = &self.counts.unanswered {
            return all(&STATEMENT, why);
        }
        if let Some(owner) = &self.owner {
            let why = format!(
                "the schema of pg_stat_statements belongs to {owner}, and {} is a superuser, who \
                 would run what {owner} puts there: name a member of pg_monitor",
                link.user
            );
            return all(&STATEMENT, &Unmeasured::NotPermitted(why));
        }
        if !self.counts.is_answered() {
            let why = format!(
                "pg_stat_statements is not installed in database {}: add it to \
                 shared_preload_libraries, restart the server and CREATE EXTENSION \
                 pg_stat_statements",
                link.database
            );
            return all(&STATEMENT, &Unmeasured::Off(why));
        }
        if !link.sees_all {
            let why = format!("only statements of {} are seen: {}", link.user, link.hint());
            return all(&STATEMENT, &Unmeasured::NotPermitted(why));
        }
        if timed {
            return Missing::new();
        }
        some(&STATEMENT, &TIMED, &Unmeasured::Off(super::UNTIMED.to_owned()))
    }
}

fn statement(counts: &Row, id: i64, timed: bool) -> Reading {
    row(&STATEMENT, id.to_string(), |name| {
        if !timed && TIMED.contains(&name) {
            return Cell::Unmeasured;
        }
        let value = counts.try_get::<_, Option<i64>>(name).ok().flatten();
        Cell::from(value.map(|value| value as u64))
    })
}
