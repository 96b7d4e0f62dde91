//! Counters of all instances at one time.

use std::cmp::Ordering;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Counter {
    /// In bytes if the counter counts bytes.
    pub value: f64,
    /// The value as written in the file.
    pub given: f64,
    pub line: usize,
}

/// Counters by the normalised name of the statistic.
pub type CountersOf = BTreeMap<String, Counter>;

/// All counters at one time.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub instances: BTreeMap<String, CountersOf>,
}

/// Time of a snapshot, ordered by time.
#[derive(Clone, Debug)]
pub struct Time {
    /// Infinite for a snapshot labelled `before` or `after` instead of a time.
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
