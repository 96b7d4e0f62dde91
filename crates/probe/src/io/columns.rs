//! The columns of the probe `kernel_io`.

use blockstone_base::column::{Column, Origin, Schema, Unit};
use blockstone_sys::bpf::io::BUCKETS;

use crate::counted;

/// The schema: one row for each layer, role, file, operation and mode that occurred, and one on the
/// tracing itself.
pub const SCHEMA: Schema = Schema {
    probe: "kernel_io",
    doc: "Storage I/O by layer, role, file, operation and mode, counted inside the kernel.",
    columns: &COLUMNS,
};

/// Columns before the histogram.
pub const LEADING: usize = LEADING_COLUMNS.len();

const LEADING_COLUMNS: [Column; 17] = [
    PROBE.state(
        "layer",
        "Where it is counted: `block` (requests to devices), `system call`, or `tracing` for what \
         the counting itself costs.",
    ),
    PROBE.state("role", "Role of the thread, as the opener of the probe defines it."),
    PROBE.state("file", "The path of the file when it was first seen, or the device."),
    PROBE.state(
        "file_type",
        "`data`, `redo`, `temp`, `control`, `file system metadata`, `swap` or `other`.",
    ),
    PROBE.state(
        "operation",
        "`read`, `write`, `flush`, `discard`, or `submit` for several at once.",
    ),
    PROBE.state("mode", "`sync` when a thread waits for it, `async` otherwise."),
    BOTH.count("ios", "I/Os completed, merged ones as one; at `submit`, calls."),
    BLOCK.level("in_flight", Unit::Count, "Requests started and not yet completed."),
    BOTH.bytes("bytes", "Bytes read, written or discarded."),
    CALLS.bytes(
        "asked_bytes",
        "Bytes that system calls asked for; of a longer vector, those of its first 16 parts.",
    ),
    CALLS.count("submitted", "Requests handed over by calls that submit."),
    BLOCK.time(
        "queue_ns",
        "Time from the start of requests until they were sent to the device, summed.",
    ),
    BLOCK.time(
        "device_ns",
        "Time between sending requests to the device and their completion, summed; of a flush, \
         all of its time.",
    ),
    BOTH.time("elapsed_ns", "Time from start to completion, or in the system call, summed."),
    TABLES.count(
        "dropped",
        "I/Os, files and processes that are not counted: a table in the kernel had no room, or \
         the end of an I/O was not seen.",
    ),
    counted::RUNS,
    counted::OWN_NS,
];

const PROBE: Origin = Origin("the probe");
const BOTH: Origin = Origin("tracepoints block_io_done, sys_exit");
const BLOCK: Origin = Origin("tracepoints block_io_start, block_rq_issue, block_io_done");
const CALLS: Origin = Origin("tracepoints sys_enter, sys_exit");
const TABLES: Origin = Origin("the programs themselves");

/// Columns of the histogram, from the lower bound of each.
macro_rules! bucket_columns {
    ($($start_ns:literal),+ $(,)?) => {
        const BUCKET_STARTS_NS: [u64; BUCKETS] = [$($start_ns),+];
        const BUCKET_COLUMNS: [Column; BUCKETS] = [$(BOTH.count(
            concat!("ios_from_", $start_ns, "ns"),
            concat!("I/Os that took ", $start_ns, " ns or more, and less than the next of these."),
        )),+];
    };
}

counted::buckets! {
    bucket_columns,
    [0],
    [10_737_418_240, 12_884_901_888, 15_032_385_536, 17_179_869_184]
}

const COLUMNS: [Column; LEADING + BUCKETS] = counted::joined(&LEADING_COLUMNS, &BUCKET_COLUMNS);

/// Returns the lowest latency that a bucket column counts, in nanoseconds; `None` for other
/// columns.
pub fn bucket_start_ns(column: &str) -> Option<u64> {
    counted::start_of(column, &BUCKET_COLUMNS, &BUCKET_STARTS_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_say_what_the_kernel_programs_count() {
        for (bucket, start_ns) in BUCKET_STARTS_NS.into_iter().enumerate() {
            assert_eq!(blockstone_sys::bpf::io::bucket_start_ns(bucket), start_ns);
        }
        assert_eq!(bucket_start_ns("ios_from_1024ns"), Some(1024));
        assert_eq!(bucket_start_ns("ios"), None);
    }
}
