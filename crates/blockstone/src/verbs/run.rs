//! `blockstone run`: settings from the command line and a file, the run, the findings, the report.

mod args;
pub(super) mod awr;
pub(super) mod matrix;
pub(crate) mod report;
mod target;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use blockstone_base::rule::listed;
use blockstone_base::units::{Bytes, Nanos};
use blockstone_judge::RunFindings;
use blockstone_judge::rules::registry;
use blockstone_record::Recording;
use blockstone_report::render::json::schema::Document;
use blockstone_run::{DiskSetting, NoiseSetting, ScanMatrix, Settings};
use blockstone_workload::{Wanted, conf};
use clap::{Arg, Args, Command, FromArgMatches};

use crate::exit::Exit;
use crate::printer::Printer;
use crate::progress::Progress;
use crate::verb::{self, Global, Verb};
use crate::{finish, input, recordings};
use args::{FormArgs, Noise, Profile, RunArgs};

pub const VERB: Verb = Verb {
    name: "run",
    about: "Run a database load (the SLOB method) on a built-in miniature database instance, \
            or on a real database",
    options: RunArgs::augment_args,
    run: |options, context| run(&RunArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: || listed(registry::RUN).collect(),
    finds_runs: true,
    writes: true,
    documents: &[
        Document::of::<report::RunDocument<'_>>("run", "A run of a workload").with_names(&[
            report::TABLES,
            report::VIEWS,
            crate::recorded::TABLES,
        ]),
        Document::of::<report::grid::GridDocument<'_>>("grid", "Every combination of settings")
            .with_names(&[report::grid::TABLES]),
    ],
    report: Some(|recording, context| report::report(&recording, &found(&recording, context)?)),
    figures: Some(|recording, context| {
        let findings = found(&recording, context)?;
        Ok((recording.manifest, findings.comparable()))
    }),
    ..Verb::PLAIN
};

/// Default length of a window: of a single one, of each of two, of each in a matrix.
const RUN_TIME: Nanos = Nanos::millis(30_000);
const RUN_TIME_OF_TWO: Nanos = Nanos::millis(15_000);
const RUN_TIME_OF_MANY: Nanos = Nanos::millis(4_000);
/// Default numbers of sessions that share a scan.
const PARALLEL: [u32; 2] = [1, 16];

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
    let printer = context.printer;
    args.instance.password.read_for([args.instance.target.as_str()])?;
    let settings = settings(args, &context.global, printer)?;
    let mut progress = Progress::start(printer)?;
    let prepared = blockstone_run::prepare(&settings)?;
    if let Some(missing) = prepared.missing(&args.require)? {
        printer.error(&anyhow::anyhow!("{missing}"));
        return Ok(Exit::CapabilityMissing);
    }
    let ran = prepared.run(&mut progress);
    progress.finish();
    let report = finish::judge_recording(&ran?, context)?;
    if args.awr_info {
        return finish::finish_with(awr::of(&report)?, &report, context);
    }
    finish::finish(&report, context)
}

pub(super) fn settings(args: &RunArgs, global: &Global, printer: Printer) -> Result<Settings> {
    let target = &args.instance.target;
    let of_target = &args.instance.of_target;
    of_target.check(target)?;
    let disks = blockstone_run::disks(target, of_target.programs().as_deref(), disks(args))?;
    check_form(args)?;
    let mut wanted = args.method;
    if let Some(file) = &args.conf {
        wanted = wanted.over(from_file(file, printer)?);
    }
    let subjects: Vec<&Path> = disks.iter().map(|disk| disk.path.as_path()).collect();
    let instance = &args.instance;
    Ok(Settings {
        destroy: args.destroy.clone(),
        target: instance.target.clone(),
        target_settings: of_target.settings(),
        programs: of_target.programs(),
        run_time: wanted.run_time.unwrap_or(run_time(&args.form)),
        order_entry: args.form.profile == Profile::Oltp,
        bulk_write: args.form.profile == Profile::BulkWrite,
        scan: scan(&args.form),
        noise: noise(&args.form),
        wanted,
        block: instance.block_size,
        cache: instance.cache,
        page_cache: instance.page_cache,
        io: instance.io,
        database_writers: instance.database_writers,
        redundancy: instance.redundancy,
        allocation_unit: instance.allocation_unit,
        torn_protection: instance.torn_protection,
        redo: instance.redo_size,
        link_mb_per_s: args.link_mbps,
        keep: args.keep,
        accept_loss: instance.accept_loss,
        seed: recordings::draw_seed(),
        argv: recordings::command_line(),
        recording: recordings::new_dir("run", args.out.as_deref(), &global.runs_dir, &subjects)?,
        disks,
    })
}

