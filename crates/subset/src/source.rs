//! The source of rows.

use crate::catalogue::{Catalogue, When};
use crate::hash::Lot;
use crate::memory::MemoryError;

/// The values to read from each row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    pub table: usize,
    pub keys: Vec<ScanKey>,
    /// Whether to evaluate the source's condition for this table.
    pub filtered: bool,
    /// The lot that rows draw from, if seeds are a share of them and the source
    /// [draws](Source::draws).
    pub lot: Option<Lot>,
    /// Whether rows that do not win, or do not match the condition, may be omitted.
    pub seeds_only: bool,
}

/// Columns of the table whose values are supplied as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanKey {
    /// If empty, the whole row.
    pub columns: Vec<usize>,
    /// The table and columns with whose values these are compared: equal values have equal bytes,
    /// whatever the types of the two sides.
    pub like: (usize, Vec<usize>),
    /// A row that does not meet this condition has no value.
    pub when: Option<When>,
}

/// A row of a scan.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Identifies the row uniquely in its table as long as the source is open.
    pub locator: u64,
    /// The value of each requested key; `None` if one of its columns is NULL.
    pub keys: &'a [Option<&'a [u8]>],
    /// The number that it drew, if the source draws.
    pub drawn: Option<u64>,
    /// Whether it matches the condition; false if none was requested.
    pub matches: bool,
}

pub trait Source {
    type Error: From<MemoryError>;

    fn catalogue(&self) -> &Catalogue;

    /// Whether the source draws for rows. Each row then draws the same number in every database
    /// that contains it.
    fn draws(&self) -> bool {
        false
    }

    /// Returns the number of rows of a table.
    fn count(&mut self, table: usize) -> Result<u64, Self::Error> {
        let mut rows = 0;
        self.scan(&Scan { table, ..Scan::default() }, &mut |_| rows += 1)?;
        Ok(rows)
    }

    /// Passes all rows of a table to `each`.
    fn scan(&mut self, scan: &Scan, each: &mut dyn FnMut(Row<'_>)) -> Result<(), Self::Error>;

    /// Passes the rows whose key at position `by` of `scan` has one of `values` to `each`.
    fn fetch(
        &mut self,
        scan: &Scan,
        by: usize,
        values: &[Box<[u8]>],
        each: &mut dyn FnMut(Row<'_>),
    ) -> Result<(), Self::Error>;
}
