//! Each NFS mount, as seen by its client.

use crate::table::{Shape, View, count, flow, mean_size, mean_time, of_objects, text};

pub const VIEW: View = View {
    name: "nfs",
    title: "NFS mounts",
    doc: "NFS mounts: requests, throughput, total time and time at the server, retransmits.",
    probe: "nfs",
    shape: Shape::Table,
    columns: &[
        text("mount", "mount", "The mount point."),
        count("read_ios_per_s", "r/s", "READ requests per second."),
        flow("read_bytes_per_s", "read", "Bytes read per second."),
        mean_size("read_ios_per_s", "read_size_bytes", "r size", "Mean size of a READ."),
        mean_time("read_ios_per_s", "read_await_ns", "r await", "Mean time of a READ."),
        mean_time(
            "read_ios_per_s",
            "read_server_await_ns",
            "r server",
            "Mean time from sending to the reply.",
        ),
        count("write_ios_per_s", "w/s", "WRITE requests per second."),
        flow("write_bytes_per_s", "write", "Bytes written per second."),
        mean_size("write_ios_per_s", "write_size_bytes", "w size", "Mean size of a WRITE."),
        mean_time("write_ios_per_s", "write_await_ns", "w await", "Mean time of a WRITE."),
        mean_time(
            "write_ios_per_s",
            "write_server_await_ns",
            "w server",
            "Mean time from sending to the reply.",
        ),
        count("flush_ios_per_s", "commit/s", "COMMIT requests per second."),
        mean_time("flush_ios_per_s", "flush_await_ns", "c await", "Mean time of a COMMIT."),
        count("retransmits_per_s", "retransmits/s", "Requests retransmitted per second."),
    ],
    rows: |interval| of_objects(interval, &VIEW),
};
