//! Percentiles of the means of intervals, with their confidence intervals.
//!
//! The confidence interval of a percentile is that of order statistics: the `k`-th of `n` values is
//! above it with a binomial probability, whatever the distribution. It assumes independent values;
//! those of neighbouring hours are not, so the interval is the narrowest possible.

use blockstone_base::stats::Estimate;

/// A percentile needs at least this many values expected above it.
const ABOVE_MIN: f64 = 2.0;
/// Probability outside a confidence interval, on each side.
const TAIL: f64 = 0.025;

/// Percentiles of the means of intervals, from each mean and its length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Percentiles {
    pub samples: usize,
    pub seconds: f64,
    pub p50: Option<Estimate>,
    pub p95: Option<Estimate>,
    pub p99: Option<Estimate>,
    /// Percentile of the time, not of the intervals.
    pub p95_weighted: Option<f64>,
    pub max: Option<f64>,
    /// The share of the time within 1 % of the maximum.
    pub at_max_share: Option<f64>,
}

/// A value, and the seconds for which it held.
pub type Weighted = (f64, f64);

impl Percentiles {
    pub fn of(values: &[Weighted]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let seconds: f64 = sorted.iter().map(|it| it.1).sum();
        let max = sorted.last().map(|it| it.0);
        let near = |max: f64| sorted.iter().filter(|it| it.0 >= 0.99 * max).map(|it| it.1).sum();
        let at_max = |max: f64| Some(f64::max(near(max), 0.0) / seconds);
        let only: Vec<f64> = sorted.iter().map(|it| it.0).collect();
        let of = |share| percentile(&only, share, seconds);
        let p95 = of(0.95);
        Self {
            samples: sorted.len(),
            seconds,
            p50: of(0.5),
            p95,
            p99: of(0.99),
            p95_weighted: p95.and_then(|_| of_time(&sorted, 0.95, seconds)),
            max,
            at_max_share: max.filter(|max| *max > 0.0 && seconds > 0.0).and_then(at_max),
        }
    }

    /// Returns a percentile by its name: `p50`, `p95`, `p99` or `max`.
    pub fn named(&self, name: &str) -> Option<f64> {
        match name {
            "p50" => self.p50.map(|it| it.value),
            "p95" => self.p95.map(|it| it.value),
            "p99" => self.p99.map(|it| it.value),
            "max" => self.max,
            _ => None,
        }
    }
}

/// Returns the reason that a percentile cannot be estimated, if there are too few values.
pub fn too_few(samples: usize, share: f64) -> Option<String> {
    let needed = (ABOVE_MIN / (1.0 - share) - 1e-9).ceil() as usize;
    let percent = (share * 100.0).round();
    (samples < needed)
        .then(|| format!("p{percent} needs {needed} intervals or more, and there are {samples}"))
}

/// Interpolates linearly between ranks; `None` if there are too few values. The confidence interval
/// is open above if no value bounds it at that confidence.
fn percentile(sorted: &[f64], share: f64, seconds: f64) -> Option<Estimate> {
    if too_few(sorted.len(), share).is_some() {
        return None;
    }
    let place = share * sorted.len().checked_sub(1)? as f64;
    let below = *sorted.get(place.floor() as usize)?;
    let above = sorted.get(place.floor() as usize + 1).copied().unwrap_or(below);
    let (low, high) = ranks(sorted.len(), share);
    let at = |rank: usize| sorted.get(rank.checked_sub(1)?).copied();
    Some(Estimate {
        value: below + place.fract() * (above - below),
        low: low.and_then(at).unwrap_or(0.0),
        high: high.and_then(at).unwrap_or(f64::INFINITY),
        samples: sorted.len() as u64,
        duration_ns: (seconds * 1e9) as u64,
    })
}

/// Returns the lowest value that is not exceeded for this share of the time.
fn of_time(sorted: &[Weighted], share: f64, seconds: f64) -> Option<f64> {
    let mut passed = 0.0;
    let reached = |it: &&Weighted| {
        passed += it.1;
        passed >= share * seconds - 1e-9
    };
    sorted.iter().find(reached).map(|it| it.0)
}

/// Returns the ranks, from 1, that bound a percentile of `n` values with 95 % confidence; `None` if
/// no value bounds it.
pub fn ranks(n: usize, share: f64) -> (Option<usize>, Option<usize>) {
    // The probability that `k` of the values are below the percentile, in logarithms: with many
    // values the first ones underflow.
    let odds = (share / (1.0 - share)).ln();
    let mut ln = n as f64 * (1.0 - share).ln();
    let (mut below, mut low, mut high) = (0.0, None, None);
    for k in 0..n {
        below += ln.exp();
        // The probability that the value of rank k + 1 is above the percentile.
        let rank = k + 1;
        if below <= TAIL {
            low = Some(rank);
        }
        if high.is_none() && below >= 1.0 - TAIL {
            high = Some(rank);
        }
        ln += ((n - k) as f64 / rank as f64).ln() + odds;
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_binomial_distribution() {
        assert_eq!(ranks(209, 0.95), (Some(192), Some(205)));
        assert_eq!(ranks(24, 0.95), (Some(20), None));
        assert_eq!(ranks(209, 0.99), (Some(204), None));
        // The sign test: of 10 values the second and the ninth, of 5 none.
        assert_eq!(ranks(10, 0.5), (Some(2), Some(9)));
        assert_eq!(ranks(5, 0.5), (None, None));
        assert_eq!(ranks(0, 0.5), (None, None));
        let (low, high) = ranks(100_000, 0.5);
        assert!(low.is_some_and(|it| (49_685..49_695).contains(&it)), "{low:?}");
        assert!(high.is_some_and(|it| (50_305..50_315).contains(&it)), "{high:?}");
    }

    fn uniform(n: usize) -> Vec<Weighted> {
        (1..=n).map(|it| (it as f64, 60.0)).collect()
    }

    #[test]
    fn a_day_of_hours_has_no_p95_and_five_days_have_one_that_is_open_above_for_p99_only() {
        let day = Percentiles::of(&uniform(24));
        assert_eq!((day.p95, day.p95_weighted, day.max), (None, None, Some(24.0)));
        assert_eq!(too_few(24, 0.95).unwrap(), "p95 needs 40 intervals or more, and there are 24");
        assert!(too_few(40, 0.95).is_none() && too_few(199, 0.99).is_some());
        let more = Percentiles::of(&uniform(209));
        let p95 = more.p95.unwrap();
        assert_eq!((p95.low, p95.high), (192.0, 205.0));
        assert!((p95.value - 198.6).abs() < 1e-9, "{p95:?}");
        let p99 = more.p99.unwrap();
        assert_eq!((p99.low, p99.high), (204.0, f64::INFINITY));
    }

    #[test]
    fn time_weighs_and_a_ceiling_shows() {
        let mut values: Vec<Weighted> = (0..90).map(|it| (f64::from(it), 60.0)).collect();
        values.extend([(1_000.0, 3_600.0); 10]);
        let found = Percentiles::of(&values);
        assert_eq!(found.p50.map(|it| it.value), Some(49.5));
        assert_eq!(found.p95_weighted, Some(1_000.0));
        let share = found.at_max_share.unwrap();
        assert!((share - 36_000.0 / 41_400.0).abs() < 1e-12, "{share}");
        assert_eq!(Percentiles::of(&[]), Percentiles::default());
        assert_eq!(Percentiles::of(&[(0.0, 1.0)]).at_max_share, None);
    }
}
