//! What sessions were doing, by samples of them: average active sessions by wait, where being on a
//! processor is a line like the others.

use blockstone_figures::{Focus, Interval, Sample};

use std::collections::BTreeMap;

use super::samples::{grouped, most};
use crate::table::{
    Count, Merge, Shape, Share, Text, Value, View, column, count, share_of, text, unmerged,
};

pub const VIEW: View = View {
    name: "active-sessions",
    title: "Active sessions by wait",
    doc: "What sessions were doing, sampled: average active sessions by wait event and on CPU.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("wait_class", "class", "The kind of wait; `Lock` queues, `LWLock` are latches."),
        text("event", "event", "What they waited for."),
        count("average_active_sessions", "AAS", "Sessions doing it, on average."),
        share_of(
            "average_active_sessions",
            "db_time_share",
            "of DB time",
            "Its share of what all sessions did.",
        ),
        unmerged("sessions", "sessions", Count, "Different sessions that did it."),
        unmerged("statements", "statements", Count, "Different statements in which they did it."),
        unmerged(
            "top_statement",
            "most in",
            Text,
            "The statement in which it was seen most often.",
        ),
    ],
    rows: by_event,
};

pub const CLASSES: View = View {
    name: "wait-classes",
    title: "Wait classes",
    doc: "Average active sessions by kind of wait, of sessions and of processes in the background.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("role", "role", "Who: `session`, or a kind of process in the background."),
        text("wait_class", "class", "The kind of wait."),
        count("average_active_sessions", "AAS", "How many did it, on average."),
        column(
            "db_time_share",
            "of all",
            Share,
            Merge::ShareOf { part: "average_active_sessions", within: "role" },
            "Its share of what this role did.",
        ),
    ],
    rows: by_class,
};

const PROBE: &str = "session";
const SESSION: &str = "session";
/// How states begin outside of a call, in a transaction or not.
const IDLE: &str = "idle";

fn by_event(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    fn wait<'a>(sample: &Sample<'a>) -> (&'a str, &'a str) {
        let said = |column| sample.text(column).unwrap_or_default();
        (said("wait_class"), said("event"))
    }
    grouped(interval, wait, |(class, event), seen, all, looks| {
        let statement_id = most(&seen.statements).copied().unwrap_or_default();
        vec![
            Value::from(*class),
            Value::from(*event),
            Value::Number(seen.samples / looks),
            Value::Number(seen.samples / all),
            Value::Number(seen.sessions.len() as f64),
            Value::Number(seen.statements.len() as f64),
            Value::from(statement(interval, statement_id)),
        ]
    })
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

/// Whether the sample is of an active session in this role.
fn works(sample: &Sample<'_>, role: &str) -> bool {
    let idle = sample.text("state").is_some_and(|state| state.starts_with(IDLE));
    sample.text("role") == Some(role) && !idle
}

/// Whether a sample is of an active client session; where the focus names a session or a role, of
/// any active process.
pub(super) fn at_work<'a>(interval: &Interval<'a>) -> impl Fn(&Sample<'a>) -> bool + use<'a> {
    let asked = |focus: &Focus| focus.value("session").or(focus.value("role")).is_some();
    let any_role = interval.focus().is_some_and(asked);
    move |sample| {
        let role = sample.text("role").filter(|_| any_role).unwrap_or(SESSION);
        works(sample, role)
    }
}

/// How often sessions were sampled; never zero.
pub(super) fn looks(interval: &Interval<'_>) -> f64 {
    (interval.samples("sessions").count() as f64).max(1.0)
}

/// The text of a statement, or its identity where the text is not known.
pub(super) fn statement<'a>(interval: &Interval<'a>, id: &'a str) -> &'a str {
    interval.said("statement_text", id, "text").unwrap_or(id)
}
