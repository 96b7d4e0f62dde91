//! `blockstone report`: a recording again, on the terminal, as JSON or as HTML.

mod args;

use std::path::Path;

use anyhow::{Result, bail};
use clap::{Args, FromArgMatches};

use super::run::matrix;
use super::watch;
use crate::exit::Exit;
use crate::finish::finish;
use crate::judged::{Judged, exit_code, write_page};
use crate::printer::answer;
use crate::recordings;
use crate::verb::{Context, Verb};
use args::ReportArgs;

pub const VERB: Verb = Verb {
    name: "report",
    about: "Show a recording again, or write its HTML report again",
    options: ReportArgs::augment_args,
    run: |options, context| {
        run(&ReportArgs::from_arg_matches(options)?, context)
    },
    reports: true,
    ..Verb::PLAIN
};

/// The verb whose recordings have no findings.
pub const WATCH: &str = "watch";

fn run(args: &ReportArgs, context: &Context) -> Result<Exit> {
    let Context { global, printer } = context;
    let printer = *printer;
    let dir = Path::new(&args.run);
    if dir.join(blockstone_judge::grid::PLAN_FILE).is_file() {
        return matrix::show(dir, printer);
    }
    let recording = recordings::open(&args.run, &global.runs_dir)?;
    for warning in recording.warnings() {
        printer.note(&format!("warning: {warning}"));
    }
    if recording.manifest.verb == WATCH || args.is_of_layers() {
        if args.awr_info {
            bail!(
                "print awr_info of {}: only the recording of a run has these columns\n\
                 hint: omit --awr-info",
                recording.dir.display()
            );
        }
        let part = watch::Part { from: args.from, to: args.to, views: &[], only: &args.only };
        return finish(&watch::report_of(&recording, &part)?, context);
    }
    let judged = Judged::of(recording, &global.runs_dir)?;
    match &global.html {
        Some(file) => write_page(&judged.page()?, file, printer)?,
        None if args.awr_info => answer(&judged.awr_info()?)?,
        None => answer(&judged.text(printer)?)?,
    }
    Ok(exit_code(&judged))
}
