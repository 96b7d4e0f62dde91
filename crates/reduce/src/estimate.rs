//! Estimates for all contents from a share of them.
//!
//! The fingerprints of distinct contents are practically random, so the number of `D` contents that
//! fall into the share is binomial with probability `p` = 2^-n. `D` is estimated as the number
//! found ÷ p; its interval is that of a binomial count by the normal approximation, with 99 %
//! confidence. The number of occurrences does not matter: all blocks were counted.

use serde::Serialize;

/// Standard deviations to either side that cover 99 %.
pub const Z_99: f64 = 2.575_829;

/// A figure with the interval that holds its true value in 99 of 100 cases; for exact figures the
/// interval is a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub value: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Number of contents or blocks that it was estimated from; 0 for exact figures.
    pub samples: u64,
}

impl Interval {
    /// Creates an exact figure.
    pub const fn exact(value: f64) -> Self {
        Self { value, low: value, high: value, samples: 0 }
    }

    pub fn is_exact(&self) -> bool {
        (self.high - self.low).abs() <= f64::EPSILON * self.value.abs()
    }

    /// Divides by `other`, combining each bound with the opposite bound of the other.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        Self {
            value: self.value / other.value,
            low: self.low / other.high,
            high: self.high / other.low,
            samples: self.fewer_samples(other),
        }
    }

    /// Multiplies by `other`; both must be positive.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self {
            value: self.value * other.value,
            low: self.low * other.low,
            high: self.high * other.high,
            samples: self.fewer_samples(other),
        }
    }

    /// Returns the samples of the figure that has fewer.
    fn fewer_samples(self, other: Self) -> u64 {
        match (self.samples, other.samples) {
            (0, samples) | (samples, 0) => samples,
            (a, b) => a.min(b),
        }
    }

    /// Adds an exact number.
    #[must_use]
    pub fn plus(self, other: f64) -> Self {
        let [value, low, high] = [self.value, self.low, self.high].map(|it| it + other);
        Self { value, low, high, ..self }
    }

    /// Multiplies by an exact positive number.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        self.times(Self::exact(factor))
    }
}

/// Estimates the number of distinct contents if `kept` of them are in a share of 2^-`share_log2`.
pub fn contents(kept: usize, share_log2: u32) -> Interval {
    let (kept, samples) = (kept as f64, kept as u64);
    if share_log2 == 0 {
        return Interval::exact(kept);
    }
    let share = 0.5_f64.powi(share_log2 as i32);
    // Wilson's interval, solved for the number of trials instead of the probability; one content
    // more or less is the resolution of a count.
    let half_width = Z_99 * ((kept + 1.0) * (1.0 - share)).sqrt() + 1.0;
    Interval {
        value: kept / share,
        low: ((kept - half_width) / share).max(kept),
        high: (kept + half_width) / share,
        samples,
    }
}

/// Least and greatest possible value.
pub type Bounds = (u32, u32);

/// Estimates the mean of all of `population` values, which lie within `bounds`, from the `values`
/// drawn. Sums are of whole numbers, so the order of the values does not affect the result.
///
/// The interval is the normal one, wider on either side by what the drawn values cannot show: see
/// [`missed`]. Without that, values that are all equal would have an interval without width. The
/// tests compute its coverage for populations of two values, which are the worst: such a population
/// has all of its mean in a few values that are as large, or as small, as any can be.
pub fn mean(
    values: impl Iterator<Item = u32>,
    population: f64,
    bounds: Bounds,
) -> Option<Interval> {
    let (mut count, mut sum, mut squares) = (0_u64, 0_u64, 0_u128);
    for value in values {
        count += 1;
        sum += u64::from(value);
        squares += u128::from(value) * u128::from(value);
    }
    if count == 0 {
        return None;
    }
    let drawn = count as f64;
    let mean = sum as f64 / drawn;
    let variance = if count > 1 {
        // count × Σv² − (Σv)² is a whole number too.
        let spread = u128::from(count) * squares - u128::from(sum) * u128::from(sum);
        spread as f64 / drawn / (drawn - 1.0)
    } else {
        0.0
    };
    let half_width = half_width(variance, drawn, population);
    Some(around(mean, half_width, missed(drawn, population), bounds, count))
}

