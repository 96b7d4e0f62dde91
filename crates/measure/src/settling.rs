//! Whether a rate has settled. A warm-up ends when the rate is shown to be level; a window shows
//! whether it stayed level or moved nevertheless.

use blockstone_base::stats;

/// Largest change of a level rate; a rate that changes by more moves, if that is certain.
const CHANGE_MAX: f64 = 0.05;
/// Normal deviate from which a trend is certain: a steady rate exceeds it once in a hundred times.
const CERTAIN: f64 = 2.58;

/// Returns whether a warm-up may end: there are at least `least` slices between its ticks and,
/// without the transient at their start, the rate is level.
pub(crate) fn in_warm_up(ticks: &[(u64, u64)], least: usize) -> bool {
    ticks.len() > least && stats::is_level_at_the_end(ticks, CHANGE_MAX)
}

/// Returns whether the ticks of a warm-up show for certain that the rate moves.
pub(crate) fn still_moves(ticks: &[(u64, u64)]) -> bool {
    stats::trend(ticks).is_some_and(moves)
}

/// Returns whether the rate had settled before a window or stayed at its level in it; `warmed_up`
/// is the result of the warm-up. `None` if neither showed enough.
pub(crate) fn in_window(ticks: &[(u64, u64)], warmed_up: bool) -> Option<bool> {
    let Some(trend) = stats::trend(ticks) else { return warmed_up.then_some(true) };
    if moves(trend) {
        return Some(false);
    }
    let stayed = warmed_up && trend.change_ratio.abs() <= CHANGE_MAX;
    (stayed || stats::is_level(ticks, CHANGE_MAX)).then_some(true)
}

fn moves(trend: stats::Trend) -> bool {
    trend.deviate.abs() >= CERTAIN && trend.change_ratio.abs() > CHANGE_MAX
}

#[cfg(test)]
mod tests {
    use blockstone_base::rng::Rng;

    use super::*;

    const TICK_NS: u64 = 20_000_000;
    const SEEDS: u64 = 200;
    /// Ticks in the longest warm-up and in the window.
    const WARM_UP: usize = 100;
    const WINDOW: usize = 50;
    /// Limit that no warm-up reaches.
    const LONG: usize = 1000;

    #[derive(Debug, Default)]
    struct SettlingTally {
        settled: usize,
        moved: usize,
        /// Runs that settled in the warm-up.
        warmed_up: usize,
        /// Mean number of ticks until these settled.
        ticks: usize,
        /// Lowest rate at which a window opened that was called settled, as a share of the final
        /// rate.
        least: f64,
    }

    /// Runs warm-up and window on a series, in which `series` returns the count of a tick.
    fn settling(limit: usize, series: impl Fn(f64, &mut Rng) -> f64) -> SettlingTally {
        let mut seen = SettlingTally { least: f64::INFINITY, ..SettlingTally::default() };
        for seed in 0..SEEDS {
            let (mut rng, mut total) = (Rng::new(seed, 0), 0);
            let mut tick_at = |tick: usize| {
                total += series(tick as f64, &mut rng).max(0.0) as u64;
                (tick as u64 * TICK_NS, total)
            };
            let mut ticks = Vec::new();
            let mut warmed_up = false;
            while !warmed_up && ticks.len() < limit {
                ticks.push(tick_at(ticks.len()));
                warmed_up = in_warm_up(&ticks, 10);
            }
            let warm = ticks.len();
            ticks.extend((warm..warm + WINDOW).map(&mut tick_at));
            let settled = in_window(&ticks[warm - 1..], warmed_up);
            seen.settled += usize::from(settled == Some(true));
            seen.moved += usize::from(settled == Some(false));
            if warmed_up {
                seen.warmed_up += 1;
                seen.ticks += warm;
            }
            if settled == Some(true) {
                let at = |tick: usize| series(tick as f64, &mut Rng::new(seed, 1));
                seen.least = seen.least.min(at(warm) / at(LONG * 10));
            }
        }
        seen.ticks = seen.ticks.checked_div(seen.warmed_up).unwrap_or(0);
        seen
    }

    /// Returns a factor drawn uniformly between 1 − spread and 1 + spread.
    fn noise(rng: &mut Rng, spread: f64) -> f64 {
        1.0 + spread * (2.0 * rng.unit() - 1.0)
    }

    /// Returns a device whose rate rises from the fraction `base` of its final value, with this
    /// time constant in ticks.
    fn rising(base: f64, constant: f64) -> impl Fn(f64, &mut Rng) -> f64 {
        move |tick, rng| 1e4 * (1.0 - (1.0 - base) * (-tick / constant).exp()) * noise(rng, 0.02)
    }

