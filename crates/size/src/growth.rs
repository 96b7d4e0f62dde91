//! Growth of the need: the slope of the weekly 95th percentile, and its extrapolation.

use blockstone_base::rng::Rng;
use blockstone_base::stats::{Estimate, slope};

use crate::percentile::Weighted;

const WEEK_S: f64 = 7.0 * 86_400.0;
/// Fewer weeks say nothing about a trend.
pub const WEEKS_MIN: usize = 5;
/// A week of which less than this share was observed is left out.
const OBSERVED_MIN: f64 = 0.5;
const RESAMPLES: usize = 1_000;
/// Maximum number of weeks used: a slope is the median over pairs, which takes seconds for more.
const WEEKS_MAX: usize = 60;
const SEED: u64 = 0x5125;

#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// Growth per week, with an interval from resampled weeks.
    pub per_week: Estimate,
    /// The need after as many further weeks as were observed, by the same slope, and not later.
    pub after: Estimate,
    pub weeks: usize,
}

/// Returns the growth of values with their starts and lengths, in order of time; or why there is
/// none.
pub fn growth(values: &[(f64, Weighted)]) -> Result<Growth, String> {
    let first_s = values.iter().map(|it| it.0).fold(f64::INFINITY, f64::min);
    let week_of = |begin_s: f64| ((begin_s - first_s) / WEEK_S).floor() as usize;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for week in values.chunk_by(|a, b| week_of(a.0) == week_of(b.0)) {
        let held: Vec<Weighted> = week.iter().map(|it| it.1).collect();
        let seconds: f64 = held.iter().map(|it| it.1).sum();
        if seconds >= OBSERVED_MIN * WEEK_S {
            let mut sorted: Vec<f64> = held.iter().map(|it| it.0).collect();
            sorted.sort_by(f64::total_cmp);
            let rank = (0.95 * sorted.len() as f64).ceil() as usize;
            points.push((week_of(week[0].0) as f64, sorted[rank.max(1) - 1]));
        }
    }
    let weeks = points.len();
    if weeks < WEEKS_MIN {
        return Err(format!("no growth: it takes {WEEKS_MIN} whole weeks, and there are {weeks}"));
    }
    let points = &points[weeks.saturating_sub(WEEKS_MAX)..];
    let found = slope(points).ok_or("the weeks are all the same one")?;
    let (low, high) = resampled(points);
    let per_week = Estimate { low, high, ..found };
    let mut levels: Vec<f64> = points.iter().map(|(x, y)| y - found.value * x).collect();
    levels.sort_by(f64::total_cmp);
    let level = levels[levels.len() / 2];
    let last = points.last().map_or(0.0, |it| it.0);
    let ahead = points.len() as f64;
    let now = level + found.value * last;
    let after = Estimate {
        value: now + found.value * ahead,
        low: now + low * ahead,
        high: now + high * ahead,
        ..found
    };
    Ok(Growth { per_week, after: after.not_negative(), weeks })
}

/// Returns the bounds of 95 % of the slopes of weeks drawn with replacement.
fn resampled(points: &[(f64, f64)]) -> (f64, f64) {
    let mut random = Rng::new(SEED, 0);
    let mut slopes: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let mut drawn: Vec<(f64, f64)> =
                points.iter().map(|_| points[random.below(points.len() as u64) as usize]).collect();
            drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
            median_slope(&drawn)
        })
        .collect();
    slopes.sort_by(f64::total_cmp);
    let at = |share: f64| slopes.get((share * (slopes.len() as f64 - 1.0)).round() as usize);
    (at(0.025).copied().unwrap_or(f64::NEG_INFINITY), at(0.975).copied().unwrap_or(f64::INFINITY))
}

fn median_slope(points: &[(f64, f64)]) -> Option<f64> {
    slope(points).map(|it| it.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weeks(count: usize, of_week: impl Fn(usize) -> f64) -> Vec<(f64, Weighted)> {
        let hours = 0..count * 168;
        let value = |hour: usize| of_week(hour / 168) + (hour % 24) as f64;
        hours.map(|hour| (hour as f64 * 3_600.0, (value(hour), 3_600.0))).collect()
    }

    #[test]
    fn a_steady_growth_is_found_and_four_weeks_are_refused() {
        let found = growth(&weeks(8, |week| 100.0 + 5.0 * week as f64)).unwrap();
        assert!((found.per_week.value - 5.0).abs() < 1e-9, "{found:?}");
        assert!(found.per_week.low > 4.9 && found.per_week.high < 5.1, "{found:?}");
        // 100 + 22 in an hour of each day, 7 weeks of growth, and 8 more weeks.
        assert!((found.after.value - (122.0 + 5.0 * 15.0)).abs() < 1e-6, "{found:?}");
        let refused = growth(&weeks(4, |_| 1.0)).unwrap_err();
        assert!(refused.contains("5 whole weeks, and there are 4"), "{refused}");
        assert!(growth(&[]).is_err());
    }

    #[test]
    fn one_odd_week_does_not_make_a_growth() {
        let odd = growth(&weeks(9, |week| if week == 7 { 5_000.0 } else { 100.0 })).unwrap();
        assert!(odd.per_week.value.abs() < 1e-9, "{odd:?}");
    }
}
