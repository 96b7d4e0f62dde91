//! What many reports say of one database.

use crate::report::{Database, Interval, Report};

/// The intervals of one database, by instance and time; no two of an instance overlap.
#[derive(Clone, Debug, Default)]
pub struct Series {
    pub database: Database,
    pub intervals: Vec<Interval>,
    pub skipped: Vec<Skipped>,
}

/// An interval that was not taken, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Skipped {
    /// Index of the report.
    pub report: usize,
    pub why: String,
}

/// Sorts the intervals of reports, in any order, into one series a database: each interval once.
pub fn series(reports: &[Report]) -> Vec<Series> {
    let _ = reports;
    Vec::new()
}
