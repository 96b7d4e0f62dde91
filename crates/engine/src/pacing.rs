//! When operations are due. An open loop follows a schedule that the device cannot slow down: it
//! is a generator of instants, not a queue, so that a device that falls behind by a million
//! operations costs no memory, and every one of them is still submitted, late, and timed from the
//! instant it was due.

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
    /// Worker `index` of `workers`' share of an open loop that starts at `start_ns`; none for a
    /// closed loop. With constant gaps the workers take turns, so that all together keep the
    /// rate evenly; Poisson processes add up to one.
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

    /// How many operations are due by `now_ns` and were not taken.
    pub fn overdue(mut self, now_ns: u64) -> u64 {
        let mut count = 0;
        while self.next_ns() <= now_ns {
            self.take();
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(schedule.overdue(500 + 1_000_000), 1000);
        assert!(Schedule::new(Pacing::Closed, 0, 1, 0, 0).is_none());
    }
}
