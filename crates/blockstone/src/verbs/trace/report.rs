//! The report of a trace.

pub mod against;
mod charts;
mod predictions;
mod tables;

use std::path::PathBuf;

use blockstone_base::rule::judge;
use blockstone_base::table::Rows as _;
use blockstone_base::text::shown;
use blockstone_base::units::{Bytes, counted, format_ns};
use blockstone_record::manifest::End;
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Block, Card, Detail, Headline, Report, Section, Tone, percent};
use blockstone_trace::{Component, Kind, RowSource, Trace};

use super::input::Input;
use super::rows::{
    AbsentRow, BlocksRow, BucketRow, CallRow, FileRow, NoteRow, ObjectRow, ProfileRow,
    SessionBucketRow, SessionRow, SessionSpentRow, SourceRow, StatementBucketRow, StatementRow,
    StatementSpentRow, Summary, TextRow, TimesRow,
};
use super::rules::{self, TraceFindings};
use super::what_if::Change;
use super::{earlier, words};
pub use predictions::Measured;
use predictions::{DeviceRow, DiskRow, WhatIfRow};

/// The options that shape the report.
pub struct Asked {
    pub subject: String,
    /// Number of statements shown with all their components.
    pub top: usize,
    pub tkprof: bool,
    pub memory_cost_ns: Option<f64>,
    pub changes: Vec<Change>,
    pub block_bytes: u64,
    pub measured: Option<Measured>,
}

/// Returns a common name for the files.
pub fn subject(paths: &[PathBuf]) -> String {
    match paths {
        [] => String::new(),
        [path] if path.as_os_str() == "-" => "standard input".to_owned(),
        [path] => shown(path),
        [first, rest @ ..] => format!("{} and {} more", shown(first), rest.len()),
    }
}

/// The tables; the names of those of a statement end in its id.
pub const TABLES: &[Tables] = &[&[
    ("profile", ProfileRow::COLUMNS),
    ("statements", StatementRow::COLUMNS),
    ("calls", CallRow::COLUMNS),
    ("calls-*", CallRow::COLUMNS),
    ("row-sources", SourceRow::COLUMNS),
    ("row-sources-*", &[]),
    ("components", StatementSpentRow::COLUMNS),
    ("components-*", ProfileRow::COLUMNS),
    ("overall", CallRow::COLUMNS),
    ("histogram", &[]),
    ("times", TimesRow::COLUMNS),
    ("histograms", BucketRow::COLUMNS),
    ("statement-histograms", StatementBucketRow::COLUMNS),
    ("sessions", SessionRow::COLUMNS),
    ("session-components", SessionSpentRow::COLUMNS),
    ("session-histograms", SessionBucketRow::COLUMNS),
    ("texts", TextRow::COLUMNS),
    ("files", FileRow::COLUMNS),
    ("blocks", BlocksRow::COLUMNS),
    ("objects", ObjectRow::COLUMNS),
    ("disk-time", DiskRow::COLUMNS),
    ("what-if", WhatIfRow::COLUMNS),
    ("device", DeviceRow::COLUMNS),
    ("not-in-log", AbsentRow::COLUMNS),
    ("notes", NoteRow::COLUMNS),
]];

pub fn report(input: &Input, asked: &Asked) -> Report {
    let verdicts = judge(rules::ALL, &findings(input));
    let end = End::by(input.signal);
    let mut sections =
        if asked.tkprof { by_statement(input, asked) } else { profile(input, asked) };
    sections.push(Section::of("not-in-log", tables::not_in_log(&input.trace)));
    sections.push(Section::of("notes", tables::notes(&input.trace)));
    sections.retain(|section| !section.blocks.is_empty());
    let notes = predictions::lacks_cost(&input.trace, asked).map(str::to_owned);
    Report {
        verb: "trace".into(),
        version: 2,
        headline: headline(&input.trace, &asked.subject),
        identity: identity(input),
        warnings: input.warnings.clone(),
        cards: cards(&input.trace),
        sections,
        scalars: Some(Summary::table("trace", "Trace", [Summary::of(input)])),
        earlier: Some(earlier::keys),
        verdicts,
        notes: notes.into_iter().collect(),
        partial: !input.warnings.is_empty(),
        end,
        ..Report::default()
    }
}

