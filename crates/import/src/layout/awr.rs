//! AWR reports of a single instance, 10.2 to 21c, as HTML and as text.

use crate::number::Numbers;
use crate::report::{Interval, Kind, Report};
use crate::{ImportError, Source, html, text};

use super::facts::{Facts, SECOND};
use super::sections::{
    ACTIVITY, ADVICE, BACKGROUND_WAITS, FUNCTION_IO, HOST, IDENTITY, IO_PROFILE, MEMORY, OS,
    ReportSection, SNAPSHOTS, STATEMENT_TEXTS, STATEMENTS, TABLESPACE_IO, TIME_MODEL, WAITS,
};
use super::{Layout, contains, head};

pub const HTML: Layout =
    Layout { name: "AWR report of an instance, HTML", recognises: is_html, read: read_html };
pub const TEXT: Layout =
    Layout { name: "AWR report of an instance, text", recognises: is_text, read: read_text };

const OF_HEAD: &[&ReportSection] = &[&IDENTITY, &HOST, &SNAPSHOTS, &MEMORY, &STATEMENT_TEXTS];
/// Sections present in both forms.
const SECTIONS: &[&ReportSection] =
    &[&TIME_MODEL, &OS, &WAITS, &ACTIVITY, &FUNCTION_IO, &TABLESPACE_IO, &ADVICE, &STATEMENTS];

fn is_html(head: &str) -> bool {
    contains(head, "<title>AWR Report for DB:")
}

fn is_text(head: &str) -> bool {
    contains(head, "WORKLOAD REPOSITORY report for") && !contains(head, "<html")
}

fn read_html(source: &Source<'_>) -> Result<Report, ImportError> {
    let sections = || OF_HEAD.iter().chain(SECTIONS).chain(&[&IO_PROFILE]);
    let tables =
        html::tables(source.text, |summary| sections().any(|section| section.is_html(summary)));
    let facts = Facts { tables, numbers: Numbers::of(source.text)? };
    read(source, &facts, Kind::AwrHtml)
}

fn read_text(source: &Source<'_>) -> Result<Report, ImportError> {
    let tables = text::tables(source.text, is_wanted);
    let facts = Facts { tables, numbers: Numbers::of(source.text)? };
    read(source, &facts, Kind::AwrText)
}

/// Returns whether a section of a text report is read.
pub fn is_wanted(name: &str) -> bool {
    let mut sections = SECTIONS.iter().chain(&[&BACKGROUND_WAITS]);
    sections.any(|section| section.is_text(name))
}

/// Reads the sections that AWR and Statspack have in common.
pub fn read(source: &Source<'_>, facts: &Facts<'_>, kind: Kind) -> Result<Report, ImportError> {
    let (database, mut interval) = head::identity(facts, source);
    head::snapshots(facts, source, &mut interval)?;
    let mut notes = Vec::new();
    facts.processors(&mut interval);
    let is_complete = is_complete(source.text);
    let activity = facts.activity();
    let seconds = activity.as_ref().and_then(|activity| activity.seconds);
    if let Some(activity) = &activity {
        activity.fill(&mut interval);
    }
    if let Some(seconds) = length(&interval, seconds, is_complete, &mut notes) {
        interval.totals.set("elapsed_ns", seconds * SECOND);
        facts.functions(&mut interval, seconds, kind == Kind::Statspack);
        if is_complete {
            facts.classes(&mut interval);
            without_requests(facts, &mut interval, seconds, &mut notes);
        }
    }
    interval.advice = facts.advice();
    interval.statements = facts.statements(&STATEMENTS, source);
    let sections = facts.sections(SECTIONS);
    if !is_complete {
        let missing = sections.iter().filter(|section| !section.found);
        let missing: Vec<&str> = missing.map(|section| section.name).collect();
        notes.push(match &missing[..] {
            [] => "its end is missing".to_owned(),
            missing => format!("its end is missing, and with it: {}", missing.join(", ")),
        });
    }
    Ok(Report { kind, database, intervals: vec![interval], sections, notes })
}

/// Returns the exact length; without it, the length by the clock if the report is complete.
fn length(
    interval: &Interval,
    seconds: Option<f64>,
    is_complete: bool,
    notes: &mut Vec<String>,
) -> Option<f64> {
    const DIFFERS: f64 = 0.02;
    let by_clock = (interval.end_s - interval.begin_s) as f64;
    match seconds {
        Some(seconds) => {
            if (seconds - by_clock).abs() > (DIFFERS * by_clock).max(60.0) {
                notes.push(format!(
                    "its rates are of {seconds:.0} s, its snapshots {by_clock:.0} s apart"
                ));
            }
            Some(seconds)
        }
        None if is_complete => {
            notes.push("its length is that of the snapshots' times".to_owned());
            Some(by_clock)
        }
        None => None,
    }
}

/// Substitutes for the total requests in releases that do not count them.
fn without_requests(
    facts: &Facts<'_>,
    interval: &mut Interval,
    seconds: f64,
    notes: &mut Vec<String>,
) {
    let totals = &interval.totals;
    if totals.get("read_ios").is_some() && totals.get("write_ios").is_some() {
        return;
    }
    if facts.profile(interval, seconds) {
        notes.push("its requests are those of the I/O profile, rounded to 0.1 a second".to_owned());
    }
    let totals = &mut interval.totals;
    if totals.get("read_ios").is_some() && totals.get("write_ios").is_some() {
        return;
    }
    if let Some((reads, writes)) = facts.tablespaces() {
        totals.set("read_ios", reads);
        totals.set("write_ios", writes);
        notes.push(
            "its requests are those of tablespaces: redo and control files are not among them"
                .to_owned(),
        );
    }
}

/// Returns whether the last line is present.
pub fn is_complete(text: &str) -> bool {
    const TAIL: usize = 64 << 10;
    let start = text.ceil_char_boundary(text.len().saturating_sub(TAIL));
    text[start..].contains("End of Report")
}
