//! PostgreSQL logs: plans written by `auto_explain`, and durations of statements.
//!
//! A plan shows which of its nodes took the time and what they read. Durations alone yield a ranked
//! list of statements. If a log has both for one execution, the plan counts.

mod envelope;
mod header;
mod json_plan;
mod message;
mod node;
mod other_plan;
mod prefix;
mod record;
mod text_plan;

use std::collections::HashMap;

use memchr::memmem;

use crate::format::{Format, Options};
use crate::lines::{Lined, Lines, is_sane};
use crate::model::{Component, Kind, Trace};
use crate::normal::{self, Dialect};
use crate::tally::{Cost, Execution, Named, Tally};
use envelope::Envelopes;
use message::Message;
use node::{Plan, Plans};

pub const FORMAT: Format = Format {
    kind: Kind::AutoExplain,
    name: "a log of PostgreSQL",
    recognises,
    reader: |options| Box::new(Lined::new(Log::new(options))),
    if_nothing: "log plans with auto_explain.log_min_duration and log_analyze, or durations with \
                 log_min_duration_statement",
};

/// Returns whether a file with this start is a log of PostgreSQL.
fn recognises(head: &[u8]) -> bool {
    let holds = |text: &str| memmem::find(head, text.as_bytes()).is_some();
    // Other programs write durations too.
    let in_ms = |at: usize| {
        let rest = &head[at + DURATION.len()..];
        let digits = rest.iter().take_while(|it| it.is_ascii_digit() || **it == b'.').count();
        digits > 0 && rest[digits..].starts_with(b" ms")
    };
    ["LOG:  ", "\"error_severity\"", ",LOG,0"].into_iter().any(holds)
        || prefix::LOGS.iter().any(|word| holds(&format!("{word}:  ")))
        || memmem::find_iter(head, DURATION).any(in_ms)
        || head.split(|it| *it == b'\n').any(|line| is_dated(&String::from_utf8_lossy(line)))
}

/// Whether a line is a message with a time: a log may have nothing but errors. psql, which is a
/// client, prints errors without one.
fn is_dated(line: &str) -> bool {
    // The log of an application quotes such messages behind a level of its own, or a class.
    let is_own = |prefix: &str| {
        let mut words = prefix.split(|it: char| !it.is_ascii_alphabetic());
        let is_quoted = prefix.contains("psql:") || prefix.contains("PG::");
        !is_quoted && !words.any(|word| matches!(word, "ERROR" | "FATAL" | "WARN" | "INFO"))
    };
    prefix::start(line).is_some_and(|it| is_own(it.prefix) && prefix::time(it.prefix).is_some())
}

const DURATION: &str = "duration: ";

/// Processes whose last statement is remembered.
const PROCESSES_MAX: usize = 4096;

struct Log {
    options: Options,
    envelopes: Envelopes,
    /// Executions with a plan, and those of which only the duration is known.
    planned: Tally,
    timed: Tally,
    plans: Plans,
    /// Number of plans with and without I/O times.
    with_io: u64,
    without_io: u64,
    /// Level of detail of the most detailed plan.
    shows: Shows,
    /// By process: the statement whose plan was logged last, and its time.
    explained: HashMap<String, Explained>,
    /// By process: the execution whose duration was logged last. A portal writes its plan when it
    /// is closed, which may be later.
    awaiting: HashMap<String, (String, f64)>,
    /// By process: the statement that was logged last, without its duration.
    announced: HashMap<String, String>,
    timed_executions: f64,
    timed_ns: f64,
    unread: Unread,
    skipped: u64,
}

/// An execution whose plan was logged.
struct Explained {
    id: String,
    ns: f64,
    at_s: Option<f64>,
}

impl Explained {
    /// Returns whether this duration is that of the same execution: it is not shorter, and is
    /// logged when as much time has passed as it is longer.
    fn is_of(&self, id: &str, ns: f64, at_s: Option<f64>) -> bool {
        /// Times in a log may be cut to seconds.
        const SLACK_S: f64 = 1.5;
        let later_s = at_s.zip(self.at_s).map(|(at, before)| at - before);
        let longer_s = (ns - self.ns) / 1e9;
        self.id == id && longer_s >= 0.0 && later_s.is_none_or(|it| it <= longer_s + SLACK_S)
    }
}

