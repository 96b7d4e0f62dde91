//! The machine that the units are attached to, its licences, and the effect of writes on flash.

use anyhow::{Result, bail};
use blockstone_base::units::{thousands, three_digits};
use blockstone_size::hardware::change::{Attached, attached};
use blockstone_size::hardware::cpu::{self, Choice};
use blockstone_size::hardware::flash::{self, FlashUse};
use blockstone_size::hardware::licence::{LicenceUse, Metric};
use blockstone_size::hardware::{Answer, Catalogue, Demand, Plan, Unit};

use super::args::MachineArgs;
use super::chosen::Chosen;
use super::files;

use crate::failure::Failure;

/// Limits other than the ceilings of the units.
#[derive(Default)]
pub struct Machine {
    pub attached: Option<Attached>,
    pub licence: Option<LicenceUse>,
    pub flash: Option<FlashUse>,
    pub cores: Vec<Choice>,
    /// Host cores that the driver of the units takes.
    pub driver: Option<f64>,
}

impl Machine {
    pub fn of(
        demand: &Demand,
        answer: &Answer,
        chosen: &Chosen,
        args: &MachineArgs,
    ) -> Result<Self> {
        let Chosen { catalogue, unit, plan, .. } = chosen;
        let flash = flash::of(demand, unit, plan, answer.units)?;
        let cores = choices(demand, plan, catalogue, args)?;
        let driver = driver(answer, unit)?;
        let Some(name) = &args.machine else {
            let licence = match (&args.licence, driver) {
                (Some(name), Some(cores)) => {
                    let host = Unit { cores: Some(cores.ceil()), ..Unit::default() };
                    catalogue.licence(name)?.of(&host, 1)
                }
                (Some(_), None) if args.core_list.is_none() => {
                    bail!(Failure::new("size: a licence of nothing", "--machine or --core-list"))
                }
                _ => None,
            };
            return Ok(Self { licence, flash, cores, driver, ..Self::default() });
        };
        let machine = catalogue.unit(name)?;
        let scaled = demand.cores.map(|cores| cores * args.core_ratio);
        let all = scaled.map_or(driver, |cores| Some(cores + driver.unwrap_or(0.0)));
        let demand = Demand { cores: all, ..demand.clone() };
        // Measurements of a unit say nothing about the machine.
        let plan = Plan { measured_iops: None, ..plan.clone() };
        let attached = attached(&demand, unit, &machine, &plan)?;
        let licence = match &args.licence {
            Some(name) => {
                let licence = catalogue.licence(name)?;
                let found = licence.of(&machine, attached.instances.units.max(1));
                let Some(found) = found else {
                    bail!(Failure::new(
                        format!(
                            "license {} with {name}: the catalogue does not state what it counts",
                            machine.name
                        ),
                        "state its cores, vcpus or sockets"
                    ));
                };
                Some(found)
            }
            None => None,
        };
        Ok(Self { attached: Some(attached), licence, flash, cores, driver })
    }

    /// Says which of the two limits binds.
    pub fn binds(&self) -> Option<String> {
        let it = self.attached.as_ref()?;
        let (volume, machine) = (&it.volumes.unit, &it.instances.unit);
        let gains = it.volumes_useful.map_or_else(String::new, |units| {
            format!("; beyond {} × {volume} it gains nothing", whole(units as f64))
        });
        Some(if it.instance_binds {
            format!("One {machine} does not carry it, by {}{gains}.", it.binding)
        } else {
            format!("One {machine} carries it; the ceiling is {}{gains}.", it.binding)
        })
    }

    pub fn licences(&self) -> Option<String> {
        let it = self.licence.as_ref()?;
        let usd = it.usd.map(|usd| format!(", {} USD", whole(usd)));
        let support = it.support_usd_per_year;
        let support = support.map(|usd| format!(" and {} USD of support a year", whole(usd)));
        let mut parts = vec![format!(
            "{} × licence {}{}{}, list price as of {}",
            whole(it.licences as f64),
            it.licence,
            usd.unwrap_or_default(),
            support.unwrap_or_default(),
            it.as_of
        )];
        parts.extend(it.limits.iter().map(ToString::to_string));
        Some(parts.join("; ") + ".")
    }

    pub fn driver_takes(&self) -> Option<String> {
        let cores = three_digits(self.driver?);
        Some(format!("The driver of the units takes {cores} cores of the host."))
    }

    pub fn writes_to_flash(&self) -> Option<String> {
        let it = self.flash.as_ref()?;
        let cliff = match it.hours_to_cliff {
            Some(hours) => format!("the write cliff comes after {} h", three_digits(hours)),
            None => "the write cliff never comes".to_owned(),
        };
        let sustained = if it.sustained { "the rate holds" } else { "the rate does not hold" };
        let stated = it.years_by_data_sheet;
        let stated = stated.map(|years| format!(", by the data sheet {}", three_digits(years)));
        let text = format!(
            "Each unit is written {} MB/s: {cliff}, {sustained} behind it; its cells last {} \
             years{}",
            three_digits(it.mbps),
            three_digits(it.years),
            stated.unwrap_or_default()
        );
        let amplified = three_digits(it.write_amplification);
        Some(format!("{text}. By its class, random writes amplified {amplified}×."))
    }
}

/// Host cores that a driver takes, if the unit states the cost of an I/O.
fn driver(answer: &Answer, unit: &Unit) -> Result<Option<f64>> {
    let iops = answer.ceilings.iter().find(|it| it.name == "IOPS").map(|it| it.need);
    let Some((iops, us)) = iops.zip(unit.host_us_per_io) else { return Ok(None) };
    Ok(Some(cpu::cores_of_io(iops, us / 1e6)?))
}

fn choices(
    demand: &Demand,
    plan: &Plan,
    catalogue: &Catalogue,
    args: &MachineArgs,
) -> Result<Vec<Choice>> {
    let Some(path) = &args.core_list else { return Ok(Vec::new()) };
    let shown = path.display().to_string();
    let list = cpu::performances(&shown, &files::text("list", path)?)?;
    let [(_, source), targets @ ..] = list.as_slice() else {
        bail!(Failure::new(
            format!("use list {shown}: it is empty"),
            "lines of name,performance, the source first"
        ));
    };
    let Some(busy) = demand.cores else {
        bail!(Failure::new(
            "size cores: it is not known how many were busy",
            "reports and recordings with processor time, or --cores"
        ));
    };
    let licence = match &args.licence {
        Some(name) => Some(catalogue.licence(name)?),
        None => None,
    };
    let factor = licence.filter(|it| it.metric == Metric::Core).map(|it| it.factor);
    Ok(cpu::choices(busy, *source, targets, plan.utilisation, factor)?)
}

fn whole(value: f64) -> String {
    thousands(value.round() as i64)
}
