//! PostgreSQL logs: plans written by `auto_explain`, and durations of statements.
//!
//! A plan shows which of its nodes took the time and what they read. Durations alone yield a ranked
//! list of statements. If a log has both for one execution, the plan counts.

mod envelope;
mod json_plan;
mod node;
mod text_plan;

use std::collections::HashMap;

use crate::format::{Format, Options};
use crate::lines::{Lined, Lines, is_sane};
use crate::model::{Component, Kind, Trace};
use crate::normal::{self, Dialect};
use crate::tally::{Cost, Execution, Named, Tally};
use envelope::{Envelopes, Message};
use node::{Plan, Plans};

pub const FORMAT: Format = Format {
    kind: Kind::AutoExplain,
    name: "a log of PostgreSQL",
    recognises: |head| {
        let holds = |text: &[u8]| memchr::memmem::find(head, text).is_some();
        holds(b"duration: ") || holds(b"LOG:  ") || holds(b"\"error_severity\"") || holds(b",LOG,0")
    },
    reader: |options| Box::new(Lined::new(Log::new(options))),
    if_nothing: "log plans with auto_explain.log_min_duration and log_analyze, or durations with \
                 log_min_duration_statement",
};

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
    explained: HashMap<String, (String, f64)>,
    /// By process: the execution whose duration was logged last. A portal writes its plan when it
    /// is closed, which may be later.
    awaiting: HashMap<String, (String, f64)>,
    /// By process: the statement that was logged last, without its duration.
    announced: HashMap<String, String>,
    timed_executions: f64,
    timed_ns: f64,
    skipped: u64,
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
            skipped: 0,
        }
    }

    fn message(&mut self, message: &Message) {
        let Some(rest) = message.text.strip_prefix("duration: ") else {
            if let Some((_, sql)) = phase(&message.text) {
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
        if let Some(plan) = rest.strip_prefix("plan:") {
            self.plan(message, ns, plan.trim_start());
        } else if let Some((executes, sql)) = phase(rest) {
            self.duration(message, ns, executes, sql);
        } else if let Some(sql) = self.announced.remove(&message.process) {
            self.duration(message, ns, true, &sql);
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
            _ => remember(&mut self.explained, &message.process, (id, ns)),
        }
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
        if let Some((explained, plan_ns)) = self.explained.get(&message.process)
            && *explained == id
            && *plan_ns <= ns
        {
            self.explained.remove(&message.process);
            return;
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
        let line = String::from_utf8_lossy(line);
        if let Some(message) = self.envelopes.line(&line) {
            self.message(&message);
        }
    }

    fn end_of_file(&mut self) {
        for message in self.envelopes.end() {
            self.message(&message);
        }
    }

    fn found(&self) -> bool {
        !(self.planned.is_empty() && self.timed.is_empty())
    }

    fn finish(self) -> Trace {
        let skipped_lines = self.skipped + self.envelopes.skipped();
        let trace = if self.planned.is_empty() { self.of_durations() } else { self.of_plans() };
        Trace { skipped_lines, ..trace }
    }
}

#[cfg(test)]
mod tests;
