//! The tables; they contain everything that a chart shows.

use blockstone_base::row;
use blockstone_base::table::{
    Heading, Measure, Merge, Missing, Row, Table, Value, count, happened, share, text, time, total,
};
use blockstone_base::text as base;
use blockstone_base::units::format_ns;
use blockstone_report::short;
use blockstone_trace::{By, Component, RowSource, Spent, Statement, Trace};

use super::{Asked, words};

/// Characters of a statement that are shown in a table.
const TEXT_WIDTH: usize = 48;
const ROWS_MAX: usize = 500;
/// Most components whose histograms are shown side by side.
const EVENTS_MAX: usize = 5;

/// A value, or the remark that the log does not have it.
fn known(value: Option<f64>) -> Value {
    value.map_or(Value::Missing(Missing::NotInLog), Value::Number)
}

fn mean(spent: &Spent) -> Option<f64> {
    words::calls(spent).map(|calls| spent.ns / calls)
}

const PROFILE: &[Heading] = &[
    text("component", "component", "What time was spent on."),
    time("time_ns", "time", "Together."),
    share("share", "share", "Of the response time."),
    total("calls", "calls", Measure::Count, "How often; executions where the log has only sums."),
    time("time_ns_mean", "mean", "Of a call."),
    time("time_ns_max", "longest", "Call."),
    time("uncertain_ns", "±", "By clock ticks of processor time."),
];

/// Lists components, the longest first, and those that this log does not contain.
pub fn profile(trace: &Trace) -> Table {
    let all = words::response_ns(trace);
    let title = format!("Response time: {}", format_ns(all));
    let mut table = Table::new("profile", title, PROFILE);
    for (component, spent) in words::by_time(&trace.components) {
        table.push(component_row(component, spent, all));
    }
    for (component, _) in &trace.absent {
        let missing = || Value::Missing(Missing::NotInLog);
        let mut cells = vec![Value::from(words::component(component))];
        cells.extend((1..PROFILE.len()).map(|_| missing()));
        table.push(cells);
    }
    table
}

fn component_row(component: &Component, spent: &Spent, all: f64) -> Row {
    let uncertain = Some(spent.uncertain_ns).filter(|ns| *ns > 0.0);
    let [calls, mean] = [words::calls(spent), mean(spent)].map(happened);
    let max = match words::max_ns(spent) {
        None if spent.calls > 0.0 => known(None),
        max => happened(max),
    };
    row![
        words::component(component),
        spent.ns,
        happened((all > 0.0).then(|| spent.ns / all)),
        calls,
        mean,
        max,
        happened(uncertain)
    ]
}

const STATEMENTS: &[Heading] = &[
    text("id", "statement", "Its sql_id, or the hash of its text without values."),
    time("time_ns", "time", "Of all executions, without recursive statements."),
    share("share", "share", "Of the response time of all statements."),
    total("executions", "executions", Measure::Count, "How often."),
    time("time_ns_mean", "mean", "Of an execution."),
    text("first", "mostly", "The component that took most of it."),
    text("text", "text", "Its beginning.").answer(),
    count("rows", "rows", "Returned or changed."),
    count("logical_reads", "logical reads", "Blocks looked at."),
    count("physical_reads", "reads", "Blocks read from storage, or from the file system's cache."),
];

pub fn statements(trace: &Trace, top: usize) -> Table {
    let all: f64 = trace.statements.iter().map(|statement| statement.ns).sum();
    let mut table = Table::new("statements", "Statements by time", STATEMENTS).on_screen(top);
    for statement in trace.statements.iter().take(ROWS_MAX) {
        let executions = Some(statement.executions).filter(|executions| *executions > 0.0);
        let first = words::greatest(&statement.components);
        table.push(row![
            &statement.id,
            statement.ns,
            happened((all > 0.0).then(|| statement.ns / all)),
            happened(executions),
            happened(executions.map(|executions| statement.ns / executions)),
            first.map(|(component, _)| words::component(component)).unwrap_or_default(),
            one_line(&statement.text),
            known(statement.rows),
            known(statement.logical_reads),
            known(statement.physical_reads)
        ]);
    }
    let more = trace.statements.len().saturating_sub(ROWS_MAX);
    if more > 0 {
        table.notes.push(format!("{more} more statements are in the JSON document"));
    }
    table
}

pub fn one_line(text: &str) -> String {
    short(&base::one_line(text, TEXT_WIDTH + 1), TEXT_WIDTH)
}

