//! `blockstone noise`: sequential writes in parallel with other users of the storage.

mod args;
mod report;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use blockstone_base::table::Rows as _;
use blockstone_judge::noise::{self, ABOUT};
use blockstone_report::render::json::schema::Document;
use blockstone_run::noise::Settings;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::recorded::document::Objects;
use crate::verb::{Context, Global, Verb};
use crate::{finish, recordings};
use args::NoiseArgs;

pub const VERB: Verb = Verb {
    name: "noise",
    about: "Write beside other load, and show what that costs a database",
    options: NoiseArgs::augment_args,
    common: &["sync", "buffered", "writers", "duration_ns", "db", "destroy", "out"],
    run: |options, context| run(&NoiseArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: noise::rules,
    finds_runs: true,
    writes: true,
    documents: &[Document::of_tables(
        ("noise", 2),
        "Noise, and what others got beside it",
        report::Summary::COLUMNS,
        &[report::TABLES, crate::ranks::TABLES],
    )
    .with_keys::<Objects<'_>>()
    .with_figures(&ABOUT)
    .with_names(&[crate::recorded::TABLES])],
    report: Some(|recording, _| Ok(report::report(&recording, &noise::find(&recording)?))),
    ..Verb::PLAIN
};

fn run(args: &NoiseArgs, context: &Context) -> Result<Exit> {
    args.password.read_for(args.options.db.as_deref())?;
    if args.path.is_empty() && args.options.duration().is_none() {
        bail!(Failure::new(
            "write noise: neither a path nor a time is given",
            "`blockstone noise .` writes in this directory until Ctrl-C, --for 30s ends it"
        ));
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
    let db = args.options.db.as_deref();
    Ok(Settings {
        destroy: args.destroy.clone(),
        options: args.options.clone(),
        database: db.map(|db| recordings::database(db, global)).transpose()?,
        seed: recordings::draw_seed(),
        argv: recordings::command_line(),
        recording: recordings::new_dir("noise", args.out.as_deref(), &global.runs_dir, &paths)?,
        places,
    })
}
