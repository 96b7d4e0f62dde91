//! A table of a report, whichever way it is written.

use std::borrow::Cow;

#[derive(Clone, Debug, Default)]
pub struct Table<'a> {
    /// What it is called: in HTML its summary, in text the heading of its section.
    pub name: Cow<'a, str>,
    /// The names of its columns, white space made one blank.
    pub head: Vec<String>,
    pub rows: Vec<Vec<Cow<'a, str>>>,
    /// Whether its end was seen.
    pub is_whole: bool,
    /// Characters that a name in its first column can have; longer ones are cut.
    pub name_width: Option<usize>,
}

impl Table<'_> {
    /// The first column with one of these names, whatever their case.
    pub fn column(&self, names: &[&str]) -> Option<usize> {
        let is_one = |head: &String| names.iter().any(|name| name.eq_ignore_ascii_case(head));
        self.head.iter().position(is_one)
    }

    /// The columns with this name.
    pub fn columns(&self, name: &str) -> Vec<usize> {
        let heads = self.head.iter().enumerate();
        heads.filter(|(_, head)| name.eq_ignore_ascii_case(head)).map(|(index, _)| index).collect()
    }

    pub fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.column(&[name]).is_some())
    }
}

/// A cell of a row; empty where there is none.
pub fn cell<'t>(row: &'t [Cow<'_, str>], column: Option<usize>) -> &'t str {
    column.and_then(|index| row.get(index)).map_or("", |cell| cell.trim())
}

/// White space made one blank.
pub fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
