//! Estimates with their confidence: rates from cumulative counters, means, repeats, differences.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub mod bursts;
mod level;
mod robust;
mod settled;

pub use level::{is_level, is_level_at_the_end};
pub use robust::{median_of, slope};
pub use settled::{SETTLED_ROUNDS, settled};

/// A number, its 95 % interval, and what it was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Null in JSON if it is not finite; the same applies to the ends of its interval.
    #[schemars(with = "Option<f64>")]
    pub value: f64,
    /// Lower end of the 95 % interval.
    #[schemars(with = "Option<f64>")]
    #[serde(deserialize_with = "open_below_if_null")]
    pub low: f64,
    /// Upper end of the 95 % interval.
    #[schemars(with = "Option<f64>")]
    #[serde(deserialize_with = "open_above_if_null")]
    pub high: f64,
    /// Number of samples (I/Os) that it was computed from.
    pub samples: u64,
    /// Time over which the samples were collected, in nanoseconds.
    pub duration_ns: u64,
}

fn open_below_if_null<'de, D: Deserializer<'de>>(json: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or(f64::NEG_INFINITY))
}

fn open_above_if_null<'de, D: Deserializer<'de>>(json: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or(f64::INFINITY))
}

impl Estimate {
    /// Returns the estimate of a number that is only known to be at least `value`.
    pub fn at_least(value: f64, samples: u64, duration_ns: u64) -> Self {
        Self { value, low: value, high: f64::INFINITY, samples, duration_ns }
    }

    /// Returns whether the number is only known to be at least `value`.
    pub fn is_lower_bound(&self) -> bool {
        self.is_open_above() && self.low >= self.value
    }

    /// Returns whether the interval has only a lower end.
    pub fn is_open_above(&self) -> bool {
        self.high == f64::INFINITY && self.low > 0.0
    }

    /// Returns `value` ± `half`.
    pub fn around(value: f64, half: f64, samples: u64, duration_ns: u64) -> Self {
        Self { value, low: value - half, high: value + half, samples, duration_ns }
    }

    /// Clamps the lower end to zero, for a rate or a latency, which cannot be negative.
    #[must_use]
    pub fn not_negative(self) -> Self {
        Self { low: self.low.max(0.0), ..self }
    }

    /// Raises this quantile to at least the value of a lower quantile of the same operations.
    #[must_use]
    pub fn not_below(self, lower: &Self) -> Self {
        let floor = lower.value;
        match self {
            bound if bound.is_lower_bound() && bound.value < floor => {
                Self { value: floor, low: floor, ..bound }
            }
            known if floor < known.value => Self { low: known.low.max(floor), ..known },
            other => other,
        }
    }

    /// Returns half the width of the interval as a fraction of the value: 0.02 is ±2 %. Infinite if
    /// the value is zero.
    pub fn relative_half_width(&self) -> f64 {
        if self.value == 0.0 {
            f64::INFINITY
        } else {
            (self.high - self.low) / 2.0 / self.value.abs()
        }
    }

    /// Returns the estimate in another unit.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            low: self.low * factor,
            high: self.high * factor,
            ..self
        }
    }

    /// Widens the interval on both sides by `fraction` of the value, for a source of variation that
    /// the samples could not show (drift between phases).
    #[must_use]
    pub fn widened(self, fraction: f64) -> Self {
        let by = self.value.abs() * fraction;
        Self { low: self.low - by, high: self.high + by, ..self }
    }
}

/// Returns the rate per second of a cumulative counter seen at ticks `(t_ns, total)`.
///
/// The value is the increase from the first tick to the last ÷ the time between them. The interval
/// is Student's t over the rates of at most 20 batches of ticks (Law & Kelton, batch means),
/// corrected for their correlation. It is never narrower than one release: if a device completes in
/// bursts (a throttle that releases every 100 ms), either edge may fall anywhere between two of
/// them.
///
/// `None` with fewer than three ticks or if no time passed.
pub fn rate_per_s(ticks: &[(u64, u64)]) -> Option<Estimate> {
    rate(ticks, 0.0)
}

/// Returns whether a window of ticks has measured a rate to within ± `within` of it and may end.
///
/// Windows that end as soon as they look narrow are those in which the correlation was
/// underestimated by chance. Therefore this uses the upper bound of the correlation, one-sided at
/// 95 %.
pub fn is_narrow(ticks: &[(u64, u64)], within: f64) -> bool {
    /// Fewer ticks show too little of how the rate varies.
    const LEAST_TICKS: usize = 9;
    ticks.len() >= LEAST_TICKS
        && rate(ticks, 1.645).is_some_and(|rate| rate.relative_half_width() <= within)
}

