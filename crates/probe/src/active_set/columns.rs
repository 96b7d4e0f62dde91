//! The columns of the probe `active_set`.

use blockstone_base::column::{Column, Origin, Schema, Unit};
use blockstone_sys::bpf::active::BUCKETS;

use crate::counted;

/// The schema: one row for each device and file with I/O, and one on the counting itself.
pub const SCHEMA: Schema = Schema {
    probe: "active_set",
    doc: "Which parts of devices and files are read and written, in units of 4 KiB: how much in a \
          window, how much of it again, and how soon. A window is the time from one row to the \
          next.",
    columns: &COLUMNS,
};

/// Columns before the histogram.
pub const LEADING: usize = LEADING_COLUMNS.len();

const LEADING_COLUMNS: [Column; 17] = [
    PROBE.state("kind", "`device`, `file`, or `tracing` for what the counting itself costs."),
    PROBE.state("file_type", "Of a file: `data`, `redo`, `temp`, `control` or `other`."),
    Origin("stat(2), /sys/dev/block/*/size").level(
        "size_bytes",
        Unit::Bytes,
        "Size of the file or device.",
    ),
    UNITS.bytes("touched_bytes", "Size of the units accessed in a window, summed over windows."),
    UNITS.bytes("written_bytes", "Size of the units that were written."),
    UNITS.bytes(
        "compared_bytes",
        "Size of the units that could have been seen in the window before; none in the first.",
    ),
    UNITS.bytes("again_bytes", "Compared units that were also accessed in the window before."),
    UNITS.bytes(
        "hot_half_bytes",
        "The fewest units that took half of the accesses of a window, summed over windows.",
    ),
    UNITS.bytes("hot_nine_tenths_bytes", "The same for nine tenths of the accesses."),
    UNITS.bytes("hot_all_but_one_percent_bytes", "The same for 99 % of the accesses."),
    UNITS.count("sampled_units", "Units behind `touched_bytes`: all, or a sample of them."),
    UNITS.count(
        "accesses",
        "Accesses to units: of a device counted, of a file estimated from the sampled units.",
    ),
    UNITS.count(
        "first_accesses",
        "Accesses to units of a device that had not been accessed before, or so long ago that \
         they were forgotten.",
    ),
    PROBE.count("windows", "Windows that ended; in the row on the counting itself."),
    UNITS.count(
        "lost",
        "Accesses and parts of requests that had no room in a table of the kernel: figures of \
         such a window are too low.",
    ),
    counted::RUNS,
    counted::OWN_NS,
];

const PROBE: Origin = Origin("the probe");
const UNITS: Origin = Origin("tracepoints block_rq_issue, block_rq_requeue");

/// Columns of the histogram, from the lower bound of each.
macro_rules! bucket_columns {
    ($($start:literal),+ $(,)?) => {
        const BUCKET_STARTS: [u64; BUCKETS] = [$($start),+];
        const BUCKET_COLUMNS: [Column; BUCKETS] = [$(UNITS.count(
            concat!("again_after_", $start),
            concat!(
                "Accesses to units of a device since whose last access there were at least ",
                $start,
                " accesses of the device, and fewer than the next column begins with."
            ),
        )),+];
    };
}

counted::buckets! {
    bucket_columns,
    [
        1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128,
        160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896
    ],
    []
}

const COLUMNS: [Column; LEADING + BUCKETS] = counted::joined(&LEADING_COLUMNS, &BUCKET_COLUMNS);

/// Returns the lowest number of accesses that a bucket column stands for; `None` for other columns.
pub fn bucket_start(column: &str) -> Option<u64> {
    counted::start_of(column, &BUCKET_COLUMNS, &BUCKET_STARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_say_what_the_kernel_programs_count() {
        for (bucket, start) in BUCKET_STARTS.into_iter().enumerate() {
            assert_eq!(blockstone_sys::bpf::active::bucket_start(bucket), start);
        }
        assert_eq!(bucket_start("again_after_1024"), Some(1024));
        assert_eq!(bucket_start("accesses"), None);
    }
}
