//! Activity of single sessions, with the averages that show what kind of work it was.

use std::collections::{BTreeMap, BTreeSet};

use blockstone_base::database::wait_class;
use blockstone_figures::{Focus, Interval, Missing, Sample, ratio};

use super::active_sessions::looks;
use crate::table::{
    Bytes, Count, Heading, Shape, Text, Value, View, count, derived, flow, level, mean_size,
    mean_time, share, sorted, text, total, unmerged,
};

pub const VIEW: View = View {
    name: "snapper",
    title: "Sessions one by one",
    doc: "Activity of single sessions and background processes, with averages: bytes and time per \
          read and write, redo per record and commit.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("session", "session", "The session id in the database."),
        level("role", "role", Text, "The kind of process."),
        share("cpu_share", "CPU", "Processor time, as a share of one processor."),
        share("run_queue_share", "run queue", "Time ready to run but waiting for a processor."),
        share("db_time_share", "in calls", "Time inside calls of the session."),
        count("read_ios_per_s", "r/s", "Read requests per second."),
        mean_size("read_ios_per_s", "read_size_bytes", "r size", "Mean size of a read."),
        mean_time("read_ios_per_s", "read_await_ns", "r time", "Mean time of a read."),
        count("write_ios_per_s", "w/s", "Write requests per second."),
        mean_size("write_ios_per_s", "write_size_bytes", "w size", "Mean size of a write."),
        mean_time("write_ios_per_s", "write_await_ns", "w time", "Mean time of a write."),
        count("logical_reads_per_s", "visits/s", "Blocks visited per second, in the cache or not."),
        count("hits_per_s", "hits/s", "Blocks found in the cache per second."),
        count("block_changes_per_s", "changes/s", "Blocks changed per second."),
        count("commits_per_s", "commits/s", "Commits acknowledged per second."),
        flow("redo_bytes_per_s", "redo", "Redo generated per second."),
        unmerged("redo_record_bytes", "redo record", Bytes, "Bytes per redo record."),
        unmerged("redo_commit_bytes", "redo/commit", Bytes, "Bytes of redo per commit."),
        flow("requested_read_bytes_per_s", "asked r", "Bytes returned by reading system calls."),
        flow("charged_read_bytes_per_s", "storage r", "Bytes read from storage."),
        flow("requested_write_bytes_per_s", "asked w", "Bytes accepted by writing system calls."),
        flow(
            "charged_write_bytes_per_s",
            "storage w",
            "Bytes written, or to be written, to storage.",
        ),
    ],
    rows,
};

pub const WAITS: View = View {
    name: "session-waits",
    title: "Waits of each session",
    doc: "What each active session and background process waited for. The miniature instance times \
          each wait; elsewhere the share of time is that of the samples in which it was in the \
          wait, and waits and their mean time are not known.",
    probe: SAMPLES,
    shape: Shape::Table,
    columns: &[
        text("session", "session", "The session id in the database."),
        text("wait_class", "class", "The wait class, or `On CPU`."),
        text("event", "event", "What it waited for."),
        share("time_share", "% time", "Share of time in this wait: timed, or of the samples."),
        count("waits_per_s", "waits/s", "Completed waits per second."),
        mean_time("waits_per_s", "wait_ns", "average wait", "Mean time of a wait."),
        total("samples", "samples", Count, "Samples in which it was in this wait."),
        level("role", "role", Text, "The kind of process."),
        level("user", "user", Text, "The user of the session."),
    ],
    rows: waits,
};

const PROBE: &str = "session_statistics";
const SAMPLES: &str = "session";
/// Waits that a database times per session; the object is `session/event`.
const TIMED: &str = "session_event";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |session: &str| {
        let moved = |column| interval.moved(PROBE, session, column);
        let cell = |heading: &Heading| match &*heading.key {
            "session" => session.into(),
            "redo_record_bytes" => ratio(moved("redo_bytes"), moved("redo_records")).into(),
            "redo_commit_bytes" => ratio(moved("redo_bytes"), moved("commits")).into(),
            _ => derived(interval, PROBE, &[session], heading),
        };
        VIEW.columns.iter().map(cell).collect()
    };
    let sampled: BTreeSet<_> = interval.samples(SAMPLES).map(|sample| sample.object).collect();
    let sessions = interval.objects(PROBE).into_iter();
    let sessions = sessions.filter(|it| is_named(interval, it) || sampled.contains(it));
    sorted(sessions.map(row).collect(), 2)
}

/// Whether the focus, if there is one, admits everything known about a session.
fn is_named(interval: &Interval<'_>, session: &str) -> bool {
    let conditions = interval.focus().map(Focus::conditions).unwrap_or_default();
    conditions.iter().all(|it| match it.column {
        "session" => it.value == session,
        column => column == "instance",
    })
}

