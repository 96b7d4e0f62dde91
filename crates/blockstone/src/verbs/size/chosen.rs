//! The units that a need is compared with, and how they will be used, as the options say.

use anyhow::{Result, bail};
use blockstone_judge::findings::Findings;
use blockstone_record::manifest::Group;
use blockstone_size::hardware::headroom::{CurvePoint, Headroom, from_curve};
use blockstone_size::hardware::{Catalogue, Plan, Unit};

use super::args::{HardwareArgs, SizeArgs};
use super::files;
use crate::failure::Failure;
use crate::recordings;
use crate::verb::Context;

pub struct Chosen {
    pub catalogue: Catalogue,
    pub unit: Unit,
    /// Whether the unit was stated and is not in the catalogue.
    pub is_stated: bool,
    pub plan: Plan,
    /// Points of a measured curve of one unit.
    pub curve: Vec<CurvePoint>,
    pub headroom: Option<Headroom>,
}

impl Chosen {
    pub fn of(all: &SizeArgs, context: &Context) -> Result<Self> {
        let args = &all.hardware;
        let catalogue = catalogue(args)?;
        let stated = args.disk.as_deref().and_then(Unit::stated).transpose()?;
        let is_stated = stated.is_some();
        let unit = match stated {
            Some(stated) => stated,
            None => named(args, &catalogue)?,
        };
        let curve = curve(args, context)?;
        let headroom = headroom(args, &curve)?;
        let plan = Plan {
            redundancy: all.need.redundancy(),
            utilisation: args.utilisation,
            cached_reads: args.cached_reads,
            measured_iops: headroom.map(|it| it.iops),
            ..Plan::default()
        };
        Ok(Self { catalogue, unit, is_stated, plan, curve, headroom })
    }
}

fn catalogue(args: &HardwareArgs) -> Result<Catalogue> {
    let Some(Some(path)) = &args.catalogue else { return Ok(Catalogue::example()?) };
    let shown = path.display().to_string();
    Ok(Catalogue::parse(&shown, &files::text("catalogue", path)?)?)
}

fn named(args: &HardwareArgs, catalogue: &Catalogue) -> Result<Unit> {
    let Some(text) = &args.disk else {
        let Some(first) = catalogue.units.first() else {
            bail!(Failure::new(
                "size: the catalogue has no units",
                "state one, --disk 180iops,600gb"
            ));
        };
        return Ok(catalogue.unit(&first.name)?);
    };
    Ok(catalogue.unit(text)?)
}

/// Returns the loads of a calibration of one unit, with their p99.
fn curve(args: &HardwareArgs, context: &Context) -> Result<Vec<CurvePoint>> {
    let Some(name) = &args.curve else { return Ok(Vec::new()) };
    let recording = recordings::open(name, &context.global.runs_dir)?;
    let findings = blockstone_judge::find(&recording)?;
    let curve = points(&findings);
    if curve.is_empty() {
        let name = recording.dir.display();
        bail!(Failure::new(
            format!("use the curve of {name}: it has no random reads"),
            "name a recording of blockstone calibrate on one unit"
        ));
    }
    Ok(curve)
}

/// Returns the loads of random reads that stand, with their p99.
pub fn points(findings: &Findings) -> Vec<CurvePoint> {
    findings
        .points
        .iter()
        .filter(|point| matches!(point.group, Group::RandomRead | Group::Confirm))
        .filter(|point| point.condemned_by.is_empty())
        .filter_map(|point| {
            let p99 = point.latency.ns_p99;
            let curve = CurvePoint { iops: point.iops.value, p99_s: p99.value / 1e9 };
            (curve.iops > 0.0 && p99.value.is_finite()).then_some(curve)
        })
        .collect()
}

/// Returns the largest load within the latency wanted.
fn headroom(args: &HardwareArgs, curve: &[CurvePoint]) -> Result<Option<Headroom>> {
    let (Some(name), Some(p99)) = (&args.curve, args.p99) else { return Ok(None) };
    let Some(headroom) = from_curve(curve, p99.as_secs_f64())? else {
        bail!(Failure::new(
            format!("use the curve of {name}: no measured load kept its p99 within {p99}"),
            "a longer --p99"
        ));
    };
    Ok(Some(headroom))
}
