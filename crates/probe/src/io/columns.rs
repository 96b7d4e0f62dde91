//! The columns of the probe `kernel_io`.

use blockstone_base::column::{Column, Origin, Schema, Unit};
use blockstone_sys::bpf::io::BUCKETS;

/// What the probe records, one row for each layer, role, file, operation and mode that occurred,
/// and one on the tracing itself.
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
    COST.count("runs", "Times that a program of this probe ran."),
    COST.time("own_ns", "Time that the programs of this probe took."),
];

const PROBE: Origin = Origin("the probe");
const BOTH: Origin = Origin("tracepoints block_io_done, sys_exit");
const BLOCK: Origin = Origin("tracepoints block_io_start, block_rq_issue, block_io_done");
const CALLS: Origin = Origin("tracepoints sys_enter, sys_exit");
const TABLES: Origin = Origin("the programs themselves");
const COST: Origin = Origin("bpf(2) BPF_ENABLE_STATS");

/// The histogram's columns, from the lower end of each.
macro_rules! buckets {
    ($($start_ns:literal),+ $(,)?) => {
        const BUCKET_STARTS_NS: [u64; BUCKETS] = [$($start_ns),+];
        const BUCKET_COLUMNS: [Column; BUCKETS] = [$(BOTH.count(
            concat!("ios_from_", $start_ns, "ns"),
            concat!("I/Os that took ", $start_ns, " ns or more, and less than the next of these."),
        )),+];
    };
}

buckets! {
    0,
    1_024, 1_280, 1_536, 1_792,
    2_048, 2_560, 3_072, 3_584,
    4_096, 5_120, 6_144, 7_168,
    8_192, 10_240, 12_288, 14_336,
    16_384, 20_480, 24_576, 28_672,
    32_768, 40_960, 49_152, 57_344,
    65_536, 81_920, 98_304, 114_688,
    131_072, 163_840, 196_608, 229_376,
    262_144, 327_680, 393_216, 458_752,
    524_288, 655_360, 786_432, 917_504,
    1_048_576, 1_310_720, 1_572_864, 1_835_008,
    2_097_152, 2_621_440, 3_145_728, 3_670_016,
    4_194_304, 5_242_880, 6_291_456, 7_340_032,
    8_388_608, 10_485_760, 12_582_912, 14_680_064,
    16_777_216, 20_971_520, 25_165_824, 29_360_128,
    33_554_432, 41_943_040, 50_331_648, 58_720_256,
    67_108_864, 83_886_080, 100_663_296, 117_440_512,
    134_217_728, 167_772_160, 201_326_592, 234_881_024,
    268_435_456, 335_544_320, 402_653_184, 469_762_048,
    536_870_912, 671_088_640, 805_306_368, 939_524_096,
    1_073_741_824, 1_342_177_280, 1_610_612_736, 1_879_048_192,
    2_147_483_648, 2_684_354_560, 3_221_225_472, 3_758_096_384,
    4_294_967_296, 5_368_709_120, 6_442_450_944, 7_516_192_768,
    8_589_934_592, 10_737_418_240, 12_884_901_888, 15_032_385_536,
    17_179_869_184
}

const COLUMNS: [Column; LEADING + BUCKETS] = {
    let mut columns = [LEADING_COLUMNS[0]; LEADING + BUCKETS];
    let mut index = 0;
    while index < columns.len() {
        columns[index] =
            if index < LEADING { LEADING_COLUMNS[index] } else { BUCKET_COLUMNS[index - LEADING] };
        index += 1;
    }
    columns
};

/// The least latency that a bucket column counts, in nanoseconds; none for other columns.
pub fn bucket_start_ns(column: &str) -> Option<u64> {
    let index = BUCKET_COLUMNS.iter().position(|known| known.name == column)?;
    Some(BUCKET_STARTS_NS[index])
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
