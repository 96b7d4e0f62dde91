//! `blockstone flash`: one file for each of its verbs.

mod args;
mod axis;

mod curve;
mod device;
mod earlier;
mod ineffective;
mod rates;
mod report;
mod sim;

use anyhow::{Result, bail};
use blockstone_base::units::{Bytes, three_digits};
use blockstone_flash::device::Device;
use blockstone_flash::simulate::SimulationError;
use blockstone_flash::sweep::{self, Extent, Setting, Swept};
use blockstone_flash::{estimate, fit, theory, toy};
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::progress::Progress;
use crate::verb::{Context, Verb};
use args::{CliffArgs, FitArgs, FlashArgs, FlashVerb, LifeArgs, SweepArgs};
use axis::Axis;

pub const VERB: Verb = Verb {
    name: "flash",
    about: "Simulate a flash device and its garbage collection",
    options: FlashArgs::augment_args,
    common: &[
        "preset",
        "raw",
        "visible",
        "policy",
        "workload",
        "reads",
        "io_size",
        "run_time",
        "write_rate",
        "wa",
        "endurance",
    ],
    run: |options, context| run(&FlashArgs::from_arg_matches(options)?, context),
    reports: true,
    finds_runs: true,
    documents: report::DOCUMENTS,
    ..Verb::PLAIN
};

fn run(args: &FlashArgs, context: &Context) -> Result<Exit> {
    match &args.verb {
        FlashVerb::Sim(args) => sim::run(args, context),
        FlashVerb::Sweep(args) => sweep(args, context),
        FlashVerb::Cliff(args) => cliff(args, context),
        FlashVerb::Fit(args) => fit(args, context),
        FlashVerb::Life(args) => life(args, context),
        FlashVerb::Explain => explain(context),
    }
}

fn sweep(args: &SweepArgs, context: &Context) -> Result<Exit> {
    ineffective::in_sweep(args)?;
    let device = device::of(&args.device, None)?;
    let settings = settings(args, &device)?;
    let levels = settings.iter().any(|setting| setting.levelling.is_some());
    let extent = if levels { Extent::WEAR } else { Extent::AMPLIFICATION };
    let mut watch = Progress::start(context.printer)?;
    let mut points: Vec<Swept> = Vec::new();
    let mut iops = Vec::new();
    for (index, &setting) in settings.iter().enumerate() {
        let point = sweep::point(setting, &args.workload, args.seed, extent)?;
        let costs = device.times.costs();
        let b = setting.pages_per_block;
        iops.push(Some(theory::sustained_iops(device.dies(), costs, b, point.wa)));
        points.push(point);
        let text = format!("OP {:.1} % {}", setting.over_provisioning * 100.0, setting.policy);
        if !watch.step((index + 1) as f64 / settings.len() as f64, &text) {
            break;
        }
    }
    watch.finish();
    finish(&report::sweep(&points, &iops, args.seed, watch.signal()), context)
}

/// Returns every combination of the values that vary; all other settings are those of the device.
fn settings(args: &SweepArgs, device: &Device) -> Result<Vec<Setting>> {
    let mut axes: Vec<&Axis> = args.over.iter().collect();
    axes.sort_by_key(|axis| axis.rank());
    if axes.windows(2).any(|pair| pair[0].rank() == pair[1].rank()) {
        bail!(Failure::new("sweep: a key is given twice", "put all its values into one list"));
    }
    let plain = Setting {
        over_provisioning: device.over_provisioning(),
        policy: device.policy,
        pages_per_block: device.pages_per_block,
        levelling: None,
        reserve_blocks: device.reserve_blocks,
        bad_blocks: 0.0,
    };
    let vary = |settings: Vec<Setting>, axis: &&Axis| {
        settings.into_iter().flat_map(|setting| axis.varied(setting)).collect()
    };
    Ok(axes.iter().fold(vec![plain], vary))
}

fn cliff(args: &CliffArgs, context: &Context) -> Result<Exit> {
    let device = device::of_formulas(&args.device, &args.collection)?;
    let rate = args.write_rate.get() as f64;
    let cliff = estimate::cliff(&device, rate)?;
    finish(&report::cliff(&cliff, report::given(&device, rate)), context)
}

fn life(args: &LifeArgs, context: &Context) -> Result<Exit> {
    ineffective::in_life(args)?;
    let device = device::of_formulas(&args.device, &args.collection)?;
    let rate = args.write_rate.get() as f64;
    let wa = match args.wa {
        Some(wa) => wa,
        None => estimate::cliff(&device, rate)?.wa,
    };
    let endurance = args.endurance.unwrap_or(device::preset(&args.device)?.endurance);
    let life = estimate::life(&device, rate, wa, endurance)?;
    let mut given = report::given(&device, rate);
    given.push(format!("a block endures {} erases", three_digits(endurance.into())));
    finish(&report::life(&life, given), context)
}

fn fit(args: &FitArgs, context: &Context) -> Result<Exit> {
    ineffective::in_fit(&args.device)?;
    let device = device::of(&args.device, None)?;
    let samples = curve::read(&args.curve, args.io_size, &context.global, context.printer)?;
    let fit = fit::fit(&device, &samples)?;
    let warning = (fit.fell && fit.drive_fills < 1.0).then(|| {
        format!(
            "only {:.2} drive fills were written; unless the drive was full before, the fall has \
             other causes, such as caches, throttling or other load",
            fit.drive_fills
        )
    });
    finish(&report::fit(&fit, (&samples, device.visible_bytes), warning), context)
}

fn explain(context: &Context) -> Result<Exit> {
    let (without, with) = (toy::story(false), toy::story(true));
    let stories = [
        ("Without garbage collection", without.as_slice()),
        ("With garbage collection", with.as_slice()),
    ];
    finish(&report::explain(&stories), context)
}

/// Adds the size of the device to an error of a simulation if that helps.
fn refused(error: SimulationError, raw: u64) -> anyhow::Error {
    match error {
        error @ SimulationError::Memory { .. } => {
            anyhow::Error::new(error).context(format!("simulate {}", Bytes(raw)))
        }
        error => error.into(),
    }
}