    #[test]
    fn a_warm_up_goes_on_until_a_rising_rate_has_arrived() {
        // Time constants of 300 ms, 1 s and 2 s.
        for constant in [15.0, 50.0, 100.0] {
            let seen = settling(LONG, rising(0.0, constant));
            assert!(seen.warmed_up == 200 && seen.least > 0.9, "{constant}: {seen:?}");
            assert!(seen.settled >= 195, "{constant}: {seen:?}");
            // Half the rate from the beginning: a slow rise is hardly visible in 400 ms, but is in
            // the window.
            let seen = settling(LONG, rising(0.5, constant));
            assert!(seen.settled == 0 || seen.least > 0.85, "{constant}: {seen:?}");
        }
    }

    #[test]
    fn where_the_limit_comes_first_the_window_shows_that_it_rises() {
        for constant in [15.0, 50.0, 100.0] {
            for limit in [5, 12] {
                let seen = settling(limit, rising(0.0, constant));
                assert_eq!((seen.settled, seen.moved), (0, 200), "{constant}: {seen:?}");
                let seen = settling(limit, rising(0.5, constant));
                assert_eq!((seen.settled, seen.moved), (0, 200), "{constant}: {seen:?}");
            }
        }
    }

    #[test]
    fn a_drifting_rate_never_settles() {
        let rise = |tick: f64, rng: &mut Rng| (500.0 + 10.0 * tick) * noise(rng, 0.05);
        let fall = |tick: f64, rng: &mut Rng| 4e4 * 0.96_f64.powf(tick) * noise(rng, 0.1);
        for seen in [settling(30, rise), settling(30, fall)] {
            assert!(seen.settled == 0 && seen.moved >= 198, "{seen:?}");
        }
    }

    #[test]
    fn a_step_is_waited_for_until_it_lies_behind() {
        let step = |tick, rng: &mut Rng| if tick < 8.0 { 3e3 } else { 1e4 } * noise(rng, 0.05);
        let seen = settling(WARM_UP, step);
        assert!(seen.settled >= 195 && seen.warmed_up >= 195, "{seen:?}");
        assert!(seen.ticks >= 25 && seen.least > 0.9, "{seen:?}");
    }

    #[test]
    fn a_burst_that_ends_in_the_window_has_not_settled() {
        for ends in [30.0, 45.0, 60.0] {
            let bucket =
                |tick, rng: &mut Rng| if tick < ends { 1e4 } else { 3e3 } * noise(rng, 0.02);
            let seen = settling(50, bucket);
            assert!(seen.settled <= 2, "{ends}: {seen:?}");
        }
    }

    #[test]
    fn a_steady_rate_settles_within_a_second() {
        for spread in [0.0, 0.02, 0.05, 0.1] {
            let seen = settling(WARM_UP, |_, rng| 1e4 * noise(rng, spread));
            assert!(seen.settled >= 198 && seen.moved == 0, "±{spread}: {seen:?}");
            assert!(seen.warmed_up >= 195 && seen.ticks <= 50, "±{spread}: {seen:?}");
        }
    }

    #[test]
    fn of_a_noisy_rate_nothing_is_said_that_was_not_seen() {
        for spread in [0.5, 1.0] {
            let seen = settling(30, |_, rng| 1e4 * noise(rng, spread));
            assert!(seen.moved <= 6 && seen.warmed_up <= 10, "±{spread}: {seen:?}");
        }
    }

    #[test]
    fn a_periodic_rate_settles() {
        // The effect of a blk-throttle cap: the work of five ticks in one of them.
        let bursts = |tick: f64, rng: &mut Rng| {
            if tick as u64 % 5 == 2 { 5e4 * noise(rng, 0.02) } else { 0.0 }
        };
        let wave =
            |tick: f64, rng: &mut Rng| 1e4 * (1.0 + 0.3 * (tick * 1.3).sin()) * noise(rng, 0.02);
        for seen in [settling(WARM_UP, bursts), settling(WARM_UP, wave)] {
            assert!(seen.settled >= 195 && seen.ticks <= 50, "{seen:?}");
        }
    }

    #[test]
    fn too_few_ticks_settle_nothing() {
        let flat: Vec<(u64, u64)> = (0..21).map(|tick| (tick * TICK_NS, tick * 100)).collect();
        assert!(in_warm_up(&flat, 10) && !in_warm_up(&flat, 21));
        assert!(!in_warm_up(&flat[..20], 10), "four batches are needed");
        assert!(!in_warm_up(&[(0, 5); 30], 10), "nothing completes");
        assert_eq!((in_window(&flat, false), in_window(&flat[..4], false)), (Some(true), None));
        assert_eq!(in_window(&flat[..4], true), Some(true), "the warm-up showed it");
        assert!(!still_moves(&flat));
    }
}
