//! Each block device, and the disks together, with each request counted when it completes.

use blockstone_base::table::Measure::ToOne;
use blockstone_figures::{Interval, Known, Missing, ratio, sum};

use crate::table::{
    Count, Heading, Nanoseconds, Shape, Text, Value, View, count, derived, flow, level, mean_size,
    mean_time, share, text, unmerged,
};

pub const VIEW: View = View {
    name: "disks",
    title: "Disks",
    doc: "Block devices: requests, throughput, sizes, times, queue; the first row is the total of \
          all disks.",
    probe: PROBE,
    shape: Shape::Table,
    // If not all columns fit, the last ones are dropped first.
    columns: &[
        text("device", "device", "Kernel name; `all` is the total of the physical disks."),
        count("read_ios_per_s", "r/s", "Reads completed per second."),
        flow("read_bytes_per_s", "read", "Bytes read per second."),
        mean_time(
            "read_ios_per_s",
            "read_await_ns",
            "r await",
            "Mean time of a read, from the queue to completion.",
        ),
        count("write_ios_per_s", "w/s", "Writes completed per second."),
        flow("write_bytes_per_s", "write", "Bytes written per second."),
        mean_time(
            "write_ios_per_s",
            "write_await_ns",
            "w await",
            "Mean time of a write, from the queue to completion.",
        ),
        count("queue_depth", "queue", "Mean number of requests waiting or in flight."),
        share("busy_share", "busy", "Share of the time with at least one request in flight."),
        // A busy slice may complete nothing.
        unmerged(
            "service_ns",
            "service",
            Nanoseconds,
            "Busy time for each read, write and discard. It is the time of one I/O only on a \
             device that serves one at a time; one that serves several (SSD, array) is busy once \
             for all of them, so that its service time falls as its queue grows.",
        ),
        mean_size("read_ios_per_s", "read_size_bytes", "r size", "Mean size of a read."),
        mean_size("write_ios_per_s", "write_size_bytes", "w size", "Mean size of a write."),
        unmerged("reads_to_writes", "r:w", ToOne, "Reads completed for each write."),
        count("flush_ios_per_s", "flush/s", "Cache flushes completed per second."),
        mean_time("flush_ios_per_s", "flush_await_ns", "f await", "Mean time of a flush."),
        count(
            "read_merges_per_s",
            "r merged/s",
            "Reads per second that were joined to a neighbour in the queue.",
        ),
        count("write_merges_per_s", "w merged/s", "Writes per second, likewise."),
        flow("discard_bytes_per_s", "discard", "Bytes discarded per second."),
        level("in_flight", "in flight", Count, "Requests in flight at the end of the interval."),
        level("device_kind", "kind", Text, "Kind of device."),
        level("beneath", "beneath", Text, "The devices it is built on."),
    ],
    rows,
};

const PROBE: &str = "block";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let ends = interval.disks();
    let all = (ends.len() > 1).then(|| row(interval, "all", &ends));
    let mut each: Vec<&str> = interval.objects(PROBE);
    // The busiest by bytes come first; idle ones keep their order.
    let bytes = |device: &str| -> f64 {
        let moved =
            ["read_bytes", "write_bytes"].map(|column| interval.moved(PROBE, device, column));
        moved.into_iter().flatten().sum()
    };
    each.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)));
    let each = each.into_iter().map(|name| row(interval, name, &[name]));
    all.into_iter().chain(each).collect()
}

fn row(interval: &Interval<'_>, name: &str, devices: &[&str]) -> Vec<Value> {
    let cell = |heading: &Heading| match (&*heading.key, devices) {
        ("device", _) => name.into(),
        ("beneath", [device]) => interval.text(PROBE, device, "beneath").unwrap_or_default().into(),
        ("device_kind" | "beneath", [_, _, ..]) => "".into(),
        // Two disks that are busy in turn are not one disk that is always busy.
        ("busy_share" | "service_ns", [_, _, ..]) => Value::Missing(Missing::Nothing),
        ("service_ns", [device]) => service_ns(interval, device).into(),
        ("reads_to_writes", _) => {
            let ios = |column| sum(devices.iter().map(|it| interval.moved(PROBE, it, column)));
            ratio(ios("read_ios"), ios("write_ios")).into()
        }
        ("queue_depth", _) => {
            let moved = |device: &&str| interval.moved(PROBE, device, "queue_ns");
            sum(devices.iter().map(moved)).map(|ns| ns / interval.ns()).into()
        }
        _ => derived(interval, PROBE, devices, heading),
    };
    VIEW.columns.iter().map(cell).collect()
}

/// Returns the busy time per I/O, like `svctm` of iostat.
fn service_ns(interval: &Interval<'_>, device: &str) -> Known {
    let moved = |column| interval.moved(PROBE, device, column);
    // Kernels that do not count discards do not count them as busy time either.
    let discards = moved("discard_ios").or_else(|missing| match missing {
        Missing::NotInVersion => Ok(0.0),
        missing => Err(missing),
    });
    ratio(moved("busy_ns"), sum([moved("read_ios"), moved("write_ios"), discards]))
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_figures::History;
    use blockstone_record::testing;

    use super::*;

    #[test]
    fn service_merges_and_ratio_are_of_their_own_counters() {
        let counters = "read_ios write_ios discard_ios read_merges write_merges busy_ns";
        let block = testing::probe(
            PROBE,
            &[(Kind::Counter, counters), (Kind::State, "device_kind beneath")],
        );
        let mut history = History::new(vec![block]);
        for (t_ns, by) in [(0, 0), (1_000_000_000, 1)] {
            for (device, times) in [("sda", 1), ("sdb", 2)] {
                let counts = [13 * 17, 17, 3, 19, 23, 241 * 7919];
                let mut cells: Vec<Cell> =
                    counts.map(|count| Cell::Value(times * by * count)).into();
                cells.extend(["disk", ""].map(|text| Cell::Text(text.to_owned())));
                history.push(PROBE, t_ns, device, cells);
            }
        }
        let rows = rows(&history.interval(0, 1_000_000_000));
        let of = |row: usize, key| rows[row][VIEW.column(key).unwrap()].clone();
        assert_eq!(of(1, "device"), "sda".into());
        assert_eq!(of(1, "service_ns"), Value::Number(7919.0));
        assert_eq!(of(0, "service_ns"), Value::Missing(Missing::Nothing), "of several disks");
        assert_eq!(of(0, "reads_to_writes"), Value::Number(13.0));
        assert_eq!(of(0, "read_merges_per_s"), Value::Number(57.0));
        assert_eq!(of(0, "write_merges_per_s"), Value::Number(69.0));
    }
}