fn findings(input: &Input) -> TraceFindings {
    let trace = &input.trace;
    let has_cpu = trace.components.contains_key(&Component::Cpu);
    let unaccounted = trace.components.get(&Component::Unaccounted).filter(|_| has_cpu);
    TraceFindings {
        response_ns: words::response_ns(trace),
        unaccounted_ns: unaccounted.map(|spent| spent.ns),
        uncertain_ns: trace.components.values().map(|spent| spent.uncertain_ns).sum(),
        cut_files: trace.cut_files + input.warnings.len() as u64,
        skipped_lines: trace.skipped_lines,
        lines: trace.lines,
    }
}

fn headline(trace: &Trace, subject: &str) -> Headline {
    let all = words::response_ns(trace);
    let first = words::greatest(&trace.components);
    let text = match (first, trace.statements.first()) {
        (Some((Component::Unaccounted, _)), _) if let Some(node) = longest(trace, all) => {
            let ns = node.own_ns.unwrap_or(0.0);
            format!(
                "{} of {} is the {}{}",
                percent(ns / all.max(1.0)),
                format_ns(all),
                node.operation.trim(),
                match node.rows {
                    rows if rows >= 1.0 => format!(", {}", counted(rows as u64, "row")),
                    _ => String::new(),
                }
            )
        }
        (Some((component, spent)), _) => {
            let name = match component {
                Component::Unaccounted => match untimed(trace) {
                    Some(why) => format!("not broken down: {why}"),
                    None => "in no component of this log".to_owned(),
                },
                component => words::component(component),
            };
            format!("{} of {} is {name}", percent(spent.ns / all.max(1.0)), format_ns(all))
        }
        (None, Some(statement)) => format!(
            "{} of {} is one statement, {}",
            percent(statement.ns / all.max(1.0)),
            format_ns(all),
            statement.id
        ),
        (None, None) => "no statement".to_owned(),
    };
    Headline { subject: subject.to_owned(), text, tone: Tone::Plain, ..Headline::default() }
}

/// Returns the plan node that took the most time of its own, if its share is worth naming. Plans
/// measure few components, so most of the time is explained only by their nodes.
fn longest(trace: &Trace, all_ns: f64) -> Option<&RowSource> {
    const WORTH: f64 = 0.05;
    if trace.kind != Some(Kind::AutoExplain) {
        return None;
    }
    let own = |row: &RowSource| row.own_ns.unwrap_or(0.0);
    let longest = trace.row_sources.iter().max_by(|a, b| own(a).total_cmp(&own(b)))?;
    (own(longest) >= WORTH * all_ns && all_ns > 0.0).then_some(longest)
}

/// Explains why plans do not contain times.
fn untimed(trace: &Trace) -> Option<&'static str> {
    let reads = trace.absent.iter().find(|(component, _)| *component == Component::StorageRead);
    reads.filter(|_| trace.kind == Some(Kind::AutoExplain)).map(|(_, why)| *why)
}

fn identity(input: &Input) -> Vec<String> {
    let trace = &input.trace;
    let executions: f64 = trace.statements.iter().map(|statement| statement.executions).sum();
    let count = |count: usize, word: &str| counted(count as u64, word);
    let mut parts = vec![trace.kind.map_or("", words::kind).to_owned()];
    parts.extend(Some(trace.product.clone()).filter(|product| !product.is_empty()));
    parts.push(Bytes(input.bytes).to_string());
    // One entry may be all those beyond the limits, and is not one of them.
    let over = |merges: bool, len: usize, word: &str| {
        if merges {
            format!("over {}", count(len.saturating_sub(1), word))
        } else {
            count(len, word)
        }
    };
    let mut second = vec![
        over(trace.merges_statements, trace.statements.len(), "statement"),
        count(executions as usize, "execution"),
    ];
    // A report of tkprof does not tell sessions apart.
    second.extend(
        (!trace.sessions.is_empty())
            .then(|| over(trace.merges_sessions, trace.sessions.len(), "session")),
    );
    second.extend(trace.span_ns.map(|ns| format!("span {}", format_ns(ns))));
    vec![parts.join(" · "), second.join(" · ")]
}

