//! `blockstone run`: settings from the command line and a file, the run, the findings, the report.

mod args;
pub(crate) mod awr;
mod ladder;
pub(super) mod matrix;
pub(crate) mod report;
mod store;
mod target;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use blockstone_base::rule::listed;
use blockstone_base::table::Rows as _;
use blockstone_base::units::Bytes;
use blockstone_judge::RunFindings;
use blockstone_judge::rules::registry;
use blockstone_judge::run::ABOUT_FIGURES;
use blockstone_measure::RankSettings;
use blockstone_record::Recording;
use blockstone_report::render::json::schema::Document;
use blockstone_run::{DiskSetting, Profile, Settings};
use blockstone_workload::{Wanted, conf};
use clap::{Arg, Args, Command, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::printer::Printer;
use crate::progress::Progress;
use crate::recorded::document::Objects;
use crate::verb::{self, Global, Verb};
use crate::{finish, input, recordings};
use args::RunArgs;

pub const VERB: Verb = Verb {
    name: "run",
    about: "Run a database load (SLOB) on a miniature or a real database",
    options: RunArgs::augment_args,
    common: &[
        "store",
        "profile",
        "sessions",
        "rows_per_schema",
        "update_pct",
        "run_time_ns",
        "target",
        "destroy",
        "out",
    ],
    run: |options, context| match store::of(options) {
        Some(store) => store::run(store, options, context),
        None => run(&RunArgs::from_arg_matches(options)?, context),
    },
    reports: true,
    rules: || listed(registry::RUN).chain(listed(registry::MERGED_RUN)).collect(),
    finds_runs: true,
    writes: true,
    documents: &[
        Document::of_tables(
            ("run", 2),
            "A run of a workload",
            report::rows::Summary::COLUMNS,
            &[report::TABLES, crate::ranks::TABLES],
        )
        .with_keys::<Objects<'_>>()
        .with_figures(&ABOUT_FIGURES)
        .with_names(&[report::VIEWS, crate::recorded::TABLES]),
        Document::of_tables(
            ("grid", 2),
            "Every combination of settings",
            &[],
            report::grid::TABLES,
        )
        .with_keys::<report::grid::Objects<'_>>(),
    ],
    report: Some(|recording, context| report::report(&recording, &found(&recording, context)?)),
    figures: Some(|recording, context| {
        let findings = found(&recording, context)?;
        Ok((recording.manifest, findings.comparable()))
    }),
    ..Verb::PLAIN
};

/// Returns the findings of a run, compared with the last calibration of the same path before it,
/// among the recordings in the directory that the context names.
fn found(recording: &Recording, context: &verb::Context) -> Result<RunFindings> {
    let runs_dir = &context.global.runs_dir;
    let calibration = recordings::calibration_before(&recording.manifest, runs_dir);
    Ok(blockstone_judge::find_run(recording, calibration.as_ref())?)
}

fn run(args: &RunArgs, context: &verb::Context) -> Result<Exit> {
    if !args.matrix.is_empty() {
        return matrix::run(args, context);
    }
    if let Some(most) = args.ladder {
        return ladder::run(args, most, context);
    }
    let printer = context.printer;
    args.instance.password.read_for([args.instance.target.as_str()])?;
    let settings = settings(args, &context.global, printer)?;
    check_effect(args, &settings.wanted)?;
    let mut progress = Progress::start(printer)?;
    let prepared = blockstone_run::prepare(&settings)?;
    if let Some(missing) = prepared.missing(&args.require)? {
        printer.error(&missing.into());
        return Ok(Exit::CapabilityMissing);
    }
    let ran = prepared.run(&mut progress);
    progress.finish();
    let report = finish::judge_recording(&ran?, context)?;
    if args.awr_info {
        return finish::finish_with(&awr::lines(&report)?, &report, context);
    }
    finish::finish(&report, context)
}

/// Runs with these words as its command line, and returns the directory of the recording.
pub(super) fn record(
    words: &[String],
    interrupt: Interrupt,
    context: &verb::Context,
) -> Result<PathBuf> {
    let command = RunArgs::augment_args(Command::new("run").no_binary_name(true));
    // Some options of a run conflict with some of the options of every verb.
    let command = Global::augment_args(command);
    let args = RunArgs::from_arg_matches(&command.try_get_matches_from(words)?)?;
    let settings = settings(&args, &context.global, context.printer)?;
    let mut progress = Progress::new(context.printer, interrupt);
    let ran = blockstone_run::prepare(&settings)?.run(&mut progress);
    progress.finish();
    Ok(ran?)
}

pub(super) fn settings(args: &RunArgs, global: &Global, printer: Printer) -> Result<Settings> {
    let target = &args.instance.target;
    let of_target = &args.instance.of_target;
    of_target.check(target, &args.instance.options)?;
    let disks = blockstone_run::disks(target, of_target.programs().as_deref(), disks(args))?;
    check_form(args)?;
    let mut wanted = args.method;
    if let Some(file) = &args.conf {
        wanted = wanted.over(from_file(file, args.form.profile, printer)?);
    }
    let rank = args.ranks.settings(wanted.seed)?;
    wanted.seed = rank.as_ref().map(RankSettings::own_seed).or(wanted.seed);
    let subjects: Vec<&Path> = disks.iter().map(|disk| disk.path.as_path()).collect();
    let instance = &args.instance;
    Ok(Settings {
        destroy: args.destroy.clone(),
        target: instance.target.clone(),
        target_settings: of_target.settings(),
        programs: of_target.programs(),
        form: args.form.clone(),
        wanted,
        database: instance.options.clone(),
        storage: args.storage.clone(),
        seed: recordings::draw_seed(),
        rank,
        argv: recordings::command_line(),
        recording: recordings::new_dir("run", args.out.as_deref(), &global.runs_dir, &subjects)?,
        disks,
    })
}

/// Settings that apply to a scan too.
const OF_EVERY_FORM: [&str; 4] = ["scan_rows", "obfuscate", "run_time_ns", "seed"];

/// Refuses options that belong to another form of run.
fn check_form(args: &RunArgs) -> Result<()> {
    let (form, method) = (&args.form, &args.method);
    let of_scans = [
        ("scan_multiblock", form.scan_multiblock.is_some()),
        ("scan_parallel", form.scan_parallel.is_some()),
        ("scan_slots", form.scan_slots.is_some()),
        ("scan_row_cost_ns", form.scan_row_cost_ns.is_some()),
    ];
    let beside_the_method = [
        ("conf", args.conf.is_some()),
        ("noise", form.noise.is_some()),
        ("awr_info", args.awr_info),
    ];
    match form.profile {
        Profile::Scan => {
            let of_the_method = method.names().filter(|name| !OF_EVERY_FORM.contains(name));
            if let Some(name) = given(&beside_the_method).chain(of_the_method).next() {
                let option = option(name);
                bail!(Failure::new(
                    format!("scan with {option}: the sessions of a scan only read its table"),
                    format!(
                        "omit {option} or --profile scan; --scan-size sets the size of the table"
                    )
                ));
            }
        }
        Profile::Slob | Profile::Oltp | Profile::BulkWrite => {
            match form.profile {
                Profile::Oltp => check_order_entry(args)?,
                Profile::BulkWrite => check_bulk_write(args)?,
                Profile::Slob | Profile::Scan => {}
            }
            if let Some(name) = given(&of_scans).next() {
                bail!(Failure::new(
                    format!("run with {}: the option applies only to scans", option(name)),
                    "add --profile scan"
                ));
            }
            if form.noise.is_some() && method.loops.is_some() {
                bail!(Failure::new(
                    "add noise with --loops: the loops may end before the noise starts",
                    "omit --loops; --for sets the length of each window"
                ));
            }
        }
    }
    Ok(())
}

/// Refuses options that have no effect beside the others, which are `all`. Combinations of a matrix
/// are not checked: an option may have an effect in some of them.
fn check_effect(args: &RunArgs, all: &Wanted) -> Result<()> {
    let given = &args.method;
    if args.form.profile != Profile::Slob {
        return Ok(());
    }
    if given.scan_rows.is_some() && all.scan_pct.unwrap_or(0) == 0 {
        bail!(Failure::new(
            "set the size of the second table with --scan-size: no select scans it",
            "add --scan-pct 10, or omit --scan-size"
        ));
    }
    let updates = match (all.readers, all.writers) {
        (None, None) => all.update_pct != Some(0),
        (_, writers) => writers.is_some_and(|writers| writers > 0),
    };
    if given.update_work_unit.is_some() && !updates {
        bail!(Failure::new(
            "set the rows of an update with --update-work-unit: no operation updates",
            "omit it, or add --writers 1 or --update-pct 10"
        ));
    }
    Ok(())
}

/// Returns the names of the options that were given.
fn given(options: &[(&'static str, bool)]) -> impl Iterator<Item = &'static str> {
    options.iter().copied().filter(|(_, given)| *given).map(|(name, _)| name)
}

/// Settings that do not apply to order entry: its mix and its rows are its own.
const NOT_OF_ORDER_ENTRY: [&str; 8] = [
    "readers",
    "writers",
    "update_work_unit",
    "update_pct",
    "scan_pct",
    "scan_rows",
    "hotspot",
    "hot_schema_every",
];

fn check_order_entry(args: &RunArgs) -> Result<()> {
    let mut given = args.method.names();
    if let Some(name) = given.find(|name| NOT_OF_ORDER_ENTRY.contains(name)) {
        let option = option(name);
        bail!(Failure::new(
            format!(
                "send order entry with {option}: its transactions and the rows that they visit \
                 are fixed"
            ),
            format!(
                "omit {option} or --profile oltp; --sessions, --schemas, --scale, --think and \
                 --rate apply to both"
            )
        ));
    }
    Ok(())
}

/// Settings that apply to a bulk write: the sessions that make tables, the number of rows, the
/// duration.
const OF_BULK_WRITES: [&str; 8] = [
    "schemas",
    "threads",
    "sessions",
    "rows_per_schema",
    "obfuscate",
    "run_time_ns",
    "loops",
    "seed",
];

fn check_bulk_write(args: &RunArgs) -> Result<()> {
    let beside = [("conf", args.conf.is_some()), ("noise", args.form.noise.is_some())];
    let of_the_method = args.method.names().filter(|name| !OF_BULK_WRITES.contains(name));
    if let Some(name) = given(&beside).chain(of_the_method).next() {
        let option = option(name);
        bail!(Failure::new(
            format!(
                "make tables with {option}: each is made of all rows of a schema, one after the \
                 other"
            ),
            format!(
                "omit {option} or --profile bulk-write; --scale sets the size of a table, \
                 --sessions how many are made at a time"
            )
        ));
    }
    Ok(())
}

/// Returns the option of this name as it is written on the command line.
fn option(name: &str) -> String {
    let command = RunArgs::augment_args(Command::new("run"));
    let named = command.get_arguments().find(|arg| arg.get_id() == name);
    format!("--{}", named.and_then(Arg::get_long).unwrap_or(name))
}

/// Returns the named disks, each with its failure group.
fn disks(args: &RunArgs) -> Vec<DiskSetting> {
    let group_of = |path: &PathBuf| {
        let group = args.failure_group.iter().find(|group| group.paths.contains(path));
        group.map(|group| group.name.clone())
    };
    let mut paths = args.path.clone();
    for path in args.failure_group.iter().flat_map(|group| &group.paths) {
        if !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    paths.into_iter().map(|path| DiskSetting { failure_group: group_of(&path), path }).collect()
}

/// Largest configuration that is read.
const CONF_BYTES: Bytes = Bytes::mib(1);

/// Reads the settings of another tool. Those without a counterpart are reported.
fn from_file(file: &Path, profile: Profile, printer: Printer) -> Result<Wanted> {
    let named = || format!("{}", file.display());
    let text = input::text(file, CONF_BYTES).map_err(|error| {
        let hint = "--conf names a slob.conf, a pgio.conf, a script for hammerdbcli or options \
                    of sysbench";
        anyhow!(input::failure(&format!("read {}", named()), &error, hint))
    })?;
    let conf = conf::read(&text).with_context(named)?;
    match (profile, conf.dialect.is_order_entry()) {
        (Profile::Oltp, false) => bail!(Failure::new(
            format!("send order entry with {}: its settings are of single statements", named()),
            "omit --conf or --profile oltp; --sessions, --schemas, --scale, --think and --rate \
             apply to both"
        )),
        (Profile::Slob, true) => printer
            .note(&format!("{}: its load is order entry, which --profile oltp sends", named())),
        _ => {}
    }
    for line in &conf.without_counterpart {
        printer.note(&format!("{}: {line}", named()));
    }
    Ok(conf.wanted)
}
