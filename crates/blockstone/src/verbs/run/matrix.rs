//! `blockstone run --matrix`: the same run at every combination of a few settings, repeated and
//! interleaved, so that changes on the machine meanwhile affect all combinations alike.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use blockstone_base::Bytes;
use blockstone_base::hint::Hint as _;
use blockstone_judge::grid::{Axis, GRID_SCHEMA, Grid, PLAN_FILE, Plan, PlannedCell};
use blockstone_record::{Recording, RunDir};
use blockstone_report::Report;
use blockstone_run::{RunError, Settings};
use blockstone_servers::without_password;
use blockstone_sys::held;
use clap::{Arg, Args, Command, FromArgMatches};

use super::args::RunArgs;
use super::report::grid::limits;
use super::target::INSTANCE;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::verb;
use crate::{finish, recorded, recordings};

/// Largest plan that is read; a plan takes some 100 bytes per run.
const PLAN_BYTES_MAX: Bytes = Bytes::mib(16);

/// Options that cannot vary: those that name files and directories, and those of the grid itself.
const FIXED: [&str; 9] = [
    "conf",
    "destroy",
    "failure-group",
    "ladder",
    "matrix",
    "password-file",
    "record",
    "repeat",
    "require",
];
/// Short names of options, with the long ones.
const SHORT: [(&str, &str); 1] = [("update", "update-pct")];
/// Value that leaves an option out.
const NONE: &str = "none";

pub fn run(args: &RunArgs, context: &verb::Context) -> Result<Exit> {
    let (global, printer) = (&context.global, context.printer);
    let axes = axes(&args.matrix)?;
    let combinations = Axis::combinations(&axes);
    let cells = cells(args, &axes, &combinations)?;
    // From here on the values are only shown.
    let axes: Vec<Axis> = axes.into_iter().map(without_passwords).collect();
    let combinations = Axis::combinations(&axes);
    args.instance.password.read_for(cells.iter().map(|cell| cell.instance.target.as_str()))?;
    // All combinations are checked before the first of them runs.
    let impossible: Vec<Option<String>> = cells
        .iter()
        .map(|cell| impossible(&super::settings(cell, global, printer)?))
        .collect::<Result<_>>()?;
    if let Some(why) =
        impossible.iter().flatten().next().filter(|_| impossible.iter().all(Option::is_some))
    {
        bail!(Failure::new(
            format!("run a matrix: no target can do it: {why}"),
            "omit io, or add io=buffered"
        ));
    }
    let dir = recordings::new_dir("matrix", args.out.as_deref(), &global.runs_dir, &[])?;
    blockstone_record::create_dir(&dir.path)?;
    let _lock = blockstone_record::lock_grid(&dir.path)?;
    let repeats = args.repeat.max(1);
    let name = |cell: usize, repeat: u32| format!("{:02}-{}", cell + 1, repeat + 1);
    let plan = Plan {
        schema: GRID_SCHEMA.to_owned(),
        axes,
        is_ladder: false,
        cells: (0..)
            .zip(combinations)
            .zip(&impossible)
            .map(|((cell, values), impossible)| PlannedCell {
                values,
                recordings: match impossible {
                    None => (0..repeats).map(|repeat| name(cell, repeat)).collect(),
                    Some(_) => Vec::new(),
                },
                impossible: impossible.clone(),
            })
            .collect(),
    };
    write_plan(&plan, &dir.path)?;
    // One seed for all: every combination visits the same keys as far as its settings allow.
    let seed = args.method.seed.unwrap_or_else(recordings::draw_seed);
    let interrupt = Interrupt::install().context("install signal handlers")?;
    for repeat in 0..repeats {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.retain(|&cell| impossible[cell].is_none());
        if repeat % 2 == 1 {
            // Forwards and backwards, so that a drift does not favour the combinations that come
            // first.
            order.reverse();
        }
        for cell in order {
            let path = dir.path.join(name(cell, repeat));
            printer.note(&format!(
                "{} of {repeats}: {}",
                repeat + 1,
                plan.cells[cell].values.join(" ")
            ));
            one(&cells[cell], seed, path, interrupt.clone(), context)?;
            if interrupt.signal().is_some() {
                show(&dir.path, context)?;
                return Ok(Exit::Interrupted);
            }
        }
    }
    show(&dir.path, context)
}

