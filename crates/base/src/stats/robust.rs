//! Estimates that a few disturbed samples do not move: a median and a slope, each with an interval
//! that assumes no distribution.

use super::{Estimate, median};

/// Standard normal quantile of a two-sided 95 % interval.
const Z: f64 = 1.96;

/// Returns the median of `values`; the ends of its interval are two of them (the sign test
/// inverted: the fewest of `n` fair coins that fall on one side in more than 2.5 % of throws). With
/// fewer than six values no two enclose it with 95 %, and the ends are infinite. `None` without
/// values.
pub fn median_of(values: &[f64]) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let (mut chance, mut below, mut outside) = (0.5_f64.powi(n as i32), 0.0, 0);
    while outside < n && below + chance <= 0.025 {
        below += chance;
        chance *= (n - outside) as f64 / (outside + 1) as f64;
        outside += 1;
    }
    let (low, high) = match outside {
        0 => (f64::NEG_INFINITY, f64::INFINITY),
        outside => (*sorted.get(outside - 1)?, *sorted.get(n - outside)?),
    };
    (n > 0).then(|| Estimate {
        value: median(&sorted),
        low,
        high,
        samples: n as u64,
        duration_ns: 0,
    })
}

/// Returns the slope of `y` over `x` of points `(x, y)`: the median of the slopes between every two
/// points with different `x`; the ends of its interval are two of these slopes, by the variance of
/// Kendall's score with ties in `x` (P. K. Sen, J. Am. Stat. Assoc. 63, 1968). `None` without two
/// different `x`.
pub fn slope(points: &[(f64, f64)]) -> Option<Estimate> {
    let mut slopes = Vec::new();
    for (at, a) in points.iter().enumerate() {
        let later = points[at + 1..].iter().filter(|b| b.0.total_cmp(&a.0).is_ne());
        slopes.extend(later.map(|b| (b.1 - a.1) / (b.0 - a.0)));
    }
    slopes.sort_by(f64::total_cmp);
    let last = slopes.len().checked_sub(1)?;
    let mut xs: Vec<f64> = points.iter().map(|point| point.0).collect();
    xs.sort_by(f64::total_cmp);
    let term = |n: usize| (n * (n - 1) * (2 * n + 5)) as f64;
    let ties: f64 = xs.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|same| term(same.len())).sum();
    let spread = Z * ((term(points.len()) - ties) / 18.0).sqrt();
    let at = |rank: f64| slopes[(rank.max(0.0) as usize).min(last)];
    let all = slopes.len() as f64;
    Some(Estimate {
        value: median(&slopes),
        low: at(f64::midpoint(all, -spread).floor() - 1.0),
        high: at(f64::midpoint(all, spread).ceil()),
        samples: points.len() as u64,
        duration_ns: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_interval_of_a_median_is_that_of_the_sign_test() {
        let values = |n: u32| (1..=n).map(f64::from).collect::<Vec<_>>();
        let ends = |n| median_of(&values(n)).map(|m| (m.low, m.value, m.high));
        // Tables of the sign test: of 6 values the outermost, of 10 the second, of 20 the sixth.
        assert_eq!(ends(6), Some((1.0, 3.5, 6.0)));
        assert_eq!(ends(10), Some((2.0, 5.5, 9.0)));
        assert_eq!(ends(20), Some((6.0, 10.5, 15.0)));
        assert_eq!(ends(5), Some((f64::NEG_INFINITY, 3.0, f64::INFINITY)));
        assert!(median_of(&[]).is_none());
    }

    #[test]
    fn a_slope_is_found_under_noise_and_outliers_in_nearly_all_of_its_intervals() {
        let (mut held, mut found) = (0, 0);
        for seed in 0..400 {
            let mut rng = Rng::new(seed, 0);
            let mut points = Vec::new();
            for _ in 0..12 {
                for x in [0.0, 1.0, 16.0, 128.0] {
                    let noise = 20.0 * (rng.unit() + rng.unit() - 1.0);
                    let outlier = if rng.unit() < 0.05 { 2_000.0 } else { 0.0 };
                    points.push((x, 50.0 + 0.5 * x + noise + outlier));
                }
            }
            let slope = slope(&points).unwrap();
            held += usize::from(slope.low <= 0.5 && 0.5 <= slope.high);
            found += usize::from(slope.low > 0.0);
        }
        assert!(held >= 370 && found == 400, "{held} hold, {found} above nothing, of 400");
    }

    #[test]
    fn no_slope_is_seldom_taken_for_one() {
        let certain = (0..400).filter(|&seed| {
            let mut rng = Rng::new(seed, 1);
            let xs = (0..12).flat_map(|_| [0.0, 1.0, 16.0, 128.0]);
            let points: Vec<_> = xs.map(|x| (x, 50.0 + 20.0 * rng.unit())).collect();
            slope(&points).unwrap().low > 0.0
        });
        assert!(certain.count() <= 20, "2.5 % of 400 are expected");
        assert!(slope(&[(1.0, 2.0), (1.0, 3.0)]).is_none());
    }
}
