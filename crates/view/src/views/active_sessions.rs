//! Activity of sessions, from samples: average active sessions by wait, where time on a processor
//! is a row like the others.

use blockstone_figures::{Focus, Interval, Sample};

use std::collections::{BTreeMap, BTreeSet};

use crate::table::{
    Count, Merge, Shape, Share, Text, Value, View, column, count, share_of, text, unmerged,
};

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
        unmerged("sessions", "sessions", Count, "Number of different sessions in it."),
        unmerged("statements", "statements", Count, "Number of different statements in it."),
        unmerged("top_statement", "most in", Text, "The statement most often sampled in it."),
    ],
    rows: by_event,
};

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
            Share,
            Merge::ShareOf { part: "average_active_sessions", within: "role" },
            "Its share of the time of this role.",
        ),
    ],
    rows: by_class,
};

const PROBE: &str = "session";
const SESSION: &str = "session";
/// Prefix of the states of a session outside a call, in a transaction or not.
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

/// Returns a test for samples of active client sessions; if the focus names a session or a role,
/// for samples of any active process.
pub(super) fn at_work<'a>(interval: &Interval<'a>) -> impl Fn(&Sample<'a>) -> bool + use<'a> {
    let asked = |focus: &Focus| focus.value("session").or(focus.value("role")).is_some();
    let any_role = interval.focus().is_some_and(asked);
    move |sample| {
        let role = sample.text("role").filter(|_| any_role).unwrap_or(SESSION);
        works(sample, role)
    }
}

/// Returns how often sessions were sampled; never zero.
pub(super) fn looks(interval: &Interval<'_>) -> f64 {
    (interval.samples("sessions").count() as f64).max(1.0)
}

/// Returns the text of a statement, or its identifier if the text is not known.
pub(super) fn statement<'a>(interval: &Interval<'a>, id: &'a str) -> &'a str {
    interval.said("statement_text", id, "text").unwrap_or(id)
}

/// Samples of one session, statement or wait, and their number.
#[derive(Default)]
pub(super) struct SampleGroup<'a> {
    pub(super) samples: f64,
    pub(super) sessions: BTreeSet<&'a str>,
    pub(super) statements: BTreeMap<&'a str, u64>,
    pub(super) waits: BTreeMap<(&'a str, &'a str), u64>,
    pub(super) blockers: BTreeMap<&'a str, u64>,
    pub(super) last: Option<Sample<'a>>,
}

impl<'a> SampleGroup<'a> {
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

    pub(super) fn top_wait(&self) -> Value {
        let (class, event) = most(&self.waits).copied().unwrap_or_default();
        Value::Text(format!("{class} {event}").trim_end().to_owned())
    }
}

/// Returns a row for each name, the most frequent first. A row is made from the name, its samples,
/// the number of all samples and the number of times that sessions were sampled.
pub(super) fn grouped<'a, K: Ord>(
    interval: &Interval<'a>,
    name: impl Fn(&Sample<'a>) -> K,
    row: impl Fn(&K, &SampleGroup<'a>, f64, f64) -> Vec<Value>,
) -> Vec<Vec<Value>> {
    let mut groups: BTreeMap<K, SampleGroup<'a>> = BTreeMap::new();
    let mut all = 0.0;
    for sample in interval.samples(PROBE).filter(at_work(interval)) {
        all += 1.0;
        groups.entry(name(&sample)).or_default().add(sample);
    }
    let looks = looks(interval);
    let mut groups: Vec<(K, SampleGroup<'a>)> = groups.into_iter().collect();
    groups.sort_by(|(_, a), (_, b)| b.samples.total_cmp(&a.samples));
    groups.iter().map(|(name, seen)| row(name, seen, all, looks)).collect()
}

pub(super) fn most<K>(seen: &BTreeMap<K, u64>) -> Option<&K> {
    seen.iter().max_by_key(|(_, count)| **count).map(|(key, _)| key)
}
