//! Capacity of units of hardware, the number of them that a need takes, and the binding ceiling.
//!
//! `units = max over ceilings of need ÷ (capacity of a unit × utilisation)`. The need is that of
//! the hardware: all writes are multiplied once by the write penalty of the redundancy. A ceiling
//! is checked if both the need and the capacity are known.

pub mod cache;
pub mod carried;
pub mod catalogue;
mod ceilings;
pub mod change;
pub mod cpu;
pub mod disk;
pub mod flash;
pub mod headroom;
pub mod licence;
pub mod money;
pub mod queue;
pub mod redundancy;
pub mod unit;

use blockstone_base::hint::Hint;
use serde::Serialize;

pub use catalogue::Catalogue;
pub use ceilings::mixed_iops;
pub use redundancy::Redundancy;
pub use unit::Unit;

/// Demand on the hardware, each with the averaging time and the percentile of its source. Stated by
/// the user, or taken from a [`crate::need`]. An unknown quantity is `None` and is not checked
/// against any ceiling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    pub reads_per_s: Option<f64>,
    pub writes_per_s: Option<f64>,
    pub read_bytes_per_s: Option<f64>,
    pub write_bytes_per_s: Option<f64>,
    pub redo_bytes_per_s: Option<f64>,
    pub commits_per_s: Option<f64>,
    pub size_bytes: Option<f64>,
    /// Busy cores of the source system.
    pub cores: Option<f64>,
    pub memory_bytes: Option<f64>,
    pub sessions: Option<f64>,
}

/// Planned use of the units.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub redundancy: Redundancy,
    /// Planned share of the throughput of a unit, above 0 to 1.
    pub utilisation: f64,
    /// Planned share of the capacity of a unit (GB, memory, sessions), above 0 to 1. A disk that is
    /// 90 % busy makes requests wait, one that is 90 % full does not.
    pub fill: f64,
    /// Share of the reads served by a flash cache, 0 to 1. Writes always reach the disks.
    pub cached_reads: f64,
    /// Measured I/Os per second of a unit at the wanted latency ([`headroom`]); replaces the figure
    /// of the catalogue, and is not reduced further by the utilisation.
    pub measured_iops: Option<f64>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            redundancy: Redundancy::External,
            utilisation: 1.0,
            fill: 1.0,
            cached_reads: 0.0,
            measured_iops: None,
        }
    }
}

/// One limit of a unit, compared with the need.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ceiling {
    /// The name with its unit of measure: `IOPS`, `MB/s`, `redo MB/s`, `GB` …
    pub name: String,
    pub need: f64,
    /// Capacity of one unit at the planned utilisation.
    pub unit_capacity: f64,
    pub units: u64,
    pub binding: bool,
    /// Units ÷ units of the binding ceiling.
    pub slack: f64,
    /// Share of the capacity of all units of the answer that the need uses, without a planned
    /// reserve: U = R ÷ C.
    pub utilisation: f64,
}

/// The number of units of one kind that a demand takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    pub unit: String,
    pub units: u64,
    /// In the order of the catalogue's columns; exactly one is binding.
    pub ceilings: Vec<Ceiling>,
    /// Ceilings with a need but an unknown capacity of the unit.
    pub unchecked: Vec<&'static str>,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error, Hint)]