/// Returns how much the rates of two windows like this one may differ although the device does not
/// change: one release, if it completes in bursts. `None` as for [`rate_per_s`].
pub fn release_per_s(ticks: &[(u64, u64)]) -> Option<f64> {
    let duration_ns = ticks.last()?.0.saturating_sub(ticks.first()?.0);
    (ticks.len() >= 3 && duration_ns > 0).then(|| release(ticks) * 1e9 / duration_ns as f64)
}

/// Like [`rate_per_s`]; `errors` is passed to [`half_width`].
fn rate(ticks: &[(u64, u64)], errors: f64) -> Option<Estimate> {
    let (first, last) = (ticks.first()?, ticks.last()?);
    if ticks.len() < 3 || last.0 <= first.0 {
        return None;
    }
    let (counted, duration_ns) = (last.1.saturating_sub(first.1), last.0 - first.0);
    let per_s = 1e9 / duration_ns as f64;
    let half = half_width(&batch_rates(ticks), errors).max(release(ticks) * per_s);
    Some(Estimate::around(counted as f64 * per_s, half, counted, duration_ns).not_negative())
}

/// Maximum number of batches that ticks are joined into for an interval: enough for Student's t,
/// and each long enough that bursts and scheduling even out within it.
const BATCHES: usize = 20;

/// Returns the rates of consecutive batches of ticks, per second.
fn batch_rates(ticks: &[(u64, u64)]) -> Vec<f64> {
    let bursts = burst_ends(ticks);
    let ticks = bursts.as_deref().unwrap_or(ticks);
    let joined = (ticks.len() - 1).div_ceil(BATCHES).max(1);
    let edges: Vec<(u64, u64)> = ticks.iter().copied().step_by(joined).collect();
    edges
        .windows(2)
        .filter(|w| w[1].0 > w[0].0)
        .map(|w| (w[1].1.saturating_sub(w[0].1)) as f64 * 1e9 / (w[1].0 - w[0].0) as f64)
        .collect()
}

/// Returns the last tick of each burst of a device that completes in bursts and nothing in between.
/// Batches that start and end at such ticks hold whole bursts; others hold one more or one less
/// depending on where they begin. `None` for a device that completes all the time, and if there are
/// too few bursts for batches.
fn burst_ends(ticks: &[(u64, u64)]) -> Option<Vec<(u64, u64)>> {
    /// With independent completions, eight per tick on average, one tick in 3,000 has none.
    const MEAN_MIN: u64 = 8;
    const IDLE_MIN: f64 = 0.25;
    const BURSTS_MIN: usize = 9;
    let grew: Vec<bool> = ticks.windows(2).map(|w| w[1].1 > w[0].1).collect();
    let counted = ticks.last()?.1.saturating_sub(ticks.first()?.1);
    let idle = grew.iter().filter(|grew| !**grew).count();
    if counted < MEAN_MIN * grew.len() as u64 || (idle as f64) < IDLE_MIN * grew.len() as f64 {
        return None;
    }
    let is_end = |at: &usize| grew[at - 1] && !grew[*at];
    let ends: Vec<(u64, u64)> = (1..grew.len()).filter(is_end).map(|at| ticks[at]).collect();
    (ends.len() >= BURSTS_MIN).then_some(ends)
}

/// Returns the mean of independent values with its Student interval; `None` if empty. One value has
/// no interval: low and high are the value itself, and `samples` is 1.
pub fn mean(values: &[f64]) -> Option<Estimate> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let value = values.iter().sum::<f64>() / n;
    let half = t_95(values.len().saturating_sub(1)) * (variance(values, value) / n).sqrt();
    let half = if values.len() < 2 { 0.0 } else { half };
    Some(Estimate::around(value, half, values.len() as u64, 0))
}

/// Returns the mean of consecutive values in time, with Student's interval for their effective
/// number, as [`rate_per_s`] does for batches. `None` with fewer than two.
pub fn mean_over_time(values: &[f64]) -> Option<Estimate> {
    if values.len() < 2 {
        return None;
    }
    let value = values.iter().sum::<f64>() / values.len() as f64;
    let half = half_width(values, 0.0);
    Some(Estimate::around(value, half, values.len() as u64, 0))
}