/// Returns the arguments of each combination. An option that applies to only one of several targets
/// is passed only to that one.
fn cells(args: &RunArgs, axes: &[Axis], combinations: &[Vec<String>]) -> Result<Vec<RunArgs>> {
    let of = |values: &Vec<String>| with(args, axes, values);
    let mut cells: Vec<RunArgs> = combinations.iter().map(of).collect::<Result<_>>()?;
    let targets: Vec<String> = cells.iter().map(|cell| cell.instance.target.clone()).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    for (cell, target) in cells.iter_mut().zip(&targets) {
        cell.instance.of_target.take_own(target, &args.instance.of_target, &targets);
        let mut options = cell.instance.options.clone();
        let taken = options.take_those_of_instance();
        let is_varied = |name: &str| axes.iter().any(|axis| axis.name == name);
        let is_common = !taken.into_iter().any(is_varied);
        if *target != INSTANCE && targets.contains(&INSTANCE) && is_common {
            cell.instance.options = options;
        }
    }
    Ok(cells)
}

/// Returns why this combination is impossible, if the target cannot do I/O in the requested way.
/// Anything else that is wrong is an error.
fn impossible(settings: &Settings) -> Result<Option<String>> {
    match blockstone_run::prepare(settings) {
        Ok(_) => Ok(None),
        Err(RunError::Io { refused, .. }) => Ok(Some(refused.why)),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn write_plan(plan: &Plan, dir: &Path) -> Result<()> {
    let text = serde_json::to_string_pretty(plan)?;
    Ok(blockstone_record::write_file(dir, PLAN_FILE, text.as_bytes())?)
}

/// Runs once, records and judges without printing a report. A run that fails is a result of the
/// grid, and has no report.
pub(super) fn one(
    args: &RunArgs,
    seed: u64,
    path: PathBuf,
    interrupt: Interrupt,
    context: &verb::Context,
) -> Result<Option<Report>> {
    let printer = context.printer;
    let id = blockstone_record::out_run_dir(&path)?.id;
    let mut settings = super::settings(args, &context.global, printer)?;
    settings.wanted.seed = Some(seed);
    settings.recording = RunDir { path, id };
    let mut progress = Progress::new(printer, interrupt);
    let ran = blockstone_run::prepare(&settings)?.run(&mut progress);
    progress.finish();
    match ran {
        Ok(dir) => finish::judge_recording(&dir, context).map(Some),
        Err(error) => {
            printer.note(&error.told());
            Ok(None)
        }
    }
}

/// Writes the page of the grid in `dir`, and ends as every verb does.
pub(super) fn show(dir: &Path, context: &verb::Context) -> Result<Exit> {
    let report = report(dir, context)?;
    finish::write_page(&report, dir)?;
    finish::finish(&report, context)
}

pub fn report(dir: &Path, context: &verb::Context) -> Result<Report> {
    let file = dir.join(PLAN_FILE);
    let failed = |error: anyhow::Error| {
        let hint = "it is damaged; the recordings beside it can be read one by one";
        Failure::new(format!("read {}", file.display()), hint).because(error)
    };
    let bytes = held::read_file(&file, PLAN_BYTES_MAX).map_err(|error| failed(error.into()))?;
    let plan: Plan = serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))?;
    if !plan.is_whole() {
        bail!(failed(anyhow!("a combination has not one value for each setting")));
    }
    let open = |name: &str| {
        if Path::new(name).file_name() != Some(OsStr::new(name)) {
            return Err("it is not beside the plan".to_owned());
        }
        Recording::open(&dir.join(name)).map_err(|error| error.told())
    };
    let grid = Grid::read(&plan, |name| Ok(open(name)?.manifest));
    let judged = limits::decide(&plan, open, context)?;
    let identity = recorded::labels(dir).into_iter().collect();
    let report = super::report::grid::report(&grid, &dir.display().to_string());
    Ok(limits::show(Report { identity, ..report }, &plan, &grid, &judged))
}