/// Estimates the share of a kind of which `found` are among `drawn`, as [`mean`] of ones and zeros.
pub fn share(found: u64, drawn: u64, population: f64) -> Option<Interval> {
    let (count, share) = (drawn as f64, found.min(drawn) as f64 / drawn as f64);
    let variance = share * (1.0 - share) * count / (count - 1.0).max(1.0);
    let half_width = half_width(variance, count, population);
    let missed = missed(count, population);
    (drawn > 0).then(|| around(share, half_width, missed, (0, 1), drawn))
}

/// Half width of the interval of the mean of `drawn` values out of `population`.
fn half_width(variance: f64, drawn: f64, population: f64) -> f64 {
    Z_99 * (variance / drawn * left_out(drawn, population)).sqrt()
}

/// Fraction of the population that was not drawn.
fn left_out(drawn: f64, population: f64) -> f64 {
    (1.0 - drawn / population.max(drawn)).max(0.0)
}

/// Greatest fraction of the population that `drawn` values may all miss in more than one of 200
/// cases, whatever these values are: n draws miss a fraction f with a probability of (1 − f)^n at
/// most, and if D of P values are drawn, M of them are missed with (1 − D/P)^M.
fn missed(drawn: f64, population: f64) -> f64 {
    let left_out = left_out(drawn, population);
    if left_out <= 0.0 {
        return 0.0;
    }
    let values = 200_f64.ln() / -left_out.ln();
    (values / population).min(left_out)
}

/// Widens the interval on either side as if the missed values were at the bounds.
fn around(value: f64, half_width: f64, missed: f64, bounds: Bounds, samples: u64) -> Interval {
    let (least, most) = (f64::from(bounds.0), f64::from(bounds.1));
    let low = value - half_width - missed * (value - least).max(0.0);
    let high = value + half_width + missed * (most - value).max(0.0);
    Interval { value, low: low.max(least.min(value)), high: high.min(most.max(value)), samples }
}

