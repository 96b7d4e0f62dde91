//! Sampled sessions and statements, by the samples that found them active. With a focus, these are
//! the sessions of one wait, the statements of one session, and so on.

use blockstone_figures::{Interval, Sample};

use super::active_sessions::{SampleGroup, grouped, most, statement};
use crate::table::{
    Count, Shape, Text, Value, View, count, level, share_of, text, total, unmerged,
};

pub const SESSIONS: View = View {
    name: "sampled-sessions",
    title: "Sessions by samples",
    doc: "Active sessions from samples: their waits, statements and blockers.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("session", "session", "The session id in the database."),
        count(
            "average_active_sessions",
            "AAS",
            "Share of the time in which it was active; 1 is always.",
        ),
        share_of(
            "average_active_sessions",
            "db_time_share",
            "of DB time",
            "Its share of the database time of all these sessions.",
        ),
        total("samples", "samples", Count, "Samples in which it was active."),
        unmerged(
            "blockers",
            "blocked by",
            Text,
            "The session that most often held the lock it waited for.",
        ),
        unmerged(
            "top_statement",
            "most in",
            Text,
            "The statement in which it was most often sampled.",
        ),
        unmerged("statements", "statements", Count, "Number of different statements."),
        unmerged(
            "top_wait",
            "mostly",
            Text,
            "The wait class and event in which it was most often sampled.",
        ),
        level("user", "user", Text, "The user of the session."),
        level("application", "application", Text, "The application name that the client set."),
    ],
    rows: by_session,
};

pub const STATEMENTS: View = View {
    name: "sampled-statements",
    title: "Statements by samples",
    doc: "Statements from samples of sessions: their waits and sessions.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("statement", "statement", "The text of the statement; empty between statements."),
        count("average_active_sessions", "AAS", "Average number of sessions executing it."),
        share_of(
            "average_active_sessions",
            "db_time_share",
            "of DB time",
            "Its share of the database time of all these sessions.",
        ),
        total("samples", "samples", Count, "Samples of sessions executing it."),
        unmerged("sessions", "sessions", Count, "Number of different sessions executing it."),
        unmerged(
            "top_wait",
            "mostly",
            Text,
            "The wait class and event in which it was most often sampled.",
        ),
        text("query_id", "id", "The query id."),
    ],
    rows: by_statement,
};

const PROBE: &str = "session";

fn by_session(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |name: &&str, seen: &SampleGroup<'_>, all: f64, looks: f64| {
        let said = |column| seen.last.and_then(|last| last.text(column)).unwrap_or_default();
        let id = most(&seen.statements).copied().unwrap_or_default();
        vec![
            Value::from(*name),
            Value::Number(seen.samples / looks),
            Value::Number(seen.samples / all),
            Value::Number(seen.samples),
            Value::from(most(&seen.blockers).copied().unwrap_or_default()),
            Value::from(statement(interval, id)),
            Value::Number(seen.statements.len() as f64),
            seen.top_wait(),
            Value::from(said("user")),
            Value::from(said("application")),
        ]
    };
    grouped(interval, |sample| sample.object, row)
}

fn by_statement(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    fn id<'a>(sample: &Sample<'a>) -> &'a str {
        sample.text("query_id").unwrap_or_default()
    }
    let row = |id: &&str, seen: &SampleGroup<'_>, all: f64, looks: f64| {
        vec![
            Value::from(statement(interval, id)),
            Value::Number(seen.samples / looks),
            Value::Number(seen.samples / all),
            Value::Number(seen.samples),
            Value::Number(seen.sessions.len() as f64),
            seen.top_wait(),
            Value::from(*id),
        ]
    };
    grouped(interval, id, row)
}

#[cfg(test)]
pub mod fixture {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_base::database::{SESSION, SESSIONS};
    use blockstone_figures::History;

    /// Adds a sample that finds `session` active in `event`.
    pub fn active(history: &mut History, t_ns: u64, session: &str, [class, event]: [&str; 2]) {
        let cell = |name: &str| match name {
            "role" => "session",
            "state" => "active",
            "wait_class" => class,
            "event" => event,
            _ => "",
        };
        let cells = SESSION.columns.iter().map(|column| match column.kind {
            Kind::State => Cell::Text(cell(column.name).to_owned()),
            _ => Cell::Unmeasured,
        });
        history.push("session", t_ns, session, cells.collect());
    }

    /// Adds a sample that counts `count` sessions of each kind.
    pub fn counted(history: &mut History, t_ns: u64, count: i64) {
        history.push("sessions", t_ns, "", vec![Cell::Value(count); SESSIONS.columns.len()]);
    }
}
