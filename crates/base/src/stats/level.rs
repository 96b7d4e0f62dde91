//! Tests whether a rate stays level, by an equivalence test, and finds where to cut off the start.
//!
//! Finding no change says little about a short or noisy stretch, because no test finds one there.
//! An equivalence test reverses the question: it reports "level" only if the data exclude a change
//! larger than a margin (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987).

use super::half_width;

/// Slices per batch: MSER-5 has proved better than MSER on single values, and five ticks of 20 ms
/// hold one release of a throttle that works in periods of 100 ms.
const BATCH: usize = 5;
/// Fewer batches show too little of how the rate varies.
const LEAST_BATCHES: usize = 4;

/// Returns whether the rate of a cumulative counter, seen at ticks `(t_ns, total)`, changes by less
/// than `margin` of its level: the 95 % interval of the difference between the mean of the later
/// half and that of the earlier half is within ± `margin`.
pub fn is_level(ticks: &[(u64, u64)], margin: f64) -> bool {
    is_level_within(&rates(ticks), margin)
}

/// Like [`is_level`], without the start that MSER-5 cuts off, which is at most half.
pub fn is_level_at_the_end(ticks: &[(u64, u64)], margin: f64) -> bool {
    let rates = rates(ticks);
    is_level_within(&rates[transient(&rates)..], margin)
}

fn is_level_within(rates: &[f64], margin: f64) -> bool {
    let n = rates.len();
    if n < LEAST_BATCHES {
        return false;
    }
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (before, later) = rates.split_at(n / 2);
    let (first, second) = (mean(before), mean(later));
    let level = mean(rates);
    if level <= 0.0 {
        return false;
    }
    let residuals: Vec<f64> =
        before.iter().map(|r| r - first).chain(later.iter().map(|r| r - second)).collect();
    // The difference of two halves varies twice as much as the mean of both, and two means were
    // subtracted in the residuals where `half_width` allows for one.
    let half = 2.0 * half_width(&residuals, 0.0) * ((n - 1) as f64 / (n - 2) as f64).sqrt();
    (second - first).abs() + half <= margin * level
}

/// Returns the rates of consecutive batches of ticks, in operations per nanosecond; ticks left over
/// from whole batches are dropped from the start.
fn rates(ticks: &[(u64, u64)]) -> Vec<f64> {
    let slices = ticks.len().saturating_sub(1);
    let edges: Vec<(u64, u64)> =
        ticks.iter().copied().skip(slices % BATCH).step_by(BATCH).collect();
    edges
        .windows(2)
        .filter(|w| w[1].0 > w[0].0)
        .map(|w| w[1].1.saturating_sub(w[0].1) as f64 / (w[1].0 - w[0].0) as f64)
        .collect()
}

/// Returns how many values at the start belong to a transient: without them, the standard error of
/// the mean of the others is least (K. P. White, Simulation 69, 1997: the marginal standard error
/// rule). At most half are cut off.
fn transient(values: &[f64]) -> usize {
    let n = values.len();
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (0, f64::INFINITY);
    for (at, value) in values.iter().enumerate().rev() {
        sum += value;
        squares += value * value;
        let kept = (n - at) as f64;
        let error = (squares - sum * sum / kept).max(0.0) / (kept * kept);
        if at <= n / 2 && error <= best.1 {
            best = (at, error);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const TICK_NS: u64 = 20_000_000;

    fn ticks(rates: impl IntoIterator<Item = f64>) -> Vec<(u64, u64)> {
        let mut total = 0.0;
        let rest = (1..).zip(rates).map(|(tick, rate)| {
            total += rate;
            (tick * TICK_NS, total as u64)
        });
        std::iter::once((0, 0)).chain(rest).collect()
    }

    #[test]
    fn the_start_is_cut_where_the_standard_error_is_least() {
        let steady = [10.0, 11.0, 9.0, 10.0, 11.0, 9.0, 10.0, 11.0];
        let risen = [&[1.0, 5.0][..], &steady].concat();
        assert_eq!((transient(&steady), transient(&risen)), (0, 2));
        let rising: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(transient(&rising), 5, "half at most");
        assert_eq!((transient(&[]), transient(&[3.0; 6])), (0, 0));
    }

    #[test]
    fn level_needs_evidence() {
        assert!(is_level(&ticks([1e3; 20]), 0.05));
        assert!(!is_level(&ticks([1e3; 19]), 0.05), "three batches");
        assert!(!is_level(&ticks([0.0; 40]), 0.05), "nothing completes");
        let mut rng = Rng::new(1, 0);
        let noisy = ticks((0..40).map(|_| 2e3 * rng.unit()));
        assert!(!is_level(&noisy, 0.05), "±100 % in 40 ticks excludes no change of 5 %");
        let step = (0..40).map(|tick| if tick < 20 { 1e3 } else { 1.06e3 });
        assert!(!is_level(&ticks(step), 0.05));
        // A throttle that releases every fifth tick.
        let bursts = (0..40).map(|tick| if tick % 5 == 2 { 5e3 } else { 0.0 });
        assert!(is_level(&ticks(bursts), 0.05));
    }

    #[test]
    fn a_change_of_the_margin_is_called_level_no_more_often_than_the_test_promises() {
        // One side of the 95 % interval: one time in forty.
        let mut passed = 0;
        for seed in 0..2000 {
            let mut rng = Rng::new(seed, 0);
            let rate = |tick: u64| if tick < 50 { 975.0 } else { 1025.0 };
            let noisy = (0..100).map(|tick| rate(tick) * (0.95 + 0.1 * rng.unit()));
            passed += u32::from(is_level(&ticks(noisy), 0.05));
        }
        assert!(passed <= 70, "{passed} of 2000");
    }
}
