//! Each network interface, and TCP retransmissions.

use crate::table::{Shape, View, count, flow, of_objects, text};

pub const VIEW: View = View {
    name: "network",
    title: "Network",
    doc: "Network interfaces and TCP: throughput, packets, errors, drops, retransmits.",
    probe: "network",
    shape: Shape::Table,
    columns: &[
        text(
            "interface",
            "interface",
            "The interface; `tcp` counts TCP segments of all interfaces.",
        ),
        flow("received_bytes_per_s", "received", "Bytes received per second."),
        count("received_packets_per_s", "packets in/s", "Packets received per second."),
        count("receive_errors_per_s", "errors in/s", "Damaged packets received per second."),
        count("receive_drops_per_s", "drops in/s", "Received packets dropped per second."),
        flow("sent_bytes_per_s", "sent", "Bytes sent per second."),
        count("sent_packets_per_s", "packets out/s", "Packets sent per second."),
        count("send_errors_per_s", "errors out/s", "Packets that could not be sent per second."),
        count(
            "send_drops_per_s",
            "drops out/s",
            "Packets to be sent that were dropped per second.",
        ),
        count("retransmits_per_s", "retransmits/s", "TCP segments retransmitted per second."),
    ],
    rows: |interval| of_objects(interval, &VIEW),
};