/// Messages that are not counted, or not with everything that they say.
#[derive(Default)]
struct Unread {
    /// Plans in XML or YAML.
    plans: u64,
    /// Durations in another language.
    foreign: u64,
    /// Durations whose statement is not in the log, and their sum.
    no_statement: u64,
    no_statement_ms: f64,
    /// Durations of a known process, and of an unknown one.
    with_process: u64,
    no_process: u64,
}

impl Unread {
    fn notes(&self) -> Vec<String> {
        let Self { plans, foreign, no_statement, no_statement_ms, with_process, no_process } = self;
        let mut notes = Vec::new();
        let mut note = |count: &u64, text: String| {
            if *count > 0 {
                notes.push(text);
            }
        };
        note(
            plans,
            format!(
                "{plans} plans are in XML or YAML, which are not read: only their durations count; \
                 log with auto_explain.log_format = json"
            ),
        );
        note(
            foreign,
            format!(
                "{foreign} durations are in another language than English and are not read: log \
                 with lc_messages = 'C'"
            ),
        );
        note(
            no_statement,
            format!(
                "{no_statement} durations of {:.3} s have no statement in the log and are not \
                 counted: log them with log_min_duration_statement",
                no_statement_ms / 1e3
            ),
        );
        let advice = "log_line_prefix = '%m [%p] ' tells sessions apart";
        note(
            no_process,
            if *with_process == 0 {
                format!("the log does not say which process wrote a line: {advice}")
            } else {
                format!("{no_process} messages are of an unknown process: {advice}")
            },
        );
        notes
    }
}

/// How much a plan records about reads, which reveals the server's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shows {
    Estimates,
    /// Actual times and rows.
    Execution,
    Buffers,
    /// Blocks were read, but not timed.
    Reads,
}

impl Shows {
    fn of(plan: &Plan) -> Self {
        match plan.root.as_ref().map(|root| root.read_blocks) {
            None => Self::Estimates,
            Some(None) => Self::Execution,
            Some(Some(blocks)) if blocks > 0.0 => Self::Reads,
            Some(Some(_)) => Self::Buffers,
        }
    }

    /// Reason why no plan has I/O times.
    fn without_io(self) -> &'static str {
        match self {
            Self::Estimates => "auto_explain.log_analyze is off",
            Self::Execution => "auto_explain.log_buffers is off",
            Self::Buffers => "no plan read a block",
            Self::Reads => "track_io_timing is off",
        }
    }
}

impl Log {
    fn new(options: Options) -> Self {
        Self {
            options,
            envelopes: Envelopes::default(),
            planned: Tally::new(options.limits),
            timed: Tally::new(options.limits),
            plans: Plans::new(options.limits.row_sources),
            with_io: 0,
            without_io: 0,
            shows: Shows::Estimates,
            explained: HashMap::new(),
            awaiting: HashMap::new(),
            announced: HashMap::new(),
            timed_executions: 0.0,
            timed_ns: 0.0,
            unread: Unread::default(),
            skipped: 0,
        }
    }

    fn message(&mut self, message: &Message) {
        let Some(rest) = message.text.strip_prefix(DURATION) else {
            let is_foreign = prefix::DURATIONS.iter().any(|it| message.text.starts_with(it));
            self.unread.foreign += u64::from(is_foreign);
            if let Some((_, sql)) = phase(&message.text)
                && !message.process.is_empty()
            {
                remember(&mut self.announced, &message.process, sql.to_owned());
            }
            return;
        };
        let Some((number, rest)) = rest.split_once(" ms") else { return };
        let Some(ms) = number.parse().ok().filter(|ms: &f64| is_sane(*ms)) else {
            self.skipped += 1;
            return;
        };
        let ns = ms * 1e6;
        let rest = rest.trim_start();
        let is_known = !message.process.is_empty();
        self.unread.with_process += u64::from(is_known);
        self.unread.no_process += u64::from(!is_known);
        if let Some(plan) = rest.strip_prefix("plan:") {
            match other_plan::statement(plan.trim_start()) {
                Some(sql) => self.unread_plan(message, ns, &sql),
                None => self.plan(message, ns, plan.trim_start()),
            }
        } else if let Some((executes, sql)) = phase(rest) {
            self.duration(message, ns, executes, sql);
        } else if let Some(sql) = self.announced.remove(&message.process) {
            self.duration(message, ns, true, &sql);
        } else {
            self.unread.no_statement += 1;
            self.unread.no_statement_ms += ms;
        }
    }

