//! `blockstone report`: a recording again, on the terminal, as JSON or as HTML.

mod args;

use std::path::Path;

use anyhow::{Result, bail};
use blockstone_record::Recording;
use blockstone_report::{html, terminal};
use blockstone_view::History;
use clap::{Args, FromArgMatches};

use super::run::{awr, matrix};
use crate::cli::Global;
use crate::exit::Exit;
use crate::judged::write_page;
use crate::printer::{Printer, answer};
use crate::finish::{self, report_of};
use crate::verb::{Context, Verb};
use crate::{interval, recordings};
use args::ReportArgs;

pub const VERB: Verb = Verb {
    name: "report",
    about: "Show a recording again, or write its HTML report again",
    options: ReportArgs::augment_args,
    run: |options, context| run(&ReportArgs::from_arg_matches(options)?, context),
    reports: true,
    ..Verb::PLAIN
};

/// The verb whose recordings have no findings.
pub const WATCH: &str = "watch";

fn run(args: &ReportArgs, context: &Context) -> Result<Exit> {
    let (global, printer) = (&context.global, context.printer);
    let dir = Path::new(&args.run);
    if dir.join(blockstone_judge::grid::PLAN_FILE).is_file() {
        return finish::finish(&matrix::report(dir)?, context);
    }
    let recording = recordings::open(&args.run, &global.runs_dir)?;
    for warning in recording.warnings() {
        printer.note(&format!("warning: {warning}"));
    }
    if recording.manifest.verb == WATCH || args.is_of_layers() {
        return layers(&recording, args, global, printer);
    }
    let report = report_of(recording, context)?;
    if args.awr_info {
        return finish::finish_with(awr::of(&report)?, &report, context);
    }
    finish::finish(&report, context)
}

/// What every layer did in a part of the recording's time.
fn layers(
    recording: &Recording,
    args: &ReportArgs,
    global: &Global,
    printer: Printer,
) -> Result<Exit> {
    if args.awr_info {
        bail!(
            "print awr_info of {}: only the recording of a run has these columns\n\
             hint: leave out --awr-info",
            recording.dir.display()
        );
    }
    let history = History::read(recording)?;
    let window = interval::window(&history, args.from, args.to)?;
    if global.html.is_none() && (printer.json || !args.only.is_empty()) {
        interval::print(window, &[], &args.only, printer)?;
        return Ok(Exit::Done);
    }
    let Some(window) = window else {
        bail!(
            "report {}: there are no two ticks\nhint: it ended too early",
            recording.dir.display()
        );
    };
    if let Some(file) = &global.html {
        write_page(&html::watch_page(recording, &window)?, file, printer)?;
    } else {
        let text = terminal::watch_terminal(&recording.manifest, &window, &printer.style());
        answer(&text)?;
    }
    Ok(Exit::Done)
}
