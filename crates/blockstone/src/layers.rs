//! Activity of every layer in a part of a recording's time: a section for each view, its figures
//! over time as charts, and tables for each slice, from which a page makes the tables of any
//! window.

mod activity;
mod charts;

use blockstone_base::table::{Heading, Merge, Row, Table, Value};
use blockstone_record::manifest::Manifest;
use blockstone_report::{Detail, Section, Sliced, Timeline};
use blockstone_view::{Interval, View, WHO, reasons};

use crate::chapters;

/// Number of slices of time for tables.
pub const SLICES: usize = 60;
const POINTS: usize = 300;
/// Rows of a table that are kept for each slice: the first ones of the whole interval.
pub const ROWS: usize = 30;
/// Rows of a table on a terminal, unless it was requested by name.
const SCREEN_ROWS: usize = 20;

/// Returns the sections of an interval and, for a page, its charts and tables over time. Without
/// names, it has all views that have rows; with a focus, only those made from samples.
pub fn layers(
    manifest: Option<&Manifest>,
    interval: &Interval<'_>,
    views: &[String],
    over_time: bool,
) -> (Vec<Section>, Option<Timeline>) {
    let meant = |view: &&View| {
        let named = views.is_empty() || views.iter().any(|name| name == view.name);
        named && (interval.focus().is_none() || view.is_sampled())
    };
    let shown = chapters::order(interval).into_iter().filter(meant);
    let tables = tables(interval, shown);
    let timeline = over_time.then(|| timeline(interval, &[], &tables));
    let mut slices = if over_time { slices(interval, &[], POINTS) } else { Vec::new() };
    if slices.len() < 2 {
        // A single tick is not a course of time.
        slices.clear();
    }
    let mut sections = Vec::new();
    if views.is_empty() && !slices.is_empty() {
        sections.extend(activity::section(manifest, interval, &slices));
    }
    let mut empty = Section::page("empty", "Tables without figures");
    for (view, table) in &tables {
        if !has_figures(table) && views.is_empty() {
            empty.blocks.push(table.clone().into());
            continue;
        }
        let over_time = Section::new(format!("{}-over-time", view.name), over_time_of(view));
        let over_time = over_time.detail(Detail::Page).with(charts::of(view, &slices));
        sections.extend((!over_time.blocks.is_empty()).then_some(over_time));
        let mut section = Section::new(view.name, view.title);
        let table = table.clone();
        // A busy disk has hundreds of rows of processes and files.
        let is_cut = views.is_empty() || view.name == WHO.name;
        let table = if is_cut { table.on_screen(SCREEN_ROWS) } else { table };
        section.blocks.push(table.into());
        sections.push(section);
    }
    sections.extend((!empty.blocks.is_empty()).then_some(empty));
    (sections, timeline)
}

/// Returns the tables of views over an interval.
pub fn tables(
    interval: &Interval<'_>,
    views: impl Iterator<Item = &'static View>,
) -> Vec<(&'static View, Table)> {
    views.filter_map(|view| Some((view, table(interval, view)?))).collect()
}

/// Whether a table has a number, or consists of text only by design. A table whose numbers are all
/// missing does not.
fn has_figures(table: &Table) -> bool {
    let cells = || table.rows.iter().flat_map(|row| &row.cells);
    let is_missing = |value: &Value| matches!(value, Value::Missing(_));
    !table.rows.is_empty() && (!cells().any(is_missing) || cells().any(|it| it.number().is_some()))
}

fn over_time_of(view: &View) -> String {
    format!("{} over time", view.title)
}

fn table(interval: &Interval<'_>, view: &View) -> Option<Table> {
    let table = view.table(interval)?;
    let mut notes: Vec<String> = view.legend().into_iter().map(str::to_owned).collect();
    notes.extend(reasons(interval, view.probe));
    for instance in interval.instances_with(view.probe) {
        let of = reasons(&interval.of_instance(instance), view.probe).into_iter();
        notes.extend(of.map(|why| format!("{instance}: {why}")));
    }
    Some(Table { notes, ..table })
}

/// Splits the interval, from its first tick to its last, into slices of whole ticks: at most
/// `most`, plus one for each mark. Marks are ticks at which a slice ends.
fn slices<'a>(interval: &Interval<'a>, marks_ns: &[u64], most: usize) -> Vec<Interval<'a>> {
    let inside = |tick: &u64| (interval.from_ns..=interval.to_ns).contains(tick);
    let ticks: Vec<u64> = interval.history().ticks().filter(inside).collect();
    let joined = ticks.len().saturating_sub(1).div_ceil(most.max(1)).max(1);
    let is_mark = |at: &usize| marks_ns.contains(&ticks[*at]);
    let last = ticks.len().saturating_sub(1);
    let mut edges: Vec<usize> = (0..ticks.len().min(1)).collect();
    for end in (1..=last).filter(|at| *at == last || is_mark(at)) {
        let start = edges.last().copied().unwrap_or(0);
        let parts = (end - start).div_ceil(joined);
        edges.extend((1..=parts).map(|part| start + (end - start) * part / parts));
    }
    let slice = |edges: &[usize]| {
        let mut slice = *interval;
        (slice.from_ns, slice.to_ns) = (ticks[edges[0]], ticks[edges[1]]);
        slice
    };
    edges.windows(2).map(slice).collect()
}

/// Returns these tables for slices of the interval. No slice crosses a mark.
pub fn timeline(
    interval: &Interval<'_>,
    marks_ns: &[u64],
    tables: &[(&'static View, Table)],
) -> Timeline {
    let slices = slices(interval, marks_ns, SLICES);
    let first = slices.first().map(|slice| slice.from_ns);
    let edges_ns: Vec<u64> =
        first.into_iter().chain(slices.iter().map(|slice| slice.to_ns)).collect();
    let over_time = |(view, table): &(&'static View, Table)| {
        let kept: Vec<Vec<&Value>> =
            table.rows.iter().take(ROWS).map(|row| key(&table.columns, row)).collect();
        let rows = |slice: &Interval<'_>| {
            let rows = view.table(slice).map_or_else(Vec::new, |table| table.rows);
            let is_kept = |row: &Row| kept.contains(&key(&table.columns, row));
            Some(rows.into_iter().filter(is_kept).collect())
        };
        let rows = slices.iter().map(rows).collect();
        Sliced { table: view.name.into(), edges_ns: edges_ns.clone(), rows }
    };
    let with_rows =
        tables.iter().filter(|(view, table)| !table.rows.is_empty() && !view.is_of_instants());
    let tables = with_rows.map(over_time).collect();
    Timeline { edges_ns, tables }
}

/// Returns the cells that identify a row.
pub fn key<'a>(columns: &[Heading], row: &'a Row) -> Vec<&'a Value> {
    let cells = columns.iter().zip(&row.cells);
    cells.filter(|(column, _)| column.merge == Merge::Key).map(|(_, cell)| cell).collect()
}
