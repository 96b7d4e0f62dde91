//! Quantiles and their intervals.
//!
//! The interval of a quantile is that of the share of latencies below it, turned into ranks (R. S.
//! Woodruff, JASA 47, 1952). The variation of that share is estimated from the parts of a window: a
//! disk that is slow for a second makes all latencies of that second long, so a million of them say
//! far less than a million independent ones would.

use super::LatencyHistogram;
use crate::stats::{Estimate, half_width};

/// Occupied buckets as returned by [`LatencyHistogram::buckets`].
pub type Buckets = Vec<(u64, u64)>;

/// Two-sided 95 % point of the normal distribution.
const Z_95: f64 = 1.96;
/// Standard errors by which the correlation of neighbouring parts is assumed to be higher than
/// observed, for the highest quantiles: the few latencies beyond show little of it. Zero for the
/// median.
const DOUBT: f64 = 0.31;

/// Parts of a window as slow as its slowest that may have been missed by chance. Without them, 22 %
/// of 400 bounds were too low where the levels of 30 seconds vary by a factor of two; with one,
/// still 31 % of 300 where they vary by 2.7, with two 6 %.
const WORST_UNSEEN: f64 = 2.0;

/// Returns the least number of independent latencies that bound a quantile from above: with fewer,
/// the probability that all are below it is more than 2.5 %. 368 for p99, 3,688 for p99.9.
pub fn least_samples(quantile: f64) -> u64 {
    (0.025_f64.ln() / quantile.ln()).ceil() as u64
}

impl LatencyHistogram {
    /// Returns a quantile that these latencies would bound on both sides if they were independent;
    /// `None` if there are too few.
    pub fn bounded_quantile_ns(&self, quantile: f64) -> Option<u64> {
        (self.count() >= least_samples(quantile).max(1)).then(|| self.quantile_ns(quantile))
    }

    /// Returns the 95 % interval of a quantile, to the edges of its buckets. `parts` are the same
    /// latencies in consecutive parts of the window. A single part does not show how they vary: the
    /// interval is then open on both sides. If fewer independent latencies than [`least_samples`]
    /// would vary as much, a longer latency has to bound it, or it is open above.
    fn quantile_interval_ns(&self, quantile: f64, parts: &[&Buckets]) -> (f64, f64) {
        let n = self.count() as f64;
        let independent = independent_half_width(1.0 - quantile, n);
        let doubt = DOUBT * (2.0 * quantile - 1.0).max(0.0);
        // In a burst all latencies may be in one bucket: with it none is beyond, without it many.
        let limit_ns = self.quantile_ns(quantile);
        let below_ns = self.inner.lowest_equivalent(limit_ns).saturating_sub(1);
        let half = [limit_ns, below_ns]
            .map(|limit_ns| share_half_width(limit_ns, parts, doubt))
            .into_iter()
            .fold(independent, f64::max);
        if !half.is_finite() {
            return (0.0, f64::INFINITY);
        }
        // This many independent latencies would vary as much.
        let effective = n * (independent / half).powi(2);
        // The shares above the quantile are small and skewed: their square root varies evenly.
        let above = (1.0 - quantile).sqrt();
        let by = half / (2.0 * above);
        let low = (1.0 - (above + by).powi(2)).max(0.0);
        let low_ns = self.inner.lowest_equivalent(self.quantile_ns(low)) as f64;
        if effective < least_samples(quantile) as f64 {
            return (low_ns, self.bound_further_up_ns(quantile, parts, doubt));
        }
        let high = 1.0 - ((above - by).max(0.0).powi(2) - 1.0 / effective).max(0.0);
        (low_ns, self.quantile_ns(high) as f64)
    }

