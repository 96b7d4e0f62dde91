//! A grid of runs on one screen: a line a combination.

use blockstone_judge::grid::{Cell, CellFigure, FIGURES, Grid};

use crate::format;
use crate::render::terminal::Style;
use crate::render::terminal::columns::{Columns, wrap};

/// Renders the grid.
pub fn render(grid: &Grid, style: &Style) -> String {
    let shown: Vec<&str> = FIGURES
        .into_iter()
        .filter(|name| grid.cells.iter().any(|cell| cell.figure(name).is_some()))
        .collect();
    let title = |name: &str| {
        let found = grid.cells.iter().find_map(|cell| cell.figure(name));
        found.map_or(String::new(), |figure| figure.title.clone())
    };
    let mut columns = Columns::new(2);
    let axes = grid.axes.iter().map(|axis| axis.name.clone());
    let heads = axes.chain(shown.iter().map(|name| title(name)));
    columns.numbers(heads.map(|head| style.bold(&head)).collect());
    for cell in &grid.cells {
        let values = cell.values.iter().cloned();
        columns.numbers(values.chain(shown.iter().map(|name| text(cell, name, style))).collect());
    }
    let mut lines = columns.lines();
    lines.push(String::new());
    let note = "medians of the repeats, with half of their range; struck through where a verdict \
                condemns it in any of them";
    lines.extend(wrap(note, style.width, 2, 2).iter().map(|line| style.dim(line)));
    for failed in grid.cells.iter().flat_map(|cell| &cell.failed) {
        let text = format!("! {failed}");
        lines.extend(wrap(&text, style.width, 0, 2).iter().map(|line| style.warning(line)));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn text(cell: &Cell, name: &str, style: &Style) -> String {
    let Some(figure) = cell.figure(name) else { return "–".to_owned() };
    let number = format::number(figure.value, &figure.unit);
    if figure.condemned_by.is_empty() {
        format!("{number}{}", spread(figure))
    } else {
        style.struck(&number)
    }
}

/// Half of the range of the repeats, as a share of the median.
pub(crate) fn spread(figure: &CellFigure) -> String {
    if figure.high > figure.low && figure.value > 0.0 {
        format!(" ±{}", format::percent((figure.high - figure.low) / 2.0 / figure.value))
    } else {
        String::new()
    }
}
