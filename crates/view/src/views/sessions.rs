//! Each session that worked: what it does, for whom, who blocks it.

use blockstone_figures::{Interval, Missing, Sample};

use std::collections::BTreeMap;

use super::active_sessions::{looks, statement};
use crate::table::{Nanoseconds, Shape, Text, Value, View, level, share, sorted, text};

pub const VIEW: View = View {
    name: "sessions",
    title: "Sessions",
    doc: "Each session that worked: how much of the time, what it does now, who blocks it.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("session", "session", "Its number in the database."),
        share("active_share", "active", "Samples that found it at work."),
        level("wait_class", "class", Text, "What it did at the last sample."),
        level("event", "event", Text, "What it waited for then."),
        level("blockers", "blocked by", Text, "Who held the lock it waited for."),
        level("statement_age_ns", "for", Nanoseconds, "Time since its statement began."),
        level(
            "transaction_age_ns",
            "transaction",
            Nanoseconds,
            "Time since its transaction began.",
        ),
        level("role", "role", Text, "What kind of process it is."),
        level("state", "state", Text, "Its state."),
        level("user", "user", Text, "Who it works for."),
        level("database", "database", Text, "The database that it is connected to."),
        level("application", "application", Text, "What the client calls itself."),
        level("statement", "statement", Text, "What it executes."),
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
