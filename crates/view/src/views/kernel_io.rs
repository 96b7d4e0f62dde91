//! Storage I/O as counted by the kernel: by role or file, waited for or not, with latencies.

use blockstone_figures::{Interval, Known, Latencies, Missing, ratio, sum};

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::table::{
    Heading, Nanoseconds, Shape, Value, View, count, flow, mean_size, mean_time, moves, text,
    unmerged,
};

pub const VIEW: View = View {
    name: "io-by-role",
    title: "Storage I/O by role",
    doc: "Requests to devices by role: synchronous and asynchronous, with sizes and times.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &columns(text("role", "role", "The role that sent the requests.")),
    rows: |interval| rows(interval, "block", "role"),
};

pub const FILE_TYPES: View = View {
    name: "io-by-file-type",
    title: "Storage I/O by file type",
    doc: "Requests to devices by type of file: data, redo, temporary, control, metadata.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &columns(text("file_type", "file type", "The type of file.")),
    rows: |interval| rows(interval, "block", "file_type"),
};

pub const FILES: View = View {
    name: "files",
    title: "Active files",
    doc: "Files with requests to devices: synchronous and asynchronous, with sizes and times.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &columns(text("file", "file", "The file, or the device.")),
    rows: |interval| rows(interval, "block", "file"),
};

pub const CALLS: View = View {
    name: "system-calls",
    title: "I/O system calls by role",
    doc: "Reading, writing and flushing system calls by role, from the page cache or not.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &columns(text("role", "role", "The role that made the calls.")),
    rows: |interval| rows(interval, "system call", "role"),
};

const PROBE: &str = "kernel_io";

const fn columns(first: Heading) -> [Heading; 17] {
    [
        first,
        count("read_sync_ios_per_s", "r sync/s", "Reads per second for which a process waits."),
        count("read_async_ios_per_s", "r async/s", "Reads per second for which no process waits."),
        flow("read_bytes_per_s", "read", "Bytes read per second.").answer(),
        mean_size("read_ios_per_s", "read_size_bytes", "r size", "Mean size of a read."),
        mean_time("read_ios_per_s", "read_await_ns", "r ave", "Mean time of a read."),
        unmerged(
            "read_await_ns_p99",
            "r p99",
            Nanoseconds,
            "99th percentile of the time of a read.",
        ),
        count("write_sync_ios_per_s", "w sync/s", "Writes per second for which a process waits."),
        count(
            "write_async_ios_per_s",
            "w async/s",
            "Writes per second for which no process waits.",
        ),
        flow("write_bytes_per_s", "write", "Bytes written per second.").answer(),
        mean_size(
            "write_ios_per_s",
            "write_size_bytes",
            "w size",
            "Mean size of a write; above one block, writes are coalesced.",
        ),
        mean_time("write_ios_per_s", "write_await_ns", "w ave", "Mean time of a write."),
        unmerged(
            "write_await_ns_p99",
            "w p99",
            Nanoseconds,
            "99th percentile of the time of a write.",
        ),
        count("flush_ios_per_s", "flush/s", "Flushes per second."),
        mean_time("flush_ios_per_s", "flush_await_ns", "f ave", "Mean time of a flush."),
        count("read_ios_per_s", "r/s", "Reads per second."),
        count("write_ios_per_s", "w/s", "Writes per second."),
    ]
}

/// A group's objects, by operation and by whether a process waits for it.
type Objects<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a str>>;

fn rows(interval: &Interval<'_>, layer: &str, by: &str) -> Vec<Vec<Value>> {
    let mut groups: BTreeMap<&str, Objects<'_>> = BTreeMap::new();
    for object in interval.objects(PROBE) {
        let state = |column| interval.text(PROBE, object, column);
        if state("layer") != Some(layer) {
            continue;
        }
        let (Some(group), Some(operation), Some(mode)) =
            (state(by), state("operation"), state("mode"))
        else {
            continue;
        };
        groups.entry(group).or_default().entry((operation, mode)).or_default().push(object);
    }
    let rows = groups.iter().map(|(group, objects)| row(interval, group, objects));
    let mut rows: Vec<Vec<Value>> = rows.filter(|row| moves(row)).collect();
    // Sorted by bytes read and written, then by requests.
    let of = |row: &[Value], keys: [&str; 2]| -> f64 {
        let places = VIEW.columns.iter().enumerate().filter(|(_, it)| keys.contains(&&*it.key));
        places.filter_map(|(place, _)| row[place].number()).sum()
    };
    let weight = |row: &[Value]| {
        let bytes = of(row, ["read_bytes_per_s", "write_bytes_per_s"]);
        (bytes, of(row, ["read_ios_per_s", "write_ios_per_s"]))
    };
    rows.sort_by(|a, b| weight(b).partial_cmp(&weight(a)).unwrap_or(Ordering::Equal));
    rows
}

fn row(interval: &Interval<'_>, group: &str, objects: &Objects<'_>) -> Vec<Value> {
    let of = |operation: &str, mode: Option<&str>| -> Vec<&str> {
        let wanted = objects.iter().filter(|((known, kept), _)| {
            *known == operation && mode.is_none_or(|mode| mode == *kept)
        });
        wanted.flat_map(|(_, objects)| objects.iter().copied()).collect()
    };
    let moved = |objects: &[&str], column: &str| -> Known {
        // The growth of an object that was reset in this interval is unknown and adds nothing.
        sum(objects.iter().map(|object| match interval.moved_from_zero(PROBE, object, column) {
            Err(Missing::Unknown) => Ok(0.0),
            known => known,
        }))
    };
    let per_s = |objects: &[&str], column: &str| {
        Value::from(moved(objects, column).map(|moved| moved / interval.seconds()))
    };
    let mut row = vec![Value::from(group)];
    for operation in ["read", "write"] {
        let all = of(operation, None);
        let mean = |column: &str| Value::from(ratio(moved(&all, column), moved(&all, "ios")));
        row.push(per_s(&of(operation, Some("sync")), "ios"));
        row.push(per_s(&of(operation, Some("async")), "ios"));
        row.push(per_s(&all, "bytes"));
        row.push(mean("bytes"));
        row.push(mean("elapsed_ns"));
        row.push(Latencies::counted(interval, operation, &all).quantile_ns(0.99).into());
    }
    let flushes = of("flush", None);
    row.push(per_s(&flushes, "ios"));
    row.push(ratio(moved(&flushes, "elapsed_ns"), moved(&flushes, "ios")).into());
    row.extend(["read", "write"].map(|operation| per_s(&of(operation, None), "ios")));
    row
}
