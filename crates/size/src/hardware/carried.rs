//! The inverse of sizing: the load that a given number of units carries.

use super::{Demand, HardwareError, Plan, Unit, answer};

/// Returns the database load that `units` carry if `reads` is the share of reads in its requests
/// and in its bytes. Limits that the unit does not state stay unknown.
pub fn carried(unit: &Unit, plan: &Plan, units: u64, reads: f64) -> Result<Demand, HardwareError> {
    let (some, none) = (Some(reads), Some(1.0 - reads));
    let one = Demand {
        reads_per_s: some,
        writes_per_s: none,
        read_bytes_per_s: some,
        write_bytes_per_s: none,
        redo_bytes_per_s: Some(1.0),
        commits_per_s: Some(1.0),
        size_bytes: Some(1.0),
        ..Demand::default()
    };
    let ceilings = answer(&one, unit, plan)?.ceilings;
    // The lowest ceiling of those that limit the same thing; reads served by a cache limit none.
    let most = |names: &[&str]| {
        let limits =
            ceilings.iter().filter(|it| names.contains(&it.name.as_str()) && it.need > 0.0);
        limits.map(|it| it.unit_capacity * units as f64 / it.need).reduce(f64::min)
    };
    let iops = most(&["IOPS", "read IOPS", "write IOPS"]);
    let bytes = most(&["MB/s", "read MB/s", "write MB/s", "link MB/s"]);
    Ok(Demand {
        reads_per_s: iops.map(|iops| iops * reads),
        writes_per_s: iops.map(|iops| iops * (1.0 - reads)),
        read_bytes_per_s: bytes.map(|bytes| bytes * reads),
        write_bytes_per_s: bytes.map(|bytes| bytes * (1.0 - reads)),
        redo_bytes_per_s: most(&["redo MB/s"]),
        commits_per_s: most(&["commits/s"]),
        size_bytes: most(&["GB"]),
        ..Demand::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Redundancy;

    #[test]
    fn units_carry_what_would_take_just_as_many_of_them() {
        let disk = Unit { iops: Some(125.0), gb: Some(600.0), mbps: Some(90.0), ..Unit::default() };
        for (redundancy, writes) in [
            (Redundancy::External, 1000.0),
            (Redundancy::Normal, 500.0),
            (Redundancy::High, 1000.0 / 3.0),
        ] {
            let plan = Plan { redundancy, ..Plan::default() };
            let found = carried(&disk, &plan, 8, 0.0).unwrap();
            assert_eq!((found.reads_per_s, found.writes_per_s), (Some(0.0), Some(writes)));
            let back = answer(&found, &disk, &plan).unwrap();
            assert_eq!(back.units, 8);
            assert!(back.ceilings.iter().all(|it| (it.utilisation - 1.0).abs() < 1e-9));
        }
        let planned = Plan { utilisation: 0.5, ..Plan::default() };
        assert_eq!(carried(&disk, &planned, 8, 1.0).unwrap().reads_per_s, Some(500.0));
        let link = Unit { link_mbps: Some(400.0), ..Unit::default() };
        let found = carried(&link, &Plan::default(), 15, 0.5).unwrap();
        assert_eq!((found.read_bytes_per_s, found.reads_per_s), (Some(3e9), None));
    }
}
