//! The tables; they contain everything that a chart shows.

use std::collections::HashMap;

use blockstone_base::table::{Heading, Measure, Merge, Rows as _, Table, Value, happened, time};
use blockstone_base::units::format_ns;
use blockstone_report::short;
use blockstone_trace::{Spent, Statement, Trace};

use super::Asked;
use crate::verbs::trace::rows::{
    AbsentRow, BlocksRow, BucketRow, CallRow, FileRow, NoteRow, ObjectRow, ProfileRow,
    SessionBucketRow, SessionRow, SessionSpentRow, SourceRow, StatementBucketRow, StatementRow,
    StatementSpentRow, TextRow, TimesRow, one_line,
};
use crate::verbs::trace::words;

/// Rows of a table on the page.
const ROWS_MAX: usize = 500;
/// Maximum number of components whose histograms are shown side by side.
const EVENTS_MAX: usize = 5;

/// Lists components, the longest first, and those that this log does not contain.
pub fn profile(trace: &Trace) -> Table {
    let all = words::response_ns(trace);
    let title = format!("Response time: {}", format_ns(all));
    let absent = trace.absent.iter().map(|(component, _)| ProfileRow::absent(component));
    let rows = ProfileRow::all(&trace.components, all).into_iter().chain(absent);
    Table { title: title.into(), ..ProfileRow::table("profile", "", rows) }
}

/// Lists what this kind of log does not contain.
pub fn not_in_log(trace: &Trace) -> Table {
    let rows = trace
        .absent
        .iter()
        .map(|(component, why)| AbsentRow { component: words::component(component), why });
    AbsentRow::table("not-in-log", "Not in this log", rows)
}

pub fn notes(trace: &Trace) -> Table {
    let rows = trace.notes.iter().map(|note| NoteRow { note: note.clone() });
    NoteRow::table("notes", "Remarks", rows)
}

pub fn statements(trace: &Trace, top: usize) -> Table {
    let all: f64 = trace.statements.iter().map(|statement| statement.ns).sum();
    let rows = trace.statements.iter().map(|statement| StatementRow::of(statement, all));
    StatementRow::table("statements", "Statements by time", rows).on_screen(top).on_page(ROWS_MAX)
}

/// Returns the tables of one statement: its calls, its row sources, its components.
pub fn of_statement(trace: &Trace, statement: &Statement, named: bool) -> Vec<Table> {
    let Statement { id, components, ns, .. } = statement;
    let named = Some(statement).filter(|_| named);
    let title = named.map_or_else(String::new, |it| format!("{id}: {}", one_line(&it.text)));
    let calls = CallRow::table("", "", CallRow::of(statement));
    let lines = trace.row_sources.iter().filter(|row| row.statement == *id);
    let sources = SourceRow::table("", "Row sources", lines.map(SourceRow::of)).only(OF_ONE);
    let spent = ProfileRow::table("", "Components", ProfileRow::all(components, *ns));
    let has_calls = !calls.rows.is_empty();
    let titled = |table, name: &str| Table {
        name: format!("{name}-{id}").into(),
        title: title.clone().into(),
        ..table
    };
    vec![
        titled(calls, "calls"),
        Table { name: format!("row-sources-{id}").into(), ..sources },
        if has_calls {
            Table { name: format!("components-{id}").into(), ..spent }
        } else {
            titled(spent, "components")
        },
    ]
}

/// Columns used if the statement is known from the title.
const OF_ONE: &[&str] =
    &["operation", "rows", "own_time_ns", "own_physical_reads", "own_logical_reads", "time_ns"];

