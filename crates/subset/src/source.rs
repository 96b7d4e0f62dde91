//! Where rows come from.

use crate::catalogue::{Catalogue, When};

/// What is read of each row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    pub table: usize,
    pub keys: Vec<ScanKey>,
    /// Whether rows are asked if they match the condition that the source has for this table.
    pub filtered: bool,
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
    /// Whether it matches the condition; false where none was asked for.
    pub matches: bool,
}

pub trait Source {
    type Error;

    fn catalogue(&self) -> &Catalogue;

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
