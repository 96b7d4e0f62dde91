//! A table as data; one template macro renders them all.

use std::borrow::Cow;

use serde::Serialize;

/// A captioned table. Its first column heads the rows.
#[derive(Serialize)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Column headings, with the unit where cells carry none.
    pub columns: Vec<Cow<'static, str>>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Whether all columns but the first hold numbers, which are aligned to the right.
    pub numeric: bool,
    /// Whether it starts folded: long tables do, and unfold in print.
    pub folded: bool,
}

/// One row.
#[derive(Serialize)]
pub struct Row {
    /// The first cell.
    pub head: String,
    /// The others.
    pub cells: Vec<String>,
    /// The rules that strike it through.
    pub condemned_by: Vec<String>,
}

impl Table {
    /// A table of numbers.
    pub fn of_numbers<T: Clone + Into<Cow<'static, str>>>(
        caption: impl Into<String>,
        columns: &[T],
    ) -> Self {
        Self {
            caption: caption.into(),
            columns: columns.iter().cloned().map(Into::into).collect(),
            rows: Vec::new(),
            numeric: true,
            folded: false,
        }
    }

    /// A table of texts.
    pub fn of_texts<T: Clone + Into<Cow<'static, str>>>(
        caption: impl Into<String>,
        columns: &[T],
    ) -> Self {
        Self { numeric: false, ..Self::of_numbers(caption, columns) }
    }

    /// The same table, folded at first.
    pub fn folded(self) -> Self {
        Self { folded: true, ..self }
    }

    /// Adds a row.
    pub fn row(&mut self, head: impl Into<String>, cells: Vec<String>) {
        self.rows.push(Row { head: head.into(), cells, condemned_by: Vec::new() });
    }
}