/// Parses axes of the form `name=value,value`.
fn axes(texts: &[String]) -> Result<Vec<Axis>> {
    let axis = |text: &String| {
        let hint = "--matrix update=0,20 sessions=1,8,64 target=instance,postgres:scratch";
        let shown = without_password(text);
        let (name, values) = text.split_once('=').ok_or_else(|| {
            anyhow!(Failure::new(format!("vary `{shown}`: it is not NAME=VALUE,VALUE"), hint))
        })?;
        let command = varied();
        if option(&command, name).is_none() {
            let known = command.get_arguments().filter(|arg| varies(arg));
            let known: Vec<&str> = known.filter_map(Arg::get_long).collect();
            bail!(Failure::new(
                format!("vary `{name}`: unknown setting"),
                format!("--matrix varies {}", known.join(", "))
            ));
        }
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        if values.iter().any(String::is_empty) {
            bail!(Failure::new(format!("vary `{shown}`: a value is empty"), hint));
        }
        Ok(Axis { name: name.to_owned(), values })
    };
    texts.iter().map(axis).collect()
}

fn without_passwords(axis: Axis) -> Axis {
    Axis { values: axis.values.iter().map(|value| without_password(value)).collect(), ..axis }
}

/// Returns the options of a run without their defaults: only those that are given are applied.
fn varied() -> Command {
    let command = RunArgs::augment_args_for_update(Command::new("run"));
    // Some options of a run conflict with some of the options of every verb.
    let command = verb::Global::augment_args(command).no_binary_name(true);
    command.mut_args(|arg| arg.default_value(None).default_missing_value(None))
}

fn varies(arg: &Arg) -> bool {
    !arg.is_global_set()
        && arg.get_action().takes_values()
        && arg.get_long().is_some_and(|name| !FIXED.contains(&name))
}

/// Returns the option that an axis varies.
fn option<'a>(command: &'a Command, axis: &str) -> Option<&'a Arg> {
    let long = SHORT.iter().find(|(short, _)| *short == axis).map_or(axis, |(_, long)| *long);
    let is_named = |arg: &&Arg| {
        arg.get_long() == Some(long)
            || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&long))
    };
    command.get_arguments().filter(|arg| varies(arg)).find(is_named)
}

/// Returns the arguments of one combination.
pub(super) fn with(args: &RunArgs, axes: &[Axis], values: &[String]) -> Result<RunArgs> {
    // Each run has its own directory below that of the grid.
    let mut args = RunArgs { out: None, ..args.clone() };
    let usual = RunArgs::augment_args(Command::new("run"));
    for (axis, value) in axes.iter().zip(values) {
        let command = varied();
        let long = option(&command, &axis.name).and_then(Arg::get_long).unwrap_or_default();
        let has_default =
            option(&usual, &axis.name).is_some_and(|arg| !arg.get_default_values().is_empty());
        if value == NONE && !has_default {
            continue;
        }
        let argument = format!("--{long}={value}");
        let given = command.clone().try_get_matches_from([argument]);
        let set = given.and_then(|given| args.update_from_arg_matches(&given));
        set.map_err(|error| {
            let text = error.to_string();
            let why = text.lines().next().unwrap_or_default();
            let why = why.strip_prefix("error: ").unwrap_or(why);
            anyhow!(Failure::new(format!("set {} to {value}: {why}", axis.name), "see --help"))
        })?;
    }
    Ok(args)
}
