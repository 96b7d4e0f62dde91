//! When operations are due, and waking up in time for them. An open loop follows a schedule that
//! the device cannot slow down. The schedule generates due times and is not a queue, so a device
//! that falls behind by a million operations costs no memory, and each of them is still submitted,
//! late, and timed from when it was due.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use blockstone_base::dist::Distribution;
use blockstone_base::load::Pacing;
use blockstone_base::rng::Rng;

#[derive(Clone, Debug)]
pub struct Schedule {
    start_ns: u64,
    next_ns: f64,
    gap: Distribution,
    rng: Rng,
}

impl Schedule {
    /// Returns the share of worker `index` of `workers` in an open loop that starts at `start_ns`;
    /// `None` for a closed loop. With constant gaps the workers take turns, so together they keep
    /// the rate evenly; Poisson processes add up to one.
    pub fn new(pacing: Pacing, index: u32, workers: u32, seed: u64, start_ns: u64) -> Option<Self> {
        let Pacing::Open { rate_per_s, poisson } = pacing else { return None };
        let mut rng = Rng::new(seed, (1 << 32) | u64::from(index));
        let gap_ns = 1e9 / rate_per_s * f64::from(workers);
        let (gap, next_ns) = if poisson {
            let gap = Distribution::Exponential { mean_ns: gap_ns };
            let first_ns = gap.sample_ns(&mut rng);
            (gap, first_ns)
        } else {
            let turn = f64::from(index) / f64::from(workers);
            (Distribution::Constant { ns: gap_ns }, gap_ns * turn)
        };
        Some(Self { start_ns, next_ns, gap, rng })
    }

    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.start_ns + self.next_ns as u64
    }

    /// Takes the next operation and returns when it was due.
    #[inline]
    pub fn take(&mut self) -> u64 {
        let due_ns = self.next_ns();
        self.next_ns += self.gap.sample_ns(&mut self.rng);
        due_ns
    }

    /// Returns the due times, up to `now_ns`, of the operations that were not taken.
    pub fn overdue(mut self, now_ns: u64) -> impl Iterator<Item = u64> {
        std::iter::from_fn(move || (self.next_ns() <= now_ns).then(|| self.take()))
    }
}

/// Wakes a thread in time. A sleep ends tens of microseconds late, however exact the timer: the
/// processor has to leave its idle state and the scheduler has to run. As latency counts from the
/// intended start, this delay would be charged to the device. So the thread wakes early, by as much
/// as its sleeps tend to be late, and spins for the rest.
///
/// At most half of the machine's processors spin at a time, for at most [`LEAD_MAX_NS`] each; any
/// further thread sleeps to the end and is late. The device, the database and the kernel keep the
/// other half, and on a machine with one processor no thread spins. The time spent spinning is
/// counted.
#[derive(Debug, Default)]
pub struct Alarm {
    lead_ns: u64,
    spun_ns: u64,
}

/// Longest spin.
pub const LEAD_MAX_NS: u64 = 200_000;

/// Number of threads of this process that are spinning.
static SPINNING: AtomicUsize = AtomicUsize::new(0);

impl Alarm {
    /// Returns when to wake from the sleep for an operation that is due at `due_ns`.
    #[inline]
    pub fn wake_ns(&self, due_ns: u64) -> u64 {
        due_ns.saturating_sub(self.lead_ns)
    }

    /// Learns from a sleep until `wake_ns` that ended at `now_ns`. The lead rises 16 times as fast
    /// as it falls, so it settles above 16 of 17 sleeps (stochastic approximation of a quantile;
    /// Robbins and Monro 1951). A sleep that ended later than the longest spin is ignored: another
    /// thread had the processor.
    pub fn woke(&mut self, wake_ns: u64, now_ns: u64) {
        let late_ns = now_ns.saturating_sub(wake_ns);
        if late_ns > LEAD_MAX_NS {
            return;
        }
        self.lead_ns = if self.lead_ns == 0 {
            late_ns
        } else if late_ns > self.lead_ns {
            late_ns.min(self.lead_ns + self.lead_ns / 8 + 1)
        } else {
            late_ns.max(self.lead_ns - self.lead_ns / 128)
        };
    }

