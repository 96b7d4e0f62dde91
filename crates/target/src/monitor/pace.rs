//! What takes long is done more rarely.

use std::time::{Duration, Instant};

/// At most one part in this many of the time is taken.
const SHARE: u32 = 100;

#[derive(Clone, Copy, Debug, Default)]
pub struct Pace(Option<Instant>);

impl Pace {
    pub fn is_due(self) -> bool {
        self.0.is_none_or(|due| Instant::now() >= due)
    }

    /// It was started at `started` and is done.
    pub fn done(&mut self, started: Instant) {
        let took = started.elapsed().max(Duration::from_millis(1));
        self.0 = Some(started + took * SHARE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_is_not_due_for_a_hundred_times_as_long() {
        let mut pace = Pace::default();
        assert!(pace.is_due());
        pace.done(Instant::now().checked_sub(Duration::from_millis(50)).unwrap());
        assert!(!pace.is_due());
        pace.done(Instant::now().checked_sub(Duration::from_millis(200)).unwrap());
        assert!(!pace.is_due(), "it took 200 ms");
    }
}