    /// Returns the least latency that bounds a quantile from above by its own share of latencies
    /// beyond it; infinite if there is none.
    ///
    /// In a disturbed second, many latencies are just beyond p99, few are ten times as long: the
    /// share beyond p99 may vary too much to say anything where that beyond a longer one does not.
    /// The share must leave room for [`WORST_UNSEEN`] more parts like the worst one. A latency that
    /// none exceeded bounds nothing, since its share does not show how it varies.
    fn bound_further_up_ns(&self, quantile: f64, parts: &[&Buckets], doubt: f64) -> f64 {
        let n = self.count() as f64;
        let quantile_ns = self.quantile_ns(quantile);
        let exceeded =
            |(latency_ns, beyond): &(u64, u64)| *latency_ns >= quantile_ns && *beyond > 0;
        let mut beyond = self.count();
        let candidates = self.buckets().map(|(latency_ns, count)| {
            beyond -= count;
            (latency_ns, beyond)
        });
        let candidates: Vec<(u64, u64)> = candidates.filter(exceeded).collect();
        let worst = parts.iter().map(|part| share_beyond(quantile_ns, part)).fold(0.0, f64::max);
        let unseen = WORST_UNSEEN * worst / parts.len() as f64;
        let is_too_low = |&(latency_ns, beyond): &(u64, u64)| {
            let share = beyond as f64 / n;
            let independent = independent_half_width(share, n);
            let half = share_half_width(latency_ns, parts, doubt).max(independent);
            let of_one = (half / independent).powi(2) / n;
            let most = (share.sqrt() + half / (2.0 * share.sqrt())).powi(2) + of_one;
            most + unseen > 1.0 - quantile
        };
        let found = candidates.get(candidates.partition_point(is_too_low));
        found.map_or(f64::INFINITY, |(latency_ns, _)| *latency_ns as f64)
    }

    /// Returns a quantile with its interval, over `duration_ns`.
    pub fn quantile(&self, quantile: f64, parts: &[&Buckets], duration_ns: u64) -> Estimate {
        let ends = self.quantile_interval_ns(quantile, parts);
        self.estimate(quantile, self.quantile_ns(quantile) as f64, ends, duration_ns)
    }

    /// Returns a lower bound if even independent latencies would be too few: only the lower end is
    /// known.
    fn estimate(
        &self,
        quantile: f64,
        value: f64,
        (low, high): (f64, f64),
        duration_ns: u64,
    ) -> Estimate {
        if self.bounded_quantile_ns(quantile).is_none() && low > 0.0 {
            return Estimate::at_least(value.min(low), self.count(), duration_ns);
        }
        let (low, high) = (value.min(low), value.max(high));
        Estimate { value, low, high, samples: self.count(), duration_ns }
    }

    /// Returns a quantile of these latencies and of `unfinished` operations, which are only known
    /// to have lasted at least as long as recorded there.
    ///
    /// Up to `in_flight` unfinished operations are treated as in the product-limit estimator
    /// (Kaplan and Meier 1958): those still running at the end of a window take as long as those
    /// that ended before. More than that are a growing queue, about which nothing is assumed: a
    /// quantile that they could move beyond its interval is a lower bound, as is one that no
    /// completed operation reaches.
    pub fn quantile_with(
        &self,
        (unfinished, in_flight): (&Self, u64),
        quantile: f64,
        parts: &[&Buckets],
        duration_ns: u64,
    ) -> Estimate {
        if unfinished.count() == 0 {
            return self.quantile(quantile, parts, duration_ns);
        }
        let mut all = self.clone();
        all.merge(unfinished);
        let ends = all.quantile_interval_ns(quantile, parts);
        let reached = if unfinished.count() <= in_flight {
            self.product_limit_ns(unfinished, quantile)
        } else {
            // All of them might last forever.
            let rank = quantile * all.count() as f64;
            let value_ns = (rank <= self.count() as f64)
                .then(|| self.quantile_ns(rank / self.count() as f64) as f64);
            value_ns.filter(|value| *value <= ends.1)
        };
        match reached {
            None => {
                let value = all.quantile_ns(quantile) as f64;
                Estimate::at_least(value, all.count(), duration_ns)
            }
            Some(value) => all.estimate(quantile, value, ends, duration_ns),
        }
    }

    /// Returns the quantile of the product-limit estimate; `None` if it does not reach that far.
    fn product_limit_ns(&self, unfinished: &Self, quantile: f64) -> Option<f64> {
        let mut cut = unfinished.buckets().peekable();
        let mut at_risk = (self.count() + unfinished.count()) as f64;
        let mut surviving = 1.0;
        for (latency_ns, count) in self.buckets() {
            while let Some((_, count)) = cut.next_if(|(cut_ns, _)| *cut_ns < latency_ns) {
                at_risk -= count as f64;
            }
            surviving *= 1.0 - count as f64 / at_risk;
            at_risk -= count as f64;
            // Rounding must not shift a quantile by a bucket.
            if 1.0 - surviving >= quantile - 1e-12 {
                return Some(latency_ns as f64);
            }
        }
        None
    }
}

