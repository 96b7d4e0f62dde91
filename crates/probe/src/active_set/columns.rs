//! The columns of the probe `active_set`.

use blockstone_base::column::{Column, Origin, Schema, Unit};
use blockstone_sys::bpf::active::BUCKETS;

/// What the probe records, one row for each device and file with I/O, and one on the counting
/// itself.
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
    UNITS.bytes("touched_bytes", "Units that were accessed in a window, summed over windows."),
    UNITS.bytes("written_bytes", "Those of them that were written."),
    UNITS.bytes(
        "compared_bytes",
        "Those of them that could have been seen in the window before; not in the first.",
    ),
    UNITS.bytes("again_bytes", "Those of these that were accessed in the window before too."),
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
    COST.count("runs", "Times that a program of this probe ran."),
    COST.time("own_ns", "Time that the programs of this probe took."),
];

const PROBE: Origin = Origin("the probe");
const UNITS: Origin = Origin("tracepoints block_rq_issue, block_rq_requeue");
const COST: Origin = Origin("bpf(2) BPF_ENABLE_STATS");

/// The histogram's columns, from the lower end of each.
macro_rules! buckets {
    ($($start:literal),+ $(,)?) => {
        const BUCKET_STARTS: [u64; BUCKETS] = [$($start),+];
        const BUCKET_COLUMNS: [Column; BUCKETS] = [$(UNITS.count(
            concat!("again_after_", $start),
            concat!(
                "Accesses to units of a device whose last access was ", $start,
                " accesses of the device ago or more, and less than the next of these."
            ),
        )),+];
    };
}

buckets! {
    1, 2, 3,
    4, 5, 6, 7,
    8, 10, 12, 14,
    16, 20, 24, 28,
    32, 40, 48, 56,
    64, 80, 96, 112,
    128, 160, 192, 224,
    256, 320, 384, 448,
    512, 640, 768, 896,
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
    8_589_934_592
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

/// The least number of accesses that a bucket column stands for; none for other columns.
pub fn bucket_start(column: &str) -> Option<u64> {
    let index = BUCKET_COLUMNS.iter().position(|known| known.name == column)?;
    Some(BUCKET_STARTS[index])
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
