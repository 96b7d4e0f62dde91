//! Databases' processes by role, and whatever else was asked for.

use blockstone_figures::Interval;

use crate::table::{Count, Shape, Value, View, count, flow, level, row_of, share, text};

pub const VIEW: View = View {
    name: "processes",
    title: "Processes by role",
    doc: "Databases' processes and threads by role: processor, run queue, system calls, storage.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("role", "role", "The role, as the process calls itself or the database says."),
        level("processes", "procs", Count, "Processes or threads in it."),
        share("cpu_share", "CPU", "Time on a processor, of one processor's time."),
        share("run_queue_share", "run queue", "Time ready to run but waiting for a processor."),
        count("read_calls_per_s", "r calls/s", "Reading system calls a second."),
        flow("requested_read_bytes_per_s", "asked r", "Bytes that reading system calls gave."),
        flow("read_bytes_per_s", "storage r", "Bytes that storage had to deliver."),
        count("write_calls_per_s", "w calls/s", "Writing system calls a second."),
        flow("requested_write_bytes_per_s", "asked w", "Bytes that writing system calls took."),
        flow("write_bytes_per_s", "storage w", "Bytes sent, or to be sent, to storage."),
    ],
    rows,
};

const PROBE: &str = "processes";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |object| row_of(interval, PROBE, object, VIEW.columns);
    interval.objects(PROBE).into_iter().map(row).collect()
}
