//! I/O as counted by the database, by kind of process, object and context.

use blockstone_figures::Interval;

use crate::table::{
    Shape, Value, View, count, flow, mean_size, mean_time, moves, row_of, sorted, text,
};

pub const VIEW: View = View {
    name: "database-io",
    title: "I/O by function",
    doc: "I/O as counted by the database, by kind of process, object and context.",
    probe: "role",
    shape: Shape::Table,
    columns: &[
        text("function", "function", "Kind of process, and the kind of object if known."),
        count("read_ios_per_s", "r/s", "Read requests per second."),
        flow("read_bytes_per_s", "read", "Bytes read per second."),
        mean_time("read_ios_per_s", "read_await_ns", "r time", "Mean time of a read."),
        count("write_ios_per_s", "w/s", "Write requests per second."),
        flow("write_bytes_per_s", "write", "Bytes written per second."),
        mean_size(
            "write_ios_per_s",
            "write_size_bytes",
            "w size",
            "Mean size of a write; above one block, writes are coalesced.",
        ),
        mean_time("write_ios_per_s", "write_await_ns", "w time", "Mean time of a write."),
        count("extend_ios_per_s", "extend/s", "Requests that made a file longer, per second."),
        count("flushes_per_s", "flush/s", "Flushes of files per second."),
        mean_time("flushes_per_s", "flush_await_ns", "f time", "Mean time of a flush."),
        count("hits_per_s", "hits/s", "Blocks found in the cache per second."),
        count("evictions_per_s", "evict/s", "Blocks evicted from the cache per second."),
    ],
    rows,
};

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    // If a server reports more than roles, the details replace the roles.
    let probe = if interval.objects("io").is_empty() { "role" } else { "io" };
    let row = |function| row_of(interval, probe, function, VIEW.columns);
    let rows = interval.objects(probe).into_iter().map(row).filter(|row| moves(row)).collect();
    sorted(rows, 1)
}
