//! The control groups of the watched processes: their use of resources, and throttling by a quota.

use crate::table::{Bytes, Shape, View, count, flow, level, of_objects, share, text};

pub const VIEW: View = View {
    name: "cgroups",
    title: "Control groups",
    doc: "Control groups of the watched processes: CPU, throttling, memory, I/O.",
    probe: "cgroup",
    shape: Shape::Table,
    columns: &[
        text("cgroup", "group", "The group."),
        share("cpu_share", "CPU", "Processor time, as a share of one processor."),
        share("throttled_share", "throttled", "Time in which its processor limit stopped it."),
        count("throttled_periods_per_s", "periods/s", "Throttled periods per second."),
        level("memory_bytes", "memory", Bytes, "Memory in use, page cache included."),
        level("memory_limit_bytes", "limit", Bytes, "The limit of the memory."),
        count("read_ios_per_s", "r/s", "Reads from devices per second."),
        flow("read_bytes_per_s", "read", "Bytes read per second."),
        count("write_ios_per_s", "w/s", "Writes to devices per second."),
        flow("write_bytes_per_s", "write", "Bytes written per second."),
    ],
    rows: |interval| of_objects(interval, &VIEW),
};
