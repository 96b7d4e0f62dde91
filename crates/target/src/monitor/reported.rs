//! Statements whose text was reported: it is reported once.

use std::collections::HashSet;

/// More statements than these are not remembered, but reported again.
const TOLD_MAX: usize = 50_000;

/// The statements, by their identities.
#[derive(Debug, Default)]
pub struct Reported(HashSet<String>);

impl Reported {
    /// Whether the text of statement `id` is new; marks it as reported.
    pub fn is_new(&mut self, id: &str) -> bool {
        if self.0.len() > TOLD_MAX {
            self.0.clear();
        }
        !self.knows(id) && self.0.insert(id.to_owned())
    }

    pub fn knows(&self, id: &str) -> bool {
        self.0.contains(id)
    }
}
