//! Database traces and logs of single calls → where the response time went.
//!
//! [`Reader`] takes the bytes of a trace in pieces of any size and turns them into a [`Trace`], in
//! memory that does not grow with the file. Formats are modules with one line in [`registry`]. Data
//! that a format does not contain is absent, never zero. No I/O, no clock.
//!
//! ```
//! use blockstone_trace::{Options, Reader};
//!
//! let mut reader = Reader::new(Options::default());
//! reader.feed(b"# User@Host: a[a] @ h []\n# Query_time: 2.0  Lock_time: 0.5\nselect 7;\n")?;
//! let trace = reader.finish()?;
//! assert_eq!(trace.statements[0].text, "select ?");
//! assert_eq!(trace.statements[0].ns, 2e9);
//! # Ok::<(), blockstone_trace::TraceError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod disk_time;
mod error;
mod format;
mod instant;
mod lines;
mod model;
mod normal;
mod oracle;
mod postgres;
mod reader;
mod refused;
mod registry;
mod slow;
mod tally;
mod tkprof;
mod what_if;

pub use disk_time::{
    DiskTime, MemoryCost, disk_time, memory_cost, mib_per_second, own_disk_time, row_disk_time,
};
pub use error::TraceError;
pub use format::{Format, Limits, LogReader, Options};
pub use model::{
    By, Component, Histogram, Kind, RoundTrips, RowSource, Session, Spent, Statement,
    StatementPart, Trace,
};
pub use reader::{Reader, read};
pub use registry::{FORMATS, recognise};
pub use what_if::{Prediction, array_size, cache_hits, round_trip, single_block_reads};