fn waits(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let mut groups: BTreeMap<(&str, &str, &str), (f64, Option<Sample<'_>>)> = BTreeMap::new();
    for sample in interval.samples(SAMPLES).filter(is_active) {
        let said = |column| sample.text(column).unwrap_or_default();
        let name = (sample.object, said("wait_class"), said("event"));
        let (count, last) = groups.entry(name).or_default();
        *count += 1.0;
        *last = last.filter(|last| last.t_ns > sample.t_ns).or(Some(sample));
    }
    // Short waits may escape the samples.
    for object in interval.objects(TIMED) {
        let Some((session, event)) = object.split_once('/') else { continue };
        let time_ns = interval.moved_from_zero(TIMED, object, "time_ns");
        if is_named(interval, session) && time_ns.is_ok_and(|time_ns| time_ns > 0.0) {
            groups.entry((session, wait_class(event), event)).or_default();
        }
    }
    let looks = looks(interval);
    let row = |(name, seen): (&(&str, &str, &str), &(f64, Option<Sample<'_>>))| {
        let (&(session, class, event), &(count, last)) = (name, seen);
        let object = format!("{session}/{event}");
        let timed = |column| match interval.moved_from_zero(TIMED, &object, column) {
            _ if event.is_empty() => Err(Missing::Nothing),
            known => known,
        };
        let text = |column| {
            let sampled = last.and_then(|last| last.text(column));
            Value::from(sampled.or_else(|| interval.text(PROBE, session, column)).unwrap_or(""))
        };
        vec![
            Value::from(session),
            Value::from(class),
            Value::from(event),
            Value::Number(timed("time_ns").map_or(count / looks, |ns| ns / interval.ns())),
            timed("waits").map(|waits| waits / interval.seconds()).into(),
            ratio(timed("time_ns"), timed("waits")).into(),
            Value::Number(count),
            text("role"),
            text("user"),
        ]
    };
    sorted(groups.iter().map(row).collect(), 3)
}

fn is_active(sample: &Sample<'_>) -> bool {
    !sample.text("state").is_some_and(|state| state.starts_with("idle"))
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind, Schema};
    use blockstone_base::database::{SESSION, SESSION_EVENT, SESSION_STATISTICS, SESSIONS};
    use blockstone_figures::{Condition, History};
    use blockstone_record::manifest::ProbeInfo;

    use super::super::samples::fixture::{active, counted};
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Four samples: session 7 reads in three, 8 works in two.
    fn history() -> History {
        history_of(&[&SESSION, &SESSIONS, &SESSION_STATISTICS])
    }

    fn history_of(schemas: &[&Schema]) -> History {
        let infos = schemas.iter().map(|schema| ProbeInfo::of(schema));
        let mut history = History::new(infos.collect());
        for look in 1..=4_u64 {
            let t_ns = look * SECOND_NS / 4;
            if look < 4 {
                active(&mut history, t_ns, "7", ["IO", "DataFileRead"]);
            }
            if look < 3 {
                active(&mut history, t_ns, "8", ["On CPU", ""]);
            }
            counted(&mut history, t_ns, 2);
        }
        for (t_ns, value) in [(0, 0), (SECOND_NS, 10)] {
            for session in ["7", "8", "9"] {
                let cells = SESSION_STATISTICS.columns.iter().map(|column| match column.kind {
                    Kind::State => Cell::Text("session".to_owned()),
                    _ => Cell::Value(value),
                });
                history.push(PROBE, t_ns, session, cells.collect());
            }
        }
        history
    }

    #[test]
    fn waits_of_a_session_are_shares_of_samples_and_counts_that_nobody_keeps_are_not_zero() {
        let history = history();
        let rows = waits(&history.interval(0, SECOND_NS));
        assert_eq!(
            rows[0][..4],
            [Value::from("7"), Value::from("IO"), Value::from("DataFileRead"), Value::Number(0.75)]
        );
        assert_eq!(rows[0][4..6], [Missing::NotInVersion; 2].map(Value::Missing));
        assert_eq!(
            rows[1][3..6],
            [
                Value::Number(0.5),
                Value::Missing(Missing::Nothing),
                Value::Missing(Missing::Nothing)
            ]
        );
    }

    #[test]
    fn waits_that_are_timed_are_shown_exactly_and_also_those_between_the_samples() {
        let mut history = history_of(&[&SESSION, &SESSIONS, &SESSION_STATISTICS, &SESSION_EVENT]);
        let timed = [("7/DataFileRead", 1, 40), ("9/log file sync", 2, 50), ("9/unused", 0, 0)];
        for (object, waits, ms) in timed {
            let stood = |waits, time_ns| vec![Cell::Value(waits), Cell::Value(time_ns)];
            if object != "9/log file sync" {
                history.push(TIMED, 0, object, stood(5, 7));
            }
            history.push(TIMED, SECOND_NS, object, stood(waits + 5, ms * 1_000_000 + 7));
        }
        let rows = waits(&history.interval(0, SECOND_NS));
        let row = |session, event| {
            let named = |row: &&Vec<Value>| row[0] == Value::from(session) && row[2] == event;
            let found = rows.iter().find(named).unwrap();
            found[3..7].to_vec()
        };
        let numbers = |numbers: [f64; 4]| numbers.map(Value::Number).to_vec();
        assert_eq!(row("7", Value::from("DataFileRead")), numbers([0.04, 1.0, 4e7, 3.0]));
        let first_in_it = [0.050_000_007, 7.0, 50_000_007.0 / 7.0, 0.0];
        assert_eq!(row("9", Value::from("log file sync")), numbers(first_in_it));
        assert_eq!(rows.iter().filter(|row| row[2] == Value::from("unused")).count(), 0);
        let focus: Focus = ["session=9".parse::<Condition>().unwrap()].into_iter().collect();
        let rows = waits(&history.interval(0, SECOND_NS).only(&focus));
        assert_eq!(rows.len(), 1, "although no sample saw it: {rows:?}");
    }

    #[test]
    fn a_focus_leaves_the_session_that_it_names_or_those_sampled_in_it() {
        let history = history();
        let shown = |conditions: &[&str]| {
            let conditions = conditions.iter().map(|it| it.parse::<Condition>().unwrap());
            let focus: Focus = conditions.collect();
            let rows = rows(&history.interval(0, SECOND_NS).only(&focus));
            rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&["session=9"]), [Value::from("9")], "although it was never sampled");
        assert_eq!(shown(&["event=DataFileRead"]), [Value::from("7")]);
        assert_eq!(shown(&["event=DataFileRead", "session=8"]), Vec::<Value>::new());
    }
}
