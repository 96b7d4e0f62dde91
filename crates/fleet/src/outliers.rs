//! Ranks that are slower or faster than the others.

use blockstone_base::stats::median;

/// Fewest ranks that say what is usual.
const FEWEST: usize = 3;
/// Smallest deviation from the median that matters.
const LEAST_RATIO: f64 = 0.2;
/// Median absolute deviations beyond which a rank is apart; 5 of normally distributed rates are
/// exceeded by fewer than one rank in a thousand.
const DEVIATIONS: f64 = 5.0;
/// Median absolute deviation of a normal distribution with deviation 1, inverted.
const OF_NORMAL: f64 = 1.4826;

/// Returns, for each rate, its ratio to the median if it is an outlier. Median and median absolute
/// deviation are used because an outlier does not move them.
pub fn ratios(rates: &[Option<f64>]) -> Vec<Option<f64>> {
    let known: Vec<f64> = rates.iter().flatten().copied().collect();
    let none = || vec![None; rates.len()];
    if known.len() < FEWEST {
        return none();
    }
    let middle = median(&known);
    if middle <= 0.0 {
        return none();
    }
    let away: Vec<f64> = known.iter().map(|rate| (rate - middle).abs()).collect();
    let deviation = OF_NORMAL * median(&away);
    let apart = |rate: f64| {
        let away = (rate - middle).abs();
        away > LEAST_RATIO * middle && away > DEVIATIONS * deviation
    };
    rates.iter().map(|rate| rate.filter(|rate| apart(*rate)).map(|rate| rate / middle)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throttled_rank_is_named_and_usual_spread_is_not() {
        let usual = [Some(100.0), Some(103.0), Some(97.0), Some(101.0), Some(99.0)];
        assert_eq!(ratios(&usual), [None; 5]);
        let mut one_slow = usual.to_vec();
        one_slow.push(Some(10.0));
        let found = ratios(&one_slow);
        assert!(found[..5].iter().all(Option::is_none), "{found:?}");
        assert!((found[5].unwrap() - 10.0 / 99.5).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn two_ranks_or_unknown_rates_have_no_usual_rate() {
        assert_eq!(ratios(&[Some(1.0), Some(100.0)]), [None; 2]);
        assert_eq!(ratios(&[None, None, None, None]), [None; 4]);
        assert_eq!(ratios(&[Some(0.0); 4]), [None; 4]);
    }
}
