//! Kernel resources that may run out.

use blockstone_figures::{Interval, ratio};

use crate::table::{Count, Heading, Shape, Share, Value, View, derived, level};

pub const VIEW: View = View {
    name: "resources",
    title: "Kernel resources",
    doc: "Inodes, file handles and sockets of the host.",
    probe: PROBE,
    shape: Shape::Record,
    columns: &[
        level("inodes", "inodes", Count, "Inodes in memory."),
        level("inodes_unused", "unused", Count, "Those of them that are kept but not in use."),
        level("file_handles", "file handles", Count, "File handles in use by all processes."),
        level("file_handles_share", "of max", Share, "As a share of `fs.file-max`."),
        level("sockets", "sockets", Count, "Sockets of all kinds."),
        level("tcp_in_use", "TCP in use", Count, "TCP sockets in use, IPv4 and IPv6."),
        level(
            "tcp_orphans",
            "TCP orphans",
            Count,
            "TCP sockets that no process has open but that are not yet closed.",
        ),
        level(
            "tcp_time_wait",
            "TCP time-wait",
            Count,
            "TCP connections that were closed and whose ports are still kept.",
        ),
    ],
    rows,
};

const PROBE: &str = "resources";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let cell = |heading: &Heading| match &*heading.key {
        "file_handles_share" => {
            let level = |column| interval.level(PROBE, "", column);
            ratio(level("file_handles"), level("file_handles_max")).into()
        }
        _ => derived(interval, PROBE, &[""], heading),
    };
    vec![VIEW.columns.iter().map(cell).collect()]
}
