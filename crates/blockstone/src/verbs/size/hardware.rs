//! Compares the need with hardware that can be bought, as the options say.

use anyhow::Result;
use blockstone_size::hardware::cache::{Stranded, stranded};
use blockstone_size::hardware::catalogue::Packed;
use blockstone_size::hardware::change::{Change, Known, changes};
use blockstone_size::hardware::disk::DISK_IOPS_MAX;
use blockstone_size::hardware::headroom::{Headroom, Predicted, Queued, predicted, queued};
use blockstone_size::hardware::money::{Price, price};
use blockstone_size::hardware::{Answer, Catalogue, Demand, Plan, Unit, answer};

use super::args::{HardwareArgs, SizeArgs};
use super::chosen::Chosen;
use super::machine::Machine;

/// The hardware that a need takes.
pub struct Hardware {
    pub answer: Answer,
    pub unit: Unit,
    pub plan: Plan,
    /// Whether the unit was stated and is not in the catalogue.
    pub is_stated: bool,
    pub price: Option<Price>,
    pub stranded: Option<Stranded>,
    /// The same units as larger ones.
    pub packed: Vec<Packed>,
    pub changes: Vec<Change>,
    /// Largest measured load of one unit within the latency wanted.
    pub headroom: Option<Headroom>,
    /// The p99 of a read at the load of one unit, from measurements.
    pub predicted: Option<Predicted>,
    /// Prediction of a queue with this number of units, if nothing was measured.
    pub queued: Option<Queued>,
    pub machine: Machine,
    /// The same need on each unit of the catalogue that can be had today.
    pub current: Vec<Answer>,
}

/// Compares the need with the units of the options. Fails if no needed quantity is known of them.
pub fn hold(
    demand: &Demand,
    all: &SizeArgs,
    known: Known<'_>,
    chosen: &Chosen,
) -> Result<Hardware> {
    let args = &all.hardware;
    let Chosen { catalogue, unit, plan, curve, headroom, .. } = chosen;
    let answer = answer(demand, unit, plan)?;
    let there = args.units.filter(|_| !all.asks_what_is_carried());
    let units = there.unwrap_or(answer.units);
    let iops = demand.hardware_iops(plan.redundancy);
    let queued = iops.zip(unit.iops).filter(|_| headroom.is_none());
    let each = answer.ceilings.iter().find(|it| it.name == "IOPS").map(|it| it.need / units as f64);
    let asked_reverse = all.asks_what_is_carried();
    Ok(Hardware {
        current: if asked_reverse { Vec::new() } else { current(demand, chosen) },
        packed: packed(args, catalogue, unit, answer.units),
        changes: changes(demand, unit, plan, Known { there, ..known })?,
        machine: Machine::of(demand, &answer, chosen, &all.machine)?,
        queued: queued.and_then(|(iops, each)| queued_of(iops, each, units)),
        headroom: *headroom,
        predicted: each.and_then(|each| predicted(curve, each)),
        price: price(&answer, unit),
        stranded: stranded(&answer, unit),
        unit: unit.clone(),
        plan: plan.clone(),
        is_stated: chosen.is_stated,
        answer,
    })
}

/// Share of what a unit of today can do that is planned with.
pub const CURRENT_UTILISATION: f64 = 0.7;

/// Returns the number of each unit of the catalogue that can be had today, without those of which
/// nothing that is needed is known.
fn current(demand: &Demand, Chosen { catalogue, plan, .. }: &Chosen) -> Vec<Answer> {
    let plan = Plan { utilisation: CURRENT_UTILISATION, measured_iops: None, ..plan.clone() };
    let units = catalogue.units.iter().filter(|unit| unit.current);
    units.filter_map(|unit| answer(demand, unit, &plan).ok()).collect()
}

/// A queue with one server per unit models disks only, because flash serves many requests at the
/// same time.
fn queued_of(iops: f64, each: f64, units: u64) -> Option<Queued> {
    (each <= DISK_IOPS_MAX).then(|| queued(iops, each, units)).flatten()
}

fn packed(args: &HardwareArgs, catalogue: &Catalogue, unit: &Unit, units: u64) -> Vec<Packed> {
    let Some(count) = args.cell else { return catalogue.packed(&unit.name, units) };
    let (exact, units) = (units as f64 / count as f64, units.div_ceil(count));
    vec![Packed { unit: "cell".to_owned(), units, exact }]
}
