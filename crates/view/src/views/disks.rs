//! Each block device, and the disks together, each request counted where it ends.

use blockstone_figures::{Interval, Known, Missing, ratio, sum};

use crate::table::{Measure, Shape, Value, View, count, flow, level, mean_of, share, text};

/// The view.
pub const VIEW: View = View {
    name: "disks",
    title: "Disks",
    doc: "Block devices: requests, throughput, sizes, times, queue; the first row is the total of \
          all disks.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("device", "device", "Kernel name; `all` is the total of the physical disks."),
        level("device_kind", "kind", Measure::Text, "Kind of device."),
        count("read_ios_per_s", "r/s", "Reads completed per second."),
        flow("read_bytes_per_s", "read", "Bytes read per second."),
        mean_of(
            "read_ios_per_s",
            "read_size_bytes",
            "r size",
            Measure::Bytes,
            "Mean size of a read.",
        ),
        mean_of(
            "read_ios_per_s",
            "read_await_ns",
            "r await",
            Measure::Nanoseconds,
            "Mean time of a read, from the queue to completion.",
        ),
        count("write_ios_per_s", "w/s", "Writes completed per second."),
        flow("write_bytes_per_s", "write", "Bytes written per second."),
        mean_of(
            "write_ios_per_s",
            "write_size_bytes",
            "w size",
            Measure::Bytes,
            "Mean size of a write.",
        ),
        mean_of(
            "write_ios_per_s",
            "write_await_ns",
            "w await",
            Measure::Nanoseconds,
            "Mean time of a write, from the queue to completion.",
        ),
        count("flush_ios_per_s", "flush/s", "Cache flushes completed per second."),
        mean_of(
            "flush_ios_per_s",
            "flush_await_ns",
            "f await",
            Measure::Nanoseconds,
            "Mean time of a flush.",
        ),
        flow("discard_bytes_per_s", "discard", "Bytes discarded per second."),
        count("queue_depth", "queue", "Mean number of requests waiting or in flight."),
        level(
            "in_flight",
            "in flight",
            Measure::Count,
            "Requests in flight at the end of the interval.",
        ),
        share("busy_share", "busy", "Share of the time with at least one request in flight."),
        level("beneath", "beneath", Measure::Text, "The devices it is built on."),
    ],
    rows,
};

const PROBE: &str = "block";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let names = interval.objects(PROBE);
    let kind = |name: &str| interval.text(PROBE, name, "device_kind");
    let beneath = |name: &str| interval.text(PROBE, name, "beneath").unwrap_or_default();
    let ends = ends(interval);
    let mut rows = Vec::new();
    if ends.len() > 1 {
        rows.push(row(interval, "all", Value::from(""), &ends, Value::from("")));
    }
    let each = names
        .iter()
        .map(|name| row(interval, name, kind(name).into(), &[*name], Value::from(beneath(name))));
    rows.extend(each);
    rows
}

/// Where requests end: not at a partition, a mapped device or a disk whose paths are counted, and
/// not in memory.
pub(super) fn ends<'a>(interval: &Interval<'a>) -> Vec<&'a str> {
    let is_end = |name: &&str| {
        let text = |column| interval.text(PROBE, name, column);
        text("device_kind") == Some("disk") && text("beneath").is_none_or(str::is_empty)
    };
    interval.objects(PROBE).into_iter().filter(is_end).collect()
}

fn row(
    interval: &Interval<'_>,
    name: &str,
    kind: Value,
    devices: &[&str],
    beneath: Value,
) -> Vec<Value> {
    let moved = |column: &str| -> Known {
        sum(devices.iter().map(|device| interval.moved(PROBE, device, column)))
    };
    let per_s = |column: &str| Value::from(moved(column).map(|sum| sum / interval.seconds()));
    let mean = |what: &str, ios: &str| Value::from(ratio(moved(what), moved(ios)));
    let in_flight = sum(devices.iter().map(|device| interval.level(PROBE, device, "in_flight")));
    let busy = match devices {
        [device] => interval.share(PROBE, device, "busy_ns"),
        // Two disks that are busy in turn are not one that always is.
        _ => Err(Missing::Nothing),
    };
    vec![
        Value::from(name),
        kind,
        per_s("read_ios"),
        per_s("read_bytes"),
        mean("read_bytes", "read_ios"),
        mean("read_ns", "read_ios"),
        per_s("write_ios"),
        per_s("write_bytes"),
        mean("write_bytes", "write_ios"),
        mean("write_ns", "write_ios"),
        per_s("flush_ios"),
        mean("flush_ns", "flush_ios"),
        per_s("discard_bytes"),
        moved("queue_ns").map(|ns| ns / interval.ns()).into(),
        in_flight.into(),
        busy.into(),
        beneath,
    ]
}
