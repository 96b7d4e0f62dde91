//! Report of a grid of runs: a line for each combination of settings.

mod earlier;
pub mod limits;

use std::collections::BTreeSet;

use blockstone_base::Estimate;
use blockstone_base::rows;
use blockstone_base::table::{
    Heading, Measure, Merge, Row, Rows as _, Table, Text, Value, column, happened, text, unmerged,
};
use blockstone_base::units::counted;
use blockstone_judge::grid::{Axis as GridAxis, Cell, CellFigure, FIGURES, Grid};
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::render::json;
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Detail, Headline, Report, Section};
use schemars::JsonSchema;
use serde::Serialize;

use super::tables::measure;

const DRAWN: [&str; 5] = [
    "operations_per_s",
    "bulk_returned_mbps",
    "bulk_flushed_mbps",
    "physical_reads_per_cpu_s",
    "commits_per_s",
];

/// Figures of the table of background writes; all others are in the first.
const OF_WRITERS: [&str; 5] = [
    "dbwr_latency_ns_mean",
    "lgwr_latency_ns_mean",
    "ckpt_latency_ns_mean",
    "free_buffer_waits_ns_mean",
    "write_complete_waits_ns_mean",
];

rows! {
    /// Combinations that were not measured as often as asked.
    pub struct MissedRow {
        /// Varied settings and their values.
        settings: String = text("settings").answer(),
        /// Why the target cannot run it, or why a run did not complete.
        why: String = text("why").prose(),
    }
}

/// Tables, of which the columns follow the varied settings except in the last.
pub const TABLES: &[Tables] = &[&[
    ("limits", limits::LimitsRow::COLUMNS),
    ("grid", &[]),
    ("grid-writers", &[]),
    ("against-first", &[]),
    ("missed", MissedRow::COLUMNS),
]];

/// Keys of the document besides its tables.
#[derive(Serialize, JsonSchema)]
pub struct Objects<'a> {
    /// Settings that varied.
    axes: &'a [GridAxis],
    /// The most that a ladder carried within the limits; absent if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    ladder: Option<limits::Ladder>,
}

/// Returns the report of a grid whose recordings are in `dir`.
pub fn report(grid: &Grid, dir: &str) -> Report {
    let axes: Vec<String> =
        grid.axes.iter().map(|axis| format!("{}={}", axis.name, axis.values.join(","))).collect();
    let failed = grid.cells.iter().flat_map(|cell| &cell.failed);
    let charts = DRAWN.iter().filter_map(|name| chart(grid, name));
    let mut sections = vec![
        Section::new("grid", "All combinations").with([table(grid)]).with(writers(grid)),
        Section::of("against-first", against_first(grid)),
        Section::of("missed", missed(grid)).detail(Detail::Page),
        Section::page("grid-charts", "Charts of all combinations").with(charts),
    ];
    sections.retain(|section| !section.blocks.is_empty());
    Report {
        verb: "grid".into(),
        version: 2,
        headline: Headline {
            subject: axes.join(" "),
            text: counted(grid.cells.len() as u64, "combination"),
            ..Headline::default()
        },
        warnings: failed.map(|why| format!("! {why}")).collect(),
        sections,
        partial: !grid.trustworthy(),
        recording: dir.to_owned(),
        document: json::keys(Objects { axes: &grid.axes, ladder: None }),
        first: json::keys(earlier::GridDocument::of(grid)),
        ..Report::default()
    }
}

/// Returns the figures that at least one combination has.
fn shown(grid: &Grid) -> Vec<(&'static str, &CellFigure)> {
    let found = |name| grid.cells.iter().find_map(|cell| cell.figure(name));
    let all = FIGURES.into_iter().filter_map(|name| Some((name, found(name)?)));
    // For order entry, operations are transactions.
    let twice = found("transactions_per_s").map(|_| "operations_per_s");
    all.filter(|(name, _)| Some(*name) != twice).collect()
}

fn estimate(cell: &Cell, figure: &CellFigure) -> Estimate {
    let CellFigure { value, low, high, .. } = *figure;
    Estimate { value, low, high, samples: cell.complete as u64, duration_ns: 0 }
}

fn table(grid: &Grid) -> Table {
    let shown: Vec<_> =
        shown(grid).into_iter().filter(|(name, _)| !OF_WRITERS.contains(name)).collect();
    let mut table = of_figures(grid, ("grid", "All combinations"), &shown);
    table.notes.extend(grid.cells.iter().filter_map(|cell| {
        let why = cell.impossible.as_ref()?;
        Some(format!("{}: not possible: {why}", settings(grid, cell)))
    }));
    let several = grid.cells.iter().any(|cell| cell.complete > 1);
    table.notes.push(
        if several {
            "Medians of the repeats, which were interleaved; the interval reaches from the least \
             to the greatest. Struck through where a verdict condemns it in any of them."
        } else {
            "Each was run once. Struck through where a verdict condemns it."
        }
        .to_owned(),
    );
    table
}

/// Returns the mean times of background writes, and of the waits of sessions for them.
fn writers(grid: &Grid) -> Option<Table> {
    let shown: Vec<_> =
        shown(grid).into_iter().filter(|(name, _)| OF_WRITERS.contains(name)).collect();
    let title = "Background writes, and waits of sessions for them";
    (!shown.is_empty()).then(|| of_figures(grid, ("grid-writers", title), &shown))
}

