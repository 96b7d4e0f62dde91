//! `blockstone run`: settings from the command line and a file, the run, the findings, the report.

mod args;
pub(super) mod awr;
pub(super) mod matrix;
pub(crate) mod report;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use blockstone_base::units::Nanos;
use blockstone_judge::RunFindings;
use blockstone_record::Recording;
use blockstone_run::{DiskSetting, ScanMatrix, Settings};
use blockstone_workload::{Wanted, conf};
use clap::{Args, FromArgMatches};

use crate::cli::Global;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::printer::Printer;
use crate::progress::Progress;
use crate::verb::{self, Verb};
use crate::{finish, recordings};
use args::{FormArgs, InstanceArgs, MethodArgs, Profile, RunArgs};

pub const VERB: Verb = Verb {
    name: "run",
    about: "Run the SLOB method on a miniature database instance: what a database gets from a storage",
    options: RunArgs::augment_args,
    run: |options, context| run(&RunArgs::from_arg_matches(options)?, context),
    reports: true,
    report: Some(|recording, context| report::report(&recording, &found(&recording, context)?)),
    figures: Some(|recording, context| {
        let findings = found(&recording, context)?;
        Ok((recording.manifest, findings.comparable()))
    }),
    ..Verb::PLAIN
};

/// How long a window is, where nobody said: the only one, each of two, and each of a matrix.
const RUN_TIME: Nanos = Nanos::millis(30_000);
const RUN_TIME_OF_TWO: Nanos = Nanos::millis(15_000);
const RUN_TIME_OF_MANY: Nanos = Nanos::millis(4_000);
/// Sessions that share a scan, and reads that each keeps outstanding, where nobody said.
const PARALLEL: [u32; 2] = [1, 16];
const SLOTS: u32 = 2;

/// The findings of a run, also against the last calibration of the same path before it, among the
/// recordings that the context names.
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
    let settings = settings(args, &context.global, printer)?;
    let interrupt = Interrupt::install().context("install signal handlers")?;
    let mut progress = Progress::new(printer, interrupt);
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
    let (target_settings, programs) = of_target(&args.instance)?;
    let target = &args.instance.target;
    let disks = blockstone_run::disks(target, programs.as_deref(), disks(args))?;
    check_form(args)?;
    let mut wanted = wanted(&args.method);
    if let Some(file) = &args.conf {
        wanted = wanted.over(from_file(file, printer)?);
    }
    let subjects: Vec<&Path> = disks.iter().map(|disk| disk.path.as_path()).collect();
    let instance = &args.instance;
    Ok(Settings {
        destroy: args.destroy.clone(),
        target: instance.target.clone(),
        target_settings,
        programs,
        run_time: wanted.run_time.unwrap_or(run_time(&args.form)),
        scan: scan(&args.form),
        noise: args.form.noise.map(|noise| noise.writers),
        wanted,
        block: instance.block_size,
        cache: instance.cache,
        database_writers: instance.database_writers,
        redundancy: instance.redundancy,
        allocation_unit: instance.allocation_unit,
        torn_protection: instance.torn_protection,
        redo: instance.redo_size,
        keep: args.keep,
        seed: recordings::draw_seed(),
        argv: std::env::args().collect(),
        recording: recordings::new_dir("run", args.out.as_deref(), &global.runs_dir, &subjects)?,
        disks,
    })
}

/// Settings of a database, and where its programs are.
type OfTarget = (Vec<(String, String)>, Option<PathBuf>);

/// Settings of the target's database and where its programs are. Those of another are
/// contradictions.
fn of_target(args: &InstanceArgs) -> Result<OfTarget> {
    let options = [
        ("--pragma", ["sqlite"].as_slice(), !args.pragma.is_empty()),
        ("--pg-conf", &["postgres"], !args.pg_conf.is_empty()),
        ("--pg-bin", &["postgres"], args.pg_bin.is_some()),
        ("--mariadb-conf", &["mariadb", "mysql"], !args.mariadb_conf.is_empty()),
        ("--mariadb-bin", &["mariadb", "mysql"], args.mariadb_bin.is_some()),
    ];
    let name = args.target.split(':').next().unwrap_or_default();
    for (option, targets, given) in options {
        if given && !targets.contains(&name) {
            bail!(
                "use {option} with --target {}: it says nothing to that target\n\
                 hint: it belongs to --target {}",
                args.target,
                targets[0]
            );
        }
    }
    let settings = [&args.pragma, &args.pg_conf, &args.mariadb_conf].into_iter().flatten();
    let programs = args.pg_bin.as_ref().or(args.mariadb_bin.as_ref());
    Ok((settings.cloned().collect(), programs.cloned()))
}

