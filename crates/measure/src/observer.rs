//! Reports of a measurement to its observer.

use blockstone_base::units::Nanos;
use serde::Serialize;

/// Follows a measurement. Every method has a default that does nothing.
pub trait Observer {
    fn phase(&mut self, _label: &str) {}

    fn tick(&mut self, _live: &Live<'_>) {}

    fn note(&mut self, _text: &str) {}

    /// Returns the name of the signal that requested an early end, if there was one.
    fn interrupted(&self) -> Option<&'static str> {
        None
    }
}

/// Momentary state for a progress line, never a result.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a> {
    pub label: &'a str,
    /// Rates per second since the last tick; empty before anything happened.
    pub rates: &'a [Rate],
    /// Time since the recording began.
    pub elapsed: Nanos,
    /// Longest time that is left.
    pub left: Nanos,
    /// Whether `left` is not a bound but an estimate from the rate so far.
    pub is_estimate: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    pub value: f64,
    /// Unit of the rate: `IOPS`, `MB/s`, `commits/s`.
    pub unit: &'static str,
}
