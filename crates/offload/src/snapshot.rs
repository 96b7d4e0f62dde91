//! Counters of all instances at one time.

use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Counter {
    /// Bytes where it counts bytes.
    pub value: f64,
    pub line: usize,
}

/// By the normal name of the statistic.
pub type CountersOf = BTreeMap<String, Counter>;

/// All values of one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub time: Time,
    pub instances: BTreeMap<String, CountersOf>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Time {
    /// Infinite where it was not timed.
    pub seconds: f64,
    pub is_timed: bool,
    pub text: String,
}
