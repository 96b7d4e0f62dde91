//! Activity of a host between two instants, as tables: rates, sizes, times and shares, derived from
//! the raw counters of a [`History`].
//!
//! A [`View`] turns an [`Interval`] into a [`Table`]; figures are derived from counters only in the
//! crate `figures`, so a replay shows to the last digit what was on the screen.
//!
//! This crate must not know the machine, the source of its rows, or how tables are drawn. A cell is
//! a number, a text, empty if nothing happened that it could describe, or missing with the reason.
//!
//! ```
//! use blockstone_base::column::Cell;
//! use blockstone_view::{History, registry};
//! # use blockstone_record::manifest::ProbeInfo;
//! # let probes: Vec<ProbeInfo> = serde_json::from_value(serde_json::json!([{
//! #   "probe": "network", "doc": "", "ticks": 0, "missed_ticks": 0, "columns": [
//! #   { "name": "received_bytes", "unit": "bytes", "kind": "counter", "source": "", "doc": "",
//! #     "unmeasured": null }] }])).unwrap();
//!
//! let mut history = History::new(probes);
//! history.push("network", 0, "eth0", vec![Cell::Value(1_000)]);
//! history.push("network", 2_000_000_000, "eth0", vec![Cell::Value(5_000)]);
//! let interval = history.interval(0, 2_000_000_000);
//! assert_eq!(interval.per_s("network", "eth0", "received_bytes"), Ok(2_000.0));
//! assert!(registry::ALL.iter().any(|view| view.name == "network"));
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod about;
pub mod compare;
mod document;
mod page;
mod reasons;
pub mod registry;
mod table;
mod views;

pub use blockstone_figures::{
    Bucket, Condition, ConditionError, Focus, History, Interval, Known, Latencies, Missing,
    OCTAVES, Sample, Timed, octave_bounds,
};
pub use document::{Objects, objects};
pub use page::views_page;
pub use reasons::reasons;
pub use table::{Heading, Measure, Shape, Table, Value, View};
pub use views::who::{VIEW as WHO, answer as who_answer};
