//! Figures and tables of a trace. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::table::{
    Measure, Missing, Value, bytes, count, happened, share, text, time, total,
};
use blockstone_base::text as base;
use blockstone_report::short;
use blockstone_trace::{By, Component, RowSource, Session, Spent, Statement, StatementPart, Trace};

use super::input::Input;
use super::words::{self, Components};

/// Characters of a statement that are shown in a table.
const TEXT_WIDTH: usize = 48;
/// Deepest indentation of a line of a plan.
const DEPTH_MAX: u32 = 40;

/// A value, or the remark that the log does not have it.
fn known<T: Into<Value>>(value: Option<T>) -> Value {
    value.map_or(Value::Missing(Missing::NotInLog), Into::into)
}

/// Returns the beginning of a text in one line.
pub fn one_line(text: &str) -> String {
    short(&base::one_line(text, TEXT_WIDTH + 1), TEXT_WIDTH)
}

fn of(part: f64, all: f64) -> Value {
    happened((all > 0.0).then(|| part / all))
}

fn unaccounted(components: &Components) -> Option<f64> {
    components.get(&Component::Unaccounted).map(|spent| spent.ns)
}

rows! {
    /// Single figures of a trace.
    pub(super) struct Summary {
        /// `oracle-sql-trace`, `tkprof`, `slow-log`, `auto-explain` or `postgres-durations`.
        kind: Option<&'static str> = text("kind"),
        /// Product and release, as written in the trace.
        product: Value = text("product"),
        /// Time from the first to the last instant of the trace; for several sessions, the sum of
        /// theirs.
        span_ns: Value = time("span"),
        /// Response time of all statements, which the profile divides into components.
        response_ns: f64 = time("response time"),
        /// Response time that no component explains; negative if clocks overlap. The log may have
        /// durations only.
        unaccounted_ns: Value = time("unaccounted"),
        /// Lines that look like a record but are not valid, and lines of unknown kind.
        skipped_lines: u64 = total("skipped lines", Measure::Count),
        /// Bytes that were read, after decompression.
        bytes: u64 = total("bytes", Measure::Bytes),
    }
}

rows! {
    /// One of two traces that are compared.
    pub(super) struct SideRow {
        /// `A` or `B`.
        side: &'static str = text("side"),
        /// Files that were read.
        files: String = text("files").answer(),
        /// Time from the first to the last instant of the trace.
        span_ns: Value = time("span"),
        /// Response time of all statements.
        response_ns: f64 = time("response time").answer(),
        /// Response time that no component explains.
        unaccounted_ns: Value = time("unaccounted"),
        /// Lines that could not be read.
        skipped_lines: u64 = total("skipped lines", Measure::Count),
    }
}

