//! Processes of databases by role, and any others that the user asked for.

use crate::table::{Count, Shape, View, count, flow, level, of_objects, share, sorted, text};

/// The column of processor time.
const CPU: usize = 2;

pub const VIEW: View = View {
    name: "processes",
    title: "Processes by role",
    doc: "Processes and threads of databases by role: CPU, run queue, system calls, storage.",
    probe: "processes",
    shape: Shape::Table,
    columns: &[
        text("role", "role", "The role, from the title of the process or from the database."),
        level("processes", "procs", Count, "Processes or threads with this role."),
        share("cpu_share", "CPU", "Processor time, as a share of one processor."),
        share("run_queue_share", "run queue", "Time ready to run but waiting for a processor."),
        count("read_calls_per_s", "r calls/s", "Reading system calls per second."),
        flow("requested_read_bytes_per_s", "asked r", "Bytes returned by reading system calls."),
        flow("read_bytes_per_s", "storage r", "Bytes read from storage."),
        count("write_calls_per_s", "w calls/s", "Writing system calls per second."),
        flow("requested_write_bytes_per_s", "asked w", "Bytes accepted by writing system calls."),
        flow("write_bytes_per_s", "storage w", "Bytes written, or to be written, to storage."),
    ],
    rows: |interval| sorted(of_objects(interval, &VIEW), CPU),
};