const CALLS: &[Heading] = &[
    text("statement", "statement", "Its id; empty for all of them."),
    text("call", "call", "Parse, execute or fetch."),
    total("count", "count", Measure::Count, "How often."),
    time("cpu_ns", "CPU", "Processor time."),
    time("elapsed_ns", "elapsed", "Response time."),
    count("physical_reads", "disk", "Blocks read from storage."),
    count("consistent_reads", "query", "Blocks in consistent mode."),
    count("current_reads", "current", "Blocks in current mode."),
    count("rows", "rows", "Returned or changed."),
    count("misses", "misses", "Of the library cache."),
];

/// Returns the tables of one statement: its calls, its row sources, its components.
pub fn of_statement(trace: &Trace, statement: &Statement, named: bool) -> Vec<Table> {
    let id = &statement.id;
    let named = Some(statement).filter(|_| named);
    let title = named.map_or_else(String::new, |it| format!("{id}: {}", one_line(&it.text)));
    let mut calls = Table::new(format!("calls-{id}"), title.clone(), CALLS);
    calls.rows = call_rows(statement);
    let mut sources = Table::new(format!("row-sources-{id}"), "Row sources", SOURCES);
    let lines = trace.row_sources.iter().filter(|row| row.statement == *id);
    sources.rows = lines.map(source_row).collect();
    let components = if calls.rows.is_empty() { title } else { "Components".to_owned() };
    let mut spent = Table::new(format!("components-{id}"), components, PROFILE);
    let parts = words::by_time(&statement.components);
    spent.rows =
        parts.into_iter().map(|(it, spent)| component_row(it, spent, statement.ns)).collect();
    vec![calls, sources.only(OF_ONE), spent]
}

/// Columns used if the statement is known from the title.
const OF_ONE: &[&str] =
    &["operation", "rows", "own_time_ns", "own_physical_reads", "own_logical_reads", "time_ns"];

fn call_rows(statement: &Statement) -> Vec<Row> {
    let row = |part: &blockstone_trace::StatementPart| {
        row![
            &statement.id,
            part.name,
            part.calls,
            part.cpu_ns,
            part.elapsed_ns,
            part.physical_reads,
            part.consistent_reads,
            part.current_reads,
            part.rows,
            part.misses
        ]
    };
    statement.parts.iter().map(row).collect()
}

pub fn calls(trace: &Trace) -> Table {
    let mut table = Table::new("calls", "Calls of statements", CALLS);
    table.rows = trace.statements.iter().flat_map(call_rows).take(ROWS_MAX).collect();
    table
}

/// Sums the calls of all statements, those of clients and recursive ones separately.
pub fn overall(trace: &Trace) -> Table {
    let mut table = Table::new("overall", "All statements", CALLS);
    for (name, recursive) in [("non-recursive", false), ("recursive", true)] {
        for call in ["parse", "execute", "fetch", "close"] {
            let of_it = trace.statements.iter();
            let of_it = of_it.filter(|it| (it.depth.unwrap_or(0) > 0) == recursive);
            let parts: Vec<_> =
                of_it.flat_map(|it| &it.parts).filter(|part| part.name == call).collect();
            if parts.is_empty() {
                continue;
            }
            let sum = |of: fn(&blockstone_trace::StatementPart) -> f64| -> f64 {
                parts.iter().map(|part| of(part)).sum()
            };
            table.push(row![
                name,
                call,
                sum(|it| it.calls),
                sum(|it| it.cpu_ns),
                sum(|it| it.elapsed_ns),
                sum(|it| it.physical_reads),
                sum(|it| it.consistent_reads),
                sum(|it| it.current_reads),
                sum(|it| it.rows),
                sum(|it| it.misses)
            ]);
        }
    }
    table
}

const COMPONENTS: &[Heading] = &[
    text("statement", "statement", "Its id."),
    text("component", "component", "What time was spent on."),
    time("time_ns", "time", "Together."),
    share("share", "share", "Of the statement's response time."),
    total("calls", "calls", Measure::Count, "How often."),
    time("time_ns_mean", "mean", "Of a call."),
    time("time_ns_max", "longest", "Call."),
    time("uncertain_ns", "±", "By clock ticks of processor time."),
];