/// Declares the table of components of something, and that of their histograms, each with a column
/// that says of what.
macro_rules! components {
    (
        $about:literal, $name:ident, $buckets:ident
        $(, $key:ident, $heading:literal, $doc:literal)?
    ) => {
        rows! {
            #[doc = $about]
            pub(super) struct $name {
                $(#[doc = $doc] $key: String = text($heading),)?
                /// `CPU`, a wait event, `storage read`, `storage write`, `lock` or `unaccounted`.
                component: String = text("component"),
                /// Time of all calls of the component.
                time_ns: Value = time("time"),
                /// Share of the response time.
                share: Value = share("share"),
                /// How often; executions where the log has only sums.
                calls: Value = total("calls", Measure::Count),
                /// Mean time of a call.
                time_ns_mean: Value = time("mean"),
                /// Call.
                time_ns_max: Value = time("longest"),
                /// Uncertainty from the clock ticks of processor time.
                uncertain_ns: Value = time("±"),
                /// Bytes moved by waits for I/O.
                bytes: Value = bytes("bytes"),
                /// Blocks moved by waits for I/O.
                blocks: Value = count("blocks"),
            }
        }

        rows! {
            /// Their calls by time; if the log only has sums, by the mean of each.
            pub(super) struct $buckets {
                $(#[doc = $doc] $key: String = text($heading),)?
                /// Component on which time was spent.
                component: String = text("component"),
                /// Least time of a call.
                from_ns: f64 = time("from"),
                /// Upper end, a power of two of microseconds.
                below_ns: f64 = time("below"),
                /// Number of calls.
                calls: f64 = total("calls", Measure::Count),
                /// Time of these calls.
                time_ns: f64 = time("time"),
                /// Share of the component's time.
                share: Value = share("share"),
            }
        }

        impl $name {
            /// Lists components, the longest first; `all` is the time that they divide.
            pub fn all(components: &Components, all: f64 $(, $key: &str)?) -> Vec<Self> {
                let row = |(component, spent): (&Component, &Spent)| Self {
                    $($key: $key.to_owned(),)?
                    component: words::component(component),
                    time_ns: spent.ns.into(),
                    share: of(spent.ns, all),
                    calls: happened(words::calls(spent)),
                    time_ns_mean: happened(words::mean(spent)),
                    time_ns_max: match words::max_ns(spent) {
                        None if spent.calls > 0.0 => Missing::NotInLog.into(),
                        max => happened(max),
                    },
                    uncertain_ns: happened(Some(spent.uncertain_ns).filter(|ns| *ns > 0.0)),
                    bytes: happened(spent.bytes),
                    blocks: happened(spent.blocks),
                };
                words::by_time(components).into_iter().map(row).collect()
            }
        }

        impl $buckets {
            pub fn all(components: &Components $(, $key: &str)?) -> Vec<Self> {
                let mut rows = Vec::new();
                for (component, spent) in words::by_time(components) {
                    let buckets = spent.histogram.calls.iter().zip(&spent.histogram.ns).enumerate();
                    rows.extend(buckets.filter(|(_, (calls, _))| **calls > 0.0).map(
                        |(at, (calls, ns))| Self {
                            $($key: $key.to_owned(),)?
                            component: words::component(component),
                            from_ns: if at == 0 { 0.0 } else { words::below_ns(at - 1) },
                            below_ns: words::below_ns(at),
                            calls: *calls,
                            time_ns: *ns,
                            share: of(*ns, spent.ns),
                        },
                    ));
                }
                rows
            }
        }
    };
}

components!("Components of the response time.", ProfileRow, BucketRow);
components!(
    "Components of statements.",
    StatementSpentRow,
    StatementBucketRow,
    statement,
    "statement",
    "Its id."
);
components!(
    "Components of sessions.",
    SessionSpentRow,
    SessionBucketRow,
    session,
    "session",
    "As the log names it."
);
components!("Components of two traces.", SideSpentRow, SideBucketRow, side, "side", "`A` or `B`.");

impl ProfileRow {
    /// A component that the log does not contain.
    pub fn absent(component: &Component) -> Self {
        let missing = || Value::from(Missing::NotInLog);
        Self {
            component: words::component(component),
            time_ns: missing(),
            share: missing(),
            calls: missing(),
            time_ns_mean: missing(),
            time_ns_max: missing(),
            uncertain_ns: missing(),
            bytes: missing(),
            blocks: missing(),
        }
    }
}

rows! {
    /// Components that this kind of log does not contain.
    pub(super) struct AbsentRow {
        /// The component.
        component: String = text("not in this log").answer(),
        /// The reason.
        why: &'static str = text("why").prose(),
    }
}

rows! {
    /// Remarks on the log.
    pub(super) struct NoteRow {
        /// A sentence.
        note: String = text("remark").prose(),
    }
}

rows! {
    /// Statements, the longest first.
    pub(super) struct StatementRow {
        /// Its sql_id, or the hash of its text without values.
        id: String = text("statement"),
        /// Time of all executions, without recursive statements.
        time_ns: f64 = time("time"),
        /// Share of the response time of all statements.
        share: Value = share("share"),
        /// How often.
        executions: Value = total("executions", Measure::Count),
        /// Mean time of an execution.
        time_ns_mean: Value = time("mean"),
        /// The component that took most of it.
        first: String = text("mostly"),
        /// Its beginning.
        text: String = text("text").answer(),
        /// Returned or changed.
        rows: Value = count("rows"),
        /// Blocks looked at.
        logical_reads: Value = count("logical reads"),
        /// Blocks read from storage, or from the file system's cache.
        physical_reads: Value = count("reads"),
        /// Recursive depth; 0 for statements sent by clients.
        depth: Value = count("depth"),
    }
}

rows! {
    /// Texts of statements.
    pub(super) struct TextRow {
        /// The id of the statement.
        statement: String = text("statement"),
        /// All of it that was kept.
        text: String = text("text").prose(),
    }
}

rows! {
    /// Calls of statements.
    pub(super) struct CallRow {
        /// Its id; for all statements together, whether they are recursive.
        statement: String = text("statement"),
        /// Parse, execute or fetch.
        call: &'static str = text("call"),
        /// How often.
        calls: f64 = total("count", Measure::Count),
        /// Processor time.
        cpu_ns: f64 = time("CPU"),
        /// Response time.
        elapsed_ns: f64 = time("elapsed"),
        /// Blocks read from storage.
        physical_reads: f64 = count("disk"),
        /// Blocks in consistent mode.
        consistent_reads: f64 = count("query"),
        /// Blocks in current mode.
        current_reads: f64 = count("current"),
        /// Returned or changed.
        rows: f64 = count("rows"),
        /// Misses of the library cache.
        misses: f64 = count("misses"),
    }
}

rows! {
    /// Executions of all statements by response time.
    pub(super) struct TimesRow {
        /// Executions that took less than this, and at least half of it.
        below_ns: f64 = time("below"),
        /// Number of executions.
        executions: f64 = total("executions", Measure::Count),
        /// Time of these executions.
        time_ns: f64 = time("time"),
        /// Share of the time of all executions.
        share: Value = share("share"),
    }
}

rows! {
    /// Lines of executed plans.
    pub(super) struct SourceRow {
        /// Its id.
        statement: String = text("statement"),
        /// A line of the plan, indented below the one that it is part of.
        operation: String = text("operation"),
        /// Rows that the operation passed on.
        rows: f64 = count("rows"),
        /// Time of the line alone; unknown if the times do not add up.
        own_time_ns: Option<f64> = time("own time"),
        /// Physical reads of the line alone.
        own_physical_reads: Option<f64> = count("own reads"),
        /// Logical reads of the line alone.
        own_logical_reads: Option<f64> = count("own logical"),
        /// Time of the line and of those below it.
        time_ns: Value = time("with below"),
        /// Physical reads, with the lines below it.
        physical_reads: Value = count("reads"),
        /// Logical reads, with the lines below it.
        logical_reads: Value = count("logical"),
        /// Whose figures are added up.
        executions: f64 = count("executions"),
        /// Number of the object.
        object: Value = count("object"),
        /// Number of the plan among the plans of the statement, from 0.
        plan: u32 = count("plan"),
        /// Number of the line.
        id: u32 = count("line"),
        /// Number of the line that it is part of; 0 for the first one.
        parent: u32 = count("part of"),
        /// Depth of the line in the plan.
        depth: u32 = count("depth"),
    }
}

rows! {
    /// Sessions of the trace.
    pub(super) struct SessionRow {
        /// Session as the log names it.
        session: String = text("session"),
        /// From its first to its last instant.
        span_ns: Value = time("span"),
        /// Sum of its components.
        time_ns: Value = time("in components"),
        /// The component that took most.
        first: String = text("mostly"),
        /// Time of that component.
        first_ns: Value = time("of it"),
        /// Response time that no component explains.
        unaccounted_ns: Value = time("unaccounted"),
    }
}

/// Text in place of a number for all that were too many to distinguish.
pub const OTHERS: &str = "all others";

/// Declares a table of waits for I/O by something.
macro_rules! waits {
    ($about:literal, $name:ident, $key:ident, $heading:literal, $doc:literal) => {
        rows! {
            #[doc = $about]
            pub(super) struct $name {
                /// The wait.
                event: String = text("event"),
                #[doc = $doc]
                $key: String = text($heading),
                /// Time of these waits.
                time_ns: f64 = time("time"),
                /// Number of waits.
                calls: f64 = total("calls", Measure::Count),
                /// Mean time of a wait.
                time_ns_mean: Value = time("mean"),
                /// Call.
                time_ns_max: Value = time("longest"),
                /// Moved by these calls.
                blocks: Value = count("blocks"),
            }
        }

        impl From<&By> for $name {
            fn from(by: &By) -> Self {
                Self {
                    event: by.event.clone(),
                    $key: by.key.map_or_else(|| OTHERS.to_owned(), |key| key.to_string()),
                    time_ns: by.spent.ns,
                    calls: by.spent.calls,
                    time_ns_mean: happened(words::mean(&by.spent)),
                    time_ns_max: happened(words::max_ns(&by.spent)),
                    blocks: happened(by.spent.blocks),
                }
            }
        }
    };
}

waits!("Waits for I/O by file.", FileRow, file, "file", "Number of the data file.");
waits!(
    "Waits for I/O by blocks a call.",
    BlocksRow,
    blocks_a_call,
    "blocks a call",
    "Blocks that one call moved."
);
waits!("Waits for I/O by object.", ObjectRow, object, "object", "Number of the object.");

impl Summary {
    pub fn of(input: &Input) -> Self {
        let trace = &input.trace;
        Self {
            kind: trace.kind.map(words::kind_key),
            product: known(Some(&trace.product).filter(|product| !product.is_empty())),
            span_ns: known(trace.span_ns),
            response_ns: words::response_ns(trace),
            unaccounted_ns: known(unaccounted(&trace.components)),
            skipped_lines: trace.skipped_lines,
            bytes: input.bytes,
        }
    }
}

impl SideRow {
    pub fn of(side: &'static str, trace: &Trace, files: &str) -> Self {
        Self {
            side,
            files: files.to_owned(),
            span_ns: known(trace.span_ns),
            response_ns: words::response_ns(trace),
            unaccounted_ns: known(unaccounted(&trace.components)),
            skipped_lines: trace.skipped_lines,
        }
    }
}

impl StatementRow {
    pub fn of(statement: &Statement, all_ns: f64) -> Self {
        let executions = Some(statement.executions).filter(|executions| *executions > 0.0);
        let first = words::greatest(&statement.components);
        Self {
            id: statement.id.clone(),
            time_ns: statement.ns,
            share: of(statement.ns, all_ns),
            executions: happened(executions),
            time_ns_mean: happened(executions.map(|executions| statement.ns / executions)),
            first: first.map(|(component, _)| words::component(component)).unwrap_or_default(),
            text: one_line(&statement.text),
            rows: known(statement.rows),
            logical_reads: known(statement.logical_reads),
            physical_reads: known(statement.physical_reads),
            depth: known(statement.depth),
        }
    }
}

impl CallRow {
    pub fn of(statement: &Statement) -> impl Iterator<Item = Self> {
        statement.parts.iter().map(|part| Self::sum(&statement.id, part.name, &[part]))
    }

    /// Adds up calls of one kind.
    pub fn sum(statement: &str, call: &'static str, parts: &[&StatementPart]) -> Self {
        let sum = |of: fn(&StatementPart) -> f64| parts.iter().map(|part| of(part)).sum();
        Self {
            statement: statement.to_owned(),
            call,
            calls: sum(|it| it.calls),
            cpu_ns: sum(|it| it.cpu_ns),
            elapsed_ns: sum(|it| it.elapsed_ns),
            physical_reads: sum(|it| it.physical_reads),
            consistent_reads: sum(|it| it.consistent_reads),
            current_reads: sum(|it| it.current_reads),
            rows: sum(|it| it.rows),
            misses: sum(|it| it.misses),
        }
    }
}

/// Returns the indentation of a line of a plan at this depth.
pub fn indentation(depth: u32) -> usize {
    2 * depth.min(DEPTH_MAX) as usize
}

impl SourceRow {
    pub fn of(row: &RowSource) -> Self {
        Self {
            statement: row.statement.clone(),
            operation: format!("{}{}", " ".repeat(indentation(row.depth)), row.operation),
            rows: row.rows,
            own_time_ns: row.own_ns,
            own_physical_reads: row.own_physical_reads,
            own_logical_reads: row.own_logical_reads,
            time_ns: known(row.ns),
            physical_reads: known(row.physical_reads),
            logical_reads: known(row.logical_reads),
            executions: row.executions,
            object: happened(row.object),
            plan: row.plan,
            id: row.id,
            parent: row.parent,
            depth: row.depth,
        }
    }
}

impl SessionRow {
    pub fn of(session: &Session) -> Self {
        let components = &session.components;
        let first = words::greatest(components);
        let sum: f64 = components.values().map(|spent| spent.ns).sum();
        Self {
            session: session.id.clone(),
            span_ns: known(session.span_ns),
            time_ns: happened((!components.is_empty()).then_some(sum)),
            first: first.map(|(component, _)| words::component(component)).unwrap_or_default(),
            first_ns: happened(first.map(|(_, spent)| spent.ns)),
            unaccounted_ns: happened(unaccounted(components)),
        }
    }
}
