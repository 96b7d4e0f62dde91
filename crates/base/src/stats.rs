//! Estimates with their confidence: rates from cumulative counters, means, repeats, differences.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number, its 95 % interval, and what it was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Null in JSON when it is not finite, as are the ends of its interval.
    #[schemars(with = "Option<f64>")]
    pub value: f64,
    /// Lower end of the 95 % interval.
    #[schemars(with = "Option<f64>")]
    pub low: f64,
    /// Upper end of the 95 % interval.
    #[schemars(with = "Option<f64>")]
    pub high: f64,
    /// How many samples (I/Os) stand behind it.
    pub samples: u64,
    /// How long the samples were collected, in nanoseconds.
    pub duration_ns: u64,
}

impl Estimate {
    /// `value` ± `half`.
    pub fn around(value: f64, half: f64, samples: u64, duration_ns: u64) -> Self {
        Self { value, low: value - half, high: value + half, samples, duration_ns }
    }

    /// The same estimate of a rate or a latency, which cannot be less than nothing.
    #[must_use]
    pub fn not_negative(self) -> Self {
        Self { low: self.low.max(0.0), ..self }
    }

    /// Half the width of the interval as a fraction of the value: 0.02 is ±2 %. Infinite when the
    /// value is zero.
    pub fn relative_half_width(&self) -> f64 {
        if self.value == 0.0 {
            f64::INFINITY
        } else {
            (self.high - self.low) / 2.0 / self.value.abs()
        }
    }

    /// The same estimate in another unit.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            low: self.low * factor,
            high: self.high * factor,
            ..self
        }
    }

    /// The interval widened on both sides by `fraction` of the value, for a source of variation
    /// that the samples could not see (drift between phases).
    #[must_use]
    pub fn widened(self, fraction: f64) -> Self {
        let by = self.value.abs() * fraction;
        Self { low: self.low - by, high: self.high + by, ..self }
    }
}

/// The rate of a cumulative counter seen at ticks `(t_ns, total)`, per second.
///
/// The value is the least-squares slope over all ticks: unlike the difference of the two ends it
/// does not jump when a device completes in bursts (a throttle that releases every 100 ms) and
/// an edge falls into one. The interval is Student's t over the rates of at most 20 batches of
/// ticks, with their effective number n·(1−ρ)/(1+ρ) for their lag-1 correlation ρ (Law & Kelton,
/// batch means).
///
/// `None` with fewer than three ticks or when no time passed.
pub fn rate_per_s(ticks: &[(u64, u64)]) -> Option<Estimate> {
    let (first, last) = (ticks.first()?, ticks.last()?);
    if ticks.len() < 3 || last.0 <= first.0 {
        return None;
    }
    let value = slope(ticks) * 1e9;
    let half = half_width(&batch_rates(ticks));
    Some(Estimate::around(value, half, last.1 - first.1, last.0 - first.0).not_negative())
}

/// Ticks are joined to at most this many batches for an interval: enough for Student's t, and long
/// enough that bursts and scheduling even out within one.
const BATCHES: usize = 20;

/// The rates of consecutive batches of ticks, per second.
fn batch_rates(ticks: &[(u64, u64)]) -> Vec<f64> {
    let joined = (ticks.len() - 1).div_ceil(BATCHES).max(1);
    let edges: Vec<(u64, u64)> = ticks.iter().copied().step_by(joined).collect();
    edges
        .windows(2)
        .filter(|w| w[1].0 > w[0].0)
        .map(|w| (w[1].1.saturating_sub(w[0].1)) as f64 * 1e9 / (w[1].0 - w[0].0) as f64)
        .collect()
}

/// The mean of independent values and its Student interval; `None` when empty. One value has no
/// interval: low and high are the value itself, and `samples` says 1.
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

/// The mean of values that follow each other in time, with Student's interval for their effective
/// number, as [`rate_per_s`] takes it for batches. `None` with fewer than two.
pub fn mean_over_time(values: &[f64]) -> Option<Estimate> {
    if values.len() < 2 {
        return None;
    }
    let value = values.iter().sum::<f64>() / values.len() as f64;
    let half = half_width(values);
    Some(Estimate::around(value, half, values.len() as u64, 0))
}

/// One estimate from repeats of the same rate or latency: the mean of their values, with the wider
/// of the interval between the repeats and the mean interval within them. `None` when empty.
pub fn pool(repeats: &[Estimate]) -> Option<Estimate> {
    let between = mean(&repeats.iter().map(|r| r.value).collect::<Vec<_>>())?;
    let within = repeats.iter().map(|r| (r.high - r.low) / 2.0).sum::<f64>() / repeats.len() as f64;
    let half = ((between.high - between.low) / 2.0).max(within);
    let samples = repeats.iter().map(|r| r.samples).sum();
    let duration_ns = repeats.iter().map(|r| r.duration_ns).sum();
    Some(Estimate::around(between.value, half, samples, duration_ns).not_negative())
}

/// The ratio b ÷ a of two rates or latencies with its interval: the half widths are taken as
/// independent and combined as relative errors in quadrature. `None` when `a` is zero.
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

