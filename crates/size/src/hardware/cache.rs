//! Effects of a cache: the buffer cache of the database, and flash in front of disks.

use serde::Serialize;

use super::{Answer, Demand, HardwareError, Plan, Unit, answer};

/// A row of a database's own cache advice: the physical reads that a cache of another size would
/// have caused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdviceRow {
    /// Cache size ÷ present size.
    pub size_factor: f64,
    /// Physical reads ÷ present physical reads.
    pub reads_factor: f64,
}

/// Returns the reads with a cache of this size, relative to the present ones; linear between two
/// rows. `None` outside the rows: advice is not extrapolated.
pub fn reads_factor(advice: &[AdviceRow], size_factor: f64) -> Option<f64> {
    let sound = |row: &&AdviceRow| {
        row.size_factor > 0.0
            && row.size_factor.is_finite()
            && row.reads_factor >= 0.0
            && row.reads_factor.is_finite()
    };
    let mut rows: Vec<&AdviceRow> = advice.iter().filter(sound).collect();
    rows.sort_by(|a, b| a.size_factor.total_cmp(&b.size_factor));
    let upper = rows.iter().position(|row| row.size_factor >= size_factor)?;
    let above = rows[upper];
    let Some(below) = upper.checked_sub(1).map(|index| rows[index]) else {
        return (above.size_factor <= size_factor).then_some(above.reads_factor);
    };
    let part = (size_factor - below.size_factor) / (above.size_factor - below.size_factor);
    Some(below.reads_factor + part * (above.reads_factor - below.reads_factor))
}

/// The need with a cache of another size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheSize {
    pub size_factor: f64,
    /// Physical reads ÷ present physical reads; `None` outside the range of the advice.
    pub reads_factor: Option<f64>,
    pub hardware_iops: Option<f64>,
    pub units: Option<u64>,
}

/// Returns the need with half, the same and twice the cache.
pub fn sizes(
    demand: &Demand,
    advice: &[AdviceRow],
    unit: &Unit,
    plan: &Plan,
) -> Result<Vec<CacheSize>, HardwareError> {
    let of = |size_factor: f64| {
        // The present size needs no advice.
        let known = match size_factor.total_cmp(&1.0) {
            std::cmp::Ordering::Equal => Some(1.0),
            _ => reads_factor(advice, size_factor),
        };
        let Some(factor) = known else {
            let (hardware_iops, units) = (None, None);
            return Ok(CacheSize { size_factor, reads_factor: None, hardware_iops, units });
        };
        let demand = with_reads(demand, factor);
        let units = answer(&demand, unit, plan)?.units;
        let hardware_iops = demand.hardware_iops(plan.redundancy);
        Ok(CacheSize { size_factor, reads_factor: known, hardware_iops, units: Some(units) })
    };
    [0.5, 1.0, 2.0].into_iter().map(of).collect()
}

pub fn with_reads(demand: &Demand, factor: f64) -> Demand {
    Demand {
        reads_per_s: demand.reads_per_s.map(|reads| reads * factor),
        read_bytes_per_s: demand.read_bytes_per_s.map(|bytes| bytes * factor),
        ..demand.clone()
    }
}

/// Whether a flash log can help, by the writers. A log on flash makes commits faster; every write
/// still reaches the disks, so it is never subtracted from the need.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LogWrites {
    /// Redo writes ÷ (redo writes + data writes).
    pub redo_share: f64,
    /// Data writers dominate: the disks are busy with writes that a flash log does not affect.
    pub data_dominates: bool,
}

/// Compares the requests of the data writers with those of the log writer.
pub fn log_writes(data_writes: f64, redo_writes: f64) -> Option<LogWrites> {
    let redo_share = redo_writes / (data_writes + redo_writes);
    let sound = data_writes >= 0.0 && (0.0..=1.0).contains(&redo_share);
    sound.then_some(LogWrites { redo_share, data_dominates: redo_share < 0.5 })
}

/// Capacity that is unused because other ceilings require more units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stranded {
    pub gb: f64,
    /// Share of the bought capacity.
    pub share: f64,
    pub usd: Option<f64>,
}

/// Returns the stranded capacity; `None` if capacity or its need is unknown, or capacity itself
/// binds.
pub fn stranded(answer: &Answer, unit: &Unit) -> Option<Stranded> {
    let capacity = answer.ceilings.iter().find(|ceiling| ceiling.name == "GB");
    let need = capacity.filter(|ceiling| !ceiling.binding)?.need;
    let bought = unit.gb? * answer.units as f64;
    if bought <= 0.0 {
        return None;
    }
    let gb = (bought - need).max(0.0);
    let share = gb / bought;
    Some(Stranded { gb, share, usd: unit.usd.map(|usd| usd * answer.units as f64 * share) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVICE: [AdviceRow; 4] = [
        AdviceRow { size_factor: 0.4, reads_factor: 2.0 },
        AdviceRow { size_factor: 0.6, reads_factor: 1.4 },
        AdviceRow { size_factor: 1.0, reads_factor: 1.0 },
        AdviceRow { size_factor: 2.0, reads_factor: 0.5 },
    ];

    #[test]
    fn advice_is_interpolated_but_never_extrapolated() {
        assert!((reads_factor(&ADVICE, 0.5).unwrap() - 1.7).abs() < 1e-12);
        assert_eq!(reads_factor(&ADVICE, 2.0), Some(0.5));
        assert_eq!(reads_factor(&ADVICE, 0.4), Some(2.0));
        for outside in [0.3, 2.1, f64::NAN, f64::INFINITY] {
            assert_eq!(reads_factor(&ADVICE, outside), None, "{outside}");
        }
        assert_eq!(reads_factor(&[], 1.0), None);
    }

    #[test]
    fn a_doubled_cache_saves_disks_for_reads_only() {
        let demand =
            Demand { reads_per_s: Some(8000.0), writes_per_s: Some(1000.0), ..Demand::default() };
        let unit = Unit { iops: Some(100.0), ..Unit::default() };
        let sizes = sizes(&demand, &ADVICE, &unit, &Plan::default()).unwrap();
        let units: Vec<Option<u64>> = sizes.iter().map(|size| size.units).collect();
        assert_eq!(units, [Some(146), Some(90), Some(50)]);
        let none = super::sizes(&demand, &[], &unit, &Plan::default()).unwrap();
        assert_eq!([none[0].units, none[1].units, none[2].units], [None, Some(90), None]);
    }

    #[test]
    fn capacity_beyond_the_need_is_stranded() {
        let demand = Demand {
            reads_per_s: Some(1000.0),
            writes_per_s: Some(0.0),
            size_bytes: Some(1e12),
            ..Demand::default()
        };
        let unit = Unit { iops: Some(100.0), gb: Some(400.0), usd: Some(300.0), ..Unit::default() };
        let answer = answer(&demand, &unit, &Plan::default()).unwrap();
        let stranded = stranded(&answer, &unit).unwrap();
        assert_eq!((stranded.gb, stranded.share), (3000.0, 0.75));
        assert_eq!(stranded.usd, Some(2250.0));
    }

    #[test]
    fn data_writers_or_the_log() {
        assert!(log_writes(1000.0, 100.0).unwrap().data_dominates);
        assert!(!log_writes(100.0, 900.0).unwrap().data_dominates);
        assert_eq!(log_writes(0.0, 0.0), None);
        assert_eq!(log_writes(-10.0, 11.0), None);
        assert_eq!(log_writes(1.0, f64::INFINITY), None);
    }
}
