//! Databases' processes by role, and whatever else was asked for.

use blockstone_figures::Interval;

use crate::table::{Measure, Shape, Value, View, count, flow, level, share, text};

/// The view.
pub const VIEW: View = View {
    name: "processes",
    title: "Processes by role",
    doc: "Processes and threads of databases by role: CPU, run queue, system calls, storage.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("role", "role", "The role, from the title of the process or from the database."),
        level("processes", "procs", Measure::Count, "Processes or threads with this role."),
        share("cpu_share", "CPU", "Processor time, in percent of one processor."),
        share("run_queue_share", "run queue", "Time ready to run but waiting for a processor."),
        count("read_calls_per_s", "r calls/s", "Reading system calls per second."),
        flow("requested_read_bytes_per_s", "asked r", "Bytes returned by reading system calls."),
        flow("read_bytes_per_s", "storage r", "Bytes read from storage."),
        count("write_calls_per_s", "w calls/s", "Writing system calls per second."),
        flow("requested_write_bytes_per_s", "asked w", "Bytes accepted by writing system calls."),
        flow("write_bytes_per_s", "storage w", "Bytes written, or to be written, to storage."),
    ],
    rows,
};

const PROBE: &str = "processes";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |role: &str| {
        let per_s = |column| Value::from(interval.per_s(PROBE, role, column));
        let share = |column| Value::from(interval.share(PROBE, role, column));
        vec![
            Value::from(role),
            interval.level(PROBE, role, "processes").into(),
            share("cpu_ns"),
            share("run_queue_ns"),
            per_s("read_calls"),
            per_s("requested_read_bytes"),
            per_s("read_bytes"),
            per_s("write_calls"),
            per_s("requested_write_bytes"),
            per_s("write_bytes"),
        ]
    };
    interval.objects(PROBE).into_iter().map(row).collect()
}
