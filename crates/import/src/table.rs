//! A table of a report, regardless of its format.

use std::borrow::Cow;

#[derive(Clone, Debug, Default)]
pub struct Table<'a> {
    /// Name of the table: in HTML its summary, in text the heading of its section.
    pub name: Cow<'a, str>,
    /// Names of its columns, with white space collapsed.
    pub head: Vec<String>,
    pub rows: Vec<Vec<Cow<'a, str>>>,
    /// Whether the table is complete.
    pub is_whole: bool,
    /// Number of characters of names in its first column; longer ones are cut.
    pub name_width: Option<usize>,
}

impl Table<'_> {
    /// Returns the first column with one of these names, ignoring case.
    pub fn column(&self, names: &[&str]) -> Option<usize> {
        let is_one = |head: &String| names.iter().any(|name| name.eq_ignore_ascii_case(head));
        self.head.iter().position(is_one)
    }

    /// Returns the columns with this name.
    pub fn columns(&self, name: &str) -> Vec<usize> {
        let heads = self.head.iter().enumerate();
        heads.filter(|(_, head)| name.eq_ignore_ascii_case(head)).map(|(index, _)| index).collect()
    }

    pub fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.column(&[name]).is_some())
    }
}

/// Returns a cell of a row; empty if there is none.
pub fn cell<'t>(row: &'t [Cow<'_, str>], column: Option<usize>) -> &'t str {
    column.and_then(|index| row.get(index)).map_or("", |cell| cell.trim())
}

/// Collapses white space to single spaces.
pub fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
