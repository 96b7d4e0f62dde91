//! Each NFS mount, as its client sees it.

use blockstone_figures::{Interval, ratio};

use crate::table::{Measure, Shape, Value, View, count, flow, mean_of, text};

/// The view.
pub const VIEW: View = View {
    name: "nfs",
    title: "NFS mounts",
    doc: "NFS mounts: requests, throughput, total time and time at the server, retransmits.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("mount", "mount", "The mount point."),
        count("read_ios_per_s", "r/s", "READ requests per second."),
        flow("read_bytes_per_s", "read", "Bytes read per second."),
        mean_of(
            "read_ios_per_s",
            "read_size_bytes",
            "r size",
            Measure::Bytes,
            "Mean size of a READ.",
        ),
        mean_of(
            "read_ios_per_s",
            "read_await_ns",
            "r await",
            Measure::Nanoseconds,
            "Mean time of a READ.",
        ),
        mean_of(
            "read_ios_per_s",
            "read_server_await_ns",
            "r server",
            Measure::Nanoseconds,
            "Mean time from sending to the reply.",
        ),
        count("write_ios_per_s", "w/s", "WRITE requests per second."),
        flow("write_bytes_per_s", "write", "Bytes written per second."),
        mean_of(
            "write_ios_per_s",
            "write_size_bytes",
            "w size",
            Measure::Bytes,
            "Mean size of a WRITE.",
        ),
        mean_of(
            "write_ios_per_s",
            "write_await_ns",
            "w await",
            Measure::Nanoseconds,
            "Mean time of a WRITE.",
        ),
        mean_of(
            "write_ios_per_s",
            "write_server_await_ns",
            "w server",
            Measure::Nanoseconds,
            "Mean time from sending to the reply.",
        ),
        count("flush_ios_per_s", "commit/s", "COMMIT requests per second."),
        mean_of(
            "flush_ios_per_s",
            "flush_await_ns",
            "c await",
            Measure::Nanoseconds,
            "Mean time of a COMMIT.",
        ),
        count("retransmits_per_s", "retransmits/s", "Requests retransmitted per second."),
    ],
    rows,
};

const PROBE: &str = "nfs";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |mount: &str| {
        let per_s = |column| Value::from(interval.per_s(PROBE, mount, column));
        let mean = |what, ios| {
            let moved = |column| interval.moved(PROBE, mount, column);
            Value::from(ratio(moved(what), moved(ios)))
        };
        vec![
            Value::from(mount),
            per_s("read_ios"),
            per_s("read_bytes"),
            mean("read_bytes", "read_ios"),
            mean("read_ns", "read_ios"),
            mean("read_server_ns", "read_ios"),
            per_s("write_ios"),
            per_s("write_bytes"),
            mean("write_bytes", "write_ios"),
            mean("write_ns", "write_ios"),
            mean("write_server_ns", "write_ios"),
            per_s("flush_ios"),
            mean("flush_ns", "flush_ios"),
            per_s("retransmits"),
        ]
    };
    interval.objects(PROBE).into_iter().map(row).collect()
}
