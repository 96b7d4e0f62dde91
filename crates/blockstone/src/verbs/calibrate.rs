//! `blockstone calibrate`: settings from the command line, the run, the findings, the report.

mod args;
pub(crate) mod report;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use blockstone_base::rule::listed;
use blockstone_base::table::Rows as _;
use blockstone_calibrate::{Settings, Subject};
use blockstone_judge::rules::registry;
use blockstone_judge::summary::ABOUT;
use blockstone_record::Recording;
use blockstone_report::render::json::schema::Document;
use blockstone_sys::held::HeldDir;
use blockstone_sys::output;
use clap::{Args, Command, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::recorded::document::Objects;
use crate::verb::{self, Global, Verb};
use crate::{finish, recordings};
use args::CalibrateArgs;

pub const VERB: Verb = Verb {
    name: "calibrate",
    about: "Measure the maximum IOPS, MB/s and commits of storage",
    alias: "cal",
    options: CalibrateArgs::augment_args,
    common: &[
        "quick",
        "full",
        "asked_size_bytes",
        "max_latency_ns",
        "store",
        "read_only",
        "destroy",
        "out",
    ],
    run: |options, context| run(&CalibrateArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: || listed(registry::CALIBRATION).chain(listed(registry::MERGED_CALIBRATION)).collect(),
    finds_runs: true,
    writes: true,
    documents: &[Document::of_tables(
        ("calibrate", 2),
        "A calibration",
        report::rows::Summary::COLUMNS,
        &[report::TABLES, crate::ranks::TABLES],
    )
    .with_keys::<Objects<'_>>()
    .with_figures(&ABOUT)
    .with_names(&[crate::recorded::TABLES])],
    report: Some(|recording, _| report::report(&recording, &blockstone_judge::find(&recording)?)),
    figures: Some(|recording, _| {
        let findings = blockstone_judge::find(&recording)?;
        Ok((recording.manifest, findings))
    }),
};

/// Runs a calibration with these words as its command line.
pub(super) fn run_words(words: Vec<OsString>, context: &verb::Context) -> Result<Exit> {
    let command = CalibrateArgs::augment_args(Command::new("calibrate").no_binary_name(true));
    run(&CalibrateArgs::from_arg_matches(&command.try_get_matches_from(words)?)?, context)
}

fn run(args: &CalibrateArgs, context: &verb::Context) -> Result<Exit> {
    let printer = context.printer;
    let orion = args.orion.as_deref().map(|to| {
        output::directory(to).map_err(|error| {
            let what = format!("create {}", to.display());
            Failure::new(what, "--orion names a directory of yours").because(error)
        })
    });
    let orion = orion.transpose()?;
    let settings = settings(args, &context.global)?;
    let mut progress = Progress::start(printer)?;
    let prepared = blockstone_calibrate::prepare(&settings)?;
    if let Some(missing) = prepared.missing(&args.require)? {
        printer.error(&missing.into());
        return Ok(Exit::CapabilityMissing);
    }
    let ran = prepared.run(&mut progress);
    progress.finish();
    let dir = ran?;
    let Some(to) = &orion else { return finish::finish_recording(&dir, context) };
    let is_written = write_orion(&dir, to)?;
    let exit = finish::finish_recording(&dir, context)?;
    if is_written {
        printer.note(&format!("Orion's files: {}", to.path().display()));
        return Ok(exit);
    }
    printer.error(&anyhow!(Failure::new(
        format!("write Orion's files to {}: no point of the matrix stands", to.path().display()),
        "the report says why; the matrix needs a test file of at least 8M (--size)"
    )));
    Ok(if exit == Exit::Done { Exit::NotTrustworthy } else { exit })
}

/// Writes the matrix of a recording as files in Orion's format. Returns whether it has a point that
/// stands; otherwise nothing is written.
fn write_orion(recording: &Path, to: &HeldDir) -> Result<bool> {
    let findings = blockstone_judge::find(&Recording::open(recording)?)?;
    let Some(files) = report::orion::files(&findings) else { return Ok(false) };
    for (name, text) in files {
        let written =
            to.create(Path::new(name)).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| {
            let what = format!("write {}", to.path().join(name).display());
            Failure::new(what, "free some space").because(error)
        })?;
    }
    Ok(true)
}

fn settings(args: &CalibrateArgs, global: &Global) -> Result<Settings> {
    check_streams(&args.options.streams)?;
    check_mixes(&args.options.mixes_read_pct)?;
    let subjects = subjects(args)?;
    let paths: Vec<&Path> = subjects.iter().map(Subject::path).collect();
    let out = args.out.as_deref();
    Ok(Settings {
        options: args.options.clone(),
        seed: args.seed.unwrap_or_else(recordings::draw_seed),
        argv: recordings::command_line(),
        recording: recordings::new_dir("calibrate", out, &global.runs_dir, &paths)?,
        subjects,
    })
}

/// Checks the numbers of streams: each may occur once, and there may be no more than are planned by
/// default, because of the time limit.
fn check_streams(asked: &[u32]) -> Result<()> {
    let once = asked.iter().enumerate().all(|(at, streams)| !asked[..at].contains(streams));
    if !once || asked.len() > 4 {
        bail!(Failure::new(
            format!("read streams: {} numbers are named", asked.len()),
            "name up to four different ones, such as --streams 1,2,6"
        ));
    }
    Ok(())
}

/// Checks that no mix is named twice.
fn check_mixes(asked: &[u32]) -> Result<()> {
    let twice = asked.iter().enumerate().find(|(at, pct)| asked[..*at].contains(pct));
    if let Some((_, read_pct)) = twice {
        let mix = format!("{read_pct}:{}", 100 - read_pct);
        bail!(Failure::new(
            format!("mix reads and writes: {mix} is named twice"),
            "name each mix once"
        ));
    }
    Ok(())
}

fn subjects(args: &CalibrateArgs) -> Result<Vec<Subject>> {
    if let Some(file) = &args.file {
        return Ok(vec![Subject::TestFile(file.clone())]);
    }
    let elsewhere = args.destroy.iter().find(|device| !args.paths.contains(device));
    if let (Some(again), Some(path)) = (elsewhere, args.paths.first()) {
        bail!(Failure::new(
            format!("destroy {}: PATH names another device, {}", again.display(), path.display()),
            "name the same device as PATH and with --destroy"
        ));
    }
    let subject = |path: &PathBuf| {
        let destroyed = args.destroy.contains(path);
        if destroyed { Subject::Destroy(path.clone()) } else { Subject::Path(path.clone()) }
    };
    Ok(args.paths.iter().map(subject).collect())
}