fn run_time(form: &FormArgs) -> Nanos {
    match (form.profile, form.noise) {
        (Profile::Scan, _) => RUN_TIME_OF_MANY,
        (_, Some(_)) => RUN_TIME_OF_TWO,
        (_, None) => RUN_TIME,
    }
}

fn scan(form: &FormArgs) -> Option<ScanMatrix> {
    (form.profile == Profile::Scan).then(|| ScanMatrix {
        multiblock: form.multiblock.clone(),
        parallel: form.parallel.clone().unwrap_or_else(|| PARALLEL.to_vec()),
        slots: form.slots,
        row_cost: form.row_cost,
    })
}

fn noise(form: &FormArgs) -> Option<NoiseSetting> {
    let write = form.noise_write.unwrap_or(blockstone_workload::noise::WRITE);
    form.noise.map(|Noise { mode, writers }| NoiseSetting {
        writers,
        mode,
        area: form.noise_area,
        write,
    })
}

/// Settings that apply to a scan too.
const OF_EVERY_FORM: [&str; 4] = ["scan_size", "obfuscate", "run_time", "seed"];

/// Refuses options that belong to another form of run.
fn check_form(args: &RunArgs) -> Result<()> {
    let (form, method) = (&args.form, &args.method);
    let of_scans = [
        ("multiblock", form.multiblock.is_some()),
        ("parallel", form.parallel.is_some()),
        ("slots", form.slots.is_some()),
        ("row_cost", form.row_cost.is_some()),
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
                bail!(
                    "scan with {option}: the sessions of a scan only read its table\n\
                     hint: omit {option} or --profile scan; --scan-size sets the size of the \
                     table"
                );
            }
        }
        Profile::Slob | Profile::Oltp | Profile::BulkWrite => {
            match form.profile {
                Profile::Oltp => check_order_entry(args)?,
                Profile::BulkWrite => check_bulk_write(args)?,
                Profile::Slob | Profile::Scan => {}
            }
            if let Some(name) = given(&of_scans).next() {
                bail!(
                    "run with {}: the option applies only to scans\n\
                     hint: add --profile scan",
                    option(name)
                );
            }
            if form.noise.is_some() && method.loops.is_some() {
                bail!(
                    "add noise with --loops: the loops may end before the noise starts\n\
                     hint: omit --loops; --for sets the length of each window"
                );
            }
        }
    }
    Ok(())
}

/// Returns the names of the options that were given.
fn given(options: &[(&'static str, bool)]) -> impl Iterator<Item = &'static str> {
    options.iter().copied().filter(|(_, given)| *given).map(|(name, _)| name)
}

/// Settings that do not apply to order entry: its mix and its rows are its own.
const NOT_OF_ORDER_ENTRY: [&str; 9] = [
    "readers",
    "writers",
    "update_work_unit",
    "update_pct",
    "scan_pct",
    "scan_size",
    "hotspot",
    "hot_schema",
    "conf",
];

fn check_order_entry(args: &RunArgs) -> Result<()> {
    let conf = args.conf.is_some().then_some("conf");
    let mut given = args.method.names().chain(conf);
    if let Some(name) = given.find(|name| NOT_OF_ORDER_ENTRY.contains(name)) {
        let option = option(name);
        bail!(
            "send order entry with {option}: its transactions and the rows that they visit are \
             fixed\n\
             hint: omit {option} or --profile oltp; --sessions, --schemas, --scale, --think and \
             --rate apply to both"
        );
    }
    Ok(())
}

/// Settings that apply to a bulk write: the sessions that make tables, the number of rows, the
/// duration.
const OF_BULK_WRITES: [&str; 8] =
    ["schemas", "threads", "sessions", "scale", "obfuscate", "run_time", "loops", "seed"];

fn check_bulk_write(args: &RunArgs) -> Result<()> {
    let beside = [("conf", args.conf.is_some()), ("noise", args.form.noise.is_some())];
    let of_the_method = args.method.names().filter(|name| !OF_BULK_WRITES.contains(name));
    if let Some(name) = given(&beside).chain(of_the_method).next() {
        let option = option(name);
        bail!(
            "make tables with {option}: each is made of all rows of a schema, one after the other\n\
             hint: omit {option} or --profile bulk-write; --scale sets the size of a table, \
             --sessions how many are made at a time"
        );
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

/// Reads the settings of a slob.conf or pgio.conf. Settings without a counterpart are reported.
fn from_file(file: &Path, printer: Printer) -> Result<Wanted> {
    let named = || format!("{}", file.display());
    let text = input::text(file, CONF_BYTES).map_err(|error| {
        anyhow!("read {}: {error}\nhint: --conf names a slob.conf or pgio.conf", named())
    })?;
    let conf = conf::read(&text).with_context(named)?;
    for line in &conf.without_counterpart {
        printer.note(&format!("{}: {line}", named()));
    }
    Ok(conf.wanted)
}
