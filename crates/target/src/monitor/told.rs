//! Statements whose text was told: it is told once.

use std::collections::HashSet;

/// More statements than these are not remembered, but told again.
const TOLD_MAX: usize = 50_000;

/// The statements, by their identities.
#[derive(Debug, Default)]
pub struct Told(HashSet<String>);

impl Told {
    /// Whether the text of statement `id` was not told yet; from now on it was.
    pub fn is_new(&mut self, id: &str) -> bool {
        if self.0.len() > TOLD_MAX {
            self.0.clear();
        }
        !self.knows(id) && self.0.insert(id.to_owned())
    }

    /// Whether the text of statement `id` was told.
    pub fn knows(&self, id: &str) -> bool {
        self.0.contains(id)
    }
}
