//! The control groups of what is watched: what they use, and whether a quota holds them.

use blockstone_figures::Interval;

use crate::table::{Bytes, Shape, Value, View, count, flow, level, row_of, share, text};

pub const VIEW: View = View {
    name: "cgroups",
    title: "Control groups",
    doc: "Control groups of the watched processes: CPU, throttling, memory, I/O.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("cgroup", "group", "The group."),
        share("cpu_share", "CPU", "Processor time, in percent of one processor."),
        share("throttled_share", "throttled", "Time in which its processor limit stopped it."),
        count("throttled_periods_per_s", "periods/s", "Throttled periods per second."),
        level("memory_bytes", "memory", Bytes, "Memory in use, page cache included."),
        level("memory_limit_bytes", "limit", Bytes, "The limit of the memory."),
        count("read_ios_per_s", "r/s", "Reads from devices per second."),
        flow("read_bytes_per_s", "read", "Bytes read per second."),
        count("write_ios_per_s", "w/s", "Writes to devices per second."),
        flow("write_bytes_per_s", "write", "Bytes written per second."),
    ],
    rows,
};

const PROBE: &str = "cgroup";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |object| row_of(interval, PROBE, object, VIEW.columns);
    interval.objects(PROBE).into_iter().map(row).collect()
}
