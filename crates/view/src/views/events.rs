//! Wait events as timed by the database, every one of them.

use blockstone_figures::{Interval, ratio};

use crate::table::{Shape, Value, View, count, mean_time, sorted, text};

pub const VIEW: View = View {
    name: "events",
    title: "Events",
    doc: "Wait events by role, as timed by the database or the operating system, and CPU.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("event", "role/event", "The role and its wait event; also CPU and run queue."),
        count("average_active_sessions", "AAS", "Average number of sessions or processes in it."),
        count("waits_per_s", "waits/s", "Completed waits per second."),
        mean_time("waits_per_s", "wait_ns", "mean wait", "Mean time of a wait."),
    ],
    rows,
};

const PROBE: &str = "event";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let rows = interval
        .objects(PROBE)
        .into_iter()
        .map(|event| {
            let moved = |column| interval.moved(PROBE, event, column);
            vec![
                Value::from(event),
                interval.share(PROBE, event, "time_ns").into(),
                interval.per_s(PROBE, event, "waits").into(),
                ratio(moved("time_ns"), moved("waits")).into(),
            ]
        })
        // A new event has no time yet.
        .filter(|row| matches!(row[1], Value::Number(share) if share != 0.0))
        .collect();
    sorted(rows, 1)
}
