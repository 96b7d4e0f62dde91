//! Counters of all instances at one time.

use std::cmp::Ordering;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Counter {
    /// Bytes where it counts bytes.
    pub value: f64,
    /// As it stands in the file.
    pub given: f64,
    pub line: usize,
}

/// By the normal name of the statistic.
pub type CountersOf = BTreeMap<String, Counter>;

/// All values of one time.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub instances: BTreeMap<String, CountersOf>,
}

/// When a snapshot was taken; in the order of time.
#[derive(Clone, Debug)]
pub struct Time {
    /// Infinite where it was not timed.
    pub seconds: f64,
    pub is_timed: bool,
    pub text: String,
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> Ordering {
        self.seconds.total_cmp(&other.seconds)
    }
}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Time {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Time {}
