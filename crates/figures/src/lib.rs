//! Counters → figures: the only path from raw rows to the numbers that are shown, judged and
//! compared.
//!
//! A [`History`] holds what probes recorded. An [`Interval`] is a part of it, between two ticks or
//! between the edges of a phase's window, and says how far each counter moved in it ([`Known`]) or
//! why that is not known ([`Missing`]): off, not in this version, not permitted, unknown. Rates and
//! slopes carry the 95 % interval that their ticks support. A [`Focus`] narrows down samples of
//! sessions; [`Latencies`] say how many operations took how long. [`compare`] compares a figure of
//! two sets of recordings; [`simultaneous`] computes the interval of an estimate that was chosen
//! from several.
//!
//! Must not know: the machine, which figures exist, or who shows or judges them.
//!
//! ```
//! use blockstone_base::column::Cell;
//! use blockstone_figures::History;
//! # use blockstone_figures::ProbeInfo;
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
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod compare;
mod focus;
mod history;
mod rates;
mod sample;
pub mod simultaneous;
mod student;

pub use blockstone_base::table::{Known, Missing};
pub use blockstone_record::manifest::ProbeInfo;
pub use focus::{Condition, ConditionError, Focus};
pub use history::interval::charges::OVERCHARGED;
pub use history::interval::{Grown, Interval, ratio, sum};
pub use history::latencies::{Bucket, Latencies, OCTAVES, Timed, octave_bounds};
pub use history::part::RECENT_S;
pub use history::{History, WallClock};
pub use rates::{Track, rate, slope};
pub use sample::Sample;

/// Uses of processor time that the probes `host` and `cpu` count. They add up to all of it; in the
/// first five the processor is busy.
pub const CPU_USES: [&str; 8] = [
    "cpu_user_ns",
    "cpu_nice_ns",
    "cpu_system_ns",
    "cpu_irq_ns",
    "cpu_softirq_ns",
    "cpu_iowait_ns",
    "cpu_idle_ns",
    "cpu_steal_ns",
];
