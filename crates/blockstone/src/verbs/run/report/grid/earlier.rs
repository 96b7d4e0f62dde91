//! The keys of the document of a grid in version 1. They will be removed with the next release.

use std::collections::BTreeMap;

use blockstone_judge::grid::{Cell, Grid};
use serde::Serialize;

/// JSON document of a grid.
#[derive(Serialize)]
pub struct GridDocument<'a> {
    grid: &'a Grid,
    /// The combinations again, with settings and figures by name.
    cells: Vec<NamedCell<'a>>,
}

/// A combination of settings.
#[derive(Serialize)]
struct NamedCell<'a> {
    /// Names of the varied settings with their values.
    settings: BTreeMap<&'a str, &'a str>,
    /// Medians of the runs that completed, by name; condemned figures are not included.
    summary: BTreeMap<&'static str, f64>,
}

impl<'a> GridDocument<'a> {
    pub fn of(grid: &'a Grid) -> Self {
        let settings = |cell: &'a Cell| {
            let pairs = grid.axes.iter().zip(&cell.values);
            pairs.map(|(axis, value)| (axis.name.as_str(), value.as_str())).collect()
        };
        let summary = |cell: &Cell| {
            let sound = cell.figures.iter().filter(|figure| figure.condemned_by.is_empty());
            sound.map(|figure| (figure.name, figure.value)).collect()
        };
        let named = |cell| NamedCell { settings: settings(cell), summary: summary(cell) };
        Self { grid, cells: grid.cells.iter().map(named).collect() }
    }
}
