//! Keys of the JSON document of `trace`; the renderer adds schema, version and tables.

use blockstone_base::verdict::Verdict;
use blockstone_record::manifest::End;
use blockstone_trace::{By, Component, RowSource, Session, Spent, Statement};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::input::Input;
use super::words::{self, seconds};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Serialize, JsonSchema)]
pub struct TraceDocument {
    tool_version: &'static str,
    /// `oracle-sql-trace`, `slow-log`, `auto-explain` or `postgres-durations`.
    kind: Option<&'static str>,
    /// Product and release, as written in the trace.
    product: Option<String>,
    /// Time from the first to the last instant of the trace; for several sessions, the sum of
    /// theirs.
    span_seconds: Option<f64>,
    /// Response time of all statements, which the profile divides into components.
    response_seconds: f64,
    /// Components of the response time, the longest first.
    profile: Vec<ComponentKeys>,
    /// Components that this kind of log does not contain.
    not_in_log: Vec<AbsentKeys>,
    sessions: Vec<SessionKeys>,
    /// Statements, the longest first.
    statements: Vec<StatementKeys>,
    row_sources: Vec<RowSourceKeys>,
    by_file: Vec<ByKeys>,
    by_blocks: Vec<ByKeys>,
    by_object: Vec<ByKeys>,
    /// Response time that no component explains; negative if clocks overlap. Null if the log has
    /// durations only.
    unaccounted_seconds: Option<f64>,
    skipped_lines: u64,
    bytes: u64,
    notes: Vec<String>,
    verdicts: Vec<Verdict>,
    end: End,
}

#[derive(Serialize, JsonSchema)]
pub struct ComponentKeys {
    /// `CPU`, a wait event, `storage read`, `storage write`, `lock` or `unaccounted`.
    pub component: String,
    /// Null if the log does not count calls of this component.
    pub calls: Option<f64>,
    pub seconds: f64,
    /// Null if the log only has sums over several calls.
    pub max_seconds: Option<f64>,
    /// Uncertainty of `seconds` due to clock ticks.
    pub uncertain_seconds: f64,
    bytes: Option<f64>,
    blocks: Option<f64>,
    /// Calls by their time; if the log only has sums, by the mean of each.
    histogram: Vec<BucketKeys>,
}

#[derive(Serialize, JsonSchema)]
struct BucketKeys {
    /// Upper end, a power of two of microseconds; the lower end is half of it.
    below_seconds: f64,
    calls: f64,
    seconds: f64,
}