fn run_time(form: &FormArgs) -> Nanos {
    match (form.profile, form.noise) {
        (Profile::Scan, _) => RUN_TIME_OF_MANY,
        (Profile::Slob, Some(_)) => RUN_TIME_OF_TWO,
        (Profile::Slob, None) => RUN_TIME,
    }
}

fn scan(form: &FormArgs) -> Option<ScanMatrix> {
    (form.profile == Profile::Scan).then(|| ScanMatrix {
        multiblock: form.multiblock.clone(),
        parallel: form.parallel.clone().unwrap_or_else(|| PARALLEL.to_vec()),
        slots: form.slots.unwrap_or(SLOTS),
    })
}

/// Options that belong to another form of run are contradictions.
fn check_form(args: &RunArgs) -> Result<()> {
    let (form, method) = (&args.form, &args.method);
    let of_scans = [
        ("--multiblock", form.multiblock.is_some()),
        ("--parallel", form.parallel.is_some()),
        ("--slots", form.slots.is_some()),
    ];
    let of_the_method = [
        ("--conf", args.conf.is_some()),
        ("--noise", form.noise.is_some()),
        ("--schemas", method.schemas.is_some()),
        ("--threads", method.threads.is_some()),
        ("--sessions", method.sessions.is_some()),
        ("--readers", method.readers.is_some()),
        ("--writers", method.writers.is_some()),
        ("--scale", method.scale.is_some()),
        ("--work-unit", method.work_unit.is_some()),
        ("--update-work-unit", method.update_work_unit.is_some()),
        ("--update-pct", method.update_pct.is_some()),
        ("--scan-pct", method.scan_pct.is_some()),
        ("--redo-stress", method.redo_stress.is_some()),
        ("--hotspot", method.hotspot.is_some()),
        ("--hot-schema", method.hot_schema.is_some()),
        ("--think", method.think.is_some()),
        ("--rate", method.rate.is_some()),
        ("--loops", method.loops.is_some()),
        ("--awr-info", args.awr_info),
    ];
    let given = |options: &[(&'static str, bool)]| {
        options.iter().find(|(_, given)| *given).map(|(option, _)| *option)
    };
    match form.profile {
        Profile::Scan => match given(&of_the_method) {
            Some(option) => bail!(
                "scan with {option}: the sessions of a scan only read its table\n\
                 hint: leave out {option} or --profile scan; --scan-size says how large it is"
            ),
            None => Ok(()),
        },
        Profile::Slob => match (given(&of_scans), form.noise, method.loops) {
            (Some(option), ..) => bail!(
                "select and update with {option}: that is about scans past the cache\n\
                 hint: add --profile scan"
            ),
            (None, Some(_), Some(_)) => bail!(
                "add noise beside a number of loops: they may end before the noise begins\n\
                 hint: leave out --loops, and give --run-time for the length of each window"
            ),
            _ => Ok(()),
        },
    }
}

/// The disks that are named, with the group that each fails with.
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

fn wanted(args: &MethodArgs) -> Wanted {
    Wanted {
        schemas: args.schemas,
        threads: args.threads,
        sessions: args.sessions,
        readers: args.readers,
        writers: args.writers,
        scale: args.scale,
        work_unit: args.work_unit,
        update_work_unit: args.update_work_unit,
        update_pct: args.update_pct,
        scan_pct: args.scan_pct,
        scan_size: args.scan_size,
        redo_stress: args.redo_stress,
        obfuscate: args.obfuscate,
        hotspot: args.hotspot,
        hot_schema: args.hot_schema,
        think: args.think,
        run_time: args.run_time,
        loops: args.loops,
        rate_per_s: args.rate,
        seed: args.seed,
    }
}

/// The wishes of a slob.conf or pgio.conf. What has no counterpart is said.
fn from_file(file: &Path, printer: Printer) -> Result<Wanted> {
    let named = || format!("{}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| {
        anyhow!("read {}: {error}\nhint: --conf names a slob.conf or pgio.conf", named())
    })?;
    let conf = conf::read(&text).with_context(named)?;
    for line in &conf.without_counterpart {
        printer.note(&format!("{}: {line}", named()));
    }
    Ok(conf.wanted)
}
