//! The rows that make the sample.

use crate::hash::Lot;
use crate::numbers::Locators;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// One entry per table of the catalogue.
    pub tables: Vec<TablePlan>,
    /// One entry per key of the catalogue.
    pub keys: Vec<KeyPlan>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TablePlan {
    pub source_rows: u64,
    /// Rows chosen as seeds.
    pub seeds: u64,
    /// Rows added because another row references them, by key of the catalogue, in descending
    /// order.
    pub needed: Vec<(usize, u64)>,
    pub rows: Rows,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    All,
    /// The number of rows, which are those that [win](crate::Lot::wins) the lot.
    Winning(u64, Lot),
    At(Locators),
}

impl Default for Rows {
    fn default() -> Self {
        Self::At(Locators::default())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyPlan {
    /// Rows of the sample that reference another row.
    pub references: u64,
    /// Referenced values that were not found in the source. Their number is known only per
    /// referenced key, which several keys may share.
    pub missing: u64,
}

impl Plan {
    /// Returns this plan, of `followed` keys of a catalogue, as one of all `count` keys of it.
    #[must_use]
    pub(crate) fn of_keys(mut self, followed: &[usize], count: usize) -> Self {
        let mut keys = vec![KeyPlan::default(); count];
        for (&key, planned) in followed.iter().zip(&self.keys) {
            keys[key] = *planned;
        }
        self.keys = keys;
        for (key, _) in self.tables.iter_mut().flat_map(|table| &mut table.needed) {
            *key = followed[*key];
        }
        self
    }

    /// Returns the rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(TablePlan::rows).sum()
    }
}

impl TablePlan {
    /// Returns the share of the source's rows.
    pub fn share(&self) -> f64 {
        self.rows() as f64 / self.source_rows.max(1) as f64
    }

    pub fn rows(&self) -> u64 {
        match &self.rows {
            Rows::All => self.source_rows,
            Rows::Winning(rows, _) => *rows,
            Rows::At(rows) => rows.len(),
        }
    }
}