/// Returns half the 95 % interval of a share of `n` independent latencies.
fn independent_half_width(share: f64, n: f64) -> f64 {
    Z_95 * (share * (1.0 - share) / n).sqrt()
}

/// Returns the share of latencies in this part that exceed `limit_ns`.
fn share_beyond(limit_ns: u64, part: &Buckets) -> f64 {
    let sum = |least_ns: u64| -> u64 {
        part.iter().filter(|(latency_ns, _)| *latency_ns >= least_ns).map(|(_, count)| count).sum()
    };
    sum(limit_ns.saturating_add(1)) as f64 / sum(0).max(1) as f64
}

/// Returns half the 95 % interval of the share of latencies up to `limit_ns`, estimated from the
/// parts; infinite if there is only one.
fn share_half_width(limit_ns: u64, parts: &[&Buckets], doubt: f64) -> f64 {
    let counts = parts.iter().map(|part| {
        let sum = |least_ns: u64| -> f64 {
            part.iter().filter(|bucket| bucket.0 <= least_ns).map(|bucket| bucket.1 as f64).sum()
        };
        (sum(limit_ns), sum(u64::MAX))
    });
    let counts: Vec<(f64, f64)> = counts.collect();
    let (below, all) = counts.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if all == 0.0 {
        return f64::INFINITY;
    }
    // A ratio: parts are weighted by what completed in them.
    let strays: Vec<f64> = counts.iter().map(|one| one.0 - one.1 * below / all).collect();
    half_width(&strays, doubt) * counts.len() as f64 / all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::normal;
    use crate::rng::Rng;

    #[test]
    fn unfinished_operations_move_quantiles_or_make_them_lower_bounds() {
        let of = |each: &[(u64, u64)]| {
            let mut histogram = LatencyHistogram::new();
            for &(latency_ns, count) in each {
                (0..count).for_each(|_| histogram.record(latency_ns));
            }
            histogram
        };
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.01;
        let done = of(&[(100_000, 900), (200_000, 95), (400_000, 5)]);
        let quantile = |unfinished: &LatencyHistogram, in_flight, q| {
            done.quantile_with((unfinished, in_flight), q, &[], 1)
        };
        assert_eq!(quantile(&of(&[]), 16, 0.99), done.quantile(0.99, &[], 1));
        // Operations that go on as usual change nothing.
        let usual = of(&[(100_000, 9000), (200_000, 950), (400_000, 50)]);
        for (q, expected) in [(0.5, 100e3), (0.9, 100e3), (0.99, 200e3), (0.999, 400e3)] {
            let seen = usual.quantile_with((&of(&[(50_000, 16)]), 16), q, &[], 1);
            assert!(near(seen.value, expected) && !seen.is_lower_bound(), "{q}: {seen:?}");
        }
        // A stall in which all are stuck: nothing is known beyond what has completed.
        let stuck = of(&[(500_000_000, 16)]);
        assert!(near(quantile(&stuck, 16, 0.97).value, 200e3));
        let tail = quantile(&stuck, 16, 0.99);
        assert!(near(tail.value, 500e6) && tail.is_lower_bound(), "{tail:?}");
        // A queue: half of the operations that were due.
        let queue = of(&[(1_000_000, 500), (2_000_000, 500)]);
        assert!(near(quantile(&queue, 16, 0.4).value, 100e3));
        for (q, least) in [(0.6, 1e6), (0.99, 2e6)] {
            let seen = quantile(&queue, 16, q);
            assert!(near(seen.value, least) && seen.is_lower_bound(), "{q}: {seen:?}");
        }
    }

    /// Returns in how many of 500 windows of 20 parts, each of 5 ticks of 12 latencies with
    /// correlated levels of neighbouring ticks, the interval holds the quantile of a normal deviate
    /// `z`; and the mean width of these intervals, ÷ that with equal parts.
    fn windows_that_hold(correlation: f64, (quantile, z): (f64, f64)) -> (u32, f64) {
        const OF_TICK: f64 = 0.1;
        const OF_ONE: f64 = 0.3;
        /// Limit for intervals that are open above.
        const WIDEST: f64 = 10.0;
        let fresh = (1.0 - correlation * correlation).sqrt();
        let truth_ns = 1e6 * (z * OF_TICK.hypot(OF_ONE)).exp();
        let holds = |seed| {
            let mut rng = Rng::new(seed, 0);
            let mut level = normal(&mut rng);
            let mut all = LatencyHistogram::new();
            let part = |_| {
                let mut part = LatencyHistogram::new();
                for each in 0..60 {
                    if each % 12 == 0 {
                        level = correlation * level + fresh * normal(&mut rng);
                    }
                    let ns = 1e6 * (OF_TICK * level + OF_ONE * normal(&mut rng)).exp();
                    part.record(ns as u64);
                }
                all.merge(&part);
                part.buckets().collect()
            };
            let parts: Vec<Buckets> = (0..20).map(part).collect();
            let parts: Vec<&Buckets> = parts.iter().collect();
            let of = all.quantile(quantile, &parts, 1);
            let alike: Buckets = all.buckets().collect();
            let least = all.quantile(quantile, &[&alike, &alike], 1);
            let width = (of.high - of.low) / (least.high - least.low);
            (u32::from(of.low <= truth_ns && truth_ns <= of.high), width.min(WIDEST))
        };
        let (hits, widths): (Vec<u32>, Vec<f64>) = (0..500).map(holds).unzip();
        (hits.iter().sum(), widths.iter().sum::<f64>() / 500.0)
    }

    #[test]
    fn intervals_hold_the_quantile_as_often_as_they_say() {
        for (correlation, least, widest) in
            [(0.0, 470, [1.8, 3.7]), (0.5, 470, [2.6, 4.0]), (0.9, 450, [6.7, 6.2])]
        {
            for (quantile, widest) in [(0.5, 0.0), (0.99, 2.3263)].into_iter().zip(widest) {
                let (hits, width) = windows_that_hold(correlation, quantile);
                assert!(hits >= least, "{hits} of 500: {correlation}, {quantile:?}");
                assert!(width < widest, "{width}: {correlation}, {quantile:?}");
            }
        }
    }

    /// Seconds differ much in how many reads take 2 ms, and little in how many take 20 ms.
    #[test]
    fn a_longer_latency_bounds_a_quantile_whose_own_share_varies_too_much() {
        let part = |slow: u64| vec![(200_000, 40_000 - slow), (2_000_000, slow), (20_000_000, 2)];
        let slow = [80, 80, 80, 80, 80, 80, 80, 80, 80, 2_000, 4_000, 3_000];
        let parts: Vec<Buckets> = slow.map(part).into();
        let histogram = LatencyHistogram::of_buckets(parts.concat(), 0);
        let parts: Vec<&Buckets> = parts.iter().collect();
        let of = histogram.quantile(0.99, &parts, 1);
        assert!(of.value > 1.9e6 && (1.9e6..2.1e6).contains(&of.high), "{of:?}");
        // One second in which a share is beyond does not bound it.
        let part = |slow: u64| vec![(200_000, 40_000 - slow), (2_000_000, slow)];
        let parts: Vec<Buckets> = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8_000].map(part).into();
        let histogram = LatencyHistogram::of_buckets(parts.concat(), 0);
        let of = histogram.quantile(0.99, &parts.iter().collect::<Vec<_>>(), 1);
        assert!(of.is_open_above(), "{of:?}");
    }

    /// Levels of seconds vary by a factor of two, as on a shared disk: the bound holds as often as
    /// it says.
    #[test]
    fn bounds_further_up_hold() {
        const OF_PART: f64 = 0.7;
        const OF_ONE: f64 = 0.5;
        let truth_ns = 1e6 * (2.3263 * OF_PART.hypot(OF_ONE)).exp();
        // Wrong and all: intervals that the quantile's own share bounds, those bounded further up.
        let mut seen = [[0_u32; 2]; 2];
        for seed in 0..400 {
            let mut rng = Rng::new(seed, 1);
            let part = |_| {
                let level = normal(&mut rng);
                let mut part = LatencyHistogram::new();
                for _ in 0..500 {
                    let ns = 1e6 * (OF_PART * level + OF_ONE * normal(&mut rng)).exp();
                    part.record(ns as u64);
                }
                part.buckets().collect::<Buckets>()
            };
            let parts: Vec<Buckets> = (0..30).map(part).collect();
            let histogram = LatencyHistogram::of_buckets(parts.concat(), 0);
            let parts: Vec<&Buckets> = parts.iter().collect();
            let (_, high_ns) = histogram.quantile_interval_ns(0.99, &parts);
            let further_ns = histogram.bound_further_up_ns(0.99, &parts, DOUBT * 0.98);
            if high_ns.is_finite() {
                let counts = &mut seen[usize::from(high_ns.total_cmp(&further_ns).is_eq())];
                counts[0] += u32::from(high_ns < truth_ns);
                counts[1] += 1;
            }
        }
        println!("wrong, all: {seen:?}");
        let [_, [wrong, bounded]] = seen;
        assert!(bounded >= 50, "{bounded}");
        assert!(f64::from(wrong) <= 0.025 * f64::from(bounded) + 2.0, "{wrong} of {bounded}");
    }

    #[test]
    fn an_interval_goes_to_the_edges_of_its_buckets() {
        let mut histogram = LatencyHistogram::new();
        (0..100_000).for_each(|_| histogram.record(1_000_000));
        let part = vec![(1_000_000, 20_000)];
        let of = histogram.quantile(0.5, &[&part; 5], 1);
        assert!(of.low < 1_000_000.0 && 1_000_000.0 < of.high, "{of:?}");
        assert!(of.high < 1_010_000.0, "{of:?}");
    }

    #[test]
    fn too_few_latencies_leave_a_quantile_open_above() {
        for (quantile, least) in
            [(0.5, 6), (0.9, 36), (0.99, 368), (0.999, 3_688), (0.9999, 36_887)]
        {
            assert_eq!(least_samples(quantile), least);
            let of = |count: u64| {
                let mut histogram = LatencyHistogram::new();
                (0..count).for_each(|at| histogram.record(1_000_000 + at * 1_000));
                // All parts are equal.
                let part = histogram.buckets().map(|(ns, _)| (ns, 1)).collect();
                (histogram.quantile(quantile, &[&part; 20], 1), histogram)
            };
            let (few, histogram) = of(least - 1);
            assert!(few.is_lower_bound(), "{few:?}");
            assert!(few.value < histogram.quantile_ns(quantile) as f64, "{few:?}");
            assert_eq!(histogram.bounded_quantile_ns(quantile), None);
            let (enough, histogram) = of(least);
            assert!(enough.high.is_finite(), "{enough:?}");
            assert!(histogram.bounded_quantile_ns(quantile).is_some());
        }
    }

    #[test]
    fn parts_that_differ_widen_the_interval_and_one_leaves_it_open() {
        let part = |fast: u64| {
            let count = |ms: u64| if ms <= 50 { fast } else { 100 };
            (1..=100).map(|ms| (ms * 1_000_000, count(ms))).collect()
        };
        let parts: Vec<Buckets> = [80, 120, 90, 110, 70, 130, 100].map(part).into();
        let histogram = LatencyHistogram::of_buckets(parts.concat(), 0);
        let parts: Vec<&Buckets> = parts.iter().collect();
        let alike: Buckets = (1..=100).map(|ms| (ms * 1_000_000, 100)).collect();
        let interval = |parts: &[&Buckets]| histogram.quantile_interval_ns(0.5, parts);
        let width = |parts: &[&Buckets]| interval(parts).1 - interval(parts).0;
        assert!(width(&parts) > 2.0 * width(&[&alike; 7]), "{:?}", interval(&parts));
        assert!(width(&parts[..2]) > width(&parts), "{:?}", interval(&parts[..2]));
        assert_eq!(interval(&parts[..1]), (0.0, f64::INFINITY));
        // 70,000 latencies that vary as much as 100 would do not bound p99.
        let burst = |ms: u64| -> Buckets { vec![(1_000_000, 9_900), (ms * 1_000_000, 100)] };
        let parts: Vec<Buckets> = [1, 1, 1, 50, 1, 1, 1].map(burst).into();
        let histogram = LatencyHistogram::of_buckets(parts.concat(), 0);
        let of = histogram.quantile(0.999, &parts.iter().collect::<Vec<_>>(), 1);
        assert!(of.is_open_above() && of.value > 49e6 && of.low < 2e6, "{of:?}");
    }
}
