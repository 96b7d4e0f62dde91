//! What a trace says, whatever wrote it.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Oracle extended SQL trace, event 10046.
    OracleSql,
    /// Slow query log of MySQL, Percona Server or MariaDB.
    SlowLog,
    /// auto_explain of PostgreSQL, in any of its log formats.
    AutoExplain,
    /// Durations of statements only, from a log of PostgreSQL.
    PostgresDurations,
}

/// What response time is spent on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    Cpu,
    /// A wait event, by the database's name.
    Wait(String),
    /// Reading data files, where the log has only the sum.
    StorageRead,
    StorageWrite,
    Lock,
    /// What none of these explains; negative where clocks overlap.
    Unaccounted,
}

/// Calls that took 2^(i−1) to 2^i µs, index 0 from 0 to 1 µs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    pub calls: Vec<f64>,
    pub ns: Vec<f64>,
}

/// Time of one component. Numbers are fractions where the log holds a sample of all calls and each
/// entry stands for several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    pub calls: f64,
    pub ns: f64,
    pub max_ns: f64,
    pub histogram: Histogram,
    /// Of waits for I/O.
    pub bytes: Option<f64>,
    pub blocks: Option<f64>,
    /// Clock ticks make the time uncertain by this.
    pub uncertain_ns: f64,
}

#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub kind: Option<Kind>,
    /// Product and release, as written.
    pub product: String,
    /// From the first to the last instant of the trace; of several sessions, their sum of spans.
    pub span_ns: Option<f64>,
    pub components: BTreeMap<Component, Spent>,
    /// Components that this kind of log does not contain, with the reason: `not in this log`.
    pub absent: Vec<(Component, &'static str)>,
    pub sessions: Vec<Session>,
    pub statements: Vec<Statement>,
    pub row_sources: Vec<RowSource>,
    /// Waits for I/O by file, by blocks a call and by object.
    pub by_file: Vec<By>,
    pub by_blocks: Vec<By>,
    pub by_object: Vec<By>,
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
    /// sql_id or hash of the normalised text.
    pub id: String,
    pub text: String,
    /// Recursive depth, 0 for what clients sent.
    pub depth: Option<u32>,
    pub executions: f64,
    /// Response time, without that of recursive statements.
    pub ns: f64,
    pub rows: Option<f64>,
    pub logical_reads: Option<f64>,
    pub physical_reads: Option<f64>,
    pub parts: Vec<StatementPart>,
    pub components: BTreeMap<Component, Spent>,
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
    /// Of the statement.
    pub statement: String,
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

/// Waits of one event, by something.
#[derive(Clone, Debug, Default)]
pub struct By {
    pub event: String,
    /// The file, the object, or blocks a call.
    pub key: u64,
    pub spent: Spent,
}
