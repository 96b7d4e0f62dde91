//! Options that would have no effect are refused, so that users do not believe that they were taken
//! into account.

use anyhow::{Result, bail};
use blockstone_flash::device::Placement;
use blockstone_flash::dies::Suspend;
use blockstone_flash::simulate::{Engine, Plan, Rate};
use blockstone_flash::trace::Trace;
use blockstone_flash::workload::Action;

use super::args::{CollectionArgs, DeviceArgs, LifeArgs, SimArgs, SweepArgs};
use super::axis::Axis;

use crate::failure::Failure;

/// An option, and whether it is given.
type Given = (&'static str, bool);

/// Refuses the first of these options that is given.
fn refuse(options: &[Given], why: &str, hint: &str) -> Result<()> {
    if let Some((option, _)) = options.iter().find(|(_, given)| *given) {
        bail!(Failure::new(format!("use {option}: {why}"), hint));
    }
    Ok(())
}

const SIMULATE: &str = "simulate it with flash sim";

/// Refuses options that no formula takes into account.
pub fn in_formulas(device: &DeviceArgs, collection: &CollectionArgs) -> Result<()> {
    let unused = [
        ("--suspend", device.suspend.is_some()),
        ("--collect", collection.collect.is_some()),
        ("--separate-moves", collection.separate_moves),
        ("--placement", collection.placement.is_some()),
        ("--levelling", collection.levelling.is_some()),
        ("--wear-out", collection.wear_out.is_some()),
    ];
    refuse(&unused, "no formula takes it into account", SIMULATE)
}

pub fn in_life(args: &LifeArgs) -> Result<()> {
    if args.wa.is_some() {
        let unused = [&geometry(&args.device)[..], &times(&args.device), &all(&args.collection)];
        let why = "it affects a lifetime through write amplification only, which --wa gives";
        return refuse(&unused.concat(), why, "omit --wa to have it computed");
    }
    if args.collection.background.is_none() {
        let why = "write amplification does not depend on it unless dies collect while idle";
        return refuse(&times(&args.device), why, "omit it, or add --background");
    }
    Ok(())
}

pub fn in_fit(device: &DeviceArgs) -> Result<()> {
    let unused = [
        ("--page-size", device.page_size.is_some()),
        ("--channels", device.channels.is_some()),
        ("--dies", device.dies.is_some()),
        ("--channel-rate", device.channel_rate.is_some()),
        ("--suspend", device.suspend.is_some()),
    ];
    let why = "the curve shows the rate of the whole drive; a fit does not use it";
    refuse(&unused, why, "omit it; capacity, block size and the times of operations are used")
}

pub fn in_sweep(args: &SweepArgs) -> Result<()> {
    let device = &args.device;
    let unused = [
        ("--page-size", device.page_size.is_some()),
        ("--channel-rate", device.channel_rate.is_some()),
        ("--suspend", device.suspend.is_some()),
    ];
    refuse(&unused, "a sweep simulates one die and writes only", SIMULATE)?;
    for axis in &args.over {
        let (options, key): (&[Given], _) = match axis {
            Axis::OverProvisioning(_) => (&capacity(device), "op="),
            Axis::PagesPerBlock(_) => {
                (&[("--pages-per-block", device.pages_per_block.is_some())], "pages-per-block=")
            }
            _ => continue,
        };
        refuse(options, &format!("{key} sets it for every point"), "omit one of the two")?;
    }
    Ok(())
}

/// Refuses options of `flash sim` that have no effect under its load, once the load is known.
pub fn in_sim(args: &SimArgs, plan: &Plan, trace: Option<&Trace>) -> Result<()> {
    if trace.is_some() {
        let unused = [
            ("--drive-fills", args.drive_fills.is_some()),
            ("--for", args.run_time.is_some()),
            ("--queue-depth", args.queue_depth.is_some()),
            ("--scale", args.scale.is_some()),
            ("--engine", args.engine == Some(Engine::Counts)),
        ];
        let why = "a trace is replayed to its end, at its own times, on the whole device";
        refuse(&unused, why, "omit it, or shorten the trace")?;
    } else if args.trace_format.is_some() {
        let why = "a recording is replayed";
        refuse(&[("--trace-format", true)], why, "omit it; only files of traces have formats")?;
    }
    if plan.workload.parts.len() == 1 {
        let placement = args.collection.placement;
        let elsewhere = placement.is_some_and(|placement| placement != Placement::Mixed);
        let why = "the workload has only one part";
        refuse(&[("--placement", elsewhere)], why, "use a --workload of parts, such as oltp")?;
    }
    without_reads(args, plan, trace)?;
    if trace.is_none() {
        without_writes(args, plan)?;
        at_rates(args, plan)?;
    }
    Ok(())
}

fn without_reads(args: &SimArgs, plan: &Plan, trace: Option<&Trace>) -> Result<()> {
    let reads = match trace {
        Some(trace) => trace.requests.iter().any(|request| request.action == Action::Read),
        None => plan.workload.reads > 0.0,
    };
    let suspends = args.device.suspend.is_some_and(|suspend| suspend != Suspend::None);
    let why = "reads suspend operations, and nothing is read";
    refuse(&[("--suspend", suspends && !reads)], why, "add --reads")
}

fn without_writes(args: &SimArgs, plan: &Plan) -> Result<()> {
    if plan.workload.reads < 1.0 {
        return Ok(());
    }
    let device = &args.device;
    let mut unused = vec![
        ("--drive-fills", args.drive_fills.is_some()),
        ("--program-times", !device.program_times.is_empty()),
        ("--erase-time", device.erase_time.is_some()),
        ("--suspend", device.suspend.is_some()),
        ("--throttle", args.throttle.is_some()),
    ];
    unused.extend(all(&args.collection));
    refuse(&unused, "nothing is written", "lower --reads below 100")
}

/// Refuses options that the request rates of the plan make ineffective.
fn at_rates(args: &SimArgs, plan: &Plan) -> Result<()> {
    let is_closed = |phase: &blockstone_flash::simulate::Phase| phase.pace == Rate::Closed;
    if !plan.phases.iter().any(is_closed) {
        let why = "requests arrive at the given rate, whatever is in flight";
        return refuse(&[("--queue-depth", args.queue_depth.is_some())], why, "omit it");
    }
    let device = &plan.device;
    // Each die always has a page to program.
    let busy = plan.phases.iter().all(is_closed)
        && plan.workload.reads == 0.0
        && device.times.planes == 1
        && device.times.transfer_ns == 0
        && plan.queue_depth >= device.dies();
    let background = args.collection.background.is_some_and(|share| share > 0.0);
    let why = "writes as fast as possible leave no die idle";
    refuse(&[("--background", busy && background)], why, "set the load with --rate or --phase")
}

fn capacity(device: &DeviceArgs) -> [Given; 3] {
    [
        ("--raw", device.raw.is_some()),
        ("--visible", device.visible.is_some()),
        ("--format-level", device.format_level.is_some()),
    ]
}

fn geometry(device: &DeviceArgs) -> [Given; 5] {
    [
        ("--page-size", device.page_size.is_some()),
        ("--pages-per-block", device.pages_per_block.is_some()),
        ("--channels", device.channels.is_some()),
        ("--dies", device.dies.is_some()),
        ("--planes", device.planes.is_some()),
    ]
}

fn times(device: &DeviceArgs) -> [Given; 4] {
    [
        ("--read-time", device.read_time.is_some()),
        ("--program-times", !device.program_times.is_empty()),
        ("--erase-time", device.erase_time.is_some()),
        ("--channel-rate", device.channel_rate.is_some()),
    ]
}

fn all(collection: &CollectionArgs) -> [Given; 11] {
    [
        ("--policy", collection.policy.is_some()),
        ("--reserve", collection.reserve.is_some()),
        ("--collect", collection.collect.is_some()),
        ("--background", collection.background.is_some()),
        ("--idle-after", collection.idle_after.is_some()),
        ("--separate-moves", collection.separate_moves),
        ("--placement", collection.placement.is_some()),
        ("--fast-blocks", collection.fast_blocks.is_some()),
        ("--levelling", collection.levelling.is_some()),
        ("--bad-blocks", collection.bad_blocks.is_some()),
        ("--wear-out", collection.wear_out.is_some()),
    ]
}
