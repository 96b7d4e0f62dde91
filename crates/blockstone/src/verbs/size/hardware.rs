//! The need held against what can be bought, as the options say.

use anyhow::{Result, bail};
use blockstone_record::manifest::Group;
use blockstone_size::hardware::cache::{Stranded, stranded};
use blockstone_size::hardware::catalogue::Packed;
use blockstone_size::hardware::change::{Change, Known, changes};
use blockstone_size::hardware::headroom::{CurvePoint, Headroom, Queued, from_curve, queued};
use blockstone_size::hardware::money::{Price, price};
use blockstone_size::hardware::{Answer, Catalogue, Demand, Plan, Redundancy, Unit, answer};

use super::args::{HardwareArgs, SizeArgs, unit};
use super::files;
use super::machine::Machine;
use crate::recordings;
use crate::verb::Context;

/// What a need takes.
pub struct Hardware {
    pub answer: Answer,
    pub price: Option<Price>,
    pub stranded: Option<Stranded>,
    /// The same units as larger ones.
    pub packed: Vec<Packed>,
    pub changes: Vec<Change>,
    /// What was measured of one unit.
    pub headroom: Option<Headroom>,
    /// What a queue does at this number of units, where nothing was measured.
    pub queued: Option<Queued>,
    pub machine: Machine,
}

/// Held against the units of the options. `None` where nothing that is needed is known of them.
pub fn hold(
    demand: &Demand,
    redundancy: Redundancy,
    all: &SizeArgs,
    known: Known<'_>,
    context: &Context,
) -> Result<Hardware> {
    let args = &all.hardware;
    let catalogue = catalogue(args)?;
    let unit = chosen(args, &catalogue)?;
    let headroom = curve(args, context)?;
    let plan = Plan {
        redundancy,
        utilisation: args.utilisation,
        cached_reads: args.cached_reads,
        measured_iops: headroom.map(|it| it.iops),
        ..Plan::default()
    };
    let answer = answer(demand, &unit, &plan)?;
    let queued = demand.hardware_iops(redundancy).zip(unit.iops).filter(|_| headroom.is_none());
    Ok(Hardware {
        packed: packed(args, &catalogue, &unit, answer.units),
        changes: changes(demand, &unit, &plan, known)?,
        machine: Machine::of(demand, &unit, &plan, &catalogue, &all.machine)?,
        queued: queued.and_then(|(iops, each)| queued_of(iops, each, answer.units)),
        headroom,
        price: price(&answer, &unit),
        stranded: stranded(&answer, &unit),
        answer,
    })
}

/// Flash serves many requests at once: a queue with as many servers as there are units is only that
/// of disks.
fn queued_of(iops: f64, each: f64, units: u64) -> Option<Queued> {
    const DISK_IOPS_MAX: f64 = 500.0;
    (each <= DISK_IOPS_MAX).then(|| queued(iops, each, units)).flatten()
}

fn catalogue(args: &HardwareArgs) -> Result<Catalogue> {
    let Some(path) = &args.catalogue else { return Ok(Catalogue::example()?) };
    let shown = path.display().to_string();
    Ok(Catalogue::parse(&shown, &files::text("catalogue", path)?)?)
}

fn chosen(args: &HardwareArgs, catalogue: &Catalogue) -> Result<Unit> {
    let Some(text) = &args.disk else {
        let Some(first) = catalogue.units.first() else {
            bail!("size: the catalogue has no units\nhint: state one, --disk 180iops,600gb");
        };
        return Ok(catalogue.unit(&first.name)?);
    };
    if let Some(stated) = unit(text) {
        return Ok(stated);
    }
    Ok(catalogue.unit(text)?)
}

fn packed(args: &HardwareArgs, catalogue: &Catalogue, unit: &Unit, units: u64) -> Vec<Packed> {
    let Some(count) = args.cell else { return catalogue.packed(&unit.name, units) };
    let (exact, units) = (units as f64 / count as f64, units.div_ceil(count));
    vec![Packed { unit: "cell".to_owned(), units, exact }]
}

/// The largest load within the latency that is wanted, of a calibration of one unit.
fn curve(args: &HardwareArgs, context: &Context) -> Result<Option<Headroom>> {
    let (Some(name), Some(p99)) = (&args.curve, args.p99) else { return Ok(None) };
    let recording = recordings::open(name, &context.global.runs_dir)?;
    let findings = blockstone_judge::find(&recording)?;
    let curve: Vec<CurvePoint> = findings
        .points
        .iter()
        .filter(|point| matches!(point.group, Group::RandomRead | Group::Confirm))
        .filter(|point| point.condemned_by.is_empty())
        .filter_map(|point| {
            let p99 = point.latency.ns_p99;
            let curve = CurvePoint { iops: point.iops.value, p99_s: p99.value / 1e9 };
            (curve.iops > 0.0 && p99.value.is_finite()).then_some(curve)
        })
        .collect();
    if curve.is_empty() {
        let name = recording.dir.display();
        bail!(
            "use the curve of {name}: it has no random reads\n\
             hint: name a recording of blockstone calibrate on one unit"
        );
    }
    let Some(headroom) = from_curve(&curve, p99.as_secs_f64())? else {
        bail!(
            "use the curve of {}: no measured load kept its p99 within {p99}\n\
             hint: a longer --p99",
            recording.dir.display()
        );
    };
    Ok(Some(headroom))
}
