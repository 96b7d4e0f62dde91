//! A clock and waiting on it, as a trait, so that a test can control time.

use std::cell::Cell;
use std::rc::Rc;

/// A monotonic clock. Implemented by the system's `CLOCK_MONOTONIC` in `sys` and by
/// [`ManualClock`] here.
pub trait Clock {
    /// Returns the nanoseconds since an arbitrary fixed origin; never goes back.
    fn now_ns(&self) -> u64;

    /// Sleeps until the clock shows `deadline_ns`; returns immediately if that has passed.
    fn sleep_until_ns(&self, deadline_ns: u64);

    /// Returns how far other clocks of the machine are ahead of this one, if there are others.
    fn offsets(&self) -> Option<ClockOffsets> {
        None
    }
}

/// Offsets by which clocks are ahead of the monotonic one. The kernel corrects the rates of all of
/// them alike, so these offsets change only when a clock is set or the machine was suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffsets {
    /// The wall clock: changes when it is set, and by the length of a suspension.
    pub realtime_ns: i64,
    /// The clock that counts suspensions: changes by their length.
    pub boottime_ns: i64,
}

/// A clock that is set by hand. Clones share the same time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Rc<Cell<u64>>);

impl ManualClock {
    /// Moves the clock forward to `now_ns`; earlier times leave it where it is.
    pub fn advance_to(&self, now_ns: u64) {
        self.0.set(self.0.get().max(now_ns));
    }
}

impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        self.advance_to(deadline_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_time_never_goes_back() {
        let clock = ManualClock::default();
        clock.advance_to(10);
        clock.clone().advance_to(5);
        assert_eq!(clock.now_ns(), 10);
        clock.sleep_until_ns(12);
        assert_eq!(clock.now_ns(), 12);
    }
}