/// Lists every component of every statement.
pub fn components(trace: &Trace) -> Table {
    let mut table = Table::new("components", "Components of statements", COMPONENTS);
    for statement in trace.statements.iter().take(ROWS_MAX) {
        for (component, spent) in words::by_time(&statement.components) {
            let mut row = component_row(component, spent, statement.ns);
            row.cells.insert(0, Value::from(&statement.id));
            table.push(row);
        }
    }
    table
}

/// Counts calls by their time, with a column for each of the components that took longest.
pub fn histogram(trace: &Trace) -> Table {
    let all = words::by_time(&trace.components);
    let shown: Vec<_> = all
        .into_iter()
        .filter(|(_, spent)| !spent.histogram.calls.is_empty())
        .take(EVENTS_MAX)
        .collect();
    let doc = "Calls that took less than this, and at least half of it.";
    let mut columns = vec![text("below", "below", doc)];
    columns.extend(shown.iter().enumerate().map(|(at, (component, _))| {
        let heading = short(&words::component(component), 24);
        Heading {
            merge: Merge::Sum,
            ..Heading::new(format!("calls_{at}"), heading, Measure::Count, "Calls.")
        }
    }));
    let mut table = Table::new("histogram", "Calls by time", columns);
    let calls = |spent: &Spent, at: usize| {
        spent.histogram.calls.get(at).copied().filter(|calls| *calls > 0.0)
    };
    let length = shown.iter().map(|(_, spent)| spent.histogram.calls.len()).max().unwrap_or(0);
    let has_calls = |at: &usize| shown.iter().any(|(_, spent)| calls(spent, *at).is_some());
    let first = (0..length).find(has_calls).unwrap_or(length);
    for at in first..length {
        let mut row = vec![Value::from(format_ns(words::below_ns(at)))];
        row.extend(shown.iter().map(|(_, spent)| happened(calls(spent, at))));
        table.push(row);
    }
    table
}

const TIMES: &[Heading] = &[
    text("below", "below", "Executions that took less than this, and at least half of it."),
    total("executions", "executions", Measure::Count, "How many."),
    time("time_ns", "time", "Of these together."),
    share("share", "share", "Of the time of all executions."),
];

/// Counts executions of all statements by response time, if the log has single executions.
pub fn times(trace: &Trace) -> Table {
    let histograms = trace.statements.iter().map(|statement| &statement.times);
    let (mut calls, mut ns): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for histogram in histograms {
        let length = calls.len().max(histogram.calls.len());
        calls.resize(length, 0.0);
        ns.resize(length, 0.0);
        calls.iter_mut().zip(&histogram.calls).for_each(|(sum, more)| *sum += more);
        ns.iter_mut().zip(&histogram.ns).for_each(|(sum, more)| *sum += more);
    }
    let all: f64 = ns.iter().sum();
    let mut table = Table::new("times", "Executions by response time", TIMES);
    let first = calls.iter().position(|calls| *calls > 0.0).unwrap_or(calls.len());
    for at in first..calls.len() {
        let share = happened((all > 0.0).then(|| ns[at] / all));
        if calls[at] > 0.0 {
            table.push(row![format_ns(words::below_ns(at)), calls[at], ns[at], share]);
        }
    }
    table
}

const HISTOGRAMS: &[Heading] = &[
    text("component", "component", "What time was spent on."),
    time("from_ns", "from", "Least time of a call."),
    time("below_ns", "below", "Upper end."),
    total("calls", "calls", Measure::Count, "How many."),
    time("time_ns", "time", "Of these together."),
    share("share", "share", "Of the component's time."),
];

pub fn histograms(trace: &Trace) -> Table {
    let mut table = Table::new("histograms", "Histograms of all components", HISTOGRAMS);
    for (component, spent) in words::by_time(&trace.components) {
        let buckets = spent.histogram.calls.iter().zip(&spent.histogram.ns).enumerate();
        for (at, (calls, ns)) in buckets.filter(|(_, (calls, _))| **calls > 0.0) {
            let from = if at == 0 { 0.0 } else { words::below_ns(at - 1) };
            table.push(row![
                words::component(component),
                from,
                words::below_ns(at),
                *calls,
                *ns,
                happened((spent.ns > 0.0).then(|| ns / spent.ns))
            ]);
        }
    }
    table
}

