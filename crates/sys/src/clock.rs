//! The machine's monotonic clock, and waiting on it.

use std::num::NonZeroU64;

use blockstone_base::clock::{Clock, ClockOffsets};
use rustix::thread::ClockId as SleepClock;
use rustix::time::{ClockId, Timespec};

/// `CLOCK_MONOTONIC`, read through the vDSO: no system call, tens of nanoseconds per read. All
/// instances share one origin (boot), so timestamps of different threads are comparable.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        sleep_until_ns(deadline_ns);
    }

    fn offsets(&self) -> Option<ClockOffsets> {
        let ahead = |clock| ahead_ns(clock);
        let (realtime_ns, boottime_ns) = (ahead(ClockId::Realtime), ahead(ClockId::Boottime));
        Some(ClockOffsets { realtime_ns, boottime_ns })
    }
}

/// Returns the nanoseconds since boot on `CLOCK_MONOTONIC`.
#[inline]
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns how far the wall clock may be from UTC according to the kernel's own account, in
/// nanoseconds (`maxerror` of adjtimex(2)); `None` if nothing synchronises it, or if whatever does
/// tells the kernel nothing: systemd-timesyncd sets the error to 0 at each adjustment.
pub fn utc_bound_ns() -> Option<u64> {
    // SAFETY: `timex` is plain data, for which zeros are valid; without modes nothing is set.
    let (state, timex) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&raw mut timex), timex)
    };
    let is_synchronised = state >= 0 && timex.status & libc::STA_UNSYNC == 0;
    let bound_us = u64::try_from(timex.maxerror).ok().filter(|us| is_synchronised && *us > 0)?;
    bound_us.checked_mul(1_000)
}

/// Returns by how many nanoseconds `clock` is ahead of the monotonic clock. Takes several readings,
/// each between two of the monotonic clock, and uses the one whose pair is closest together,
/// because this thread may be preempted during any of them.
fn ahead_ns(clock: ClockId) -> i64 {
    let read = || {
        let before_ns = now_ns();
        let now = rustix::time::clock_gettime(clock);
        let after_ns = now_ns();
        let middle_ns = before_ns + (after_ns - before_ns) / 2;
        let ns = now.tv_sec * 1_000_000_000 + now.tv_nsec;
        (after_ns - before_ns, ns - middle_ns as i64)
    };
    (0..5).map(|_| read()).min().map_or(0, |(_, ahead_ns)| ahead_ns)
}

/// Sleeps until the clock shows `deadline_ns`; returns immediately if that has passed.
pub fn sleep_until_ns(deadline_ns: u64) {
    let deadline = Timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as _,
        tv_nsec: (deadline_ns % 1_000_000_000) as _,
    };
    while rustix::thread::clock_nanosleep_absolute(SleepClock::Monotonic, &deadline)
        == Err(rustix::io::Errno::INTR)
    {}
}

/// Asks the kernel to wake this thread at its deadlines instead of up to 50 µs later, the default
/// timer slack. If the kernel refuses, the default remains, and generator lag shows it.
pub fn sharpen_timers() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_clocks_is_that_of_their_readings() {
        let offsets = MonotonicClock.offsets().unwrap();
        let boot = rustix::time::clock_gettime(ClockId::Boottime);
        let boot_ns = boot.tv_sec * 1_000_000_000 + boot.tv_nsec;
        let late_ns = now_ns() as i64 + offsets.boottime_ns - boot_ns;
        assert!((-1_000_000..60_000_000_000).contains(&late_ns), "{late_ns}");
        assert!(offsets.realtime_ns > offsets.boottime_ns, "the epoch was before the boot");
    }

    #[test]
    fn sleeping_ends_at_the_deadline_and_not_before() {
        let deadline_ns = now_ns() + 2_000_000;
        sleep_until_ns(deadline_ns);
        assert!(MonotonicClock.now_ns() >= deadline_ns);
        sleep_until_ns(0);
    }
}