    /// Counts an execution of which only the duration is read. Its duration may be in the log
    /// again.
    fn unread_plan(&mut self, message: &Message, ns: f64, sql: &str) {
        self.unread.plans += 1;
        let id = self.named(sql).id;
        match self.awaiting.remove(&message.process) {
            Some((awaiting, duration_ns)) if awaiting == id && ns <= duration_ns => {}
            _ => {
                self.duration(message, ns, true, sql);
                self.awaiting.remove(&message.process);
                self.remember_plan(message, id, ns);
            }
        }
    }

    fn plan(&mut self, message: &Message, ns: f64, body: &str) {
        let plan =
            if body.starts_with('{') { json_plan::read(body) } else { text_plan::read(body) };
        let Some(plan) = plan else {
            self.skipped += 1;
            return;
        };
        self.shows = self.shows.max(Shows::of(&plan));
        let named = self.named(&plan.sql);
        let id = named.id.clone();
        let execution = self.execution(&plan, ns, message.at_s);
        if execution.costs.is_empty() {
            self.without_io += 1;
        } else {
            self.with_io += 1;
        }
        let told_apart = self.planned.add(&message.process, &id, || named, &execution);
        if told_apart && let Some(root) = &plan.root {
            self.plans.add(&id, root);
        }
        match self.awaiting.remove(&message.process) {
            Some((awaiting, duration_ns)) if awaiting == id && ns <= duration_ns => {
                self.timed_executions -= self.options.weight;
                self.timed_ns -= duration_ns * self.options.weight;
            }
            _ => self.remember_plan(message, id, ns),
        }
    }

    fn remember_plan(&mut self, message: &Message, id: String, ns: f64) {
        let explained = Explained { id, ns, at_s: message.at_s };
        remember(&mut self.explained, &message.process, explained);
    }

    fn execution(&self, plan: &Plan, ns: f64, ended_s: Option<f64>) -> Execution {
        let mut execution =
            Execution { ns, weight: self.options.weight, ended_s, ..Execution::default() };
        let Some(root) = &plan.root else { return execution };
        execution.rows = root.rows.map(|rows| rows * root.loops);
        execution.physical_reads = root.read_blocks;
        execution.logical_reads =
            root.read_blocks.zip(root.hit_blocks).map(|(read, hit)| read + hit);
        let [read, write] = root.io_ns();
        if let Some(ns) = read {
            let blocks = root.read_blocks;
            execution.costs.push(Cost { blocks, ..Cost::of(Component::StorageRead, ns) });
        }
        if let Some(ns) = write {
            execution.costs.push(Cost::of(Component::StorageWrite, ns));
        }
        execution
    }

    fn duration(&mut self, message: &Message, ns: f64, executes: bool, sql: &str) {
        let named = self.named(sql);
        let id = named.id.clone();
        if let Some(explained) = self.explained.remove(&message.process) {
            if explained.is_of(&id, ns, message.at_s) {
                return;
            }
            // Parts of a statement may be logged between its plan and its duration.
            if !executes {
                self.explained.insert(message.process.clone(), explained);
            }
        }
        if executes {
            self.timed_executions += self.options.weight;
            remember(&mut self.awaiting, &message.process, (id.clone(), ns));
        }
        self.timed_ns += ns * self.options.weight;
        let execution = Execution {
            ns,
            weight: self.options.weight,
            ended_s: message.at_s,
            ..Execution::default()
        };
        if executes {
            self.timed.add(&message.process, &id, || named, &execution);
        } else {
            self.timed.add_part(&message.process, &id, || named, &execution);
        }
    }

