//! Reports of Oracle's `tkprof`, 8i to 23ai: the sums of a SQL trace, by statement and in total.
//!
//! A statement has a table of its calls and one of its waits. The totals are in two pairs of such
//! tables, of statements that clients sent and of recursive ones; they include statements that the
//! report leaves out (`sys=no`, `print=`). Calls of a statement do not include those of recursive
//! statements.

use std::collections::BTreeMap;

use crate::format::{Format, Options};
use crate::lines::{Lined, Lines, is_sane};
use crate::model::{Component, Kind, Spent, Statement, StatementPart, Trace};
use crate::normal::{self, Dialect};

pub const FORMAT: Format = Format {
    kind: Kind::Tkprof,
    name: "a report of tkprof",
    recognises: |head| {
        let has = |mark: &str| memchr::memmem::find(head, mark.as_bytes()).is_some();
        has("TKPROF: Release ") || (has("call     count       cpu    elapsed") && has("Parse "))
    },
    reader: |options| Box::new(Lined::new(Report::new(options))),
    if_nothing: "give a report with tables of calls, or the trace that tkprof read",
};

/// Bytes kept of a statement's text.
const TEXT_BYTES: usize = 64 << 10;
/// Times are printed in hundredths of a second.
const UNIT_NS: f64 = 1e7;
/// Nanoseconds per second.
const SECOND: f64 = 1e9;
/// The client's time between calls; the report has no other waits that are surely outside of calls.
const CLIENT: &str = "SQL*Net message from client";

/// The construct to which the next lines belong.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Text,
    Calls,
    /// After the calls: remarks, row sources, plans.
    After,
    Waits,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Block {
    #[default]
    Statement,
    Totals,
}

/// The tables of one statement, or of all.
#[derive(Default)]
struct Tables {
    id: Option<String>,
    text: String,
    depth: Option<u32>,
    parts: Vec<StatementPart>,
    total: Option<StatementPart>,
    waits: Vec<(String, Spent)>,
}

struct Report {
    options: Options,
    product: String,
    section: Section,
    block: Block,
    tables: Tables,
    statements: Vec<Statement>,
    /// Statements beyond the bound on memory.
    merged: Option<Statement>,
    /// Sums of the totals, and how many of them there were.
    totals: Tables,
    totals_count: u64,
    /// Whether the line that ends a report was read.
    has_ended: bool,
    unique: Option<f64>,
    skipped_lines: u64,
}

impl Report {
    fn new(options: Options) -> Self {
        Self {
            options,
            product: String::new(),
            section: Section::default(),
            block: Block::default(),
            tables: Tables::default(),
            statements: Vec::new(),
            merged: None,
            totals: Tables::default(),
            totals_count: 0,
            has_ended: false,
            unique: None,
            skipped_lines: 0,
        }
    }

    /// Handles lines that mean the same everywhere; returns whether this is one.
    fn heading(&mut self, line: &str) -> bool {
        if let Some(release) = line.strip_prefix("TKPROF: ") {
            self.close();
            let release = release.split(" - ").next().unwrap_or(release);
            self.product = format!("tkprof {release}").chars().take(80).collect();
        } else if is_rule(line) && !(line.starts_with('-') && self.in_text()) {
            self.close();
        } else if line.starts_with("OVERALL TOTALS FOR ALL ") {
            self.close();
            self.block = Block::Totals;
            self.section = Section::After;
        } else if is_table(line) {
            // The next statement of a report whose rules were removed.
            if !self.tables.parts.is_empty() {
                self.close();
            }
            self.section = Section::Calls;
        } else if line.starts_with("Elapsed times include waiting on") {
            self.section = Section::Waits;
        } else if line.trim_end().ends_with("lines in trace file.") {
            self.has_ended = true;
        } else if let Some(count) = line.trim().strip_suffix("unique SQL statements in trace file.")
        {
            let count = number(count.trim());
            self.unique = count.map(|count| count + self.unique.unwrap_or(0.0));
        } else {
            return false;
        }
        true
    }

