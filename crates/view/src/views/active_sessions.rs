//! What sessions were doing, by samples of them: average active sessions by wait, where being on a
//! processor is a line like the others.

use blockstone_figures::{Focus, Interval, Sample};

use std::collections::{BTreeMap, BTreeSet};

use crate::table::{Measure, Merge, Shape, Value, View, column, count, share_of, text, unmerged};

/// The view by event.
pub const VIEW: View = View {
    name: "active-sessions",
    title: "Active sessions by wait",
    doc: "Average active sessions (AAS) by wait event and on CPU, from samples of the sessions.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text(
            "wait_class",
            "class",
            "The wait class; `Lock` are queued locks, `LWLock` are latches.",
        ),
        text("event", "event", "What they waited for."),
        count("average_active_sessions", "AAS", "Average number of sessions in this wait."),
        share_of(
            "average_active_sessions",
            "db_time_share",
            "of DB time",
            "Its share of the database time of all sessions.",
        ),
        unmerged("sessions", "sessions", Measure::Count, "Number of different sessions in it."),
        unmerged(
            "statements",
            "statements",
            Measure::Count,
            "Number of different statements in it.",
        ),
        unmerged(
            "top_statement",
            "most in",
            Measure::Text,
            "The statement most often sampled in it.",
        ),
    ],
    rows: by_event,
};

/// The view by class.
pub const CLASSES: View = View {
    name: "wait-classes",
    title: "Wait classes",
    doc: "Average active sessions by wait class, for sessions and background processes.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("role", "role", "`session`, or a kind of background process."),
        text("wait_class", "class", "The wait class."),
        count("average_active_sessions", "AAS", "Average number of sessions or processes in it."),
        column(
            "db_time_share",
            "of all",
            Measure::Share,
            Merge::ShareOf { part: "average_active_sessions", within: "role" },
            "Its share of the time of this role.",
        ),
    ],
    rows: by_class,
};

const PROBE: &str = "session";
/// Those who serve clients.
const SESSION: &str = "session";
/// How states begin outside of a call, in a transaction or not.
const IDLE: &str = "idle";

fn by_event(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    #[derive(Default)]
    struct Seen<'a> {
        samples: f64,
        sessions: BTreeSet<&'a str>,
        statements: BTreeMap<&'a str, u64>,
    }
    let mut events: BTreeMap<(&str, &str), Seen<'_>> = BTreeMap::new();
    let mut all = 0.0;
    for sample in interval.samples(PROBE).filter(at_work(interval)) {
        let key = |column| sample.text(column).unwrap_or_default();
        let seen = events.entry((key("wait_class"), key("event"))).or_default();
        all += 1.0;
        seen.samples += 1.0;
        seen.sessions.insert(sample.object);
        *seen.statements.entry(key("query_id")).or_default() += 1;
    }
    let looks = looks(interval);
    let mut events: Vec<_> = events.into_iter().collect();
    events.sort_by(|a, b| b.1.samples.total_cmp(&a.1.samples));
    let row = |((class, event), seen): ((&str, &str), Seen<'_>)| {
        let most = seen.statements.iter().max_by_key(|(_, count)| **count).map(|(id, _)| *id);
        vec![
            Value::from(class),
            Value::from(event),
            Value::Number(seen.samples / looks),
            Value::Number(seen.samples / all),
            Value::Number(seen.sessions.len() as f64),
            Value::Number(seen.statements.len() as f64),
            Value::from(statement(interval, most.unwrap_or_default())),
        ]
    };
    events.into_iter().map(row).collect()
}

fn by_class(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let mut classes: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    let mut roles: BTreeMap<&str, f64> = BTreeMap::new();
    for sample in interval.samples(PROBE) {
        let key = |column| sample.text(column).unwrap_or_default();
        if works(&sample, key("role")) {
            *classes.entry((key("role"), key("wait_class"))).or_default() += 1.0;
            *roles.entry(key("role")).or_default() += 1.0;
        }
    }
    let looks = looks(interval);
    let row = |((role, class), samples): (&(&str, &str), &f64)| {
        vec![
            Value::from(*role),
            Value::from(*class),
            Value::Number(samples / looks),
            Value::Number(samples / roles[role]),
        ]
    };
    classes.iter().map(row).collect()
}

/// Whether the sample is of somebody in this role who works.
fn works(sample: &Sample<'_>, role: &str) -> bool {
    let idle = sample.text("state").is_some_and(|state| state.starts_with(IDLE));
    sample.text("role") == Some(role) && !idle
}

/// Whether a sample is of somebody who works for a client; or of anybody who works, where that is
/// asked for by session or role.
pub(super) fn at_work<'a>(interval: &Interval<'a>) -> impl Fn(&Sample<'a>) -> bool + use<'a> {
    let asked = |focus: &Focus| focus.value("session").or(focus.value("role")).is_some();
    let anybody = interval.focus().is_some_and(asked);
    move |sample| {
        let role = sample.text("role").filter(|_| anybody).unwrap_or(SESSION);
        works(sample, role)
    }
}

/// How often sessions were looked at; never zero.
pub(super) fn looks(interval: &Interval<'_>) -> f64 {
    (interval.samples("sessions").count() as f64).max(1.0)
}

/// The text of a statement, or its identity where the text is not known.
pub(super) fn statement<'a>(interval: &Interval<'a>, id: &'a str) -> &'a str {
    interval.said("statement_text", id, "text").unwrap_or(id)
}