    fn named(&self, sql: &str) -> Named {
        let text = normal::normalised(sql, Dialect::Postgres);
        let id = normal::id(&text);
        Named { id, text: normal::shown(if self.options.keep_text { sql } else { &text }) }
    }

    fn of_plans(self) -> Trace {
        let trace = self.planned.finish();
        let mut absent = vec![
            (Component::Cpu, "auto_explain does not measure it"),
            (Component::Lock, "auto_explain does not measure it"),
        ];
        if self.with_io == 0 {
            let why = self.shows.without_io();
            absent.extend([(Component::StorageRead, why), (Component::StorageWrite, why)]);
        }
        let mut notes = trace.notes;
        if self.with_io > 0 && self.without_io > 0 {
            notes.push(format!(
                "{} of {} plans have no time of I/O: theirs is unaccounted",
                self.without_io,
                self.without_io + self.with_io
            ));
        }
        if self.timed_executions > 0.0 {
            notes.push(format!(
                "{} executions of {:.3} s have a duration but no plan: they are not in the profile",
                self.timed_executions,
                self.timed_ns / 1e9
            ));
        }
        let (row_sources, more) = self.plans.finish();
        notes.extend(more);
        Trace { absent, notes, row_sources, kind: Some(Kind::AutoExplain), ..trace }
    }

    fn of_durations(self) -> Trace {
        let mut trace = self.timed.finish();
        trace.components.clear();
        trace.sessions.iter_mut().for_each(|session| session.components.clear());
        trace.statements.iter_mut().for_each(|statement| statement.components.clear());
        let why = "the log has durations only; auto_explain with log_buffers and track_io_timing \
                   adds the time of I/O";
        let absent =
            [Component::Cpu, Component::StorageRead, Component::StorageWrite, Component::Lock];
        trace.absent = absent.into_iter().map(|component| (component, why)).collect();
        Trace { kind: Some(Kind::PostgresDurations), ..trace }
    }
}

/// Parses a message about a phase of a statement: whether it executes, and its text.
fn phase(text: &str) -> Option<(bool, &str)> {
    if let Some(sql) = text.strip_prefix("statement: ") {
        return Some((true, sql));
    }
    let (word, rest) = text.split_once(' ')?;
    let executes = match word {
        "execute" => true,
        "parse" | "bind" => false,
        _ => return None,
    };
    // The name of a statement, or of the portal after it, contains no colon.
    rest.split_once(": ").map(|(_, sql)| (executes, sql))
}

fn remember<T>(map: &mut HashMap<String, T>, process: &str, value: T) {
    if map.len() >= PROCESSES_MAX {
        map.clear();
    }
    map.insert(process.to_owned(), value);
}

impl Lines for Log {
    fn line(&mut self, line: &[u8]) {
        self.envelopes.line(&String::from_utf8_lossy(line));
        for message in self.envelopes.done() {
            self.message(&message);
        }
    }

    fn end_of_file(&mut self) {
        self.envelopes.end();
        for message in self.envelopes.done() {
            self.message(&message);
        }
    }

    fn reason(&self) -> Option<(&'static str, &'static str)> {
        let foreign = (
            "a log of PostgreSQL in another language than English",
            "set lc_messages = 'C': its durations are read in English only",
        );
        let unnamed = (
            "a log of PostgreSQL with durations but without their statements",
            "set log_min_duration_statement = 0, or log_statement = 'all' beside log_duration",
        );
        match &self.unread {
            Unread { foreign: 1.., .. } => Some(foreign),
            Unread { no_statement: 1.., .. } => Some(unnamed),
            _ => None,
        }
    }

    fn found(&self) -> bool {
        !(self.planned.is_empty() && self.timed.is_empty())
    }

    fn finish(self) -> Trace {
        let skipped_lines = self.skipped + self.envelopes.skipped();
        let unread = self.unread.notes();
        let trace = if self.planned.is_empty() { self.of_durations() } else { self.of_plans() };
        Trace { skipped_lines, notes: [trace.notes, unread].concat(), ..trace }
    }
}

#[cfg(test)]
mod tests;
