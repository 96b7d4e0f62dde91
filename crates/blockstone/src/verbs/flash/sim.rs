//! `blockstone flash sim`: one device, one workload.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use blockstone_base::units::Nanos;
use blockstone_flash::simulate::{self, Engine, Outcome, Phase, Plan, Rate, Start};
use blockstone_flash::trace::Trace;
use blockstone_flash::workload::Workload;
use blockstone_sys::{memory, survey};

use super::args::SimArgs;
use super::{device, ineffective, rates, refused, report};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::input;
use crate::progress::Progress;
use crate::verb::Context;

pub fn run(args: &SimArgs, context: &Context) -> Result<Exit> {
    let mut plan = plan(args)?;
    let trace = match &args.trace {
        Some(path) if rates::is_recording(path) => {
            rates::apply(path, &context.global, &mut plan)?;
            None
        }
        Some(path) => Some(read_trace(path, args, plan.device.visible_bytes)?),
        None => None,
    };
    ineffective::in_sim(args, &plan, trace.as_ref())?;
    let mut watch = Progress::start(context.printer)?;
    let mut outcomes = vec![simulate(&plan, trace.as_ref(), &mut watch, "simulating")?];
    if args.against_active && watch.signal().is_none() {
        plan.device.background = 0.0;
        outcomes.push(simulate(&plan, trace.as_ref(), &mut watch, "without background")?);
    }
    if plan.throttle.take().is_some() && watch.signal().is_none() {
        outcomes.push(simulate(&plan, trace.as_ref(), &mut watch, "without throttling")?);
    }
    watch.finish();
    let titles: &[&'static str] = match outcomes.len() {
        1 => &[""],
        _ if args.throttle.is_some() => &["throttled", "unthrottled"],
        _ => &["background", "active"],
    };
    let named: Vec<(&'static str, &Outcome)> = titles.iter().copied().zip(&outcomes).collect();
    finish(&report::simulation(&named, trace.as_ref(), watch.signal()), context)
}

fn simulate(
    plan: &Plan,
    trace: Option<&Trace>,
    watch: &mut Progress,
    text: &str,
) -> Result<Outcome> {
    let advise = |table: &mut [u32]| memory::advise_huge_pages(table);
    let mut tick = |done| watch.step(done, text);
    let outcome = match trace {
        Some(trace) => simulate::replay(plan, trace, &advise, &mut tick),
        None => simulate::simulate(plan, &advise, &mut tick),
    };
    outcome.map_err(|error| refused(error, plan.device.raw_bytes))
}

fn plan(args: &SimArgs) -> Result<Plan> {
    let device = device::of(&args.device, Some(&args.collection))?;
    let pages_per_request = match args.io_size {
        None => 1,
        Some(bytes) if bytes.get() == 0 => {
            bail!(Failure::new("use --io-size 0: it must be greater than 0", "for example 8K"))
        }
        Some(bytes) => bytes.get().div_ceil(u64::from(device.page_bytes.max(1))) as u32,
    };
    let reads = args.reads.unwrap_or(0.0);
    let workload = Workload { reads, pages_per_request, ..args.workload.clone() };
    let plain = Plan::new(device, workload);
    let forever = |pace| vec![Phase { duration_ns: u64::MAX, pace }];
    let phases = match args.rate {
        Some(rate) => forever(Rate::Open(rate)),
        None if args.phase.is_empty() => plain.phases.clone(),
        None => args.phase.iter().map(|phase| phase.0).collect(),
    };
    Ok(Plan {
        phases,
        queue_depth: args.queue_depth.unwrap_or(plain.queue_depth),
        drive_fills: args.drive_fills.unwrap_or(plain.drive_fills),
        time_limit_ns: args.run_time.map_or(u64::MAX, Nanos::get),
        start: if args.empty { Start::Empty } else { Start::Filled },
        engine: args.engine.unwrap_or(Engine::Auto),
        scale: args.scale.unwrap_or(plain.scale),
        seed: args.seed,
        memory_limit_bytes: args.memory.get().min(available_bytes()),
        throttle: args.throttle,
        ..plain
    })
}

/// Returns the memory that the machine and its control groups leave, less a tenth.
fn available_bytes() -> u64 {
    survey::mem_available_bytes(Path::new("/")).map_or(u64::MAX, |bytes| bytes / 10 * 9)
}

/// Maximum length of a line. A longer line is damaged: its rest is read as another line.
const LINE_BYTES: u64 = 64 << 10;

fn read_trace(path: &Path, args: &SimArgs, device_bytes: u64) -> Result<Trace> {
    let unreadable = |error: std::io::Error| {
        let hint = "--trace takes the file of a trace or the directory of a recording";
        anyhow!(input::failure(&format!("read {}", path.display()), &error, hint))
    };
    memory::hold_to(None);
    let file = input::open(path).map_err(unreadable)?;
    let mut failed = None;
    let mut reader = BufReader::new(file);
    // Bytes that are not text make a damaged line, not the end of the file.
    let lines = std::iter::from_fn(|| {
        let mut bytes = Vec::new();
        match reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut bytes) {
            Ok(0) => None,
            Ok(_) => Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()),
            Err(error) => {
                failed = Some(error);
                None
            }
        }
    });
    let trace = Trace::read(lines, args.trace_format, device_bytes);
    match failed {
        Some(error) => Err(unreadable(error)),
        None => trace.with_context(|| path.display().to_string()),
    }
}
