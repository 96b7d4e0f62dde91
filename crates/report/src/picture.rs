//! Small pictures for all media that people read: bars, and rows of coloured cells.

use blockstone_base::table::Text;

use crate::chart::Color;

/// Labelled bars that begin at zero and share one scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    pub bars: Vec<Bar>,
    /// Unit of all values, as of a [`Card`](crate::Card).
    pub unit: Text,
    /// Value of a bar of full length.
    pub full: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Begins with blanks if it is a part of a bar above.
    pub label: String,
    pub value: f64,
    /// Remark after the value, such as a share.
    pub note: String,
    pub color: Color,
}

/// Rows of cells, each of which has the colour of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    /// Words before the legend.
    pub title: Text,
    pub kinds: Vec<CellKind>,
    pub rows: Vec<CellRow>,
    /// Whether each cell is drawn by itself; of strips, neighbours may be merged.
    pub is_grid: bool,
    /// Maximum number of rows on a screen.
    pub on_screen: usize,
    /// Number of rows that are not among `rows`.
    pub left_out: usize,
}

/// An entry of a legend.
#[derive(Clone, Debug, PartialEq)]
pub struct CellKind {
    pub name: Text,
    /// Character for a cell without text, if colours are off.
    pub mark: Text,
    pub color: Color,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CellRow {
    pub label: String,
    pub cells: Vec<Cell>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Index of its kind; `None` leaves a gap.
    pub kind: Option<usize>,
    pub text: String,
}

impl Bars {
    /// Creates bars of which the longest has full length.
    pub fn new(unit: impl Into<Text>, bars: Vec<Bar>) -> Self {
        let full = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        Self { bars, unit: unit.into(), full }
    }

    /// Returns the length of a bar from 0 to 1.
    pub(crate) fn length(&self, bar: &Bar) -> f64 {
        let length = bar.value / self.full;
        if length.is_finite() { length.clamp(0.0, 1.0) } else { 0.0 }
    }
}

impl Cells {
    pub(crate) fn kind(&self, cell: &Cell) -> Option<&CellKind> {
        self.kinds.get(cell.kind?)
    }
}

impl CellKind {
    pub fn new(name: impl Into<Text>, mark: impl Into<Text>, color: Color) -> Self {
        Self { name: name.into(), mark: mark.into(), color }
    }
}
