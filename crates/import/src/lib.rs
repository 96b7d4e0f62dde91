//! Reads what databases and other tools keep of a load: AWR and Statspack reports, AWR-Miner, CSV.
//!
//! A [`Report`] is one file as it was read: who, when, and totals by instance. A [`Series`] is what
//! many reports say of one database together: sorted, each interval once, gaps marked. Nothing here
//! does I/O; names, SQL text and hosts are kept only if the caller asks for them.

mod report;
mod series;

pub use report::{
    Advice, Database, Instance, Interval, Kind, Report, Section, Statement, Totals,
};
pub use series::{Series, Skipped, series};

/// Why a file is not read.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ImportError {
    /// A report of a known kind that says nothing of a load.
    #[error("{kind} says nothing of a load over time\nhint: {hint}")]
    NoLoad { kind: &'static str, hint: &'static str },
    #[error("its format is unknown")]
    Unknown,
    #[error("line {line}: {what}")]
    Damaged { line: usize, what: String },
}