/// Whether the last `last` slices of a counter show no trend: the means of their first and second
/// half differ by less than twice the standard error of that difference, or by less than 2 %.
/// Used to detect the end of a warm-up. False when there are fewer slices.
pub fn settled(ticks: &[(u64, u64)], last: usize) -> bool {
    if last < 2 || ticks.len() <= last {
        return false;
    }
    let rates: Vec<f64> = ticks[ticks.len() - last - 1..]
        .windows(2)
        .map(|w| (w[1].1 - w[0].1) as f64 / (w[1].0 - w[0].0).max(1) as f64)
        .collect();
    let (a, b) = rates.split_at(rates.len() / 2);
    let (Some(a_mean), Some(b_mean)) = (mean(a), mean(b)) else { return false };
    let difference = (a_mean.value - b_mean.value).abs();
    let error = (variance(a, a_mean.value) / a.len() as f64
        + variance(b, b_mean.value) / b.len() as f64)
        .sqrt();
    let level = f64::midpoint(a_mean.value, b_mean.value);
    level > 0.0 && (difference <= 2.0 * error || difference <= 0.02 * level)
}

/// Standard deviation ÷ mean; zero when there is no mean.
pub fn coefficient_of_variation(values: &[f64]) -> f64 {
    let Some(centre) = mean(values) else { return 0.0 };
    if centre.value == 0.0 { 0.0 } else { variance(values, centre.value).sqrt() / centre.value }
}

/// The median; zero when empty.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n.is_multiple_of(2) => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        n => sorted[n / 2],
    }
}

fn slope(ticks: &[(u64, u64)]) -> f64 {
    let (t_0, c_0) = ticks[0];
    let n = ticks.len() as f64;
    let points = || ticks.iter().map(|&(t, c)| ((t - t_0) as f64, (c - c_0) as f64));
    let t_mean = points().map(|p| p.0).sum::<f64>() / n;
    let c_mean = points().map(|p| p.1).sum::<f64>() / n;
    let covariance: f64 = points().map(|(t, c)| (t - t_mean) * (c - c_mean)).sum();
    let spread: f64 = points().map(|(t, _)| (t - t_mean).powi(2)).sum();
    covariance / spread
}

fn half_width(slices: &[f64]) -> f64 {
    let n = slices.len();
    if n < 2 {
        return f64::INFINITY;
    }
    let centre = slices.iter().sum::<f64>() / n as f64;
    let variance = variance(slices, centre);
    if variance == 0.0 {
        return 0.0;
    }
    let products: f64 = slices.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum();
    let correlation = (products / (variance * (n - 1) as f64)).clamp(-0.8, 0.9);
    let effective = (n as f64 * (1.0 - correlation) / (1.0 + correlation)).max(2.0);
    let freedom = (effective.min(n as f64) as usize).saturating_sub(1).max(1);
    t_95(freedom) * (variance / effective).sqrt()
}

/// Unbiased variance; zero for fewer than two values.
fn variance(values: &[f64], centre: f64) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// Two-sided 95 % point of Student's t.
fn t_95(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => TABLE[freedom - 1],
        // Cornish-Fisher: within 0.001 of the exact value from 30 degrees on.
        n => 1.96 + 2.372 / n as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn bursts_of_a_throttle_do_not_bend_the_rate() {
        // 437 I/Os a second released every 100 ms, seen every 70 ms: the edges fall anywhere.
        let ticks: Vec<(u64, u64)> = (0..45_u64)
            .map(|i| i * 70_000_000)
            .map(|t| (t, (t / 100_000_000 + 1) * 437 / 10))
            .collect();
        let rate = rate_per_s(&ticks).unwrap();
        assert!((rate.value / 437.0 - 1.0).abs() < 0.01, "{rate:?}");
    }

    #[test]
    fn intervals_hold_the_true_rate_about_as_often_as_they_say() {
        let mut rng = Rng::new(11, 0);
        let mut hits = 0;
        for _ in 0..400 {
            let mut total = 0;
            let ticks: Vec<(u64, u64)> = (0..21)
                .map(|i| {
                    total += 900 + rng.below(201);
                    (i * 100_000_000, total)
                })
                .collect();
            let rate = rate_per_s(&ticks).unwrap();
            hits += u32::from(rate.low <= 10_000.0 && 10_000.0 <= rate.high);
        }
        assert!((350..=400).contains(&hits), "{hits} of 400 intervals hold the rate");
    }

    #[test]
    fn a_ramp_is_not_settled_and_a_plateau_is() {
        let ramp: Vec<(u64, u64)> = (0..20_u64).map(|i| (i * 50, i * i * 100)).collect();
        let flat: Vec<(u64, u64)> = (0..20_u64).map(|i| (i * 50, i * 100)).collect();
        assert!(!settled(&ramp, 8));
        assert!(settled(&flat, 8));
        assert!(!settled(&flat[..4], 8));
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
        assert!((near.high - near.low - 2.0).abs() < 1e-9);
        assert!(far.high - far.low > 40.0);
        assert_eq!(far.samples, 30);
    }

    #[test]
    fn ratio_combines_relative_errors() {
        let a = Estimate { value: 100.0, low: 97.0, high: 103.0, samples: 9, duration_ns: 1 };
        let b = Estimate { value: 200.0, low: 192.0, high: 208.0, samples: 9, duration_ns: 1 };
        let r = ratio(&a, &b).unwrap();
        assert!((r.value - 2.0).abs() < 1e-12);
        assert!((r.high - 2.1).abs() < 1e-9, "{r:?}");
    }
}