#[derive(Serialize, JsonSchema)]
struct AbsentKeys {
    component: String,
    why: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct SessionKeys {
    id: String,
    span_seconds: Option<f64>,
    profile: Vec<ComponentKeys>,
    unaccounted_seconds: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct StatementKeys {
    id: String,
    text: String,
    /// Recursive depth; 0 for statements sent by clients.
    depth: Option<u32>,
    executions: f64,
    seconds: f64,
    rows: Option<f64>,
    logical_reads: Option<f64>,
    physical_reads: Option<f64>,
    components: Vec<ComponentKeys>,
    /// Parse, execute and fetch, if the log distinguishes them.
    calls: Vec<CallKeys>,
}

#[derive(Serialize, JsonSchema)]
struct CallKeys {
    call: &'static str,
    calls: f64,
    cpu_seconds: f64,
    elapsed_seconds: f64,
    physical_reads: f64,
    consistent_reads: f64,
    current_reads: f64,
    rows: f64,
    misses: f64,
}

#[derive(Serialize, JsonSchema)]
struct RowSourceKeys {
    /// Id of the statement.
    statement: String,
    /// Number of the plan among the plans of the statement, from 0.
    plan: u32,
    executions: f64,
    id: u32,
    /// Id of the parent line; 0 for the first line.
    parent: u32,
    depth: u32,
    operation: String,
    object: Option<u64>,
    rows: f64,
    /// Time including the lines below it.
    seconds: Option<f64>,
    /// Time excluding the lines below it; null if the times do not add up.
    own_seconds: Option<f64>,
    logical_reads: Option<f64>,
    own_logical_reads: Option<f64>,
    physical_reads: Option<f64>,
    own_physical_reads: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct ByKeys {
    event: String,
    /// Number of the file or object, or blocks per call; null for all those that were too many to
    /// distinguish.
    key: Option<u64>,
    calls: f64,
    seconds: f64,
    max_seconds: Option<f64>,
}

pub fn document(input: &Input, verdicts: &[Verdict], end: &End) -> TraceDocument {
    let trace = &input.trace;
    TraceDocument {
        tool_version: VERSION,
        kind: trace.kind.map(words::kind_key),
        product: Some(trace.product.clone()).filter(|product| !product.is_empty()),
        span_seconds: trace.span_ns.map(seconds),
        response_seconds: seconds(words::response_ns(trace)),
        profile: profile(&trace.components),
        not_in_log: trace
            .absent
            .iter()
            .map(|(component, why)| AbsentKeys { component: words::component(component), why })
            .collect(),
        sessions: trace.sessions.iter().map(session).collect(),
        statements: trace.statements.iter().map(statement).collect(),
        row_sources: trace.row_sources.iter().map(row_source).collect(),
        by_file: trace.by_file.iter().map(by).collect(),
        by_blocks: trace.by_blocks.iter().map(by).collect(),
        by_object: trace.by_object.iter().map(by).collect(),
        unaccounted_seconds: unaccounted(&trace.components),
        skipped_lines: trace.skipped_lines,
        bytes: input.bytes,
        notes: trace.notes.clone(),
        verdicts: verdicts.to_vec(),
        end: end.clone(),
    }
}

pub fn unaccounted(components: &words::Components) -> Option<f64> {
    components.get(&Component::Unaccounted).map(|spent| seconds(spent.ns))
}

/// Returns the keys of components, the longest first.
pub fn profile(components: &words::Components) -> Vec<ComponentKeys> {
    words::by_time(components).into_iter().map(component).collect()
}

fn component((component, spent): (&Component, &Spent)) -> ComponentKeys {
    let buckets = spent.histogram.calls.iter().zip(&spent.histogram.ns).enumerate();
    let buckets = buckets.filter(|(_, (calls, _))| **calls > 0.0);
    ComponentKeys {
        component: words::component(component),
        calls: words::calls(spent),
        seconds: seconds(spent.ns),
        max_seconds: words::max_ns(spent).map(seconds),
        uncertain_seconds: seconds(spent.uncertain_ns),
        bytes: spent.bytes,
        blocks: spent.blocks,
        histogram: buckets
            .map(|(index, (calls, ns))| BucketKeys {
                below_seconds: seconds(words::below_ns(index)),
                calls: *calls,
                seconds: seconds(*ns),
            })
            .collect(),
    }
}

fn session(session: &Session) -> SessionKeys {
    SessionKeys {
        id: session.id.clone(),
        span_seconds: session.span_ns.map(seconds),
        profile: profile(&session.components),
        unaccounted_seconds: unaccounted(&session.components),
    }
}

fn statement(statement: &Statement) -> StatementKeys {
    StatementKeys {
        id: statement.id.clone(),
        text: statement.text.clone(),
        depth: statement.depth,
        executions: statement.executions,
        seconds: seconds(statement.ns),
        rows: statement.rows,
        logical_reads: statement.logical_reads,
        physical_reads: statement.physical_reads,
        components: profile(&statement.components),
        calls: statement
            .parts
            .iter()
            .map(|part| CallKeys {
                call: part.name,
                calls: part.calls,
                cpu_seconds: seconds(part.cpu_ns),
                elapsed_seconds: seconds(part.elapsed_ns),
                physical_reads: part.physical_reads,
                consistent_reads: part.consistent_reads,
                current_reads: part.current_reads,
                rows: part.rows,
                misses: part.misses,
            })
            .collect(),
    }
}

fn row_source(row: &RowSource) -> RowSourceKeys {
    RowSourceKeys {
        statement: row.statement.clone(),
        plan: row.plan,
        executions: row.executions,
        id: row.id,
        parent: row.parent,
        depth: row.depth,
        operation: row.operation.clone(),
        object: row.object,
        rows: row.rows,
        seconds: row.ns.map(seconds),
        own_seconds: row.own_ns.map(seconds),
        logical_reads: row.logical_reads,
        own_logical_reads: row.own_logical_reads,
        physical_reads: row.physical_reads,
        own_physical_reads: row.own_physical_reads,
    }
}

fn by(by: &By) -> ByKeys {
    ByKeys {
        event: by.event.clone(),
        key: by.key,
        calls: by.spent.calls,
        seconds: seconds(by.spent.ns),
        max_seconds: by.spent.max_ns.map(seconds),
    }
}
