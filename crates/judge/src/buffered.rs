//! Rounds of sequential writes → the rate at which write(2) returns, the rate at which data are
//! flushed, and the rate of direct writes.

use blockstone_base::column::Cell;
use blockstone_base::load::BUFFERED;
use blockstone_base::stats::{self, Estimate};
use blockstone_record::{RecordError, Recording, SeriesRow};
use serde::Serialize;

/// Sequential writes through the page cache, compared with direct ones; rates in decimal megabytes
/// a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BufferedWrite {
    /// Bytes written in either way in each round.
    pub written_bytes: u64,
    /// Rate at which write(2) returned: that of the page cache.
    pub returned_mb_per_s: Estimate,
    /// Rate including the fsync(2) that followed.
    pub flushed_mb_per_s: Estimate,
    /// Rate of direct writes of the same bytes.
    pub direct_mb_per_s: Estimate,
}

/// Fewest rounds for which there is an interval.
const ENOUGH: usize = 3;

/// Reads the writes of a recording. `None` if they were not measured, or in too few rounds.
pub fn read(recording: &Recording) -> Result<Option<BufferedWrite>, RecordError> {
    if !recording.manifest.probes.iter().any(|info| info.probe == BUFFERED.probe) {
        return Ok(None);
    }
    let series = recording.series(BUFFERED.probe)?;
    let place = |name: &str| series.columns().iter().position(|column| column.name == name);
    let names = ["written_bytes", "returned_ns", "flushed_ns", "direct_ns"];
    let [Some(written), Some(returned), Some(flushed), Some(direct)] = names.map(place) else {
        return Ok(None);
    };
    let number = |row: &SeriesRow<'_>, column| match row.cell(column) {
        Cell::Value(value) => Some(value as f64),
        _ => None,
    };
    let round = |row: SeriesRow<'_>| {
        let of = |column| number(&row, column);
        Some([of(written)?, of(returned)?, of(flushed)?, of(direct)?])
    };
    Ok(of(&series.rows().filter_map(round).collect::<Vec<_>>()))
}

/// Derives the figures from rounds: bytes, and nanoseconds of the three ways.
fn of(rounds: &[[f64; 4]]) -> Option<BufferedWrite> {
    // All rounds write the same number of bytes.
    let &[bytes, ..] = rounds.first().filter(|_| rounds.len() >= ENOUGH)?;
    let rate = |column: usize| {
        let times: Vec<f64> = rounds.iter().map(|round| round[column]).collect();
        let ns = stats::mean(&times)?.not_negative();
        // A byte per nanosecond is 1,000 MB/s.
        let of = |ns: f64| bytes * 1e3 / ns;
        let duration_ns = times.iter().sum::<f64>() as u64;
        let (low, high) = (of(ns.high), of(ns.low));
        (ns.value > 0.0).then(|| Estimate { value: of(ns.value), low, high, duration_ns, ..ns })
    };
    Some(BufferedWrite {
        written_bytes: bytes as u64,
        returned_mb_per_s: rate(1)?,
        flushed_mb_per_s: rate(2)?,
        direct_mb_per_s: rate(3)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_all_rounds_and_two_rounds_are_too_few() {
        let round = |ms: f64| [8e6, 1e6, ms * 1e6, 80e6];
        let found = of(&[round(90.0), round(100.0), round(110.0)]).unwrap();
        assert_eq!(found.written_bytes, 8_000_000);
        assert!((found.returned_mb_per_s.value - 8_000.0).abs() < 1e-6);
        assert!((found.direct_mb_per_s.value - 100.0).abs() < 1e-9);
        let flushed = found.flushed_mb_per_s;
        assert!((flushed.value - 80.0).abs() < 1e-9, "{flushed:?}");
        assert!(flushed.low < 80.0 && flushed.high > 80.0 && flushed.samples == 3);
        assert_eq!(of(&[round(1.0), round(2.0)]), None);
    }
}
