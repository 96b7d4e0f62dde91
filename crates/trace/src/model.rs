//! Contents of a trace, independent of its format.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Oracle extended SQL trace, event 10046.
    OracleSql,
    /// Report of Oracle's tkprof: sums of such a trace.
    Tkprof,
    /// Slow query log of MySQL, Percona Server or MariaDB.
    SlowLog,
    /// `auto_explain` of PostgreSQL, in any of its log formats.
    AutoExplain,
    /// Only the durations of statements, from a PostgreSQL log.
    PostgresDurations,
}

/// A component of response time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    Cpu,
    /// A wait event, by the database's name for it.
    Wait(String),
    /// Reading data files, if the log has only the sum.
    StorageRead,
    StorageWrite,
    Lock,
    /// Time that none of these explains; negative if clocks overlap.
    Unaccounted,
}

/// Index i holds calls that took at least 2^(i−1) µs and less than 2^i; index 0, less than 1 µs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    pub calls: Vec<f64>,
    pub ns: Vec<f64>,
}

/// Time of one component. Numbers are fractions if the log holds a sample of all calls and each
/// entry represents several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    pub calls: f64,
    pub ns: f64,
    /// Time of the longest call, if single calls are known.
    pub max_ns: Option<f64>,
    pub histogram: Histogram,
    /// Bytes moved by waits for I/O.
    pub bytes: Option<f64>,
    pub blocks: Option<f64>,
    /// Uncertainty of the time caused by clock ticks.
    pub uncertain_ns: f64,
    /// Whether the log has only sums over several calls: the histogram is then of their means.
    pub is_averaged: bool,
}

impl Histogram {
    pub fn add(&mut self, ns: f64, calls: f64) {
        let us = (ns / 1e3).max(0.0);
        let index = if us < 1.0 { 0 } else { (us as u64).ilog2() as usize + 1 };
        if self.calls.len() <= index {
            self.calls.resize(index + 1, 0.0);
            self.ns.resize(index + 1, 0.0);
        }
        self.calls[index] += calls;
        self.ns[index] += ns * calls;
    }
}

impl Spent {
    /// Adds a call that took `ns` and represents `weight` calls.
    pub fn add(&mut self, ns: f64, weight: f64) {
        self.calls += weight;
        self.ns += ns * weight;
        self.max_ns = Some(self.max_ns.unwrap_or(0.0).max(ns));
        self.histogram.add(ns, weight);
    }

    /// Adds time without calls of its own, such as a remainder.
    pub fn add_time(&mut self, ns: f64) {
        self.ns += ns;
    }

    /// Adds `calls` calls that took `ns` together; each represents `weight`.
    pub fn add_sum(&mut self, calls: f64, ns: f64, weight: f64) {
        if calls > 0.0 {
            let mean = ns / calls;
            self.calls += calls * weight;
            self.histogram.add(mean, calls * weight);
            self.is_averaged = true;
        }
        self.ns += ns * weight;
    }
}

#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub kind: Option<Kind>,
    /// Product and release, as written in the trace.
    pub product: String,
    /// From the first to the last instant of the trace; with several sessions, the sum of their
    /// spans.
    pub span_ns: Option<f64>,
    pub components: BTreeMap<Component, Spent>,
    /// Components that this kind of log does not contain, with the reason: `not in this log`.
    pub absent: Vec<(Component, &'static str)>,
    pub sessions: Vec<Session>,
    pub statements: Vec<Statement>,
    /// Whether one of the sessions, and one of the statements, is all those beyond the limits.
    pub merges_sessions: bool,
    pub merges_statements: bool,
    pub row_sources: Vec<RowSource>,
    /// Waits for I/O by file, by blocks per call and by object.
    pub by_file: Vec<By>,
    pub by_blocks: Vec<By>,
    pub by_object: Vec<By>,
    /// Transactions that ended, if the log has them.
    pub commits: Option<f64>,
    pub rollbacks: Option<f64>,
    /// Round trips of all sessions.
    pub round_trips: Option<RoundTrips>,
    /// CPU of recursive calls that no call of a client encloses, such as those of a logoff. It is
    /// part of [`Component::Unaccounted`].
    pub outside_cpu_ns: f64,
    /// Clock tick of CPU times, if they are coarser than the log's unit.
    pub tick_ns: Option<f64>,
    pub lines: u64,
    /// Files that end inside a line, or in which the server stopped writing.
    pub cut_files: u64,
    /// Lines that look like a record but are not valid, and lines of unknown kind.
    pub skipped_lines: u64,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Session {
    pub id: String,
    pub span_ns: Option<f64>,
    pub components: BTreeMap<Component, Spent>,
}

#[derive(Clone, Debug, Default)]
pub struct Statement {
    /// `sql_id` or hash of the normalised text.
    pub id: String,
    pub text: String,
    /// Recursive depth, 0 for statements sent by clients.
    pub depth: Option<u32>,
    pub executions: f64,
    /// Response time without that of recursive statements: its calls and the waits between them.
    pub ns: f64,
    /// Response times of executions, if the log has them.
    pub times: Histogram,
    pub rows: Option<f64>,
    pub logical_reads: Option<f64>,
    pub physical_reads: Option<f64>,
    pub parts: Vec<StatementPart>,
    /// Waits for the client to send the next call, if the log has them.
    pub round_trips: Option<RoundTrips>,
    pub components: BTreeMap<Component, Spent>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundTrips {
    pub calls: f64,
    /// Time measured by the wait event.
    pub wait_ns: f64,
    /// Time from the end of a call to the start of the next, which is more.
    pub gap_ns: f64,
}

/// Parse, execute or fetch of a statement, as tkprof lists them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementPart {
    pub name: &'static str,
    pub calls: f64,
    pub cpu_ns: f64,
    pub elapsed_ns: f64,
    pub physical_reads: f64,
    pub consistent_reads: f64,
    pub current_reads: f64,
    pub rows: f64,
    pub misses: f64,
}

/// A line of an executed plan; own figures are those of the line less those of its children.
#[derive(Clone, Debug, Default)]
pub struct RowSource {
    /// Id of the statement.
    pub statement: String,
    /// Number of the plan among those of this statement, from 0.
    pub plan: u32,
    /// Executions whose figures are summed here.
    pub executions: f64,
    pub id: u32,
    pub parent: u32,
    pub depth: u32,
    pub operation: String,
    pub object: Option<u64>,
    pub rows: f64,
    pub ns: Option<f64>,
    pub own_ns: Option<f64>,
    pub logical_reads: Option<f64>,
    pub own_logical_reads: Option<f64>,
    pub physical_reads: Option<f64>,
    pub own_physical_reads: Option<f64>,
}

/// Waits of one event, by file, object or blocks per call.
#[derive(Clone, Debug, Default)]
pub struct By {
    pub event: String,
    /// The file, the object, or the blocks per call; `None` for those beyond the bound on memory.
    pub key: Option<u64>,
    pub spent: Spent,
}
