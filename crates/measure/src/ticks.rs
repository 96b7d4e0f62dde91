//! The times at which everything is read.

use blockstone_base::clock::Clock;
use blockstone_base::units::Nanos;

/// Evenly spaced deadlines on the monotonic clock: a late tick does not delay the next.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    tick_ns: u64,
    deadline_ns: u64,
}

impl Ticks {
    pub fn start(clock: &dyn Clock, tick: Nanos) -> Self {
        let tick_ns = tick.get().max(1);
        Self { tick_ns, deadline_ns: clock.now_ns() + tick_ns }
    }

    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// Sleeps until the deadline, and sets the next one. Returns how many were missed.
    pub fn wait(&mut self, clock: &dyn Clock) -> u64 {
        clock.sleep_until_ns(self.deadline_ns);
        self.pass(clock)
    }

    /// Sets the next deadline after the current time. Returns how many were missed.
    pub fn pass(&mut self, clock: &dyn Clock) -> u64 {
        self.deadline_ns += self.tick_ns;
        let late_ns = clock.now_ns().checked_sub(self.deadline_ns);
        let missed = late_ns.map_or(0, |late_ns| late_ns / self.tick_ns + 1);
        self.deadline_ns += missed * self.tick_ns;
        missed
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::clock::ManualClock;

    use super::*;

    #[test]
    fn a_late_tick_delays_no_other_and_what_passed_is_counted() {
        let clock = ManualClock::default();
        let mut ticks = Ticks::start(&clock, Nanos(10));
        assert_eq!(ticks.wait(&clock), 0);
        assert_eq!((clock.now_ns(), ticks.deadline_ns()), (10, 20));
        clock.advance_to(45);
        assert_eq!(ticks.wait(&clock), 2, "those due at 30 and 40");
        assert_eq!(ticks.deadline_ns(), 50);
        assert_eq!(ticks.wait(&clock), 0);
        assert_eq!(clock.now_ns(), 50);
    }
}
