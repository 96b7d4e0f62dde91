//! `blockstone offload model`: the part of a machine that binds, by the number of hosts.

pub mod report;
pub mod rows;

use anyhow::{Result, bail};
use blockstone_offload::fit::{self, Fitted, Measured};
use blockstone_offload::model::{Consumed, Machine};
use blockstone_sys::memory;

use super::args::{ModelArgs, Rate};
use super::input;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::verb::Context;
use crate::verbs::trace::subject;

/// Fewest hosts that are shown, and most unless more are requested.
const HOSTS_MIN: u32 = 4;
const HOSTS_MAX: u32 = 1000;

/// A machine model and the options for showing it.
pub struct Modelled {
    subject: String,
    machine: Machine,
    fitted: Vec<Fitted>,
    /// Share of the bytes read that crosses the wire.
    returned: f64,
    hosts: u32,
    hosts_max: u32,
    disks: Option<u32>,
    size_bytes: Option<f64>,
}

pub fn run(args: &ModelArgs, context: &Context) -> Result<Exit> {
    memory::hold_to(Some(memory::READING));
    let rate = |rate: Option<Rate>| rate.map(|it| it.0);
    let cells = args.cells.cells;
    let mut runs: Vec<Measured> = Vec::new();
    let mut is_unit_used = false;
    for path in &args.fit {
        let (measured, used) = input::measured(path, args.unit)?;
        runs.extend(measured);
        is_unit_used |= used;
    }
    input::check_unit(args.unit, is_unit_used)?;
    let (mut machine, fitted) = if args.fit.is_empty() {
        (Machine { cells, ..Machine::default() }, Vec::new())
    } else {
        fit::fit(&runs, cells, args.hosts.processors, args.returned)?
    };
    if args.hosts.processors.is_some() && machine.shared.is_none() {
        bail!(Failure::new(
            "model offload: no run has the processor time of both sides",
            "leave out --processors, or measure runs that have it"
        ));
    }
    machine.scan_rate = rate(args.cells.scan_rate).or(machine.scan_rate);
    machine.cell_cpu_rate = rate(args.cells.cell_cpu_rate);
    machine.cell_link = rate(args.cell_link);
    machine.host_link = rate(args.host_link);
    machine.fabric = rate(args.fabric);
    if let Some(rate) = args.hosts.consume_rate {
        machine.consume = vec![Consumed { hosts: 1, bytes_per_s: rate.0 }];
    }
    let returned = args.returned.unwrap_or_else(|| match &fitted[..] {
        [] => 1.0,
        runs => fit::most_returned(runs),
    });
    let in_runs = fitted.iter().map(|run| run.hosts).max();
    let hosts = args.hosts.hosts.or(in_runs).unwrap_or(1);
    if machine.bound(f64::from(hosts), returned).is_none() {
        bail!(Failure::new(
            "model offload: no rate is known",
            "name runs with --fit, or state --scan-rate and --consume-rate"
        ));
    }
    let crossing = machine.crossings(returned).iter().map(|it| it.hosts).fold(0.0, f64::max);
    let enough = (crossing * 1.25).ceil().max(f64::from(HOSTS_MIN.max(hosts)));
    let enough = enough.min(f64::from(HOSTS_MAX)) as u32;
    let modelled = Modelled {
        subject: if args.fit.is_empty() { "stated rates".to_owned() } else { subject(&args.fit) },
        hosts_max: args.hosts.hosts_max.unwrap_or(enough),
        machine,
        fitted,
        returned,
        hosts,
        disks: args.cells.disks,
        size_bytes: rate(args.size),
    };
    finish(&report::report(&modelled), context)
}
