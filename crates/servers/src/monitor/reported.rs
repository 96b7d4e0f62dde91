//! Statements whose text was already reported: each is reported once.

use std::collections::HashSet;

use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::STATEMENT_TEXT;
use blockstone_base::text::one_line;

use super::text::TEXT_CHARACTERS;
use super::values::row;

/// Maximum number of statements remembered; beyond it, all are reported again.
const REPORTED_MAX: usize = 50_000;

/// Statements by identity.
#[derive(Debug, Default)]
pub struct Reported(HashSet<String>);

impl Reported {
    /// Appends the text of statement `id`, unless it was reported before.
    pub fn tell(&mut self, id: &str, text: &str, readings: &mut Vec<Reading>) {
        if self.0.len() > REPORTED_MAX {
            self.0.clear();
        }
        if !self.knows(id) {
            self.0.insert(id.to_owned());
            let said = Cell::Text(one_line(text, TEXT_CHARACTERS));
            readings.push(row(&STATEMENT_TEXT, id.to_owned(), |_| said.clone()));
        }
    }

    pub fn knows(&self, id: &str) -> bool {
        self.0.contains(id)
    }
}