/// Returns one estimate from repeats of the same rate or latency: the mean of their values, with
/// the wider of two intervals: that between the repeats, and that of their mean according to their
/// own intervals. `None` if empty.
pub fn pool(repeats: &[Estimate]) -> Option<Estimate> {
    let between = mean(&repeats.iter().map(|r| r.value).collect::<Vec<_>>())?;
    let within = of_their_mean(repeats.iter().map(|r| (r.high - r.low) / 2.0));
    let half = ((between.high - between.low) / 2.0).max(within);
    let samples = repeats.iter().map(|r| r.samples).sum();
    let duration_ns = repeats.iter().map(|r| r.duration_ns).sum();
    Some(Estimate::around(between.value, half, samples, duration_ns).not_negative())
}

/// Returns the error of the mean of independent values with these errors.
pub fn of_their_mean(errors: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = errors.len() as f64;
    errors.map(|error| error * error).sum::<f64>().sqrt() / count
}

/// Returns the estimate of all samples of several windows. The samples do not show what moved
/// between the windows; if the estimates of the single windows disagree by more, their disagreement
/// is the interval.
pub fn with_repeats(all: Estimate, repeats: &[Estimate]) -> Estimate {
    if repeats.len() < 2 || all.is_open_above() {
        return all;
    }
    let half = |estimate: &Estimate| (estimate.high - estimate.low) / 2.0;
    let between = mean(&repeats.iter().map(|r| r.value).collect::<Vec<_>>());
    let within = repeats.iter().map(half).sum::<f64>() / repeats.len() as f64;
    let half =
        between.as_ref().map_or(0.0, half).max(if within.is_finite() { within } else { 0.0 });
    Estimate {
        low: all.low.min(all.value - half).max(0.0),
        high: all.high.max(all.value + half),
        ..all
    }
}

/// Returns the ratio b ÷ a of two rates or latencies with its interval: the half widths are taken
/// as independent and combined as relative errors in quadrature. `None` if `a` is zero.
pub fn ratio(a: &Estimate, b: &Estimate) -> Option<Estimate> {
    if a.value == 0.0 {
        return None;
    }
    let value = b.value / a.value;
    let relative = a.relative_half_width().hypot(b.relative_half_width());
    let half = if relative.is_finite() { value * relative } else { value };
    let (samples, duration_ns) = (a.samples.min(b.samples), a.duration_ns.min(b.duration_ns));
    Some(Estimate::around(value, half, samples, duration_ns).not_negative())
}

/// Change of a rate over a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Mean rate of the second half minus that of the first, as a share of the level.
    pub change_ratio: f64,
    /// How certain it is that the rate rises (above zero) or falls (below zero): a standard normal
    /// deviate if it does neither.
    pub deviate: f64,
}

/// Returns the trend of the rate of a cumulative counter seen at ticks `(t_ns, total)`.
///
/// The deviate is that of Mann's test on at most 20 batches of ticks (H. B. Mann, Econometrica 13,
/// 1945): it compares ranks, so it needs no distribution, and neither outliers nor a throttle that
/// completes in bursts mislead it. Correlated neighbours make it larger.
///
/// `None` with fewer than five batches or if nothing was counted.
pub fn trend(ticks: &[(u64, u64)]) -> Option<Trend> {
    const LEAST: usize = 5;
    if ticks.len() <= LEAST {
        return None;
    }
    let rates = batch_rates(ticks);
    let (first, second) = rates.split_at(rates.len() / 2);
    let (first, second) = (mean(first)?.value, mean(second)?.value);
    let level = f64::midpoint(first, second);
    if rates.len() < LEAST || level <= 0.0 {
        return None;
    }
    let rises = |(at, rate): (usize, &f64)| -> f64 {
        let later = rates[at + 1..].iter().map(|later| later.total_cmp(rate) as i32);
        f64::from(later.sum::<i32>())
    };
    let score: f64 = rates.iter().enumerate().map(rises).sum();
    let n = rates.len() as f64;
    let spread = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    Some(Trend { change_ratio: (second - first) / level, deviate: score / spread })
}

/// Returns standard deviation ÷ mean; zero if `values` is empty or the mean is zero.
pub fn coefficient_of_variation(values: &[f64]) -> f64 {
    let Some(centre) = mean(values) else { return 0.0 };
    if centre.value == 0.0 { 0.0 } else { variance(values, centre.value).sqrt() / centre.value }
}

/// Returns the median; zero if empty.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n.is_multiple_of(2) => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        n => sorted[n / 2],
    }
}

