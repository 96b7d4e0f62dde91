//! Intervals for what was chosen from several points because it is best. The fastest of many is
//! fast partly by chance, so that intervals that each hold their own point's rate in 95 of 100
//! cases hold the rate of the fastest less often.

use blockstone_base::stats::{self, Estimate};
use statrs::distribution::{Continuous, ContinuousCDF, Gamma, Normal};

use crate::student::{self, CONFIDENCE, FREEDOM_OF_ONE};

/// Returns the estimate of a point that was chosen from `points` points because of what was
/// measured, with the interval of Šidák: the intervals of all points hold together in at least 95
/// of 100 cases, and so does that of the chosen one, however it was chosen (Z. Šidák, J. Am. Stat.
/// Assoc. 62, 1967). `windows` is the number of windows pooled into the estimate.
#[must_use]
pub fn chosen_from(points: usize, windows: u32, estimate: Estimate) -> Estimate {
    if points < 2 {
        return estimate;
    }
    let freedom = if windows > 1 { f64::from(windows - 1) } else { FREEDOM_OF_ONE };
    let each = CONFIDENCE.powf(1.0 / points as f64);
    let t = |confidence| student::two_sided(confidence, freedom);
    wider(estimate, t(each) / t(CONFIDENCE))
}

/// Returns fastest ÷ slowest of `points`, with the interval of Tukey's studentized range, which
/// holds for the two that differ most, in place of that for two points named beforehand (J. W.
/// Tukey 1953; C. Y. Kramer, Biometrics 12, 1956, where the errors differ). `None` if the slowest
/// is zero.
pub fn ratio_of_extremes(
    points: usize,
    slowest: &Estimate,
    fastest: &Estimate,
) -> Option<Estimate> {
    let t = student::two_sided(CONFIDENCE, FREEDOM_OF_ONE);
    let by = studentized_range(points.max(2), FREEDOM_OF_ONE) / (std::f64::consts::SQRT_2 * t);
    stats::ratio(&wider(*slowest, by), &wider(*fastest, by))
}

/// Scales each side of the interval by `by`. What cannot be below zero stays so.
fn wider(estimate: Estimate, by: f64) -> Estimate {
    let Estimate { value, low, high, .. } = estimate;
    let floor = if low < 0.0 { f64::NEG_INFINITY } else { 0.0 };
    let below = (value - (value - low) * by).max(floor);
    Estimate { low: below, high: value + (high - value) * by, ..estimate }
}

