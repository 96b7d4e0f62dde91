//! Individual flushes of a recording.

use blockstone_base::column::Cell;
pub use blockstone_base::flushes::{Flush, FlushSlope, FlushTime, slope};
use blockstone_base::load::FLUSHES;
use blockstone_record::{RecordError, Recording};

/// Reads the flushes of a recording; empty if they were not measured.
pub fn read(recording: &Recording) -> Result<Vec<Flush>, RecordError> {
    if !recording.manifest.probes.iter().any(|info| info.probe == FLUSHES.probe) {
        return Ok(Vec::new());
    }
    let series = recording.series(FLUSHES.probe)?;
    let place = |name: &str| series.columns().iter().position(|column| column.name == name);
    let (Some(dirty), Some(flush)) = (place("unflushed_bytes"), place("flush_ns")) else {
        return Ok(Vec::new());
    };
    let number = |cell| match cell {
        Cell::Value(value) => u64::try_from(value).ok(),
        _ => None,
    };
    let flush = |row: blockstone_record::SeriesRow<'_>| {
        let (unflushed_bytes, flush_ns) = (number(row.cell(dirty))?, number(row.cell(flush))?);
        Some(Flush { unflushed_bytes, flush_ns })
    };
    Ok(series.rows().filter_map(flush).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::flushes;

    #[test]
    fn a_slope_has_an_interval_and_a_flat_time_has_none_above_nothing() {
        let found = slope(&flushes(|mib| 1e6 + 2e5 * mib)).unwrap();
        let sizes: Vec<u64> = found.sizes.iter().map(|time| time.unflushed_bytes).collect();
        assert_eq!(sizes, [0, 64 << 10, 1 << 20, 8 << 20]);
        let e = found.ns_per_mib;
        assert!(e.low <= 2e5 && 2e5 <= e.high && e.high - e.low < 4e4, "{e:?}");
        assert!((found.grows_by_ns().unwrap() / 1.6e6 - 1.0).abs() < 0.1);
        let flat = slope(&flushes(|_| 1e6)).unwrap();
        assert_eq!(flat.grows_by_ns(), None, "{flat:?}");
        assert_eq!(slope(&flushes(|_| 1e6)[..20]), None, "five after each size");
    }
}