/// Returns how far the count deviates from the straight line between its ends, from the lowest
/// point to the highest: the amount that a device completing in bursts releases in one go. For
/// independent counts it hardly ever exceeds the interval (N. H. Kuiper, 1960: beyond 1.75 standard
/// errors in 5 %).
fn release(ticks: &[(u64, u64)]) -> f64 {
    let (first, last) = (ticks[0], ticks[ticks.len() - 1]);
    let slope = last.1.saturating_sub(first.1) as f64 / (last.0 - first.0) as f64;
    let strays = ticks.iter().map(|&(t, count)| {
        count.saturating_sub(first.1) as f64 - slope * t.saturating_sub(first.0) as f64
    });
    let (low, high) = strays.fold((0.0_f64, 0.0_f64), |(l, h), s| (l.min(s), h.max(s)));
    high - low
}

/// Returns half the 95 % interval of the mean of consecutive values in time: Student's t with their
/// effective number n·(1−ρ)/(1+ρ) for their lag-1 correlation ρ. The correlation of few values is
/// underestimated by (1+4ρ)/n (Marriott and Pope, Biometrika 41, 1954), which is corrected; a
/// negative result does not narrow the interval. Then `errors` of its standard errors are added.
pub(crate) fn half_width(values: &[f64], errors: f64) -> f64 {
    let n = values.len() as f64;
    if values.len() < 2 {
        return f64::INFINITY;
    }
    let centre = values.iter().sum::<f64>() / n;
    let variance = variance(values, centre);
    if variance == 0.0 {
        return 0.0;
    }
    let products: f64 = values.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum();
    let seen = products / (variance * (n - 1.0));
    let unbiased = (seen + (1.0 + 4.0 * seen) / n).clamp(0.0, 0.9);
    let error = ((1.0 - unbiased * unbiased) / n).sqrt();
    let correlation = (unbiased + errors * error).min(0.9);
    let effective = n * (1.0 - correlation) / (1.0 + correlation);
    let freedom = (effective as usize).saturating_sub(1).max(2).min(values.len() - 1);
    // Correlated values deviate less from their own mean than from the true one.
    let divisor = ((effective - 1.0) * n / (n - 1.0)).max(effective / 2.0);
    t_95(freedom) * (variance / divisor).sqrt()
}

