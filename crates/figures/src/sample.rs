//! One row of a probe, such as a sampled session.

use blockstone_base::column::Cell;
use blockstone_record::manifest::ColumnInfo;

/// A row within an interval, as of a sampled session.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    pub t_ns: u64,
    /// The instance that it is of; none where only one was watched.
    pub instance: Option<&'a str>,
    pub object: &'a str,
    pub(crate) cells: &'a [Cell],
    pub(crate) columns: &'a [ColumnInfo],
}

impl<'a> Sample<'a> {
    /// The text of a column; none where it was not measured.
    pub fn text(&self, column: &str) -> Option<&'a str> {
        match self.cell(column)? {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number of a column; none where it was not measured.
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