    /// Spins from `from_ns` until `due_ns`, or not at all if too many other threads are spinning.
    /// `look` returns the time, or `None` to end the spin. Returns the current time.
    pub fn spin_until(
        &mut self,
        due_ns: u64,
        from_ns: u64,
        mut look: impl FnMut() -> Option<u64>,
    ) -> u64 {
        static MOST: OnceLock<usize> = OnceLock::new();
        let most =
            *MOST.get_or_init(|| thread::available_parallelism().map_or(0, |all| all.get() / 2));
        let mut now_ns = from_ns;
        if SPINNING.fetch_add(1, Ordering::Relaxed) < most {
            while now_ns < due_ns && now_ns - from_ns <= LEAD_MAX_NS {
                std::hint::spin_loop();
                let Some(seen_ns) = look() else { break };
                now_ns = seen_ns;
            }
        }
        SPINNING.fetch_sub(1, Ordering::Relaxed);
        self.spun_ns += now_ns - from_ns;
        now_ns
    }

    /// Returns the time spent spinning since the last call.
    pub fn take_spun_ns(&mut self) -> u64 {
        std::mem::take(&mut self.spun_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use blockstone_base::rng::Rng;

    use super::*;

    /// Returns how late the median and the 90th percentile of 2,000 operations start when each
    /// sleep ends late by what `late_ns` returns, and the spin time per operation.
    fn lateness(mut late_ns: impl FnMut(&mut Rng) -> u64) -> (u64, u64, u64) {
        const GAP_NS: u64 = 1_000_000;
        let (mut alarm, mut rng) = (Alarm::default(), Rng::new(3, 0));
        let now_ns = Cell::new(0);
        let mut late: Vec<u64> = (1..=2000)
            .map(|number| {
                let due_ns = number * GAP_NS;
                let wake_ns = alarm.wake_ns(due_ns);
                now_ns.set(wake_ns + late_ns(&mut rng));
                alarm.woke(wake_ns, now_ns.get());
                let look = || {
                    now_ns.set(now_ns.get() + 25);
                    Some(now_ns.get())
                };
                alarm.spin_until(due_ns, now_ns.get(), look) - due_ns
            })
            .collect();
        late.sort_unstable();
        (late[1000], late[1800], alarm.take_spun_ns() / 2000)
    }

    #[test]
    fn an_alarm_learns_how_late_sleeps_end_and_spins_no_longer_than_needed() {
        if thread::available_parallelism().map_or(1, usize::from) < 2 {
            return;
        }
        // As measured on a virtual machine: 50 to 90 µs, and occasionally a millisecond.
        let (median, p90, spun) = lateness(|rng| match rng.below(50) {
            0 => 1_000_000,
            _ => 50_000 + rng.below(40_000),
        });
        assert!(median < 100 && p90 < 5_000, "median {median} ns, 90 % {p90} ns late");
        assert!(spun < 40_000, "{spun} ns an operation");
        let (median, _, spun) = lateness(|_| 3_000);
        assert!(median < 100 && spun < 500, "median {median} ns late, {spun} ns spun");
        // On a virtual clock no sleep is late, and a spin would last forever.
        assert_eq!(lateness(|_| 0).2, 0);
    }

    fn instants(poisson: bool, workers: u32) -> Vec<u64> {
        let pacing = Pacing::Open { rate_per_s: 1000.0, poisson };
        let mut all: Vec<u64> = (0..workers)
            .flat_map(|index| {
                let mut schedule = Schedule::new(pacing, index, workers, 3, 0).unwrap();
                std::iter::from_fn(move || Some(schedule.take()))
                    .take_while(|&due_ns| due_ns < 10_000_000_000)
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn constant_gaps_are_kept_over_all_workers() {
        let all = instants(false, 4);
        assert_eq!(all.len(), 10_000);
        assert!(all.windows(2).all(|w| w[1] - w[0] == 1_000_000));
    }

    #[test]
    fn poisson_gaps_have_their_mean_and_spread_over_all_workers() {
        let all = instants(true, 4);
        let gaps: Vec<f64> = all.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.03, "mean gap {mean} ns");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "an exponential's spread is its mean");
    }

    #[test]
    fn a_backlog_is_counted_not_stored() {
        let pacing = Pacing::Open { rate_per_s: 1e6, poisson: false };
        let mut schedule = Schedule::new(pacing, 0, 1, 0, 500).unwrap();
        assert_eq!(schedule.take(), 500);
        assert_eq!(schedule.overdue(500 + 1_000_000).count(), 1000);
        assert!(Schedule::new(Pacing::Closed, 0, 1, 0, 0).is_none());
    }
}
