//! The rows that make the sample.

use crate::hash::Lot;
use crate::numbers::Locators;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// By table of the catalogue.
    pub tables: Vec<TablePlan>,
    /// By key of the catalogue.
    pub keys: Vec<KeyPlan>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TablePlan {
    pub source_rows: u64,
    /// Rows that were chosen.
    pub seeds: u64,
    /// Rows that were added because a row references them, by key of the catalogue, largest first.
    pub needed: Vec<(usize, u64)>,
    pub rows: Rows,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    All,
    /// As many, and these are the rows that [win](crate::Lot::wins).
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
    /// Rows of the sample that reference another.
    pub references: u64,
    /// Whether rows that are referenced were not found in the source. Their number is known for the
    /// referenced key only, which several keys may share.
    pub missing: u64,
}

impl Plan {
    /// Of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(TablePlan::rows).sum()
    }
}

impl TablePlan {
    /// Of the rows of the source.
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
