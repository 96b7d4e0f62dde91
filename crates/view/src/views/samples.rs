//! Who was sampled, and in what: sessions and statements by the samples that found them at work.
//! With a focus, these are the sessions of one wait, the statements of one session, and so on.

use blockstone_figures::{Interval, Sample};

use std::collections::{BTreeMap, BTreeSet};

use super::active_sessions::{at_work, looks, statement};
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

/// What samples of one session or statement say, and how often.
#[derive(Default)]
pub(super) struct Seen<'a> {
    pub(super) samples: f64,
    pub(super) sessions: BTreeSet<&'a str>,
    pub(super) statements: BTreeMap<&'a str, u64>,
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

/// Rows of the samples that are called the same, the most frequent first. A row is made of a name,
/// its samples, the number of all samples and how often sessions were looked at.
pub(super) fn grouped<'a, K: Ord>(
    interval: &Interval<'a>,
    name: impl Fn(&Sample<'a>) -> K,
    row: impl Fn(&K, &Seen<'a>, f64, f64) -> Vec<Value>,
) -> Vec<Vec<Value>> {
    let mut groups: BTreeMap<K, Seen<'a>> = BTreeMap::new();
    let mut all = 0.0;
    for sample in interval.samples(PROBE).filter(at_work(interval)) {
        all += 1.0;
        groups.entry(name(&sample)).or_default().add(sample);
    }
    let looks = looks(interval);
    let mut groups: Vec<(K, Seen<'a>)> = groups.into_iter().collect();
    groups.sort_by(|(_, a), (_, b)| b.samples.total_cmp(&a.samples));
    groups.iter().map(|(name, seen)| row(name, seen, all, looks)).collect()
}

pub(super) fn most<K>(seen: &BTreeMap<K, u64>) -> Option<&K> {
    seen.iter().max_by_key(|(_, count)| **count).map(|(key, _)| key)
}
