//! Changes that would alter an answer.

use serde::Serialize;

use super::cache::{self, AdviceRow};
use super::disk::BLOCK_BYTES;
use super::{Answer, Demand, HardwareError, Plan, Unit, answer};

/// One change, and its effect.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    pub what: String,
    pub units: u64,
    /// The ceiling that binds after the change.
    pub binding: String,
    /// Utilisation of the binding ceiling after the change: need ÷ capacity of all units.
    pub utilisation: f64,
}

/// Additional information for [`changes`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    pub advice: &'a [AdviceRow],
    /// Databases by name, with the demand that remains if each is moved elsewhere. The remaining
    /// peak is not the difference of peaks, so the caller, who knows the hours, states it.
    pub without: &'a [(String, Demand)],
    /// Number of units in place.
    pub there: Option<u64>,
}

/// Returns the effects of redundancy by one level, the cache doubled, one unit more and less, half
/// the stroke, one database moved.
pub fn changes(
    demand: &Demand,
    unit: &Unit,
    plan: &Plan,
    known: Known,
) -> Result<Vec<Change>, HardwareError> {
    let now = answer(demand, unit, plan)?;
    let mut changes = Vec::new();
    for redundancy in plan.redundancy.neighbours().into_iter().flatten() {
        let other = Plan { redundancy, ..plan.clone() };
        changes.push(of(format!("redundancy {redundancy}"), &answer(demand, unit, &other)?));
    }
    if let Some(factor) = cache::reads_factor(known.advice, 2.0) {
        let demand = cache::with_reads(demand, factor);
        changes.push(of("buffer cache × 2".to_owned(), &answer(&demand, unit, plan)?));
    }
    for (units, what) in [
        (known.there, "the units that there are"),
        (now.units.checked_sub(1), "one unit less"),
        (now.units.checked_add(1), "one unit more"),
    ] {
        if let Some(units) = units.filter(|&units| units > 0) {
            changes.push(with_units(what, &now, units));
        }
    }
    if let Some(stroke) = shorter(unit) {
        let half = answer(demand, &stroke, plan)?;
        changes.push(of("half of the stroke of each".to_owned(), &half));
    }
    for (name, demand) in known.without {
        changes.push(of(format!("{name} moved elsewhere"), &answer(demand, unit, plan)?));
    }
    Ok(changes)
}

/// Returns the disk with half of its used stroke.
fn shorter(unit: &Unit) -> Option<Unit> {
    let disk = unit.mechanics()?;
    let stroke = unit.stroke.unwrap_or(1.0) / 2.0;
    let iops = disk.iops(BLOCK_BYTES, stroke).ok()?;
    let before = disk.iops(BLOCK_BYTES, stroke * 2.0).ok()?;
    // Stated IOPS grow by the same factor as those of the mechanics.
    let iops = unit.iops.map(|stated| stated * iops / before);
    Some(Unit { iops, gb: unit.gb.map(|gb| gb / 2.0), stroke: Some(stroke), ..unit.clone() })
}

fn of(what: String, answer: &Answer) -> Change {
    let (binding, utilisation) = match answer.binding() {
        Some(ceiling) => (ceiling.name.clone(), ceiling.utilisation),
        None => (String::new(), 0.0),
    };
    Change { what, units: answer.units, binding, utilisation }
}

/// Returns the utilisation with another number of units. Above 1 they do not carry the need.
fn with_units(what: &str, now: &Answer, units: u64) -> Change {
    let change = of(what.to_owned(), now);
    let utilisation = change.utilisation * now.units as f64 / units as f64;
    Change { units, utilisation, ..change }
}

/// Volumes attached to a cloud instance: both have limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attached {
    pub volumes: Answer,
    pub instances: Answer,
    /// One instance does not carry the need, whatever its number of volumes.
    pub instance_binds: bool,
    /// More volumes than this do not help one instance; `None` if they share no ceiling.
    pub volumes_useful: Option<u64>,
    pub binding: String,
}

/// Evaluates both. `instance` states the limits of its link to the volumes as `iops` and `mbps`.
pub fn attached(
    demand: &Demand,
    volume: &Unit,
    instance: &Unit,
    plan: &Plan,
) -> Result<Attached, HardwareError> {
    let volumes = answer(demand, volume, plan)?;
    let instances = answer(demand, instance, plan)?;
    let shared = [(instance.iops, volume.iops), (instance.mbps, volume.mbps)];
    let useful = shared.into_iter().filter_map(|(host, each)| Some(super::units(host?, each?)));
    let instance_binds = instances.units > 1;
    let binds = if instance_binds { &instances } else { &volumes };
    let ceiling = binds.binding().map_or("", |ceiling| ceiling.name.as_str());
    let binding = format!("{ceiling} of {}", binds.unit);
    Ok(Attached { instance_binds, volumes_useful: useful.max(), binding, volumes, instances })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Redundancy;

    fn demand(reads: f64, writes: f64) -> Demand {
        Demand { reads_per_s: Some(reads), writes_per_s: Some(writes), ..Demand::default() }
    }

    #[test]
    fn each_change_is_answered() {
        let unit = Unit { iops: Some(180.0), ..Unit::default() };
        let plan = Plan { redundancy: Redundancy::Normal, ..Plan::default() };
        let advice = [
            AdviceRow { size_factor: 1.0, reads_factor: 1.0 },
            AdviceRow { size_factor: 2.0, reads_factor: 0.64 },
        ];
        let without = [("hr".to_owned(), demand(4000.0, 1000.0))];
        let known = Known { advice: &advice, without: &without, there: None };
        let changes = changes(&demand(5000.0, 5000.0), &unit, &plan, known).unwrap();
        let seen: Vec<(&str, u64)> =
            changes.iter().map(|change| (change.what.as_str(), change.units)).collect();
        assert_eq!(
            seen,
            [
                ("redundancy external", 56),
                ("redundancy high", 112),
                ("buffer cache × 2", 74),
                ("one unit less", 83),
                ("one unit more", 85),
                ("hr moved elsewhere", 34),
            ]
        );
        assert!(changes[3].utilisation > 1.0 && changes[4].utilisation < 1.0);
    }

    #[test]
    fn on_the_machine_of_the_page_one_volume_is_all_that_helps() {
        let catalogue = crate::hardware::Catalogue::example().unwrap();
        let [volume, instance] = ["aws-gp3", "aws-r5.4xlarge"].map(|n| catalogue.unit(n).unwrap());
        let found = attached(&demand(40_000.0, 0.0), &volume, &instance, &Plan::default()).unwrap();
        assert!(found.instance_binds && found.volumes.units == 1);
        assert_eq!(found.volumes_useful, Some(1));
    }

    #[test]
    fn an_instance_may_bind_before_its_volumes() {
        let volume = Unit {
            name: "v".to_owned(),
            iops: Some(16_000.0),
            mbps: Some(1000.0),
            ..Unit::default()
        };
        let instance = Unit {
            name: "i".to_owned(),
            iops: Some(18_750.0),
            mbps: Some(593.75),
            ..Unit::default()
        };
        let at = |iops| attached(&demand(iops, 0.0), &volume, &instance, &Plan::default()).unwrap();
        let much = at(40_000.0);
        assert!(much.instance_binds && much.binding == "IOPS of i");
        assert_eq!((much.volumes.units, much.instances.units), (3, 3));
        assert_eq!(much.volumes_useful, Some(2));
        let little = at(17_000.0);
        assert!(!little.instance_binds && little.binding == "IOPS of v");
    }
}
