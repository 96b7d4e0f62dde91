//! What units of hardware can do, how many of them a need takes, and which ceiling binds.

use serde::Serialize;

/// What is needed of hardware, each with the averaging time and the percentile that it came from.
/// Stated by the user, or taken from a [`crate::need`]. What is unknown is `None` and checks no
/// ceiling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    pub reads_per_s: Option<f64>,
    pub writes_per_s: Option<f64>,
    pub read_bytes_per_s: Option<f64>,
    pub write_bytes_per_s: Option<f64>,
    pub redo_bytes_per_s: Option<f64>,
    pub commits_per_s: Option<f64>,
    pub size_bytes: Option<f64>,
    /// Busy cores of the source.
    pub cores: Option<f64>,
    pub memory_bytes: Option<f64>,
    pub sessions: Option<f64>,
}

/// One thing that the need is divided by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ceiling {
    pub name: String,
    pub need: f64,
    /// Of one unit, at the utilisation that is planned.
    pub unit_capacity: f64,
    pub units: u64,
    pub binding: bool,
    /// Units ÷ units of the binding one.
    pub slack: f64,
}