/// Returns the value that is exceeded in 5 of 100 cases by the range of `points` standard normal
/// numbers divided by an independent estimate of their deviation with `freedom` degrees of freedom.
fn studentized_range(points: usize, freedom: f64) -> f64 {
    // 18 halvings are exact to 0.0003.
    let (mut low, mut high) = (0.0, 64.0);
    for _ in 0..18 {
        let middle = f64::midpoint(low, high);
        if below(middle, points, freedom) < CONFIDENCE {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Returns the probability that the studentized range is at most `range`.
fn below(range: f64, points: usize, freedom: f64) -> f64 {
    // freedom × the variance has the distribution χ², so the variance has this one.
    let Ok(variance) = Gamma::new(freedom / 2.0, freedom / 2.0) else { return f64::NAN };
    integral(0.0, 4.0, |deviation| {
        let density = 2.0 * deviation * variance.pdf(deviation * deviation);
        if density < 1e-9 { 0.0 } else { density * range_below(range * deviation, points) }
    })
}

/// Returns the probability that the range of standard normal numbers is at most `range`: the least
/// is at z, all others are within `range` above it.
fn range_below(range: f64, points: usize) -> f64 {
    let normal = Normal::standard();
    integral(-7.0, 7.0, |z| {
        let within = normal.cdf(z + range) - normal.cdf(z);
        points as f64 * normal.pdf(z) * within.powi(points as i32 - 1)
    })
}

/// Simpson's rule.
fn integral(from: f64, to: f64, of: impl Fn(f64) -> f64) -> f64 {
    const PARTS: u32 = 80;
    let step = (to - from) / f64::from(PARTS);
    let weighted = |part: u32| {
        let weight = match part {
            0 | PARTS => 1.0,
            _ if part % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * of(from + step * f64::from(part))
    };
    (0..=PARTS).map(weighted).sum::<f64>() * step / 3.0
}

#[cfg(test)]
mod tests {
    use blockstone_base::dist::normal;
    use blockstone_base::rng::Rng;

    use super::*;

    #[test]
    fn the_studentized_range_agrees_with_published_tables() {
        // Pearson and Hartley, Biometrika Tables for Statisticians I, table 29, 5 %.
        let nine = [3.20, 3.95, 4.41, 4.76, 5.02, 5.24, 5.43, 5.59, 5.74];
        let nine = nine.into_iter().zip(2..).map(|(table, points)| (points, 9.0, table));
        let others =
            [(2, 10.0, 3.15), (3, 10.0, 3.88), (4, 20.0, 3.96), (5, 19.0, 4.25), (10, 60.0, 4.65)];
        for (points, freedom, table) in nine.chain(others) {
            let range = studentized_range(points, freedom);
            assert!((range - table).abs() < 0.0055, "{points}, {freedom}: {range}");
        }
    }

    #[test]
    fn one_point_and_two_named_points_keep_their_intervals() {
        let estimate = Estimate::around(100.0, 3.0, 9, 1);
        assert_eq!(chosen_from(1, 1, estimate), estimate);
        let ratio = ratio_of_extremes(2, &estimate, &estimate).unwrap();
        let named = stats::ratio(&estimate, &estimate).unwrap();
        assert!((ratio.high - named.high).abs() < 1e-3, "{ratio:?}");
    }

    #[test]
    fn intervals_grow_on_the_sides_that_they_have() {
        // Student's t with 9 degrees of freedom: 3.099 for four at once, 2.262 for one.
        let of_four = chosen_from(4, 1, Estimate::around(100.0, 3.0, 9, 1));
        assert!((of_four.high - 104.110).abs() < 0.002, "{of_four:?}");
        // With two degrees of freedom: 8.775 and 4.303.
        let pooled = chosen_from(4, 3, Estimate::around(100.0, 3.0, 9, 1));
        assert!((pooled.high - 106.118).abs() < 0.002, "{pooled:?}");
        let open = chosen_from(4, 1, Estimate { low: 9.0, ..Estimate::at_least(10.0, 3, 9) });
        assert!(open.low < 9.0 && open.is_open_above(), "{open:?}");
        let bound = Estimate::at_least(10.0, 3, 9);
        assert_eq!(chosen_from(4, 1, bound), bound);
        let wide = Estimate { low: 0.0, ..Estimate::around(1.0, 9.0, 9, 1) };
        assert!(chosen_from(4, 1, wide).low.abs() < f64::EPSILON);
        let negative = Estimate::around(-0.1, 0.1, 9, 1);
        assert!(chosen_from(4, 1, negative).low < -0.2);
    }

    /// Eight points whose rate is 100, in 1,000 trials: the least and the greatest estimate of each
    /// trial.
    fn extremes() -> Vec<(Estimate, Estimate)> {
        let by = |a: &Estimate, b: &Estimate| a.value.total_cmp(&b.value);
        let trial = |seed: u64| {
            let mut rng = Rng::new(seed, 0);
            let mut one = || {
                let values: Vec<f64> = (0..20).map(|_| 100.0 + 5.0 * normal(&mut rng)).collect();
                stats::mean(&values).unwrap()
            };
            let mut points: Vec<Estimate> = (0..8).map(|_| one()).collect();
            points.sort_by(by);
            (points[0], points[7])
        };
        (0..1000).map(trial).collect()
    }

    #[test]
    fn the_fastest_of_equal_points_holds_their_rate_in_95_of_100_trials() {
        let trials = extremes();
        let held = |estimate: Estimate| estimate.low <= 100.0 && 100.0 <= estimate.high;
        let plain = trials.iter().filter(|it| held(it.1)).count();
        let chosen = trials.iter().filter(|it| held(chosen_from(8, 1, it.1))).count();
        assert!(plain < 880 && chosen >= 950, "{plain}, {chosen} of 1000");
    }

    #[test]
    fn of_equal_points_none_is_called_faster_in_95_of_100_trials() {
        let trials = extremes();
        let one = |ratio: Option<Estimate>| ratio.is_some_and(|ratio| ratio.low <= 1.0);
        let plain = trials.iter().filter(|(low, high)| one(stats::ratio(low, high))).count();
        assert!(plain < 700, "{plain} of 1000");
        let some = &trials[..200];
        let tukey = some.iter().filter(|(low, high)| one(ratio_of_extremes(8, low, high))).count();
        assert!(tukey >= 188, "{tukey} of 200");
    }
}