    /// Returns whether this is the text of a statement, where dashes begin a comment.
    fn in_text(&self) -> bool {
        self.section == Section::Text && self.tables.id.is_some()
    }

    fn text(&mut self, line: &str) {
        let tables = &mut self.tables;
        if let Some(rest) = line.strip_prefix("SQL ID")
            && let Some(id) = rest.trim_start().strip_prefix(':')
        {
            let id = id.split_whitespace().next().unwrap_or_default();
            tables.text.clear();
            tables.id = Some(id.chars().take(20).collect());
        } else if tables.text.trim().is_empty() && is_of_plan(line) {
            // Release 11.2 prints the hash of the plan in a line of its own.
        } else if tables.text.len() + line.len() < TEXT_BYTES {
            tables.text.push_str(line);
            tables.text.push('\n');
        }
    }

    fn call(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let Some(word) = words.next() else { return };
        if word.starts_with("---") {
            return;
        }
        let name = match word {
            "Parse" => "parse",
            "Execute" => "execute",
            "Fetch" => "fetch",
            "total" => "total",
            _ => {
                self.section = Section::After;
                return self.after(line);
            }
        };
        let numbers: Option<Vec<f64>> = words.map(number).collect();
        let Some([calls, cpu, elapsed, disk, query, current, rows]) =
            numbers.and_then(|it| <[f64; 7]>::try_from(it).ok())
        else {
            self.skipped_lines += 1;
            return;
        };
        let part = StatementPart {
            name,
            calls,
            cpu_ns: cpu * SECOND,
            elapsed_ns: elapsed * SECOND,
            physical_reads: disk,
            consistent_reads: query,
            current_reads: current,
            rows,
            misses: 0.0,
        };
        if name == "total" {
            self.tables.total = Some(part);
        } else {
            self.tables.parts.push(part);
        }
    }

    fn after(&mut self, line: &str) {
        let tables = &mut self.tables;
        if let Some(rest) = line.strip_prefix("Misses in library cache during ")
            && let Some((name, count)) = rest.split_once(": ")
            && let Some(part) = tables.parts.iter_mut().find(|it| it.name == name)
        {
            part.misses = number(count.trim()).unwrap_or(0.0);
        } else if let Some((_, rest)) = line.split_once("(recursive depth: ") {
            tables.depth = rest.split(')').next().and_then(|it| it.trim().parse().ok());
        }
    }

    fn wait(&mut self, line: &str) {
        let is_head = line.trim_start().starts_with("Event waited on") || line.contains("-----");
        if is_head {
            return;
        }
        if line.trim().is_empty() {
            self.section = Section::After;
            return;
        }
        let Some((name, [calls, longest, total])) = event(line) else {
            self.skipped_lines += 1;
            return;
        };
        let spent = Spent {
            calls,
            ns: total * SECOND,
            max_ns: Some(longest * SECOND),
            uncertain_ns: UNIT_NS,
            ..Spent::default()
        };
        self.tables.waits.push((name, spent));
    }

    /// Counts the completed tables.
    fn close(&mut self) {
        let tables = std::mem::take(&mut self.tables);
        let block = std::mem::take(&mut self.block);
        self.section = Section::Text;
        if tables.parts.is_empty() || (block == Block::Totals && tables.total.is_none()) {
            return;
        }
        if block == Block::Totals {
            self.totals_count += 1;
            self.totals.merge(&tables);
            return;
        }
        let statement = tables.statement(self.options.limits.text_bytes);
        let same = |it: &&mut Statement| it.id == statement.id && it.depth == statement.depth;
        if let Some(known) = self.statements.iter_mut().find(same) {
            merge(known, &statement);
        } else if self.statements.len() < self.options.limits.statements {
            self.statements.push(statement);
        } else {
            merge(
                self.merged.get_or_insert_with(|| Statement {
                    id: "others".to_owned(),
                    text: "all other statements".to_owned(),
                    ..Statement::default()
                }),
                &statement,
            );
        }
    }

