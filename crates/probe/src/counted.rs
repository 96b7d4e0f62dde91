//! Common parts of the probes that count in the kernel: buckets, four per power of two, and the
//! columns on the cost of counting.

use blockstone_base::column::{Column, Origin};

const COST: Origin = Origin("bpf(2) BPF_ENABLE_STATS");
pub const RUNS: Column = COST.count(
    "runs",
    "Runs of a program of this probe that the kernel measured, which it does for a sixteenth of \
     the time, beginning at the start.",
);
pub const OWN_NS: Column = COST.time("own_ns", "Time that these runs took.");

/// Calls a macro with the lower bounds of buckets from 1,024 to 8,589,934,592, and with those
/// before and after them.
macro_rules! buckets {
    ($make:ident, [$($before:literal),*], [$($after:literal),*]) => {
        $make! {
            $($before,)*
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
            $(, $after)*
        }
    };
}
pub(crate) use buckets;

/// Returns the leading columns of a probe followed by those of its buckets.
pub const fn joined<const ALL: usize>(leading: &[Column], buckets: &[Column]) -> [Column; ALL] {
    assert!(leading.len() + buckets.len() == ALL);
    let mut columns = [leading[0]; ALL];
    let mut index = 0;
    while index < ALL {
        columns[index] =
            if index < leading.len() { leading[index] } else { buckets[index - leading.len()] };
        index += 1;
    }
    columns
}

/// Returns the lower bound of the bucket with this column; `None` for other columns.
pub fn start_of(column: &str, buckets: &[Column], starts: &[u64]) -> Option<u64> {
    let index = buckets.iter().position(|known| known.name == column)?;
    starts.get(index).copied()
}