pub enum HardwareError {
    #[error("size hardware: {what} is {value}")]
    #[hint("{hint}")]
    Quantity { what: String, value: f64, hint: &'static str },
    #[error("size hardware: nothing that is needed can be held against {unit}")]
    #[hint("state what one can do (IOPS, MB/s, GB …) in the catalogue")]
    NothingToCheck { unit: String },
    #[error("size hardware: {unit}: {why}")]
    #[hint("{hint}")]
    Unit { unit: String, why: String, hint: &'static str },
    #[error("size hardware: {what} {name} is not in the catalogue")]
    #[hint("it has {known}")]
    Unknown { what: &'static str, name: String, known: String },
    #[error("size hardware: redundancy {0:?} is not known")]
    #[hint("{1}")]
    Redundancy(String, &'static str),
    #[error(transparent)]
    #[hint(transparent)]
    Flash(#[from] blockstone_flash::estimate::EstimateError),
}

/// Checks every ceiling of `unit`, and determines the one that takes the most units. Of equals, the
/// first one binds.
pub fn answer(demand: &Demand, unit: &Unit, plan: &Plan) -> Result<Answer, HardwareError> {
    plan.check()?;
    demand.check()?;
    let mut ceilings = Vec::new();
    let mut unchecked = Vec::new();
    for kind in ceilings::ALL {
        let Some(need) = (kind.need)(demand, plan) else { continue };
        let Some(stated) = (kind.capacity)(unit, plan, demand) else {
            if kind.expected {
                unchecked.push(kind.name);
            }
            continue;
        };
        let measured = plan.measured_iops.is_some() && kind.name == ceilings::IOPS;
        let planned = match kind.holds {
            true => plan.fill,
            false if measured => 1.0,
            false => plan.utilisation,
        };
        positive(&format!("{} of {}", kind.name, unit.name), stated)?;
        ceilings.push((kind.name, need, stated, stated * planned));
    }
    if ceilings.is_empty() {
        return Err(HardwareError::NothingToCheck { unit: unit.name.clone() });
    }
    let (ceilings, most) = weighed(&ceilings);
    Ok(Answer { unit: unit.name.clone(), units: most, ceilings, unchecked })
}

/// A ceiling before the comparison with the others: name, need, and the capacity of a unit as
/// stated and as planned.
type Stated = (&'static str, f64, f64, f64);

fn weighed(ceilings: &[Stated]) -> (Vec<Ceiling>, u64) {
    // Compares exact quotients: two ceilings that take one disk each are not necessarily equal.
    let load = |&(_, need, _, capacity): &Stated| need / capacity;
    let heaviest = ceilings.iter().map(load).fold(0.0, f64::max);
    let binding = ceilings.iter().position(|ceiling| load(ceiling) >= heaviest).unwrap_or(0);
    let most = ceilings.get(binding).map_or(0, |&(_, need, _, capacity)| units(need, capacity));
    let weigh = |(index, &(name, need, stated, unit_capacity)): (usize, &Stated)| {
        let units = units(need, unit_capacity);
        Ceiling {
            name: name.to_owned(),
            need,
            unit_capacity,
            units,
            binding: index == binding,
            slack: if most == 0 { 1.0 } else { units as f64 / most as f64 },
            utilisation: if most == 0 { 0.0 } else { need / (stated * most as f64) },
        }
    };
    (ceilings.iter().enumerate().map(weigh).collect(), most)
}

/// Returns whole units; a quotient that exceeds a whole number by rounding only is not rounded up.
fn units(need: f64, capacity: f64) -> u64 {
    let units = need / capacity;
    if units.is_finite() { (units - units * 1e-12).ceil() as u64 } else { u64::MAX }
}

impl Answer {
    /// Returns the binding ceiling; `None` only in an answer that [`answer`] did not make.
    pub fn binding(&self) -> Option<&Ceiling> {
        self.ceilings.iter().find(|ceiling| ceiling.binding)
    }
}

impl Plan {
    fn check(&self) -> Result<(), HardwareError> {
        let penalty = self.redundancy.penalty();
        share("the planned utilisation", self.utilisation)?;
        share("the planned fill", self.fill)?;
        if !(0.0..=1.0).contains(&self.cached_reads) {
            let what = "the share of reads from flash cache".to_owned();
            let hint = "from 0 to 1";
            return Err(HardwareError::Quantity { what, value: self.cached_reads, hint });
        }
        if let Some(iops) = self.measured_iops {
            positive("the measured IOPS of a unit", iops)?;
        }
        if !(1.0..=1000.0).contains(&penalty) {
            let what = "the penalty of a write".to_owned();
            return Err(HardwareError::Quantity { what, value: penalty, hint: "from 1 to 1000" });
        }
        Ok(())
    }
}

impl Demand {
    fn check(&self) -> Result<(), HardwareError> {
        for (what, value) in [
            ("reads/s", self.reads_per_s),
            ("writes/s", self.writes_per_s),
            ("bytes read/s", self.read_bytes_per_s),
            ("bytes written/s", self.write_bytes_per_s),
            ("bytes of redo/s", self.redo_bytes_per_s),
            ("commits/s", self.commits_per_s),
            ("bytes of data", self.size_bytes),
            ("busy cores", self.cores),
            ("bytes of memory", self.memory_bytes),
            ("sessions", self.sessions),
        ] {
            // Its products must stay finite.
            if value.is_some_and(|value| !(0.0..=1e30).contains(&value)) {
                let (what, value) = (what.to_owned(), value.unwrap_or_default());
                let hint = "a number, zero or more";
                return Err(HardwareError::Quantity { what, value, hint });
            }
        }
        Ok(())
    }

    /// Returns the I/Os per second of the storage; `None` unless both rates are known.
    pub fn hardware_iops(&self, redundancy: Redundancy) -> Option<f64> {
        Some(redundancy.hardware_iops(self.reads_per_s?, self.writes_per_s?))
    }

    /// Returns the demand that remains when one of several databases is moved elsewhere; a quantity
    /// that is unknown in either stays unknown.
    #[must_use]
    pub fn less(&self, moved: &Self) -> Self {
        let less = |all: Option<f64>, part: Option<f64>| Some((all? - part?).max(0.0));
        Self {
            reads_per_s: less(self.reads_per_s, moved.reads_per_s),
            writes_per_s: less(self.writes_per_s, moved.writes_per_s),
            read_bytes_per_s: less(self.read_bytes_per_s, moved.read_bytes_per_s),
            write_bytes_per_s: less(self.write_bytes_per_s, moved.write_bytes_per_s),
            redo_bytes_per_s: less(self.redo_bytes_per_s, moved.redo_bytes_per_s),
            commits_per_s: less(self.commits_per_s, moved.commits_per_s),
            size_bytes: less(self.size_bytes, moved.size_bytes),
            cores: less(self.cores, moved.cores),
            memory_bytes: less(self.memory_bytes, moved.memory_bytes),
            sessions: less(self.sessions, moved.sessions),
        }
    }
}

fn amount(what: &str, value: f64) -> Result<(), HardwareError> {
    if value >= 0.0 && value.is_finite() {
        return Ok(());
    }
    let hint = "it must be a number, zero or more";
    Err(HardwareError::Quantity { what: what.to_owned(), value, hint })
}

fn positive(what: &str, value: f64) -> Result<(), HardwareError> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    let hint = "it must be a number above zero";
    Err(HardwareError::Quantity { what: what.to_owned(), value, hint })
}

fn share(what: &str, value: f64) -> Result<(), HardwareError> {
    if value > 0.0 && value <= 1.0 {
        return Ok(());
    }
    let hint = "above 0, at most 1 (0.9 is 90 %)";
    Err(HardwareError::Quantity { what: what.to_owned(), value, hint })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn demand(reads: f64, writes: f64) -> Demand {
        Demand { reads_per_s: Some(reads), writes_per_s: Some(writes), ..Demand::default() }
    }

    fn disk() -> Unit {
        Unit { name: "disk".to_owned(), iops: Some(180.0), gb: Some(600.0), ..Unit::default() }
    }

    fn with(redundancy: Redundancy) -> Plan {
        Plan { redundancy, ..Plan::default() }
    }

    #[test]
    fn writes_count_as_often_as_the_storage_does_them() {
        let iops = |redundancy| demand(5000.0, 5000.0).hardware_iops(redundancy);
        let levels = [Redundancy::External, Redundancy::Normal, Redundancy::High];
        assert_eq!(levels.map(iops), [Some(10_000.0), Some(15_000.0), Some(20_000.0)]);
        let units = |r| answer(&demand(5000.0, 5000.0), &disk(), &with(r)).unwrap().units;
        assert_eq!(levels.map(units), [56, 84, 112]);
        let normal = answer(&demand(5000.0, 5000.0), &disk(), &with(Redundancy::Normal)).unwrap();
        assert_eq!(normal.unchecked, Vec::<&str>::new());
        let used = normal.binding().unwrap().utilisation;
        assert!((used - 15_000.0 / (84.0 * 180.0)).abs() < 1e-12, "U = R / C: {used}");
    }

    #[test]
    fn a_planned_reserve_takes_more_disks_and_a_measured_rate_is_not_reduced_again() {
        let plan = Plan { utilisation: 0.9, ..with(Redundancy::Normal) };
        assert_eq!(answer(&demand(5000.0, 5000.0), &disk(), &plan).unwrap().units, 93);
        let measured = Plan { measured_iops: Some(150.0), ..plan };
        let answer = answer(&demand(5000.0, 5000.0), &disk(), &measured).unwrap();
        assert_eq!((answer.units, answer.binding().unwrap().unit_capacity), (100, 150.0));
    }

    #[test]
    fn capacity_binds_where_it_takes_more() {
        let large = Demand { size_bytes: Some(60e12), ..demand(5000.0, 5000.0) };
        let answer = answer(&large, &disk(), &with(Redundancy::High)).unwrap();
        assert_eq!((answer.units, answer.binding().unwrap().name.as_str()), (300, "GB"));
        assert_eq!(answer.ceilings[0].units, 112);
        assert!((answer.ceilings[0].slack - 112.0 / 300.0).abs() < 1e-12);
    }

    #[test]
    fn flash_cache_takes_off_reads_only() {
        let plan = Plan { cached_reads: 1.0, ..with(Redundancy::Normal) };
        let answer = answer(&demand(5000.0, 5000.0), &disk(), &plan).unwrap();
        assert_eq!(Some(answer.ceilings[0].need), Some(10_000.0));
    }

    #[test]
    fn reads_and_writes_that_share_a_device_slow_each_other() {
        let (read_iops, write_iops) = (Some(2800.0), Some(27.0));
        let shared = Some(true);
        let flash = Unit { read_iops, write_iops, shared, ..Unit::default() };
        let answer = answer(&demand(50.0, 50.0), &flash, &Plan::default()).unwrap();
        assert_eq!(format!("{:.1}", answer.ceilings[0].unit_capacity), "53.5");
        assert_eq!((answer.units, answer.binding().unwrap().name.as_str()), (2, "IOPS"));
        let idle = super::answer(&demand(0.0, 0.0), &flash, &Plan::default()).unwrap();
        assert_eq!(idle.units, 0);
    }

    #[test]
    fn nothing_known_or_no_number_is_an_error() {
        let none = answer(&Demand::default(), &disk(), &Plan::default());
        assert!(matches!(none, Err(HardwareError::NothingToCheck { .. })));
        for bad in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(answer(&demand(bad, 1.0), &disk(), &Plan::default()).is_err());
            let unit = Unit { iops: Some(bad), ..disk() };
            assert!(answer(&demand(1.0, 1.0), &unit, &Plan::default()).is_err());
            let plan = Plan { utilisation: bad, ..Plan::default() };
            assert!(answer(&demand(1.0, 1.0), &disk(), &plan).is_err());
        }
        let zero = Unit { iops: Some(0.0), ..disk() };
        let error = answer(&demand(1.0, 1.0), &zero, &Plan::default()).unwrap_err();
        assert!(error.told().contains("IOPS of disk is 0\nhint: "), "{error}");
        assert_eq!(answer(&demand(0.0, 0.0), &disk(), &Plan::default()).unwrap().units, 0);
        assert_eq!(units(f64::MAX, f64::MIN_POSITIVE), u64::MAX);
    }

    fn any_demand() -> impl Strategy<Value = Demand> {
        let some = || proptest::option::of(0.0..1e12_f64);
        (some(), some(), some(), some(), some(), some()).prop_map(|(r, w, rb, wb, gb, cores)| {
            Demand {
                reads_per_s: r,
                writes_per_s: w,
                read_bytes_per_s: rb,
                write_bytes_per_s: wb,
                size_bytes: gb,
                cores,
                ..Demand::default()
            }
        })
    }

    fn any_unit() -> impl Strategy<Value = Unit> {
        let some = || proptest::option::of(1e-3..1e9_f64);
        (some(), some(), some(), some(), some(), any::<bool>()).prop_map(
            |(iops, read_iops, write_iops, mbps, gb, shared)| Unit {
                iops,
                read_iops,
                write_iops,
                mbps,
                gb,
                cores: gb,
                shared: Some(shared),
                ..Unit::default()
            },
        )
    }

    fn any_plan() -> impl Strategy<Value = Plan> {
        (0.01..=1.0_f64, 0.01..=1.0_f64, 0.0..=1.0_f64, 1.0..6.0_f64).prop_map(
            |(utilisation, fill, cached_reads, penalty)| Plan {
                redundancy: Redundancy::Penalty(penalty),
                utilisation,
                fill,
                cached_reads,
                measured_iops: None,
            },
        )
    }

    proptest! {
        #[test]
        fn more_need_never_takes_less_hardware(
            demand in any_demand(), unit in any_unit(), plan in any_plan(), more in 1.0..10.0_f64
        ) {
            let Ok(now) = answer(&demand, &unit, &plan) else { return Ok(()) };
            for larger in [
                Demand { reads_per_s: demand.reads_per_s.map(|x| x * more), ..demand.clone() },
                Demand { writes_per_s: demand.writes_per_s.map(|x| x * more), ..demand.clone() },
                Demand { size_bytes: demand.size_bytes.map(|x| x * more), ..demand.clone() },
                Demand {
                    write_bytes_per_s: demand.write_bytes_per_s.map(|x| x * more),
                    ..demand.clone()
                },
            ] {
                prop_assert!(answer(&larger, &unit, &plan).unwrap().units >= now.units);
            }
        }

        #[test]
        fn the_binding_ceiling_has_the_most_units(
            demand in any_demand(), unit in any_unit(), plan in any_plan()
        ) {
            let Ok(answer) = answer(&demand, &unit, &plan) else { return Ok(()) };
            prop_assert_eq!(answer.ceilings.iter().filter(|c| c.binding).count(), 1);
            let binding = answer.binding().unwrap();
            prop_assert_eq!(binding.units, answer.units);
            for ceiling in &answer.ceilings {
                prop_assert!(ceiling.units <= binding.units && ceiling.slack <= 1.0);
                prop_assert!(ceiling.utilisation <= 1.0 + 1e-9);
            }
        }

        #[test]
        fn no_number_makes_it_panic(
            values in proptest::array::uniform10(any::<f64>()), units in any::<u64>()
        ) {
            let [reads, writes, bytes, size, iops, gb, utilisation, fill, cached, penalty] = values;
            let demand = Demand {
                reads_per_s: Some(reads),
                writes_per_s: Some(writes),
                read_bytes_per_s: Some(bytes),
                write_bytes_per_s: Some(bytes),
                size_bytes: Some(size),
                ..Demand::default()
            };
            let flash = Some("tlc".to_owned());
            let unit = Unit { iops: Some(iops), gb: Some(gb), flash, ..Unit::default() };
            let redundancy = Redundancy::Penalty(penalty);
            let measured_iops = None;
            let plan =
                Plan { redundancy, utilisation, fill, cached_reads: cached, measured_iops };
            let _ = answer(&demand, &unit, &plan);
            let plan = Plan::default();
            let _ = answer(&demand, &unit, &plan);
            let _ = change::changes(&demand, &unit, &plan, change::Known::default());
            let _ = flash::of(&demand, &unit, &plan, units);
            let _ = headroom::queued(reads, iops, units);
            let _ = queue::servers_for(reads, writes);
            let _ = disk::Disk { rpm: reads, seek_track_s: writes, seek_s: bytes, mbps: size }
                .iops(iops, gb);
            let _ = cpu::cores(reads, writes, bytes, size);
        }
    }
}