fn cards(trace: &Trace) -> Vec<Card> {
    let all = words::response_ns(trace);
    let card =
        |name: &'static str, title: &'static str, ns: f64| Card::exact(name, title, ns, "ns");
    let unaccounted = trace.components.get(&Component::Unaccounted);
    let has_cpu = trace.components.contains_key(&Component::Cpu);
    let mut cards = vec![card("response_ns", "Response time", all)];
    cards.extend(unaccounted.map(|spent| {
        let title = if has_cpu { "Unaccounted" } else { "Not divided, CPU among it" };
        card("unaccounted_ns", title, spent.ns)
            .source(format!("{} of the response time", percent(spent.ns / all.max(1.0))))
    }));
    cards
}

/// Shows components first, then the details behind them.
fn profile(input: &Input, asked: &Asked) -> Vec<Section> {
    let trace = &input.trace;
    let statements: Vec<Block> = trace
        .statements
        .iter()
        .take(asked.top)
        .flat_map(|statement| tables::of_statement(trace, statement, true))
        .map(Block::Table)
        .collect();
    // A log of durations divides no time: `Not in this log` says so.
    let detail = if trace.components.is_empty() { Detail::Page } else { Detail::Screen };
    let mut sections = vec![
        Section::of("profile", tables::profile(trace))
            .with([charts::profile(trace)])
            .detail(detail),
        Section::of("statements", tables::statements(trace, asked.top)),
        histograms(trace),
        Section::new("where", "By file, blocks a call and object").with(tables::waits(trace)),
        Section::of("row-sources", tables::row_sources(trace, asked)).about(
            "Own time and reads are those of a line without the lines below it; where these do \
             not add up, they are unknown.",
        ),
    ];
    sections.extend(predictions::sections(trace, asked));
    sections.extend([
        Section::of("sessions", tables::sessions(trace)),
        Section::page("by-statement", "Each statement").with(statements),
        Section::page("all-calls", "Calls, components and histograms").with(tables::all(trace)),
    ]);
    sections
}

fn histograms(trace: &Trace) -> Section {
    let about = if trace.components.values().any(|spent| spent.is_averaged) {
        "Calls by their time, in powers of two. Where the log has only the sum of several calls, \
         all of them count with their mean."
    } else {
        "Calls by their time, in powers of two."
    };
    let calls = tables::histogram(trace);
    let charts = charts::histogram(trace);
    let times = tables::times(trace);
    if calls.rows.is_empty() {
        return Section::of("histogram", times).with([calls]).with(charts);
    }
    Section::of("histogram", calls).about(about).with(charts).with([times])
}

/// Sections in the order of tkprof: statement by statement, then all together.
fn by_statement(input: &Input, asked: &Asked) -> Vec<Section> {
    let trace = &input.trace;
    let mut sections: Vec<Section> = Vec::new();
    for (number, statement) in trace.statements.iter().take(asked.top).enumerate() {
        let depth = statement.depth.filter(|depth| *depth > 0);
        let depth = depth.map_or(String::new(), |depth| format!(", recursive depth {depth}"));
        let heading = format!("SQL ID: {}{depth}", statement.id);
        sections.push(
            Section::new(format!("statement-{number}"), heading)
                .with([statement.text.clone()])
                .with(tables::of_statement(trace, statement, false)),
        );
    }
    sections.push(Section::of("overall", tables::overall(trace)));
    sections.push(Section::of("profile", tables::profile(trace)));
    let more = trace.statements.len().saturating_sub(asked.top);
    if more > 0 {
        let text = format!("{more} more statements: --top {}", trace.statements.len().min(1000));
        sections.push(Section::new("more", "").with([text]));
    }
    sections
}

/// Whether single waits are known.
pub fn has_waits(trace: &Trace) -> bool {
    trace.kind == Some(Kind::OracleSql)
}
