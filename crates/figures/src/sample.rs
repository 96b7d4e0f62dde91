//! One row of a probe, such as a sampled session.

use blockstone_base::column::Cell;
use blockstone_record::manifest::ColumnInfo;

/// A row within an interval, such as a sampled session.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    pub t_ns: u64,
    /// Instance of the row; `None` if only one was watched.
    pub instance: Option<&'a str>,
    pub object: &'a str,
    pub(crate) cells: &'a [Cell],
    pub(crate) columns: &'a [ColumnInfo],
}

impl<'a> Sample<'a> {
    /// Returns the text of a column, `None` if it was not measured.
    pub fn text(&self, column: &str) -> Option<&'a str> {
        match self.cell(column)? {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number of a column, `None` if it was not measured.
    pub fn number(&self, column: &str) -> Option<f64> {
        match self.cell(column)? {
            Cell::Value(value) => Some(*value as f64),
            _ => None,
        }
    }

    fn cell(&self, column: &str) -> Option<&'a Cell> {
        self.cells.get(self.columns.iter().position(|info| info.name == column)?)
    }
}
