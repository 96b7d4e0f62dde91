//! Each block device, and the disks together, each request counted where it ends.

use blockstone_figures::{Interval, Missing, sum};

use crate::table::{
    Count, Heading, Shape, Text, Value, View, count, derived, flow, level, mean_size, mean_time,
    share, text,
};

pub const VIEW: View = View {
    name: "disks",
    title: "Disks",
    doc: "Block devices: requests, throughput, sizes, times, queue; the first row is the total of \
          all disks.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("device", "device", "Kernel name; `all` is the total of the physical disks."),
        level("device_kind", "kind", Text, "Kind of device."),
        count("read_ios_per_s", "r/s", "Reads completed per second."),
        flow("read_bytes_per_s", "read", "Bytes read per second."),
        mean_size("read_ios_per_s", "read_size_bytes", "r size", "Mean size of a read."),
        mean_time(
            "read_ios_per_s",
            "read_await_ns",
            "r await",
            "Mean time of a read, from the queue to completion.",
        ),
        count("write_ios_per_s", "w/s", "Writes completed per second."),
        flow("write_bytes_per_s", "write", "Bytes written per second."),
        mean_size("write_ios_per_s", "write_size_bytes", "w size", "Mean size of a write."),
        mean_time(
            "write_ios_per_s",
            "write_await_ns",
            "w await",
            "Mean time of a write, from the queue to completion.",
        ),
        count("flush_ios_per_s", "flush/s", "Cache flushes completed per second."),
        mean_time("flush_ios_per_s", "flush_await_ns", "f await", "Mean time of a flush."),
        flow("discard_bytes_per_s", "discard", "Bytes discarded per second."),
        count("queue_depth", "queue", "Mean number of requests waiting or in flight."),
        level("in_flight", "in flight", Count, "Requests in flight at the end of the interval."),
        share("busy_share", "busy", "Share of the time with at least one request in flight."),
        level("beneath", "beneath", Text, "The devices it is built on."),
    ],
    rows,
};

const PROBE: &str = "block";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let ends = interval.disks();
    let all = (ends.len() > 1).then(|| row(interval, "all", &ends));
    let each = interval.objects(PROBE).into_iter().map(|name| row(interval, name, &[name]));
    all.into_iter().chain(each).collect()
}

fn row(interval: &Interval<'_>, name: &str, devices: &[&str]) -> Vec<Value> {
    let cell = |heading: &Heading| match (&*heading.key, devices) {
        ("device", _) => name.into(),
        ("beneath", [device]) => interval.text(PROBE, device, "beneath").unwrap_or_default().into(),
        ("device_kind" | "beneath", [_, _, ..]) => "".into(),
        // Two disks that are busy in turn are not one that always is.
        ("busy_share", [_, _, ..]) => Value::Missing(Missing::Nothing),
        ("queue_depth", _) => {
            let moved = |device: &&str| interval.moved(PROBE, device, "queue_ns");
            sum(devices.iter().map(moved)).map(|ns| ns / interval.ns()).into()
        }
        _ => derived(interval, PROBE, devices, heading),
    };
    VIEW.columns.iter().map(cell).collect()
}