/// Returns the unbiased variance; zero for fewer than two values.
fn variance(values: &[f64], centre: f64) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// Returns the two-sided 95 % point of Student's t.
fn t_95(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => TABLE[freedom - 1],
        // Cornish-Fisher: within 0.001 of the exact value from 30 degrees of freedom.
        n => 1.96 + 2.372 / n as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::normal;
    use crate::rng::Rng;

    #[test]
    fn an_open_end_is_read_back_as_it_was_written() {
        for estimate in
            [Estimate::at_least(5.0, 3, 9), Estimate { low: 1.0, ..Estimate::at_least(5.0, 3, 9) }]
        {
            let json = serde_json::to_string(&estimate).unwrap();
            assert!(json.contains("\"high\":null"), "{json}");
            assert_eq!(serde_json::from_str::<Estimate>(&json).unwrap(), estimate);
        }
    }

    #[test]
    fn a_quantile_is_at_least_a_lower_one() {
        let median = Estimate::around(4.0, 1.0, 9, 1);
        let open = |value, low| Estimate {
            low,
            high: f64::INFINITY,
            ..Estimate::around(value, 0.0, 9, 1)
        };
        assert_eq!(open(8.0, 0.5).not_below(&median), open(8.0, 4.0));
        assert_eq!(open(8.0, 6.0).not_below(&median), open(8.0, 6.0));
        let bound = Estimate::at_least(2.0, 9, 1).not_below(&median);
        assert_eq!(bound, Estimate::at_least(4.0, 9, 1));
        let known = Estimate::around(4.0, 3.0, 9, 1).not_below(&median);
        assert_eq!(known, Estimate::around(4.0, 3.0, 9, 1), "as low as it was");
    }

    #[test]
    fn the_rate_of_a_throttle_is_held_wherever_the_window_begins() {
        // 437 I/Os per second released every 100 ms, seen every 70 ms.
        const RELEASE: f64 = 43.7;
        for start in 0..100_u64 {
            let released = |t: u64| ((t / 100_000_000 + 1) as f64 * RELEASE) as u64;
            let times = (0..45_u64).map(|i| i * 70_000_000);
            let ticks: Vec<(u64, u64)> =
                times.map(|t| (t, released(t + start * 1_000_000))).collect();
            let rate = rate_per_s(&ticks).unwrap();
            let one = RELEASE / 3.08;
            assert!((rate.value - 437.0).abs() <= one + 1.0, "{start}: {rate:?}");
            assert!(rate.low <= 437.0 && 437.0 <= rate.high, "{start}: {rate:?}");
            assert!((one - 1.0..4.0 * one).contains(&(rate.high - rate.value)), "{rate:?}");
        }
        // Five ticks make a period.
        for start in 0..100_u64 {
            let released = |t: u64| t / 500 * 1000;
            let ticks: Vec<(u64, u64)> =
                (0..=101).map(|i| (i * 100, released(i * 100 + start * 5))).collect();
            let rate = rate_per_s(&ticks).unwrap();
            assert!(rate.low <= 2e9 && 2e9 <= rate.high, "{start}: {rate:?}");
        }
    }

    #[test]
    fn the_value_is_what_was_counted_over_the_time_of_the_window() {
        let ticks = [(0, 10), (100, 300), (200, 320), (300, 400), (500, 510)];
        let rate = rate_per_s(&ticks).unwrap();
        assert_eq!((rate.value, rate.samples, rate.duration_ns), (1e9, 500, 500));
    }

    /// Returns in how many of 2,000 windows of 50 ticks, with correlated neighbours, the interval
    /// holds the true rate; `ended` returns where a window ends.
    fn windows_that_hold(correlation: f64, ended: impl Fn(&[(u64, u64)]) -> usize) -> u32 {
        let fresh = (1.0_f64 - correlation * correlation).sqrt();
        let mut hits = 0;
        for seed in 0..2000 {
            let mut rng = Rng::new(seed, 0);
            let mut deviation = normal(&mut rng);
            let mut total = 0;
            let mut ticks = vec![(0, 0)];
            for tick in 1..=50 {
                total += (500.0 + 20.0 * deviation) as u64;
                ticks.push((tick * 20_000_000, total));
                deviation = correlation * deviation + fresh * normal(&mut rng);
            }
            let rate = rate_per_s(&ticks[..ended(&ticks)]).unwrap();
            hits += u32::from(rate.low <= 25_000.0 && 25_000.0 <= rate.high);
        }
        hits
    }

    #[test]
    fn intervals_hold_the_true_rate_as_often_as_they_say() {
        for (correlation, least) in [(0.0, 1880), (0.5, 1880), (0.9, 1800)] {
            let hits = windows_that_hold(correlation, <[(u64, u64)]>::len);
            assert!((least..1980).contains(&hits), "{hits} of 2000 at {correlation}");
        }
    }

    #[test]
    fn intervals_of_windows_that_end_when_narrow_hold_it_too() {
        for (correlation, least) in [(0.0, 1880), (0.5, 1880), (0.9, 1800)] {
            let ended = |ticks: &[(u64, u64)]| {
                (26..51).find(|&len| is_narrow(&ticks[..len], 0.02)).unwrap_or(51)
            };
            let hits = windows_that_hold(correlation, ended);
            assert!((least..1980).contains(&hits), "{hits} of 2000 at {correlation}");
        }
    }

    #[test]
    fn a_steady_rate_ends_a_window_and_an_unsteady_one_or_too_few_ticks_do_not() {
        let steady: Vec<(u64, u64)> = (0..26).map(|i| (i * 20, i * 500 + i % 3)).collect();
        assert!(is_narrow(&steady, 0.02) && !is_narrow(&steady[..8], 0.02));
        let ramp: Vec<(u64, u64)> = (0..26).map(|i| (i * 20, i * i * 20)).collect();
        assert!(!is_narrow(&ramp, 0.02));
    }

    #[test]
    fn a_ramp_has_a_trend_and_a_plateau_has_none() {
        let ramp: Vec<(u64, u64)> = (0..20_u64).map(|i| (i * 50, i * i * 100)).collect();
        let flat: Vec<(u64, u64)> = (0..20_u64).map(|i| (i * 50, i * 100)).collect();
        let rises = trend(&ramp).unwrap();
        // All pairs of the 19 rates rise: 171 ÷ √(19 · 18 · 43 ÷ 18).
        assert!((rises.deviate - 5.983).abs() < 1e-3, "{rises:?}");
        assert!((rises.change_ratio - 2.0 * 9.5 / 19.0).abs() < 0.06, "{rises:?}");
        assert_eq!(trend(&flat), Some(Trend { change_ratio: 0.0, deviate: 0.0 }));
        assert_eq!(trend(&flat[..5]), None);
        assert_eq!(trend(&[(0, 7), (1, 7), (2, 7), (3, 7), (4, 7), (5, 7), (6, 7)]), None);
    }

    #[test]
    fn a_rate_without_a_trend_exceeds_a_deviate_as_often_as_a_normal_one_does() {
        let mut rng = Rng::new(5, 0);
        let mut beyond = 0;
        for _ in 0..1000 {
            let mut total = 0;
            let ticks: Vec<(u64, u64)> = (0..13)
                .map(|i| {
                    // Occasionally a tick counts ten times as much.
                    total += rng.below(1000) * if rng.below(10) == 0 { 10 } else { 1 };
                    (i * 20_000_000, total)
                })
                .collect();
            beyond += u32::from(trend(&ticks).unwrap().deviate.abs() > 1.645);
        }
        assert!((70..=130).contains(&beyond), "{beyond} of 1000 beyond 90 %");
    }

    #[test]
    fn too_little_gives_no_estimate_and_one_value_no_interval() {
        assert!(rate_per_s(&[(0, 0), (1, 1)]).is_none());
        assert!(mean(&[]).is_none());
        let one = mean(&[3.0]).unwrap();
        assert_eq!((one.low, one.high, one.samples), (3.0, 3.0, 1));
    }

    #[test]
    fn repeats_that_disagree_widen_the_interval() {
        let estimate = |value| Estimate {
            value,
            low: value - 1.0,
            high: value + 1.0,
            samples: 10,
            duration_ns: 1,
        };
        let near = pool(&[estimate(100.0), estimate(100.0), estimate(100.0)]).unwrap();
        let far = pool(&[estimate(80.0), estimate(100.0), estimate(120.0)]).unwrap();
        assert!((near.high - near.low - 2.0 / 3_f64.sqrt()).abs() < 1e-9);
        assert!(far.high - far.low > 40.0);
        assert_eq!(far.samples, 30);
    }

    #[test]
    fn windows_that_disagree_widen_what_all_samples_say_and_open_ones_do_not_open_it() {
        let of = |value, low, high| Estimate { value, low, high, samples: 9, duration_ns: 1 };
        let all = of(100.0, 95.0, 106.0);
        let open = [99.0, 100.0, 101.0].map(|value| of(value, 90.0, f64::INFINITY));
        assert_eq!(with_repeats(all, &open), all);
        let apart = [80.0, 100.0, 120.0].map(|value| of(value, value - 1.0, value + 1.0));
        let wide = with_repeats(all, &apart);
        assert!(wide.low < 60.0 && wide.high > 140.0, "{wide:?}");
        assert_eq!(with_repeats(all, &apart[..1]), all);
    }

    #[test]
    fn ratio_combines_relative_errors() {
        let a = Estimate { value: 100.0, low: 97.0, high: 103.0, samples: 9, duration_ns: 1 };
        let b = Estimate { value: 200.0, low: 192.0, high: 208.0, samples: 9, duration_ns: 1 };
        let r = ratio(&a, &b).unwrap();
        assert!((r.value - 2.0).abs() < 1e-12);
        assert!((r.high - 2.1).abs() < 1e-9, "{r:?}");
    }

    /// Returns ticks of 20 ms of a throttle that releases 300 every 100 ms; with `loose`, at times
    /// that wander by a fifth of that period.
    fn released(windows_ms: u64, loose: bool) -> Vec<(u64, u64)> {
        let mut rng = Rng::new(7, 0);
        let mut late = || if loose { 20.0 * (rng.unit() - 0.5) } else { 0.0 };
        let releases: Vec<f64> =
            (0..windows_ms / 100 + 2).map(|at| at as f64 * 100.0 + late()).collect();
        let ticks = (0..=windows_ms / 20).map(|tick| tick * 20);
        let until = |ms: u64| releases.iter().filter(|at| **at < ms as f64 - 7.0).count() as u64;
        ticks.map(|ms| (ms * 1_000_000, 300 * until(ms))).collect()
    }

    #[test]
    fn a_throttle_that_releases_in_bursts_is_known_to_one_release() {
        for loose in [false, true] {
            let rate = rate_per_s(&released(2_400, loose)).unwrap();
            assert!(rate.low <= 3_000.0 && 3_000.0 <= rate.high, "{rate:?}");
            // One release of 24 is 4.2 %; batches of 120 ms hold one or two of them.
            assert!(rate.relative_half_width() < 0.06, "{loose}: {rate:?}");
        }
    }
}
