//! AWR reports of a single instance, or of a pluggable database in one, as HTML, Markdown and text.

use crate::number::Numbers;
use crate::report::{Container, Interval, Kind, Report};
use crate::{ImportError, Source, html, markdown, text};

use super::facts::{Facts, SECOND};
use super::sections::{
    ACTIVITY, ADVICE, BACKGROUND_WAITS, EVENTS, FILE_IO, FUNCTION_IO, HOST, IDENTITY, IO_PROFILE,
    MEMORY, OS, ReportSection, SNAPSHOTS, STATEMENT_TEXTS, STATEMENTS, TABLESPACE_IO, TIME_MODEL,
    WAITS,
};
use super::{Head, Layout, head};

pub const HTML: Layout =
    Layout { name: "AWR report of an instance, HTML", recognises: is_html, read: read_html };
pub const MARKDOWN: Layout = Layout {
    name: "AWR report of an instance, Markdown",
    recognises: |head| is_text(head) && head.is_markdown(),
    read: read_markdown,
};
pub const TEXT: Layout =
    Layout { name: "AWR report of an instance, text", recognises: is_text, read: read_text };

const OF_HEAD: &[&ReportSection] = &[&IDENTITY, &HOST, &SNAPSHOTS, &MEMORY, &STATEMENT_TEXTS];
/// Sections present in both forms.
const SECTIONS: &[&ReportSection] =
    &[&TIME_MODEL, &OS, &WAITS, &ACTIVITY, &FUNCTION_IO, &TABLESPACE_IO, &ADVICE, &STATEMENTS];

/// First lines of a report, of an instance and of a pluggable database.
const FIRSTS: [&str; 2] = ["WORKLOAD REPOSITORY report for", "WORKLOAD REPOSITORY PDB report"];

fn is_html(head: &Head) -> bool {
    head.contains("<title>awr report for") || is_named(head) && head.is_html()
}

fn is_text(head: &Head) -> bool {
    is_named(head) && !head.is_html()
}

fn is_named(head: &Head) -> bool {
    let is_of_cluster = head.contains("report (rac");
    !is_of_cluster && (head.contains("workload repository report for") || is_of_container(head))
}

/// Whether it is a report of a pluggable database.
pub fn is_of_container(head: &Head) -> bool {
    head.contains("workload repository pdb report")
}

fn read_html(source: &Source<'_>) -> Result<Report, ImportError> {
    super::check_single(source.text)?;
    let sections = || OF_HEAD.iter().chain(SECTIONS).chain(&[&IO_PROFILE, &FILE_IO, &EVENTS]);
    // A pluggable database is named in a table before that of snapshots.
    let mut is_before = true;
    let tables = html::tables(source.text, |summary| {
        let is_wanted = is_before || sections().any(|section| section.is_html(summary));
        is_before &= !SNAPSHOTS.is_html(summary);
        is_wanted
    });
    let facts = Facts { tables, numbers: Numbers::of(source.text)? };
    read(source, &facts, Kind::AwrHtml)
}

fn read_text(source: &Source<'_>) -> Result<Report, ImportError> {
    let source = &Source { text: super::only(source.text, &FIRSTS)?, ..*source };
    let tables = text::tables(source.text, is_wanted);
    let facts = Facts { tables, numbers: Numbers::of(source.text)? };
    read(source, &facts, Kind::AwrText)
}

fn read_markdown(source: &Source<'_>) -> Result<Report, ImportError> {
    let source = &Source { text: super::only(source.text, &FIRSTS)?, ..*source };
    let mut tables = markdown::tables(source.text, is_wanted);
    for table in tables.iter_mut().filter(|table| table.has(&["Snap Id", "Snap Time"])) {
        table.name = SNAPSHOTS.summary().into();
    }
    let facts = Facts { tables, numbers: Numbers::of(source.text)? };
    read(source, &facts, Kind::AwrMarkdown)
}

/// Returns whether a section of a text report is read.
pub fn is_wanted(name: &str) -> bool {
    let mut sections = SECTIONS.iter().chain(&[&BACKGROUND_WAITS, &FILE_IO]);
    sections.any(|section| section.is_text(name))
}

/// Reads the sections that AWR and Statspack have in common.
pub fn read(source: &Source<'_>, facts: &Facts<'_>, kind: Kind) -> Result<Report, ImportError> {
    let (mut database, mut interval) = head::identity(facts, source);
    let snapshots = head::Snapshots::of(facts, source)?;
    let mut notes = Vec::new();
    facts.processors(&mut interval);
    let is_complete = is_complete(source.text);
    let activity = facts.activity();
    let seconds = activity.as_ref().and_then(|activity| activity.seconds);
    if let Some(activity) = &activity {
        activity.fill(&mut interval);
        if activity.is_empty() {
            notes.push("no number of its instance activity can be read".to_owned());
        }
    }
    let seconds = snapshots.length(seconds, is_complete, &mut notes);
    snapshots.fill(&mut interval, seconds, &mut notes)?;
    if let Some(seconds) = seconds {
        interval.totals.set("elapsed_ns", seconds * SECOND);
        facts.functions(&mut interval, seconds, kind == Kind::Statspack);
        if is_complete {
            facts.classes(&mut interval);
            without_requests(facts, &mut interval, seconds, &mut notes);
        }
    }
    if is_of_container(source.head) && database.container.is_none() {
        database.container = Some(Container::default());
    }
    if let Some(container) = &database.container {
        notes.push(of_container(container, &mut interval));
        let has_writes = seconds.is_some_and(|seconds| facts.written_files(&mut interval, seconds));
        notes.push(if has_writes {
            "its writes are those of its files, rounded to 0.1 a second: redo is not among them"
                .to_owned()
        } else {
            "its writes are those of its sessions: those of database writers and redo are not \
             among them"
                .to_owned()
        });
    }
    interval.advice = facts.advice();
    interval.statements = facts.statements(&STATEMENTS, source);
    let sections = facts.sections(SECTIONS);
    if !is_complete {
        let missing = sections.iter().filter(|section| !section.found);
        let missing: Vec<&str> = missing.map(|section| section.name).collect();
        notes.push(match &missing[..] {
            [] => "its end is missing".to_owned(),
            missing => format!("{}: {}", crate::CUT, missing.join(", ")),
        });
    }
    Ok(Report { kind, database, intervals: vec![interval], sections, notes })
}

/// Removes what is of the whole database or its host. Returns a note on it.
fn of_container(container: &Container, interval: &mut Interval) -> String {
    for column in ["host_busy_ns", "host_idle_ns", "background_cpu_ns", "redo_writes"] {
        interval.totals.remove(column);
    }
    let name = if container.name.is_empty() { "" } else { " " };
    format!(
        "it is of the pluggable database{name}{}: the load of the host and of background \
         processes is unknown",
        container.name
    )
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