    fn notes(&self, is_complete: bool) -> Vec<String> {
        let mut notes = vec![
            "tkprof keeps sums, cut to 0.01 s: single waits, histograms, files, blocks, sessions, \
             round trips and the span of the trace are not in its report; the trace has them"
                .to_owned(),
        ];
        let listed = self.statements.len() as f64;
        if !is_complete {
            notes.push(
                "the report lacks its totals: the profile is the sum of the statements listed, and \
                 others may be missing"
                    .to_owned(),
            );
        } else if let Some(unique) = self.unique.filter(|unique| *unique > listed) {
            notes.push(format!(
                "{listed} of {unique} statements are listed (sys=no or print=): the others are in \
                 the profile only"
            ));
        }
        notes
    }
}

impl Tables {
    /// Adds the tables of another kind of statements.
    fn merge(&mut self, other: &Self) {
        for part in &other.parts {
            match self.parts.iter_mut().find(|it| it.name == part.name) {
                Some(ours) => add(ours, part),
                None => self.parts.push(part.clone()),
            }
        }
        if let Some(theirs) = &other.total {
            match &mut self.total {
                Some(ours) => add(ours, theirs),
                None => self.total = Some(theirs.clone()),
            }
        }
        self.waits.extend(other.waits.iter().cloned());
    }

    /// Returns the sums of calls. The total is cut once, those of its parts each.
    fn sum(&self) -> StatementPart {
        self.total.clone().unwrap_or_else(|| {
            let mut sum = StatementPart::default();
            self.parts.iter().for_each(|part| add(&mut sum, part));
            sum
        })
    }

    /// Returns the time of the calls and the waits between them, and its components.
    fn components(&self) -> (f64, BTreeMap<Component, Spent>) {
        let sum = self.sum();
        let mut components: BTreeMap<Component, Spent> = BTreeMap::new();
        let mut ns = sum.elapsed_ns;
        for (name, spent) in &self.waits {
            if name == CLIENT {
                ns += spent.ns;
            }
            merge_spent(components.entry(Component::Wait(name.clone())).or_default(), spent);
        }
        let cpu =
            Spent { calls: sum.calls, ns: sum.cpu_ns, uncertain_ns: UNIT_NS, ..Spent::default() };
        components.insert(Component::Cpu, cpu);
        let known: f64 = components.values().map(|spent| spent.ns).sum();
        let uncertain_ns = components.values().map(|spent| spent.uncertain_ns).sum();
        let rest = Spent { ns: ns - known, uncertain_ns, ..Spent::default() };
        components.insert(Component::Unaccounted, rest);
        (ns, components)
    }

    fn statement(self, text_bytes: usize) -> Statement {
        let sum = self.sum();
        let (ns, components) = self.components();
        let text = self.text.trim();
        let end = text.floor_char_boundary(text_bytes);
        let id = self.id.unwrap_or_else(|| normal::id(&normal::normalised(text, Dialect::Oracle)));
        let executions = self.parts.iter().filter(|part| part.name == "execute");
        Statement {
            id,
            text: text[..end].to_owned(),
            depth: Some(self.depth.unwrap_or(0)),
            executions: executions.map(|part| part.calls).sum(),
            ns,
            rows: Some(sum.rows),
            logical_reads: Some(sum.consistent_reads + sum.current_reads),
            physical_reads: Some(sum.physical_reads),
            parts: self.parts.into_iter().filter(|part| part.calls > 0.0).collect(),
            components,
            ..Statement::default()
        }
    }
}

fn add(sum: &mut StatementPart, more: &StatementPart) {
    sum.calls += more.calls;
    sum.cpu_ns += more.cpu_ns;
    sum.elapsed_ns += more.elapsed_ns;
    sum.physical_reads += more.physical_reads;
    sum.consistent_reads += more.consistent_reads;
    sum.current_reads += more.current_reads;
    sum.rows += more.rows;
    sum.misses += more.misses;
}