const SOURCES: &[Heading] = &[
    text("statement", "statement", "Its id."),
    text(
        "operation",
        "operation",
        "A line of the plan, indented below the one that it is part of.",
    ),
    count("rows", "rows", "That it passed on."),
    time("own_time_ns", "own time", "Of the line alone."),
    count("own_physical_reads", "own reads", "Physical reads of the line alone."),
    count("own_logical_reads", "own logical", "Logical reads of the line alone."),
    time("time_ns", "with below", "Time of the line and of those below it."),
    count("physical_reads", "reads", "Physical reads, with the lines below it."),
    count("logical_reads", "logical", "Logical reads, with the lines below it."),
    count("executions", "executions", "Whose figures are added up."),
    count("object", "object", "Number of the object."),
];

fn source_row(row: &RowSource) -> Row {
    let indent = "  ".repeat((row.depth as usize).min(40));
    row![
        &row.statement,
        format!("{indent}{}", row.operation),
        row.rows,
        Value::from(row.own_ns),
        Value::from(row.own_physical_reads),
        Value::from(row.own_logical_reads),
        known(row.ns),
        known(row.physical_reads),
        known(row.logical_reads),
        row.executions,
        happened(row.object)
    ]
}

/// Lists the row sources of the statements that took longest, in the order of these.
pub fn row_sources(trace: &Trace, asked: &Asked) -> Table {
    let mut table = Table::new("row-sources", "Row sources", SOURCES);
    for statement in trace.statements.iter().take(asked.top) {
        let lines = trace.row_sources.iter().filter(|row| row.statement == statement.id);
        table.rows.extend(lines.take(ROWS_MAX).map(source_row));
    }
    table.on_screen(2 * asked.top)
}

const SESSIONS: &[Heading] = &[
    text("session", "session", "As the log names it."),
    time("span_ns", "span", "From its first to its last instant."),
    time("time_ns", "in components", "Sum of its components."),
    text("first", "mostly", "The component that took most."),
    time("first_ns", "of it", "Time of that component."),
    time("unaccounted_ns", "unaccounted", "What no component explains."),
];

pub fn sessions(trace: &Trace) -> Table {
    let mut table = Table::new("sessions", "Sessions", SESSIONS).on_screen(10);
    for session in trace.sessions.iter().take(ROWS_MAX) {
        let first = words::greatest(&session.components);
        let unaccounted = session.components.get(&Component::Unaccounted);
        let sum = session.components.values().map(|spent| spent.ns).sum::<f64>();
        table.push(row![
            &session.id,
            known(session.span_ns),
            happened((!session.components.is_empty()).then_some(sum)),
            first.map(|(component, _)| words::component(component)).unwrap_or_default(),
            happened(first.map(|(_, spent)| spent.ns)),
            happened(unaccounted.map(|spent| spent.ns))
        ]);
    }
    table
}

const fn by(key: &'static str, heading: &'static str, doc: &'static str) -> [Heading; 7] {
    [
        text("event", "event", "The wait."),
        text(key, heading, doc),
        time("time_ns", "time", "Together."),
        total("calls", "calls", Measure::Count, "How often."),
        time("time_ns_mean", "mean", "Of a call."),
        time("time_ns_max", "longest", "Call."),
        count("blocks", "blocks", "Moved by these calls."),
    ]
}

const BY_FILE: &[Heading] = &by("file", "file", "Number of the data file.");
const BY_BLOCKS: &[Heading] = &by("blocks_a_call", "blocks a call", "Blocks that one call moved.");
const BY_OBJECT: &[Heading] = &by("object", "object", "Number of the object.");

pub fn by_file(trace: &Trace) -> Table {
    waits(Table::new("files", "Waits for I/O by file", BY_FILE), &trace.by_file)
}

pub fn by_blocks(trace: &Trace) -> Table {
    waits(Table::new("blocks", "Waits for I/O by blocks a call", BY_BLOCKS), &trace.by_blocks)
}

pub fn by_object(trace: &Trace) -> Table {
    waits(Table::new("objects", "Waits for I/O by object", BY_OBJECT), &trace.by_object)
}

fn waits(table: Table, all: &[By]) -> Table {
    let mut all: Vec<&By> = all.iter().collect();
    all.sort_by(|a, b| b.spent.ns.total_cmp(&a.spent.ns));
    let row = |by: &&By| {
        row![
            &by.event,
            by.key.map_or_else(|| "all others".to_owned(), |key| key.to_string()),
            by.spent.ns,
            by.spent.calls,
            happened(mean(&by.spent)),
            happened(words::max_ns(&by.spent)),
            happened(by.spent.blocks)
        ]
    };
    table.with(all.iter().take(ROWS_MAX).map(row)).on_screen(8)
}
