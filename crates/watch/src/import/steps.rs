//! Reports of a tool, one after another: each covers the time since the report before it.

use blockstone_probe::{block, host};

use super::ledger::{Amount, IntervalRow, Ledger, Span};
use super::{Failure, Sink};

const SECOND_NS: f64 = 1e9;

pub struct Steps<'a, 's> {
    ledger: Ledger<'a, 's>,
    last_ns: Option<u64>,
    backwards: usize,
}

impl<'a, 's> Steps<'a, 's> {
    pub fn new(sink: &'a mut Sink<'s>) -> Self {
        Self { ledger: Ledger::new(sink), last_ns: None, backwards: 0 }
    }

    /// Starts over: the time until the next report is unknown.
    pub fn restart(&mut self) {
        self.last_ns = None;
    }

    /// Starts over at this instant, with which the next report begins.
    pub fn begin(&mut self, at_ns: u64) {
        let is_back = self.ledger.end_ns().is_some_and(|end_ns| at_ns < end_ns);
        self.last_ns = Some(at_ns).filter(|_| !is_back);
        self.backwards += usize::from(is_back);
    }

    /// Adds the report that ends at this instant. The first one only marks the start of the next.
    pub fn add(&mut self, at_ns: u64, rows: &[IntervalRow]) -> Result<(), Failure> {
        let end_ns = self.last_ns.or(self.ledger.end_ns());
        if end_ns.is_some_and(|end_ns| at_ns <= end_ns) {
            self.backwards += 1;
            return Ok(());
        }
        match self.last_ns.replace(at_ns) {
            // Rates are rounded, so what is left of a count belongs to the next step.
            Some(from_ns) => self.ledger.add(Span { from_ns, to_ns: at_ns, exact: false }, rows),
            None => Ok(()),
        }
    }

    /// Returns the end of the last report of this run.
    pub fn last_ns(&self) -> Option<u64> {
        self.last_ns
    }

    /// Returns the end of the last report that was added.
    pub fn end_ns(&self) -> Option<u64> {
        self.ledger.end_ns()
    }

    pub fn note(&self) -> Option<String> {
        let count = self.backwards;
        (count > 0).then(|| format!("its clock went back; reports skipped: {count}"))
    }
}

/// Parses a cell. One that is not a number, or negative, is unknown.
pub fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim().trim_matches('"');
    cell.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// Returns a level in `unit`; numbers that no counter can hold are unknown.
pub fn level(number: Option<f64>, unit: f64) -> Option<Amount> {
    let value = (number? * unit).round();
    (value < i64::MAX as f64).then_some(Amount::Level(value as u64))
}

/// Returns a rate in `unit`.
pub fn rate(number: Option<f64>, unit: f64) -> Option<Amount> {
    number.map(|number| Amount::PerSecond(number * unit))
}

/// Returns a percentage of the time of `cpus` processors. It is unknown if their number is, and if
/// there is more than all of it.
pub fn share(percent: Option<f64>, cpus: Option<u32>) -> Option<Amount> {
    let percent = percent.filter(|percent| *percent <= 101.0)?;
    Some(Amount::PerSecond(percent / 100.0 * f64::from(cpus?) * SECOND_NS))
}

pub fn of_host() -> IntervalRow {
    IntervalRow::new(&host::SCHEMA, "")
}

/// Returns a row of all disks together.
pub fn together() -> IntervalRow {
    IntervalRow::new(&block::TOGETHER, "")
}

/// Names things that were not read, such as columns.
pub fn list(names: &[String]) -> String {
    const NAMED: usize = 12;
    let more = names.len().saturating_sub(NAMED);
    let some = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{some} and {more} more") } else { some }
}
