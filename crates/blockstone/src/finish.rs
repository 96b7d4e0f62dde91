//! The end of every verb: the answer on standard output, the page if it was asked for, the exit
//! code.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::{Result, bail};
use blockstone_record::manifest::End;
use blockstone_record::{PAGE, Recording};
use blockstone_report::expect;
use blockstone_report::render::{csv, html, json, junit, terminal};
use blockstone_report::{EXPECTATIONS, Outcome, Report};
use blockstone_sys::output;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::answer;
use crate::verb::{Context, JsonVersion};
use crate::{ranks, verbs};

const WHERE: &str = "name another file with --html; `blockstone report` makes the page again";

/// Whether the verb of the report declares a document that may have these tables.
fn is_declared(report: &Report) -> bool {
    let document = verbs::schema::documents().find(|it| it.name == report.verb);
    document.is_some_and(|it| report.tables().all(|table| it.may_have_table(&table.name)))
}

/// Prints the report as text, JSON or CSV, writes the page that `--html` names, and returns the
/// exit code.
pub fn finish(report: &Report, context: &Context) -> Result<Exit> {
    let report = &*judged(report, context);
    let global = &context.global;
    let page = global.html.as_deref();
    if page == Some(Path::new("-")) {
        answer(&html::page(report)?)?;
        return Ok(exit(report));
    }
    if let Some(version) = global.json {
        debug_assert!(is_declared(report), "no verb declares the document {}", report.verb);
        let is_earlier = matches!(version, JsonVersion::Of(version) if version < report.version);
        let document = if is_earlier { json::earlier } else { json::document };
        answer(&json::text(&document(report)))?;
    } else if let Some(table) = &global.csv {
        let text = one_table(report, table, context)?;
        // A file or a program gets the table unchanged.
        if io::stdout().is_terminal() { context.printer.answer(&text) } else { answer(&text) }?;
    } else {
        let style = context.printer.style();
        context.printer.answer(&terminal::text(report, global.verbose, &style))?;
    }
    // After the answer: if the page cannot be written, hours of measurement must not be lost.
    if let Some(file) = page {
        output::write(file, html::page(report)?.as_bytes()).map_err(|error| {
            Failure::new(format!("write {}", file.display()), WHERE).because(error)
        })?;
        context.printer.note(&format!("report: {}", file.display()));
    }
    write_junit(report, context)?;
    Ok(ended(report, context))
}

/// Returns the report with the limits that were expected, decided.
fn judged<'a>(report: &'a Report, context: &Context) -> Cow<'a, Report> {
    let is_judged = report.sections.iter().any(|section| section.id == EXPECTATIONS);
    if is_judged || context.expectations.is_empty() && report.purpose.is_none() {
        return Cow::Borrowed(report);
    }
    let mut report = report.clone();
    expect::judge(&mut report, &context.expectations);
    Cow::Owned(report)
}

fn write_junit(report: &Report, context: &Context) -> Result<()> {
    let Some(file) = &context.global.junit else { return Ok(()) };
    let written = output::write(file, junit::document(report)?.as_bytes());
    Ok(written.map_err(|error| {
        let hint = "name another file with --junit; `blockstone report` makes it again";
        Failure::new(format!("write {}", file.display()), hint).because(error)
    })?)
}

/// Prints `text` in place of the report, and returns the exit code.
pub fn finish_with(text: &str, report: &Report, context: &Context) -> Result<Exit> {
    let report = &*judged(report, context);
    context.printer.answer(text)?;
    write_junit(report, context)?;
    Ok(ended(report, context))
}

fn ended(report: &Report, context: &Context) -> Exit {
    if let Some((error, hint)) = report.end.failure() {
        context.printer.error(&match hint {
            Some(hint) => Failure::new(error, hint).into(),
            None => anyhow::anyhow!("{error}"),
        });
    }
    exit(report)
}

/// Judges a new recording, stores the judgement in it, writes its page and ends as every verb does.
pub fn finish_recording(dir: &Path, context: &Context) -> Result<Exit> {
    finish(&judge_recording(dir, context)?, context)
}

/// Judges a new recording, stores the judgement in it and writes its page.
pub fn judge_recording(dir: &Path, context: &Context) -> Result<Report> {
    let mut report = report_of(Recording::open(dir)?, context)?;
    expect::judge(&mut report, &context.expectations);
    keep(&report, dir)?;
    Ok(report)
}

/// Stores the judgement of a recording in it and writes its page.
pub fn keep(report: &Report, dir: &Path) -> Result<()> {
    blockstone_record::keep_judgement(dir, report.summary.clone(), report.verdicts.clone())?;
    write_page(report, dir)
}

/// Writes the page of a report into the directory of its recordings.
pub fn write_page(report: &Report, dir: &Path) -> Result<()> {
    Ok(blockstone_record::write_file(dir, PAGE, html::page(report)?.as_bytes())?)
}

/// Returns the report of a recording, made by the verb that made the recording.
pub fn report_of(recording: Recording, context: &Context) -> Result<Report> {
    let name = recording.manifest.verb.clone();
    let merged = recording.manifest.merged.clone();
    match verbs::find(&name).and_then(|verb| verb.report) {
        Some(report) => {
            let mut report = report(recording, context)?;
            if let Some(merged) = &merged {
                ranks::add(&mut report, merged);
            }
            Ok(report)
        }
        None => bail!(Failure::new(
            format!(
                "report {}: it was made by `{name}`, which this version does not know",
                recording.dir.display()
            ),
            format!("use the version that made it, {}", recording.manifest.tool_version)
        )),
    }
}

/// Returns the exit code for this report.
pub fn exit(report: &Report) -> Exit {
    let expected = |outcome| report.expectations.iter().any(|it| it.outcome == outcome);
    match &report.end {
        End::Interrupted { .. } => Exit::Interrupted,
        End::Failed { .. } => Exit::CouldNotRun,
        End::Complete | End::Running if report.is_undone => Exit::CouldNotRun,
        End::Complete | End::Running if report.is_refuted || expected(Outcome::Fail) => {
            Exit::JudgedFailed
        }
        // Limits are decided by sound figures alone, whatever else is condemned.
        End::Complete | End::Running if expected(Outcome::NotEstablished) => Exit::NotTrustworthy,
        End::Complete | End::Running if !report.expectations.is_empty() => Exit::Done,
        End::Complete | End::Running if report.partial || !report.trustworthy() => {
            Exit::NotTrustworthy
        }
        End::Complete | End::Running => Exit::Done,
    }
}

/// Returns the named table as CSV, or the first if the name is empty.
fn one_table(report: &Report, name: &str, context: &Context) -> Result<String> {
    let names = csv::names(report);
    let found = report.tables().find(|table| name.is_empty() || table.name == name);
    let Some(table) = found else {
        let what = if name.is_empty() { "a table" } else { name };
        let hint = match names.join(", ") {
            names if names.is_empty() => "it has no tables".to_owned(),
            names => format!("its tables are {names}"),
        };
        bail!(Failure::new(format!("print {what} as CSV: the report has no such table"), hint));
    };
    if name.is_empty() && names.len() > 1 {
        let others = names[1..].join(", ");
        context.printer.note(&format!("table {}; others for --csv=TABLE: {others}", table.name));
    }
    Ok(csv::table(table, context.global.csv_texts()))
}