/// Returns everything about each statement and session, for the page and for scripts.
pub fn all(trace: &Trace) -> [Table; 7] {
    let (statements, sessions) = (&trace.statements, &trace.sessions);
    let texts =
        statements.iter().map(|it| TextRow { statement: it.id.clone(), text: it.text.clone() });
    let spent =
        statements.iter().flat_map(|it| StatementSpentRow::all(&it.components, it.ns, &it.id));
    let buckets = statements.iter().flat_map(|it| StatementBucketRow::all(&it.components, &it.id));
    let of_session = |it: &blockstone_trace::Session| {
        let all = it.components.values().map(|spent| spent.ns).sum();
        SessionSpentRow::all(&it.components, all, &it.id)
    };
    let session_buckets =
        sessions.iter().flat_map(|it| SessionBucketRow::all(&it.components, &it.id));
    [
        CallRow::table("calls", "Calls of statements", statements.iter().flat_map(CallRow::of)),
        StatementSpentRow::table("components", "Components of statements", spent),
        BucketRow::table(
            "histograms",
            "Histograms of all components",
            BucketRow::all(&trace.components),
        ),
        StatementBucketRow::table("statement-histograms", "Histograms of statements", buckets),
        SessionSpentRow::table(
            "session-components",
            "Components of sessions",
            sessions.iter().flat_map(of_session),
        ),
        SessionBucketRow::table("session-histograms", "Histograms of sessions", session_buckets),
        TextRow::table("texts", "Texts of statements", texts),
    ]
    .map(|table| table.on_page(ROWS_MAX))
}

/// Sums the calls of all statements, those of clients and recursive ones separately.
pub fn overall(trace: &Trace) -> Table {
    let mut table = CallRow::table("overall", "All statements", []);
    for (name, recursive) in [("non-recursive", false), ("recursive", true)] {
        for call in ["parse", "execute", "fetch", "close"] {
            let of_it = trace.statements.iter();
            let of_it = of_it.filter(|it| (it.depth.unwrap_or(0) > 0) == recursive);
            let parts: Vec<_> =
                of_it.flat_map(|it| &it.parts).filter(|part| part.name == call).collect();
            if !parts.is_empty() {
                table.push(CallRow::sum(name, call, &parts));
            }
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
    let mut columns = vec![time("below_ns", "below", doc)];
    columns.extend(shown.iter().enumerate().map(|(at, (component, _))| {
        let name = words::component(component);
        let doc = format!("Calls of {name}.");
        Heading {
            merge: Merge::Sum,
            ..Heading::new(format!("calls_{at}"), short(&name, 32), Measure::Count, doc)
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
        let mut row = vec![Value::from(words::below_ns(at))];
        row.extend(shown.iter().map(|(_, spent)| happened(calls(spent, at))));
        table.push(row);
    }
    table
}

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
    let rows = (0..calls.len()).filter(|at| calls[*at] > 0.0).map(|at| TimesRow {
        below_ns: words::below_ns(at),
        executions: calls[at],
        time_ns: ns[at],
        share: happened((all > 0.0).then(|| ns[at] / all)),
    });
    TimesRow::table("times", "Executions by response time", rows)
}

/// Lists the row sources of statements, in the order of these.
pub fn row_sources(trace: &Trace, asked: &Asked) -> Table {
    let statements = trace.statements.iter().enumerate();
    let order: HashMap<&str, usize> = statements.map(|(at, it)| (it.id.as_str(), at)).collect();
    let mut lines: Vec<_> = trace.row_sources.iter().collect();
    lines.sort_by_key(|row| order.get(row.statement.as_str()).copied().unwrap_or(usize::MAX));
    let rows = lines.into_iter().map(SourceRow::of);
    let table = SourceRow::table("row-sources", "Row sources", rows);
    table.on_screen(2 * asked.top).on_page(ROWS_MAX)
}

pub fn sessions(trace: &Trace) -> Table {
    let rows = trace.sessions.iter().map(SessionRow::of);
    SessionRow::table("sessions", "Sessions", rows).on_screen(10).on_page(ROWS_MAX)
}

/// Returns the waits for I/O by file, by blocks a call and by object, the longest first.
pub fn waits(trace: &Trace) -> [Table; 3] {
    let files = trace.by_file.iter().map(FileRow::from);
    let blocks = trace.by_blocks.iter().map(BlocksRow::from);
    let objects = trace.by_object.iter().map(ObjectRow::from);
    [
        FileRow::table("files", "Waits for I/O by file", files),
        BlocksRow::table("blocks", "Waits for I/O by blocks a call", blocks),
        ObjectRow::table("objects", "Waits for I/O by object", objects),
    ]
    .map(|table| table.on_screen(8).on_page(ROWS_MAX))
}
