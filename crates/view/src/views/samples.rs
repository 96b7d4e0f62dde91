//! Who was sampled, and in what: sessions and statements by the samples that found them at work.
//! With a focus, these are the sessions of one wait, the statements of one session, and so on.

use blockstone_figures::{Interval, Sample};

use std::collections::{BTreeMap, BTreeSet};

use super::active_sessions::{at_work, looks, statement};
use crate::table::{
    Measure, Shape, Value, View, count, level, share_of, sorted, text, total, unmerged,
};

/// By session.
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
        total("samples", "samples", Measure::Count, "Samples in which it was active."),
        unmerged(
            "blockers",
            "blocked by",
            Measure::Text,
            "The session that most often held the lock it waited for.",
        ),
        unmerged(
            "top_statement",
            "most in",
            Measure::Text,
            "The statement in which it was most often sampled.",
        ),
        unmerged("statements", "statements", Measure::Count, "Number of different statements."),
        unmerged(
            "top_wait",
            "mostly",
            Measure::Text,
            "The wait class and event in which it was most often sampled.",
        ),
        level("user", "user", Measure::Text, "The user of the session."),
        level(
            "application",
            "application",
            Measure::Text,
            "The application name that the client set.",
        ),
    ],
    rows: by_session,
};

/// By statement.
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
        total("samples", "samples", Measure::Count, "Samples of sessions executing it."),
        unmerged(
            "sessions",
            "sessions",
            Measure::Count,
            "Number of different sessions executing it.",
        ),
        unmerged(
            "top_wait",
            "mostly",
            Measure::Text,
            "The wait class and event in which it was most often sampled.",
        ),
        text("query_id", "id", "The query id."),
    ],
    rows: by_statement,
};

const PROBE: &str = "session";

/// What samples of one session or statement say, and how often.
#[derive(Default)]
struct Seen<'a> {
    samples: f64,
    sessions: BTreeSet<&'a str>,
    statements: BTreeMap<&'a str, u64>,
    waits: BTreeMap<(&'a str, &'a str), u64>,
    blockers: BTreeMap<&'a str, u64>,
    last: Option<Sample<'a>>,
}

impl<'a> Seen<'a> {
    fn add(&mut self, sample: Sample<'a>) {
        let said = |column| sample.text(column).unwrap_or_default();
        self.samples += 1.0;
        self.sessions.insert(sample.object);
        *self.statements.entry(said("query_id")).or_default() += 1;
        *self.waits.entry((said("wait_class"), said("event"))).or_default() += 1;
        let blockers = said("blockers");
        if !blockers.is_empty() {
            *self.blockers.entry(blockers).or_default() += 1;
        }
        self.last = Some(sample);
    }

    fn top_wait(&self) -> Value {
        let (class, event) = most(&self.waits).copied().unwrap_or_default();
        Value::Text(format!("{class} {event}").trim_end().to_owned())
    }
}

fn by_session(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |name: &str, seen: &Seen<'_>, all: f64, looks: f64| {
        let said = |column| seen.last.and_then(|last| last.text(column)).unwrap_or_default();
        let id = most(&seen.statements).copied().unwrap_or_default();
        vec![
            Value::from(name),
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
    let row = |id: &str, seen: &Seen<'_>, all: f64, looks: f64| {
        vec![
            Value::from(statement(interval, id)),
            Value::Number(seen.samples / looks),
            Value::Number(seen.samples / all),
            Value::Number(seen.samples),
            Value::Number(seen.sessions.len() as f64),
            seen.top_wait(),
            Value::from(id),
        ]
    };
    grouped(interval, id, row)
}

/// Rows of the samples that are called the same, the most frequent first.
fn grouped<'a>(
    interval: &Interval<'a>,
    name: impl Fn(&Sample<'a>) -> &'a str,
    row: impl Fn(&str, &Seen<'a>, f64, f64) -> Vec<Value>,
) -> Vec<Vec<Value>> {
    let mut groups: BTreeMap<&str, Seen<'a>> = BTreeMap::new();
    let mut all = 0.0;
    for sample in interval.samples(PROBE).filter(at_work(interval)) {
        all += 1.0;
        groups.entry(name(&sample)).or_default().add(sample);
    }
    let looks = looks(interval);
    let rows = groups.iter().map(|(name, seen)| row(name, seen, all, looks)).collect();
    sorted(rows, 1)
}

/// What was seen most often.
fn most<K>(seen: &BTreeMap<K, u64>) -> Option<&K> {
    seen.iter().max_by_key(|(_, count)| **count).map(|(key, _)| key)
}
