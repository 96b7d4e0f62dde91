//! Whether a rate has settled. A warm-up asks at every tick and goes on while it hesitates; only a
//! trend that the window itself shows is called one.

use blockstone_base::stats;

/// A warm-up goes on while the rate moves with this deviate, which a steady rate exceeds one time
/// in five: to wait for longer costs little.
const WAITED_FOR: f64 = 1.28;
/// A window shows a trend from this deviate on, which a steady rate exceeds once in a hundred.
const CERTAIN: f64 = 2.58;
/// A rate that moves by less has settled, however certain the movement.
const WARM_UP_CHANGE_MAX: f64 = 0.02;
const WINDOW_CHANGE_MAX: f64 = 0.05;

/// Whether the later half of a warm-up's ticks, and at least `least` slices between them, shows no
/// trend: half, because a slow trend shows only over a long time, and the start must be forgotten.
pub(crate) fn in_warm_up(ticks: &[(u64, u64)], least: usize) -> bool {
    let slices = ticks.len().saturating_sub(1);
    let looked_at = least.max(slices / 2);
    let Some(from) = slices.checked_sub(looked_at) else { return false };
    stats::trend(&ticks[from..]).is_some_and(|trend| {
        trend.deviate.abs() <= WAITED_FOR || trend.change_ratio.abs() <= WARM_UP_CHANGE_MAX
    })
}

/// Whether a rate that the warm-up did not see settle has no trend in the window either; none where
/// there are too few ticks to tell.
pub(crate) fn in_window(ticks: &[(u64, u64)]) -> Option<bool> {
    stats::trend(ticks)
        .map(|trend| trend.deviate.abs() < CERTAIN || trend.change_ratio.abs() <= WINDOW_CHANGE_MAX)
}

#[cfg(test)]
mod tests {
    use blockstone_base::rng::Rng;

    use super::*;

    const TICK_NS: u64 = 20_000_000;
    const SEEDS: u64 = 200;
    /// Ticks of the warm-up's limit and of the window.
    const WARM_UP: usize = 30;
    const WINDOW: usize = 30;

    /// How many seeds of this series settle, and after how many ticks on average.
    fn settling(series: impl Fn(f64, &mut Rng) -> f64) -> (u32, usize) {
        let (mut settled, mut taken) = (0, 0);
        for seed in 0..SEEDS {
            let (mut rng, mut total) = (Rng::new(seed, 0), 0);
            let ticks: Vec<(u64, u64)> = (0..WARM_UP + WINDOW)
                .map(|tick| {
                    total += series(tick as f64, &mut rng).max(0.0) as u64;
                    (tick as u64 * TICK_NS, total)
                })
                .collect();
            let warm = (1..=WARM_UP).find(|&end| in_warm_up(&ticks[..end], 10));
            let window = &ticks[warm.unwrap_or(WARM_UP)..];
            settled += u32::from(warm.is_some() || in_window(window).unwrap());
            taken += warm.unwrap_or(WARM_UP);
        }
        (settled, taken / SEEDS as usize)
    }

    /// Evenly between 1 − spread and 1 + spread.
    fn noise(rng: &mut Rng, spread: f64) -> f64 {
        1.0 + spread * (2.0 * rng.unit() - 1.0)
    }

    #[test]
    fn a_drifting_rate_never_settles() {
        let rise = |tick: f64, rng: &mut Rng| (500.0 + 10.0 * tick) * noise(rng, 0.05);
        let fall = |tick: f64, rng: &mut Rng| 4e3 * 0.96_f64.powf(tick) * noise(rng, 0.1);
        for (settled, ticks) in [settling(rise), settling(fall)] {
            assert!(settled <= 10 && ticks >= 28, "{settled} of {SEEDS}, after {ticks} ticks");
        }
    }

    #[test]
    fn a_step_is_waited_for_until_it_lies_behind() {
        let step = |tick, rng: &mut Rng| if tick < 8.0 { 300.0 } else { 1e3 } * noise(rng, 0.1);
        let (settled, ticks) = settling(step);
        assert!(settled >= 190 && ticks >= 15, "{settled} of {SEEDS}, after {ticks} ticks");
    }

    #[test]
    fn a_noisy_rate_without_a_trend_settles() {
        for spread in [0.02, 0.1, 0.5, 1.0] {
            let (settled, ticks) = settling(|_, rng| 1e3 * noise(rng, spread));
            assert!(settled >= 196 && ticks <= 15, "±{spread}: {settled}, after {ticks} ticks");
        }
    }

    #[test]
    fn a_periodic_rate_settles() {
        // What blk-throttle makes of a cap: the work of five ticks in one of them.
        let bursts = |tick: f64, rng: &mut Rng| {
            if tick as u64 % 5 == 2 { 5e3 * noise(rng, 0.02) } else { 0.0 }
        };
        let wave =
            |tick: f64, rng: &mut Rng| 1e3 * (1.0 + 0.3 * (tick * 1.3).sin()) * noise(rng, 0.02);
        for (settled, ticks) in [settling(bursts), settling(wave)] {
            assert!(settled >= 196 && ticks <= 18, "{settled} of {SEEDS}, after {ticks} ticks");
        }
    }

    #[test]
    fn too_few_ticks_settle_nothing() {
        let flat: Vec<(u64, u64)> = (0..11).map(|tick| (tick * TICK_NS, tick * 100)).collect();
        assert!(in_warm_up(&flat, 10));
        assert!(!in_warm_up(&flat[..10], 10));
        assert_eq!((in_window(&flat), in_window(&flat[..4])), (Some(true), None));
        assert!(!in_warm_up(&[(0, 5); 20], 10), "nothing completes");
    }
}
