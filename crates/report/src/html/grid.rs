//! A grid of runs as one page: a chart and the table behind it.

use blockstone_judge::grid::{FIGURES, Grid};
use plotly::common::{ErrorData, ErrorType};
use plotly::layout::{Axis, BarMode, Layout};
use plotly::{Bar, Trace};

use super::charts::Chart;
use super::table::Table;
use super::{Page, Section, fill};
use crate::ReportError;
use crate::format;
use crate::terminal::grid_spread as spread;

/// Renders the grid; `dir` is where its recordings are.
///
/// # Errors
/// When the template cannot be filled in, which its tests exclude.
pub fn page(grid: &Grid, dir: &str) -> Result<String, ReportError> {
    let axes: Vec<String> =
        grid.axes.iter().map(|axis| format!("{}={}", axis.name, axis.values.join(","))).collect();
    let charts = ["operations_per_s", "physical_reads_per_cpu_s", "commits_per_s"];
    let page = Page {
        verb: "run --matrix",
        path: axes.join(" "),
        identity: vec![format!("{} combinations", grid.cells.len())],
        unfinished: None,
        trustworthy: grid.trustworthy(),
        condemned_by: Vec::new(),
        headline: Vec::new(),
        families: Vec::new(),
        verdicts: Vec::new(),
        sections: vec![Section {
            id: "grid",
            title: "Every combination",
            intro: "Medians of the repeats, which were interleaved; the whiskers reach from the \
                    least to the greatest. What a verdict condemns in any of them is struck \
                    through in the table and missing in the charts.",
            charts: charts.iter().filter_map(|name| chart(grid, name)).collect(),
            tables: vec![table(grid)],
        }],
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        recording: dir.to_owned(),
    };
    fill("report.html", &page)
}

/// Bars by combination, one colour for each value of the last axis.
fn chart(grid: &Grid, name: &str) -> Option<Chart> {
    let found = grid.cells.iter().find_map(|cell| cell.figure(name))?;
    let last = grid.axes.last()?;
    let bars = last.values.iter().map(|value| {
        let cells = grid.cells.iter().filter(|cell| cell.values.last() == Some(value));
        let figures = cells.filter_map(|cell| {
            let figure = cell.figure(name).filter(|figure| figure.condemned_by.is_empty())?;
            let (_, before) = cell.values.split_last()?;
            let labels = grid.axes.iter().zip(before);
            let labels: Vec<_> =
                labels.map(|(axis, value)| format!("{} {value}", axis.name)).collect();
            Some((labels.join(", "), figure))
        });
        let figures: Vec<_> = figures.collect();
        let errors = ErrorData::new(ErrorType::Data)
            .array(figures.iter().map(|(_, figure)| figure.high - figure.value).collect())
            .array_minus(figures.iter().map(|(_, figure)| figure.value - figure.low).collect());
        let (x, y): (Vec<_>, Vec<_>) =
            figures.into_iter().map(|(label, figure)| (label, figure.value)).unzip();
        let bar: Box<dyn Trace> =
            Bar::new(x, y).name(format!("{} {value}", last.name)).error_y(errors);
        bar
    });
    let layout =
        Layout::new().bar_mode(BarMode::Group).y_axis(Axis::new().title(found.unit.clone()));
    let caption = format!("{} at every combination.", found.title);
    Some(Chart::new(&found.title, caption, bars.collect(), layout))
}

fn table(grid: &Grid) -> Table {
    let shown: Vec<&'static str> = FIGURES
        .into_iter()
        .filter(|name| grid.cells.iter().any(|cell| cell.figure(name).is_some()))
        .collect();
    let columns: Vec<&'static str> = [""].into_iter().chain(shown.iter().copied()).collect();
    let mut table = Table::of_numbers("Medians and ranges", &columns);
    for cell in &grid.cells {
        let names = grid.axes.iter().zip(&cell.values);
        let head: Vec<String> =
            names.map(|(axis, value)| format!("{} {value}", axis.name)).collect();
        let text = |name: &&'static str| {
            cell.figure(name).map_or("–".to_owned(), |figure| {
                format!("{}{}", format::number(figure.value, &figure.unit), spread(figure))
            })
        };
        let mut by: Vec<String> =
            cell.figures.iter().flat_map(|figure| figure.condemned_by.clone()).collect();
        by.sort();
        by.dedup();
        table.judged_row(head.join(", "), shown.iter().map(text).collect(), &by);
    }
    table
}
