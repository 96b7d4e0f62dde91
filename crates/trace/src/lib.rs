//! Traces and logs that a database writes of single calls → where the response time went.
//!
//! [`read`] takes the bytes of a trace in any piece and makes a [`Trace`] of them, in memory that
//! does not grow with the file. Formats are modules with one line in [`registry`]. What a format
//! does not contain is absent, never zero. No I/O, no clock.

mod model;
mod registry;

pub use model::{
    By, Component, Histogram, Kind, RowSource, Session, Spent, Statement, StatementPart, Trace,
};