/// Table of the medians of the repeats. A figure is struck through if rules condemn it in any of
/// them.
fn of_figures(
    grid: &Grid,
    (id, title): (&'static str, &'static str),
    shown: &[(&'static str, &CellFigure)],
) -> Table {
    let axes = grid.axes.iter().map(|axis| {
        let doc = "A varied setting.";
        Heading::new(axis.name.clone(), axis.name.clone(), Measure::Text, doc)
    });
    let figures = shown.iter().map(|(name, figure)| {
        let doc = format!("{}, in {}.", figure.title, figure.unit);
        Heading::new(*name, figure.title.clone(), measure(&figure.unit), doc)
    });
    let columns: Vec<Heading> = axes.chain(figures).collect();
    let runs = unmerged("runs", "runs", Measure::Count, "Completed runs.");
    let columns: Vec<Heading> = columns.into_iter().chain([runs]).collect();
    let mut table = Table::new(id, title, columns);
    for cell in &grid.cells {
        let figure = |(name, _): &(&'static str, &CellFigure)| {
            happened(cell.figure(name).map(|figure| estimate(cell, figure)))
        };
        let values = cell.values.iter().map(|value| Value::from(value.as_str()));
        let mut cells: Vec<Value> = values.chain(shown.iter().map(figure)).collect();
        cells.push(Value::from(cell.complete as u64));
        let is_shown = |figure: &&CellFigure| shown.iter().any(|(name, _)| *name == figure.name);
        let condemned = || {
            let figures = cell.figures.iter().filter(is_shown);
            figures.filter(|figure| !figure.condemned_by.is_empty())
        };
        let rules: BTreeSet<&String> =
            condemned().flat_map(|figure| &figure.condemned_by).collect();
        let rules: Vec<String> = rules.into_iter().cloned().collect();
        let columns = condemned().map(|figure| Text::from(figure.name)).collect();
        table.push(Row::from(cells).condemned_in(columns, &rules));
    }
    table
}

/// Returns the settings of a combination as `name=value name=value`.
fn settings(grid: &Grid, cell: &Cell) -> String {
    let pairs = grid.axes.iter().zip(&cell.values);
    let pairs: Vec<String> = pairs.map(|(axis, value)| format!("{}={value}", axis.name)).collect();
    pairs.join(" ")
}

fn missed(grid: &Grid) -> Table {
    let rows = grid.cells.iter().flat_map(|cell| {
        let reasons = cell.impossible.iter().chain(&cell.failed);
        reasons.map(|why| MissedRow { settings: settings(grid, cell), why: why.clone() })
    });
    MissedRow::table("missed", "Combinations that were not measured as often as asked", rows)
}

/// Table of the outcome of every figure compared with the first combination.
fn against_first(grid: &Grid) -> Table {
    let axes = grid.axes.iter().map(|axis| {
        let doc = "A varied setting.";
        Heading::new(axis.name.clone(), axis.name.clone(), Measure::Text, doc)
    });
    let columns = axes.chain([
        text("figure", "figure", "What is compared."),
        unmerged("ratio", "÷ first", Measure::Ratio, "This combination ÷ the first."),
        column("outcome", "", Measure::Text, Merge::Never, "Whether a difference is established."),
    ]);
    let first = grid.cells.first().map(|cell| cell.values.join(" ")).unwrap_or_default();
    let columns: Vec<Heading> = columns.collect();
    let mut table = Table::new("against-first", format!("Compared with {first}"), columns);
    for cell in &grid.cells {
        for against in &cell.against_first {
            let outcome = against.outcome.short();
            let values = cell.values.iter().map(|value| Value::from(value.as_str()));
            let mut cells: Vec<Value> = values.collect();
            let ratio = happened(against.ratio);
            cells.extend([Value::from(against.title.as_str()), ratio, outcome.into()]);
            table.push(Row::from(cells).condemned_by(&against.condemned_by));
        }
    }
    table
}

/// Bar chart by combination, with one colour for each value of the last axis.
fn chart(grid: &Grid, name: &'static str) -> Option<Chart> {
    let found = grid.cells.iter().find_map(|cell| cell.figure(name))?;
    let last = grid.axes.last()?;
    let label = |cell: &Cell| {
        let before = &cell.values[..cell.values.len().saturating_sub(1)];
        let parts = grid.axes.iter().zip(before);
        parts.map(|(axis, value)| format!("{} {value}", axis.name)).collect::<Vec<_>>().join(", ")
    };
    let mut labels: Vec<String> = Vec::new();
    for cell in &grid.cells {
        let label = label(cell);
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    let y = Axis::new(found.unit.clone(), measure(&found.unit));
    let id = format!("grid-{}", name.replace('_', "-"));
    let about = format!(
        "{} for each combination; whiskers show the range of the repetitions.",
        found.title
    );
    let mut chart =
        Chart::new(id, found.title.clone(), Axis::names("", labels.clone()), y).about(about);
    for (value, color) in last.values.iter().zip(0..) {
        let cells = grid.cells.iter().filter(|cell| cell.values.last() == Some(value));
        let points = cells.filter_map(|cell| {
            let figure = cell.figure(name)?;
            let x = labels.iter().position(|known| *known == label(cell))?;
            Some(Point {
                x: x as f64,
                y: Some(figure.value),
                interval: (figure.low < figure.high).then_some((figure.low, figure.high)),
                condemned: !figure.condemned_by.is_empty(),
            })
        });
        let form = Form::Bars { points: points.collect(), stacked: false };
        chart = chart.layer(format!("{} {value}", last.name), Color::Series(color), form);
    }
    Some(chart)
}
