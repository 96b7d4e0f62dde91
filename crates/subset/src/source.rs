//! Where rows come from.

use crate::catalogue::{Catalogue, When};
use crate::hash::Lot;
use crate::memory::MemoryError;

/// What is read of each row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    pub table: usize,
    pub keys: Vec<ScanKey>,
    /// Whether rows are asked if they match the condition that the source has for this table.
    pub filtered: bool,
    /// The lot of which rows draw, where seeds are a share of them and the source
    /// [draws](Source::draws).
    pub lot: Option<Lot>,
    /// Rows that do not win, or do not match the condition, may be left out.
    pub seeds_only: bool,
}

/// Columns of the table whose values are handed over as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanKey {
    /// Empty: the whole row.
    pub columns: Vec<usize>,
    /// The table and columns with whose values these are compared: equal values have equal bytes,
    /// whatever the types of the two sides are.
    pub like: (usize, Vec<usize>),
    /// A row for which this does not hold has no value.
    pub when: Option<When>,
}

/// A row of a scan.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Where the row lies: unique in its table as long as the source is open.
    pub locator: u64,
    /// The value of each key that was asked for; none where one of its columns is NULL.
    pub keys: &'a [Option<&'a [u8]>],
    /// What it drew, where the source draws.
    pub drawn: Option<u64>,
    /// Whether it matches the condition; false where none was asked for.
    pub matches: bool,
}

pub trait Source {
    type Error: From<MemoryError>;

    fn catalogue(&self) -> &Catalogue;

    /// Whether rows have drawn when they are handed over. Each row then draws the same number
    /// in every database that has it.
    fn draws(&self) -> bool {
        false
    }

    /// How many rows a table has.
    fn count(&mut self, table: usize) -> Result<u64, Self::Error> {
        let mut rows = 0;
        self.scan(&Scan { table, ..Scan::default() }, &mut |_| rows += 1)?;
        Ok(rows)
    }

    /// Hands over all rows of a table.
    fn scan(&mut self, scan: &Scan, each: &mut dyn FnMut(Row<'_>)) -> Result<(), Self::Error>;

    /// Hands over the rows whose key, the one at position `by` of `scan`, has one of `values`.
    fn fetch(
        &mut self,
        scan: &Scan,
        by: usize,
        values: &[Box<[u8]>],
        each: &mut dyn FnMut(Row<'_>),
    ) -> Result<(), Self::Error>;
}
