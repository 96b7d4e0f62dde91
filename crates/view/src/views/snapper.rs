//! What single sessions did, with the averages that tell what kind of work it was.

use blockstone_figures::{Interval, ratio};

use crate::table::{
    Bytes, Heading, Shape, Text, Value, View, count, derived, flow, level, mean_size, mean_time,
    share, sorted, text, unmerged,
};

pub const VIEW: View = View {
    name: "snapper",
    title: "Sessions one by one",
    doc: "What single sessions and background processes did, and averages: bytes a read, time a \
          read.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("session", "session", "Its number in the database."),
        level("role", "role", Text, "What kind of process it is."),
        share("cpu_share", "CPU", "Time on a processor."),
        share("run_queue_share", "run queue", "Time ready to run but waiting for a processor."),
        count("read_ios_per_s", "r/s", "Read requests a second."),
        mean_size("read_ios_per_s", "read_size_bytes", "r size", "Mean size of a read."),
        mean_time("read_ios_per_s", "read_await_ns", "r time", "Mean time of a read."),
        count("write_ios_per_s", "w/s", "Write requests a second."),
        mean_size("write_ios_per_s", "write_size_bytes", "w size", "Mean size of a write."),
        mean_time("write_ios_per_s", "write_await_ns", "w time", "Mean time of a write."),
        count("hits_per_s", "hits/s", "Blocks found in the cache a second."),
        flow("redo_bytes_per_s", "redo", "Redo generated a second."),
        unmerged("redo_record_bytes", "a record", Bytes, "Redo for each record of it."),
        flow("requested_read_bytes_per_s", "asked r", "Bytes that reading system calls gave."),
        flow("charged_read_bytes_per_s", "storage r", "Bytes that storage had to deliver."),
        flow("requested_write_bytes_per_s", "asked w", "Bytes that writing system calls took."),
        flow("charged_write_bytes_per_s", "storage w", "Bytes sent, or to be sent, to storage."),
    ],
    rows,
};

const PROBE: &str = "session_statistics";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |session: &str| {
        let moved = |column| interval.moved(PROBE, session, column);
        let cell = |heading: &Heading| match &*heading.key {
            "session" => session.into(),
            "redo_record_bytes" => ratio(moved("redo_bytes"), moved("redo_records")).into(),
            _ => derived(interval, PROBE, &[session], heading),
        };
        VIEW.columns.iter().map(cell).collect()
    };
    sorted(interval.objects(PROBE).into_iter().map(row).collect(), 2)
}
