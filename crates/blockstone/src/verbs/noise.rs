//! `blockstone noise`: sequential writes in parallel with other users of the storage.

mod args;
mod report;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use blockstone_base::units::Nanos;
use blockstone_report::render::json::schema::Document;
use blockstone_run::noise::Settings;
use blockstone_workload::noise::NoiseMode;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::progress::Progress;
use crate::verb::{Context, Global, Verb};
use crate::{finish, recordings};
use args::NoiseArgs;

pub const VERB: Verb = Verb {
    name: "noise",
    about: "Write beside whatever else uses a storage, and show what that costs a database",
    options: NoiseArgs::augment_args,
    run: |options, context| run(&NoiseArgs::from_arg_matches(options)?, context),
    reports: true,
    finds_runs: true,
    writes: true,
    documents: &[Document::of::<report::NoiseDocument<'_>>(
        "noise",
        "Noise, and what others got beside it",
    )
    .with_names(&[report::TABLES, crate::recorded::TABLES])],
    report: Some(|recording, _| {
        Ok(report::report(&recording, &blockstone_judge::noise::find(&recording)?))
    }),
    ..Verb::PLAIN
};

/// Default length of a phase if phases without and with noise alternate …
const PHASE: Nanos = Nanos::millis(10_000);
/// … and the default length of all of them together.
const DURATION: Nanos = Nanos::millis(60_000);

fn run(args: &NoiseArgs, context: &Context) -> Result<Exit> {
    args.password.read_for(args.db.as_deref())?;
    let has_end = args.duration.is_some() || args.phase.is_some() || args.db.is_some();
    if args.path.is_empty() && !has_end {
        bail!(
            "write noise: neither a path nor a time is given\n\
             hint: `blockstone noise .` writes in this directory until Ctrl-C, --for 30s ends it"
        );
    }
    let settings = settings(args, &context.global)?;
    let mut progress = Progress::start(context.printer)?;
    let prepared = blockstone_run::noise::prepare(&settings)?;
    let ran = prepared.run(&mut progress);
    progress.finish();
    finish::finish_recording(&ran?, context)
}

fn settings(args: &NoiseArgs, global: &Global) -> Result<Settings> {
    let mut places = args.path.clone();
    if places.is_empty() {
        places.push(PathBuf::from("."));
    }
    let paths: Vec<&Path> = places.iter().map(PathBuf::as_path).collect();
    let phase = args.phase.or(args.db.as_ref().map(|_| PHASE));
    let usual = phase.map(|phase| DURATION.max(Nanos(phase.get().saturating_mul(6))));
    Ok(Settings {
        destroy: args.destroy.clone(),
        mode: match (args.sync, args.buffered) {
            (true, _) => NoiseMode::Redo,
            (_, true) => NoiseMode::Buffered,
            _ => NoiseMode::Direct,
        },
        writers: args.writers.unwrap_or_else(|| 2.max(places.len() as u32)),
        area: args.area,
        write: args.write_size,
        duration: args.duration.or(usual),
        phase,
        database: args.db.as_deref().map(|db| recordings::database(db, global)).transpose()?,
        seed: recordings::draw_seed(),
        argv: recordings::command_line(),
        recording: recordings::new_dir("noise", args.out.as_deref(), &global.runs_dir, &paths)?,
        places,
    })
}
