//! I/O as the database counts it, by kind of process, what it was on and in which context.

use blockstone_figures::{Interval, Missing, ratio};

use crate::table::{Measure, Shape, Value, View, count, flow, mean_of, sorted, text};

/// The view.
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
        mean_of(
            "read_ios_per_s",
            "read_await_ns",
            "r time",
            Measure::Nanoseconds,
            "Mean time of a read.",
        ),
        count("write_ios_per_s", "w/s", "Write requests per second."),
        flow("write_bytes_per_s", "write", "Bytes written per second."),
        mean_of(
            "write_ios_per_s",
            "write_size_bytes",
            "w size",
            Measure::Bytes,
            "Mean size of a write; above one block, writes are coalesced.",
        ),
        mean_of(
            "write_ios_per_s",
            "write_await_ns",
            "w time",
            Measure::Nanoseconds,
            "Mean time of a write.",
        ),
        count("extend_ios_per_s", "extend/s", "Requests that made a file longer, per second."),
        count("flushes_per_s", "flush/s", "Flushes of files per second."),
        mean_of(
            "flushes_per_s",
            "flush_await_ns",
            "f time",
            Measure::Nanoseconds,
            "Mean time of a flush.",
        ),
        count("hits_per_s", "hits/s", "Blocks found in the cache per second."),
        count("evictions_per_s", "evict/s", "Blocks evicted from the cache per second."),
    ],
    rows,
};

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    // Where a server tells more than roles, that is shown in their place.
    let detailed = !interval.objects("io").is_empty();
    let probe = if detailed { "io" } else { "role" };
    let row = |function: &&str| {
        let moved = |column| interval.moved(probe, function, column);
        let per_s = |column| Value::from(interval.per_s(probe, function, column));
        let mean = |what, ios| Value::from(ratio(moved(what), moved(ios)));
        let only_detailed = |value: Value| {
            if detailed { value } else { Value::Missing(Missing::NotInVersion) }
        };
        vec![
            Value::from(*function),
            per_s("read_ios"),
            per_s("read_bytes"),
            mean("read_ns", "read_ios"),
            per_s("write_ios"),
            per_s("write_bytes"),
            mean("write_bytes", "write_ios"),
            mean("write_ns", "write_ios"),
            only_detailed(per_s("extend_ios")),
            only_detailed(per_s("flushes")),
            only_detailed(mean("flush_ns", "flushes")),
            only_detailed(per_s("hits")),
            only_detailed(per_s("evictions")),
        ]
    };
    let moves = |row: &Vec<Value>| {
        row[1..].iter().any(|value| matches!(value, Value::Number(number) if *number != 0.0))
    };
    let rows = interval.objects(probe).iter().map(row).filter(moves).collect();
    sorted(rows, 1)
}