fn merge_spent(sum: &mut Spent, more: &Spent) {
    sum.calls += more.calls;
    sum.ns += more.ns;
    sum.max_ns = sum.max_ns.into_iter().chain(more.max_ns).reduce(f64::max);
    sum.uncertain_ns += more.uncertain_ns;
}

/// Adds a statement that is listed once for each session.
fn merge(sum: &mut Statement, more: &Statement) {
    sum.executions += more.executions;
    sum.ns += more.ns;
    let both = |sum: &mut Option<f64>, more: Option<f64>| {
        *sum = Some(sum.unwrap_or(0.0) + more.unwrap_or(0.0));
    };
    both(&mut sum.rows, more.rows);
    both(&mut sum.logical_reads, more.logical_reads);
    both(&mut sum.physical_reads, more.physical_reads);
    for part in &more.parts {
        match sum.parts.iter_mut().find(|it| it.name == part.name) {
            Some(ours) => add(ours, part),
            None => sum.parts.push(part.clone()),
        }
    }
    for (component, spent) in &more.components {
        merge_spent(sum.components.entry(component.clone()).or_default(), spent);
    }
}

/// Returns whether a line of asterisks or dashes separates statements.
fn is_rule(line: &str) -> bool {
    const SHORTEST: usize = 60;
    let line = line.trim_end();
    let of = |char: char| line.len() >= SHORTEST && line.chars().all(|it| it == char);
    of('*') || of('-')
}

/// Returns whether a line is the heading of a table of calls.
fn is_table(line: &str) -> bool {
    let words = ["call", "count", "cpu", "elapsed", "disk", "query", "current", "rows"];
    line.split_whitespace().eq(words)
}

/// Whether a line is the hash of a plan, which comes before the text of a statement.
fn is_of_plan(line: &str) -> bool {
    line.trim_start().to_ascii_lowercase().starts_with("plan hash:")
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|it| is_sane(*it))
}

/// Parses `  db file sequential read   176   0.02   0.70`.
fn event(line: &str) -> Option<(String, [f64; 3])> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, numbers) = words.split_at_checked(words.len().checked_sub(3)?)?;
    let numbers: Option<Vec<f64>> = numbers.iter().map(|it| number(it)).collect();
    let name: String = name.join(" ").chars().take(100).collect();
    Some((name, numbers?.try_into().ok()?)).filter(|(name, _)| !name.is_empty())
}

impl Lines for Report {
    fn line(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        if self.heading(&line) {
            return;
        }
        match self.section {
            Section::Text => self.text(&line),
            Section::Calls => self.call(&line),
            Section::After => self.after(&line),
            Section::Waits => self.wait(&line),
        }
    }

    fn end_of_file(&mut self) {
        self.close();
    }

    fn found(&self) -> bool {
        !self.statements.is_empty() || self.totals_count > 0
    }

    fn finish(self) -> Trace {
        // Those of recursive statements follow those of the others, in each session.
        let is_complete = self.totals_count > 0 && self.totals_count.is_multiple_of(2);
        let notes = self.notes(is_complete);
        let mut statements = self.statements;
        let merges_statements = self.merged.is_some();
        statements.extend(self.merged);
        let components = if is_complete {
            self.totals.components().1
        } else {
            let mut sum = Statement::default();
            for statement in &statements {
                merge(&mut sum, statement);
            }
            sum.components
        };
        statements.sort_by(|a, b| b.ns.total_cmp(&a.ns).then_with(|| a.id.cmp(&b.id)));
        let mut absent = Vec::new();
        if !components.keys().any(|it| matches!(it, Component::Wait(_))) {
            absent.push((Component::Wait(String::new()), "traced without waits, or waits=no"));
        }
        Trace {
            product: self.product,
            components,
            statements,
            absent,
            notes,
            cut_files: u64::from(!(is_complete && self.has_ended)),
            skipped_lines: self.skipped_lines,
            merges_statements,
            ..Trace::default()
        }
    }
}

#[cfg(test)]
mod tests;
