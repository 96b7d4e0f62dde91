//! Each session that worked: its activity, user and blocker.

use blockstone_figures::{Interval, Missing, Sample};

use std::collections::BTreeMap;

use super::active_sessions::{looks, statement};
use crate::table::{Nanoseconds, Shape, Text, Value, View, level, share, sorted, text};

pub const VIEW: View = View {
    name: "sessions",
    title: "Sessions",
    doc: "Sessions that were active: share of time, current activity, blocker.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("session", "session", "The session id in the database."),
        share("active_share", "active", "Share of samples in which it was active."),
        level("wait_class", "class", Text, "The wait class at the last sample."),
        level("event", "event", Text, "The wait event at the last sample."),
        level("blockers", "blocked by", Text, "The session that holds the lock it waits for."),
        level("statement_age_ns", "for", Nanoseconds, "Time since its statement started."),
        level(
            "transaction_age_ns",
            "transaction",
            Nanoseconds,
            "Time since its transaction started.",
        ),
        level("role", "role", Text, "The kind of process."),
        level("state", "state", Text, "Its state."),
        level("user", "user", Text, "The user of the session."),
        level("database", "database", Text, "The database it is connected to."),
        level("application", "application", Text, "The application name that the client set."),
        level("statement", "statement", Text, "The statement it executes."),
    ],
    rows,
};

const PROBE: &str = "session";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let mut sessions: BTreeMap<&str, (f64, Sample<'_>)> = BTreeMap::new();
    for sample in interval.samples(PROBE) {
        let (count, last) = sessions.entry(sample.object).or_insert((0.0, sample));
        let idle = sample.text("state").is_some_and(|state| state.starts_with("idle"));
        *count += f64::from(u8::from(!idle));
        if sample.t_ns >= last.t_ns {
            *last = sample;
        }
    }
    let looks = looks(interval);
    let row = |(session, (count, last)): (&&str, &(f64, Sample<'_>))| {
        let text = |column| Value::from(last.text(column).unwrap_or_default());
        let age = |column| Value::from(last.number(column).ok_or(Missing::Nothing));
        let id = last.text("query_id").unwrap_or_default();
        vec![
            Value::from(*session),
            Value::Number((count / looks).min(1.0)),
            text("wait_class"),
            text("event"),
            text("blockers"),
            age("statement_age_ns"),
            age("transaction_age_ns"),
            text("role"),
            text("state"),
            text("user"),
            text("database"),
            text("application"),
            Value::from(statement(interval, id)),
        ]
    };
    sorted(sessions.iter().map(row).collect(), 1)
}
