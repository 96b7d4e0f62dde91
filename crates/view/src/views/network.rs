//! Each network interface, and what TCP had to send again.

use blockstone_figures::Interval;

use crate::table::{Shape, Value, View, count, flow, row_of, text};

pub const VIEW: View = View {
    name: "network",
    title: "Network",
    doc: "Each network interface, and TCP: throughput, packets, errors, drops, retransmits.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("interface", "interface", "The interface; `tcp` for segments of TCP on all of them."),
        flow("received_bytes_per_s", "received", "Bytes received a second."),
        count("received_packets_per_s", "packets in/s", "Packets received a second."),
        count("receive_errors_per_s", "errors in/s", "Packets received damaged a second."),
        count("receive_drops_per_s", "drops in/s", "Packets dropped on their way in a second."),
        flow("sent_bytes_per_s", "sent", "Bytes sent a second."),
        count("sent_packets_per_s", "packets out/s", "Packets sent a second."),
        count("send_errors_per_s", "errors out/s", "Packets that could not be sent a second."),
        count("send_drops_per_s", "drops out/s", "Packets dropped on their way out a second."),
        count("retransmits_per_s", "again/s", "Segments of TCP sent again a second."),
    ],
    rows,
};

const PROBE: &str = "network";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |object| row_of(interval, PROBE, object, VIEW.columns);
    interval.objects(PROBE).into_iter().map(row).collect()
}
