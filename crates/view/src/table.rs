//! A view: how a table is made of an interval.

use std::borrow::Cow;

use blockstone_base::database::SESSION;
use blockstone_base::table::{self, Row};
pub use blockstone_base::table::{
    Heading, Measure, Merge, Shape, Table, Value, column, count, flow, level, mean_of, share,
    share_of, text, time, total, unmerged,
};
use blockstone_figures::Interval;

/// A way to look at an interval: one table.
#[derive(Debug)]
pub struct View {
    /// Its name in commands and documents.
    pub name: &'static str,
    /// The heading above it.
    pub title: &'static str,
    /// What it shows, in one sentence.
    pub doc: &'static str,
    /// The probe without which there is nothing to show.
    pub probe: &'static str,
    /// How it is best drawn.
    pub shape: Shape,
    /// Its columns. The leading text columns name a row.
    pub columns: &'static [Heading],
    /// Makes its rows, each with a value for each column.
    pub rows: fn(&Interval<'_>) -> Vec<Vec<Value>>,
}

impl View {
    /// The table of an interval; none when its probe was not there.
    pub fn table(&self, interval: &Interval<'_>) -> Option<Table> {
        interval.has(self.probe).then(|| Table {
            about: self.doc.into(),
            shape: self.shape,
            rows: (self.rows)(interval).into_iter().map(Row::from).collect(),
            ..Table::new(self.name, self.title, Cow::Borrowed(self.columns))
        })
    }

    /// Whether it shows samples of sessions, and so follows a [`Focus`](crate::Focus).
    pub fn is_sampled(&self) -> bool {
        self.probe == SESSION.probe
    }

    /// The index of the column with this key.
    pub fn column(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.key == key)
    }

    /// What names a row: its texts before the first number.
    pub fn name_of(&self, row: &[Value]) -> String {
        table::name_of(self.columns, row)
    }
}

/// Rows sorted by a column: numbers descending, texts alphabetically, missing cells last.
pub(crate) fn sorted(mut rows: Vec<Vec<Value>>, column: usize) -> Vec<Vec<Value>> {
    rows.sort_by(|a, b| table::order(&a[column], &b[column]));
    rows
}
