//! Limits the rate of expensive queries.

use std::time::{Duration, Instant};

/// A query takes at most this fraction of the time: 1 ÷ 100.
const SHARE: u32 = 100;

/// The first queries are not delayed: before the first tick, at it, and at the next, so that a
/// short watch has values to compare.
const AT_ONCE: u8 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    due: Option<Instant>,
    done: u8,
}

impl Pace {
    pub fn is_due(self) -> bool {
        self.done < AT_ONCE || self.due.is_none_or(|due| Instant::now() >= due)
    }

    /// Records that a query started at `started` has finished.
    pub fn done(&mut self, started: Instant) {
        let took = started.elapsed().max(Duration::from_millis(1));
        self.due = Some(started + took * SHARE);
        self.done = self.done.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_is_not_due_for_a_hundred_times_as_long() {
        let mut pace = Pace::default();
        for _ in 0..AT_ONCE {
            assert!(pace.is_due());
            pace.done(Instant::now().checked_sub(Duration::from_millis(50)).unwrap());
        }
        assert!(!pace.is_due());
        pace.done(Instant::now().checked_sub(Duration::from_millis(200)).unwrap());
        assert!(!pace.is_due(), "it took 200 ms");
    }
}
