//! `blockstone report`: a recording again, on the terminal, as JSON or as HTML.

use std::path::Path;

use anyhow::{Context, Result, bail};
use blockstone_record::Recording;
use blockstone_record::manifest::End;
use blockstone_report::{html, terminal};
use blockstone_view::History;

use super::judged::Judged;
use super::{find_run, interval, matrix};
use crate::cli::{Global, ReportArgs};
use crate::exit::Exit;
use crate::printer::{Printer, answer};

/// The verb whose recordings have no findings.
pub const WATCH: &str = "watch";

pub fn run(args: &ReportArgs, global: &Global, printer: Printer) -> Result<Exit> {
    let dir = Path::new(&args.run);
    if dir.join(blockstone_judge::grid::PLAN_FILE).is_file() {
        return matrix::show(dir, printer);
    }
    let recording = find_run::open(&args.run, &global.runs_dir)?;
    for warning in recording.warnings() {
        printer.note(&format!("warning: {warning}"));
    }
    if recording.manifest.verb == WATCH || args.is_of_layers() {
        return layers(&recording, args, printer);
    }
    let judged = Judged::of(recording, &global.runs_dir)?;
    match &args.html {
        Some(file) => write_page(&judged.page()?, file, printer)?,
        None if args.awr_info => answer(&judged.awr_info()?)?,
        None => answer(&judged.text(printer)?)?,
    }
    Ok(exit_code(&judged))
}

/// What every layer did in a part of the recording's time.
fn layers(recording: &Recording, args: &ReportArgs, printer: Printer) -> Result<Exit> {
    if args.awr_info {
        bail!(
            "print awr_info of {}: only the recording of a run has these columns\n\
             hint: leave out --awr-info",
            recording.dir.display()
        );
    }
    let history = History::read(recording)?;
    let window = interval::window(&history, args.from, args.to)?;
    if args.html.is_none() && (printer.json || !args.only.is_empty()) {
        interval::print(window, &[], &args.only, printer)?;
        return Ok(Exit::Done);
    }
    let Some(window) = window else {
        bail!(
            "report {}: there are no two ticks\nhint: it ended too early",
            recording.dir.display()
        );
    };
    if let Some(file) = &args.html {
        write_page(&html::watch_page(recording, &window)?, file, printer)?;
    } else {
        let text = terminal::watch_terminal(&recording.manifest, &window, &printer.style());
        answer(&text)?;
    }
    Ok(Exit::Done)
}

/// Writes an HTML page to `file`, or to standard output for `-`.
pub fn write_page(page: &str, file: &Path, printer: Printer) -> Result<()> {
    if file == Path::new("-") {
        return Ok(answer(page)?);
    }
    std::fs::write(file, page).with_context(|| format!("write {}", file.display()))?;
    printer.note(&format!("report: {}", file.display()));
    Ok(())
}

/// What a recording's end and verdicts mean for the exit code.
pub fn exit_code(judged: &Judged) -> Exit {
    match judged.recording.manifest.end {
        End::Interrupted { .. } => Exit::Interrupted,
        End::Failed { .. } => Exit::CouldNotRun,
        End::Complete | End::Running if judged.trustworthy() => Exit::Done,
        End::Complete | End::Running => Exit::NotTrustworthy,
    }
}
