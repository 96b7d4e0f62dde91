//! What single sessions did, with the averages that tell what kind of work it was.

use blockstone_figures::{Interval, ratio};

use crate::table::{
    Measure, Shape, Value, View, count, flow, level, mean_of, share, sorted, text, unmerged,
};

/// The view.
pub const VIEW: View = View {
    name: "snapper",
    title: "Sessions one by one",
    doc: "Activity of single sessions and background processes, with averages: bytes and time per \
          read and write.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("session", "session", "The session id in the database."),
        level("role", "role", Measure::Text, "The kind of process."),
        share("cpu_share", "CPU", "Processor time, in percent of one processor."),
        share("run_queue_share", "run queue", "Time ready to run but waiting for a processor."),
        count("read_ios_per_s", "r/s", "Read requests per second."),
        mean_of(
            "read_ios_per_s",
            "read_size_bytes",
            "r size",
            Measure::Bytes,
            "Mean size of a read.",
        ),
        mean_of(
            "read_ios_per_s",
            "read_await_ns",
            "r time",
            Measure::Nanoseconds,
            "Mean time of a read.",
        ),
        count("write_ios_per_s", "w/s", "Write requests per second."),
        mean_of(
            "write_ios_per_s",
            "write_size_bytes",
            "w size",
            Measure::Bytes,
            "Mean size of a write.",
        ),
        mean_of(
            "write_ios_per_s",
            "write_await_ns",
            "w time",
            Measure::Nanoseconds,
            "Mean time of a write.",
        ),
        count("hits_per_s", "hits/s", "Blocks found in the cache per second."),
        flow("redo_bytes_per_s", "redo", "Redo generated per second."),
        unmerged("redo_record_bytes", "redo record", Measure::Bytes, "Bytes per redo record."),
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

const PROBE: &str = "session_statistics";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |session: &&str| {
        let moved = |column| interval.moved(PROBE, session, column);
        let per_s = |column| Value::from(interval.per_s(PROBE, session, column));
        let share = |column| Value::from(interval.share(PROBE, session, column));
        let mean = |what, ios| Value::from(ratio(moved(what), moved(ios)));
        vec![
            Value::from(*session),
            interval.text(PROBE, session, "role").into(),
            share("cpu_ns"),
            share("run_queue_ns"),
            per_s("read_ios"),
            mean("read_bytes", "read_ios"),
            mean("read_ns", "read_ios"),
            per_s("write_ios"),
            mean("write_bytes", "write_ios"),
            mean("write_ns", "write_ios"),
            per_s("hits"),
            per_s("redo_bytes"),
            mean("redo_bytes", "redo_records"),
            per_s("requested_read_bytes"),
            per_s("charged_read_bytes"),
            per_s("requested_write_bytes"),
            per_s("charged_write_bytes"),
        ]
    };
    let rows = interval.objects(PROBE).iter().map(row).collect();
    sorted(rows, 2)
}
