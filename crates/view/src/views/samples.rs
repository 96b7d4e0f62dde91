//! Who was sampled, and in what: sessions and statements by the samples that found them at work.
//! With a focus, these are the sessions of one wait, the statements of one session, and so on.

use blockstone_figures::{Interval, Sample};

use super::active_sessions::{Seen, grouped, most, statement};
use crate::table::{
    Count, Shape, Text, Value, View, count, level, share_of, text, total, unmerged,
};

pub const SESSIONS: View = View {
    name: "sampled-sessions",
    title: "Sessions by samples",
    doc: "Sessions by how often they were sampled at work: in what, and who blocked them.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("session", "session", "Its number in the database."),
        count("average_active_sessions", "AAS", "How much of the time it worked, of one."),
        share_of(
            "average_active_sessions",
            "db_time_share",
            "of DB time",
            "Its share of what all of these sessions did.",
        ),
        total("samples", "samples", Count, "Samples that found it at work."),
        unmerged("blockers", "blocked by", Text, "Who held the lock it waited for, most often."),
        unmerged(
            "top_statement",
            "most in",
            Text,
            "The statement in which it was seen most often.",
        ),
        unmerged("statements", "statements", Count, "Different statements in which it was seen."),
        unmerged(
            "top_wait",
            "mostly",
            Text,
            "The class and the event in which it was seen most often.",
        ),
        level("user", "user", Text, "Who it works for."),
        level("application", "application", Text, "What the client calls itself."),
    ],
    rows: by_session,
};

pub const STATEMENTS: View = View {
    name: "sampled-statements",
    title: "Statements by samples",
    doc: "Statements by how often sessions were sampled in them: in what, and by how many.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("statement", "statement", "What it says; empty between statements."),
        count("average_active_sessions", "AAS", "Sessions that executed it, on average."),
        share_of(
            "average_active_sessions",
            "db_time_share",
            "of DB time",
            "Its share of what all of these sessions did.",
        ),
        total("samples", "samples", Count, "Samples that found a session in it."),
        unmerged("sessions", "sessions", Count, "Different sessions that were seen in it."),
        unmerged(
            "top_wait",
            "mostly",
            Text,
            "The class and the event in which it was seen most often.",
        ),
        text("query_id", "id", "Its identity."),
    ],
    rows: by_statement,
};

const PROBE: &str = "session";

fn by_session(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |name: &&str, seen: &Seen<'_>, all: f64, looks: f64| {
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
    let row = |id: &&str, seen: &Seen<'_>, all: f64, looks: f64| {
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