/// Mean of values within `bounds`, each weighted by its number of blocks: Σ count × value ÷
/// Σ count, with the interval of a ratio estimate (Cochran, Sampling Techniques, 1977, section
/// 2.11), wider as that of [`mean`].
pub fn weighted_mean(values: &[(u32, u32)], population: f64, bounds: Bounds) -> Option<Interval> {
    let (mut drawn, mut blocks, mut sum) = (0_u64, 0_u64, 0_u64);
    for &(count, value) in values {
        drawn += 1;
        blocks += u64::from(count);
        sum += u64::from(count) * u64::from(value);
    }
    if blocks == 0 {
        return None;
    }
    let (samples, drawn, mean) = (drawn, drawn as f64, sum as f64 / blocks as f64);
    let residual = |&(count, value): &(u32, u32)| f64::from(count) * (f64::from(value) - mean);
    let squares: f64 = values.iter().map(|it| residual(it).powi(2)).sum();
    let variance = squares / (drawn - 1.0).max(1.0);
    let half_width = half_width(variance, drawn, population) / (blocks as f64 / drawn);
    Some(around(mean, half_width, missed(drawn, population), bounds, samples))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest;
    use crate::table::{Location, Table};

    #[test]
    fn what_was_counted_has_no_interval() {
        assert!(contents(77, 0).is_exact());
        let all = mean([1, 3].into_iter(), 2.0, (0, 9)).unwrap();
        assert!(all.is_exact() && (all.value - 2.0).abs() < 1e-12);
        assert_eq!(mean(std::iter::empty(), 5.0, (0, 9)), None);
        let estimate = Interval { value: 2.0, low: 1.0, high: 3.0, samples: 9 };
        let ratio = Interval::exact(6.0).over(estimate);
        assert_eq!(ratio, Interval { value: 3.0, low: 2.0, high: 6.0, samples: 9 });
        let ones = [1, 0, 0, 1, 0].into_iter();
        let [mean, share] = [mean(ones, 9.0, (0, 1)), share(2, 5, 9.0)].map(Option::unwrap);
        assert!((mean.low - share.low).abs() + (mean.high - share.high).abs() < 1e-12);
        assert_eq!(super::share(0, 0, 9.0), None);
        let product = ratio.times(Interval { samples: 4, ..estimate });
        assert_eq!(product, Interval { value: 6.0, low: 2.0, high: 18.0, samples: 4 });
    }

    #[test]
    fn the_true_number_of_contents_lies_in_the_interval() {
        let mut inside = 0;
        for seed in 0_u64..100 {
            let mut table = Table::new(32 << 10);
            for content in 0..20_000_u64 {
                table.see(digest::of(&(seed << 32 | content).to_le_bytes()), Location::new(0, 0));
            }
            let estimate = contents(table.len(), table.share_log2());
            inside += u32::from((estimate.low..=estimate.high).contains(&20_000.0));
        }
        assert!(inside >= 96, "{inside} of 100");
    }

    /// Probabilities of every number of rare values among `drawn`, of `rare` ones in `population`:
    /// the hypergeometric distribution, by the ratio of neighbours from its mode on.
    fn hypergeometric(population: u32, rare: u32, drawn: u32) -> Vec<f64> {
        let (least, most) = ((rare + drawn).saturating_sub(population), rare.min(drawn));
        let ratio = |found: u32| {
            let ways = f64::from(rare - found) * f64::from(drawn - found);
            let others = f64::from(found + 1) * f64::from(population + found + 1 - rare - drawn);
            ways / others
        };
        let mode = (f64::from(drawn + 1) * f64::from(rare + 1) / f64::from(population + 2)) as u32;
        let mode = mode.clamp(least, most);
        let mut chances = vec![0.0; most as usize + 1];
        chances[mode as usize] = 1.0;
        for found in mode..most {
            chances[found as usize + 1] = chances[found as usize] * ratio(found);
        }
        for found in (least..mode).rev() {
            chances[found as usize] = chances[found as usize + 1] / ratio(found);
        }
        let all: f64 = chances.iter().sum();
        chances.into_iter().map(|chance| chance / all).collect()
    }

    /// The least coverage of the interval of a mean over populations of two values at the bounds.
    fn least_coverage(population: u32, drawn: u32, bounds: Bounds) -> (f64, u32) {
        let (least, most) = bounds;
        let truth = |rare: u32| {
            (f64::from(most) * f64::from(rare) + f64::from(least) * f64::from(population - rare))
                / f64::from(population)
        };
        let intervals: Vec<Interval> = (0..=drawn)
            .map(|found| {
                let values = std::iter::repeat_n(most, found as usize)
                    .chain(std::iter::repeat_n(least, (drawn - found) as usize));
                mean(values, population.into(), bounds).unwrap()
            })
            .collect();
        // Every number while it is small, then steps of a twentieth.
        let mut numbers: Vec<u32> = std::iter::successors(Some(1), |&n| Some(n + 1 + n / 20))
            .take_while(|&rare| rare <= population / 2)
            .collect();
        numbers.extend(numbers.clone().into_iter().map(|rare| population - rare));
        let coverage = numbers.into_iter().map(|rare| {
            let truth = truth(rare);
            let chances = hypergeometric(population, rare, drawn);
            let covered = chances
                .iter()
                .zip(&intervals)
                .filter(|(_, it)| (it.low - 1e-9..=it.high + 1e-9).contains(&truth));
            (covered.map(|(chance, _)| chance).sum::<f64>(), rare)
        });
        coverage.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
    }

    #[test]
    fn the_true_mean_lies_in_the_interval_however_few_values_decide_it() {
        for (population, drawn) in
            [(50, 20), (1000, 16), (1000, 250), (1000, 900), (100_000, 64), (20_000, 512)]
        {
            let (coverage, rare) = least_coverage(population, drawn, (512, 8192));
            assert!(coverage >= 0.99, "{drawn} of {population}, {rare} rare: {coverage}");
        }
    }
}
