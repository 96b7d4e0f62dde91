//! `blockstone report`: shows a recording again, on the terminal, as JSON or as HTML.

mod args;

use anyhow::{Result, bail};
use clap::{Args, FromArgMatches};

use super::run::{awr, matrix};
use super::watch;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::{self, finish, report_of};
use crate::range::RecordingRange;
use crate::recordings;
use crate::verb::{Context, Verb};
use args::ReportArgs;

pub const VERB: Verb = Verb {
    name: "report",
    about: "Show the report of a recording",
    options: ReportArgs::augment_args,
    run: |options, context| run(&ReportArgs::from_arg_matches(options)?, context),
    reports: true,
    finds_runs: true,
    ..Verb::PLAIN
};

/// The verb whose recordings do not have findings.
pub const WATCH: &str = "watch";

fn run(args: &ReportArgs, context: &Context) -> Result<Exit> {
    blockstone_sys::memory::hold_to(None);
    let (global, printer) = (&context.global, context.printer);
    let part = RecordingRange::of(&args.run)?.or(args.from, args.to);
    if !part.is_limited() && args.only.is_empty() && !args.awr_info {
        let dir = recordings::locate(&part.run, &global.runs_dir)?;
        if recordings::is_grid(&dir) {
            return finish(&matrix::report(&dir, context)?, context);
        }
    }
    let recording = recordings::open(&part.run, &global.runs_dir)?;
    for warning in recording.warnings() {
        printer.note(&format!("warning: {warning}"));
    }
    if recording.manifest.verb == WATCH || part.is_limited() || !args.only.is_empty() {
        if args.awr_info {
            bail!(Failure::new(
                format!(
                    "print awr_info of {}: only the recording of a run has these columns",
                    recording.dir.display()
                ),
                "omit --awr-info"
            ));
        }
        let asked = watch::Asked { part: &part, views: &[], only: &args.only };
        return finish(&watch::report_of(&recording, &asked, global)?, context);
    }
    let report = report_of(recording, context)?;
    if args.awr_info {
        return finish::finish_with(&awr::lines(&report)?, &report, context);
    }
    finish(&report, context)
}
