//! Bars and cells as elements whose colours are classes of the style sheet.

use serde::Serialize;

use super::chart::color;
use crate::format;
use crate::picture;

#[derive(Serialize)]
pub struct BarShape {
    label: String,
    color: u8,
    percent: String,
    value: String,
    note: String,
}

#[derive(Serialize)]
pub struct CellShapes {
    title: String,
    /// Empty if cells above have the same.
    legend: Vec<Swatch>,
    rows: Vec<Row>,
    is_grid: bool,
    left_out: usize,
}

#[derive(Serialize)]
struct Swatch {
    name: String,
    color: u8,
}

#[derive(Serialize)]
struct Row {
    label: String,
    runs: Vec<Run>,
}

/// Adjacent cells of one kind, or one cell of a grid.
#[derive(Serialize)]
struct Run {
    kind: Option<Swatch>,
    cells: usize,
    text: String,
}

pub fn bars(bars: &picture::Bars) -> Vec<BarShape> {
    let bar = |bar: &picture::Bar| BarShape {
        label: bar.label.clone(),
        color: color(bar.color),
        percent: format!("{:.1}", bars.length(bar) * 100.0),
        value: format::quantity(bar.value, &bars.unit),
        note: bar.note.clone(),
    };
    bars.bars.iter().map(bar).collect()
}

pub fn cells(cells: &picture::Cells, has_legend: bool) -> CellShapes {
    let kind =
        |kind: &picture::CellKind| Swatch { name: kind.name.to_string(), color: color(kind.color) };
    let run = |run: &[picture::Cell]| Run {
        kind: cells.kind(&run[0]).map(kind),
        cells: run.len(),
        text: run[0].text.clone(),
    };
    let is_one_run = |a: &picture::Cell, b: &picture::Cell| !cells.is_grid && a.kind == b.kind;
    let row = |row: &picture::CellRow| Row {
        label: row.label.clone(),
        runs: row.cells.chunk_by(is_one_run).map(run).collect(),
    };
    CellShapes {
        title: cells.title.to_string(),
        legend: cells.kinds.iter().filter(|_| has_legend).map(kind).collect(),
        rows: cells.rows.iter().map(row).collect(),
        is_grid: cells.is_grid,
        left_out: cells.left_out,
    }
}
