//! What a measurement reports to its observer.

use blockstone_base::units::Nanos;
use serde::Serialize;

/// Follows a measurement. Every method has a default that does nothing.
pub trait Observer {
    fn phase(&mut self, _label: &str) {}

    fn tick(&mut self, _live: &Live<'_>) {}

    fn note(&mut self, _text: &str) {}

    /// Whether the run should end early, and the name of the signal that asked for it.
    fn interrupted(&self) -> Option<&'static str> {
        None
    }
}

/// The moment, for a progress line: never a result.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a> {
    pub label: &'a str,
    /// What happens a second, since the last tick; empty before anything did.
    pub rates: &'a [Rate],
    /// Time since the recording began.
    pub elapsed: Nanos,
    /// The longest that is still to come.
    pub left: Nanos,
    /// Whether this is no bound, because it follows from the rate until now.
    pub is_estimate: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    pub value: f64,
    /// Of what: `IOPS`, `MB/s`, `commits/s`.
    pub unit: &'static str,
}
