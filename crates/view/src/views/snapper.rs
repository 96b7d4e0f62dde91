//! What single sessions did, with the averages that tell what kind of work it was.

use blockstone_figures::{Interval, ratio};

use crate::table::{
    Bytes, Heading, Shape, Text, Value, View, count, derived, flow, level, mean_size, mean_time,
    share, sorted, text, unmerged,
};

pub const VIEW: View = View {
    name: "snapper",
    title: "Sessions one by one",
    doc: "Activity of single sessions and background processes, with averages: bytes and time per \
          read and write.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("session", "session", "The session id in the database."),
        level("role", "role", Text, "The kind of process."),
        share("cpu_share", "CPU", "Processor time, in percent of one processor."),
        share("run_queue_share", "run queue", "Time ready to run but waiting for a processor."),
        count("read_ios_per_s", "r/s", "Read requests per second."),
        mean_size("read_ios_per_s", "read_size_bytes", "r size", "Mean size of a read."),
        mean_time("read_ios_per_s", "read_await_ns", "r time", "Mean time of a read."),
        count("write_ios_per_s", "w/s", "Write requests per second."),
        mean_size("write_ios_per_s", "write_size_bytes", "w size", "Mean size of a write."),
        mean_time("write_ios_per_s", "write_await_ns", "w time", "Mean time of a write."),
        count("hits_per_s", "hits/s", "Blocks found in the cache per second."),
        flow("redo_bytes_per_s", "redo", "Redo generated per second."),
        unmerged("redo_record_bytes", "redo record", Bytes, "Bytes per redo record."),
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
