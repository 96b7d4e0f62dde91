//! The rate of a load that completes in bursts, with nothing in between.
//!
//! A limiter that grants work by the slice admits a burst at the start of each slice and holds
//! everything else until the next. blk-throttle of Linux works in slices of 100 ms
//! (block/blk-throttle.c, `throtl_slice`), and so do the rate limiters of Firecracker and Cloud
//! Hypervisor, which look at their tokens again 100 ms after they ran out. How many bursts a window
//! holds depends on where it begins: at a cap of 500 a second, 720 ms hold 7 or 8 bursts of 50,
//! which would be 486 or 556 a second.
//!
//! From the end of one burst to the end of another, work and time belong together. A limiter that
//! holds everything has also no credit left, so that what it saved during a pause is not counted.
//!
//! Limiters that pace each request, such as the leaky bucket of QEMU, need none of this.

use super::{median, slope};

/// Time without a completion after which a burst has ended: a tick of the kernel's timer at 250 Hz.
const HELD_NS: u64 = 4_000_000;
/// The same in mean distances of completions. With independent completions, one tick in 55 follows
/// such a distance.
const HELD_DISTANCES: f64 = 4.0;
/// Least share of ticks between bursts.
const HELD_TICKS: f64 = 0.1;
/// Fewest ends of bursts: a rate needs two distances for its interval.
const ENDS_MIN: usize = 3;
/// With more ends, one that is late no longer decides.
const ENDS_DECIDING: usize = 200;
/// Longest time before the first end and after the last, in longest distances of two ends. More
/// would not be part of the pattern.
const OUTSIDE_MAX: f64 = 1.25;

/// A cumulative counter at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub t_ns: u64,
    pub count: u64,
    /// Time at which `count` was reached; `None` if it was not recorded.
    pub reached_ns: Option<u64>,
}

/// Returns the ticks between which a rate is computed, as the index of each and its time: the
/// whole bursts if the counter stops and goes, each at the time at which it ended; otherwise all
/// ticks.
pub fn edges(ticks: &[Seen]) -> Vec<(usize, u64)> {
    whole_bursts(ticks).unwrap_or_else(|| ticks.iter().map(|tick| tick.t_ns).enumerate().collect())
}

/// Returns time and count at [`edges`].
pub fn track(ticks: &[Seen]) -> Vec<(u64, u64)> {
    edges(ticks).into_iter().map(|(at, t_ns)| (t_ns, ticks[at].count)).collect()
}

fn whole_bursts(ticks: &[Seen]) -> Option<Vec<(usize, u64)>> {
    let (first, last) = (ticks.first()?, ticks.last()?);
    let counted = last.count.checked_sub(first.count).filter(|&counted| counted > 0)?;
    let duration_ns = last.t_ns.checked_sub(first.t_ns)?;
    let distances_ns = HELD_DISTANCES * duration_ns as f64 / counted as f64;
    let held_ns = HELD_NS.max(distances_ns as u64);
    let held = ticks.iter().enumerate().filter_map(|(at, tick)| {
        let reached_ns = tick.reached_ns.filter(|&reached_ns| reached_ns > 0)?;
        (tick.t_ns.checked_sub(reached_ns)? >= held_ns).then_some((at, reached_ns))
    });
    let mut ends: Vec<(usize, u64)> = held.collect();
    if (ends.len() as f64) < HELD_TICKS * ticks.len() as f64 {
        return None;
    }
    ends.dedup_by_key(|&mut (at, _)| ticks[at].count);
    let ascends = ends.is_sorted_by_key(|&(at, reached_ns)| (reached_ns, ticks[at].count));
    let counts: Vec<u64> = ends.iter().map(|&(at, _)| ticks[at].count).collect();
    if ends.len() < ENDS_MIN || !ascends || !counts.is_sorted() {
        return None;
    }
    let longest_ns = ends.windows(2).map(|pair| pair[1].1 - pair[0].1).max()?;
    let before_ns = ends[0].1.saturating_sub(first.t_ns);
    let after_ns = last.t_ns.saturating_sub(ends[ends.len() - 1].1);
    // The end of the last burst shows only after it has been held for that long.
    let most_ns = ((OUTSIDE_MAX * longest_ns as f64) as u64).saturating_add(held_ns);
    (before_ns.max(after_ns) <= most_ns).then(|| on_time(ends, &counts))
}

/// Returns the ends of bursts without those at either side that came early or late: on a busy
/// machine the last completions of a burst are late, and the first and last end decide the rate.
fn on_time(ends: Vec<(usize, u64)>, counts: &[u64]) -> Vec<(usize, u64)> {
    if ends.len() > ENDS_DECIDING {
        return ends;
    }
    let point = |(&(_, end_ns), &count): (&(usize, u64), &u64)| {
        ((count - counts[0]) as f64, (end_ns - ends[0].1) as f64)
    };
    let points: Vec<(f64, f64)> = ends.iter().zip(counts).map(point).collect();
    let ns_per_count = slope(&points).map_or(0.0, |slope| slope.value);
    let delays_ns: Vec<f64> =
        points.iter().map(|(count, end_ns)| end_ns - ns_per_count * count).collect();
    let usual_ns = median(&delays_ns);
    let off_ns: Vec<f64> = delays_ns.iter().map(|delay_ns| (delay_ns - usual_ns).abs()).collect();
    let most_ns = (HELD_NS as f64).max(2.0 * median(&off_ns));
    let may_go = ((ends.len() - ENDS_MIN) / 2).min(ends.len() / 8);
    let is_off = |off_ns: &&f64| **off_ns > most_ns;
    let first = off_ns.iter().take(may_go).take_while(is_off).count();
    let last = off_ns.iter().rev().take(may_go).take_while(is_off).count();
    ends[first..ends.len() - last].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::stats::rate_per_s;

    const MS: f64 = 1e6;
    const TICK_MS: f64 = 20.0;

    /// A limiter that admits whole slices, before a device of its own speed.
    #[derive(Clone, Copy)]
    struct Slices {
        cap_per_s: f64,
        device_per_s: f64,
        slice_ms: f64,
        /// Work saved in a pause, admitted before the first slice.
        credit: f64,
        /// Time of the first slice before the window.
        began_ms: f64,
    }

    impl Slices {
        const fn of(cap_per_s: f64) -> Self {
            let device_per_s = 60_000.0;
            Self { cap_per_s, device_per_s, slice_ms: 100.0, credit: 0.0, began_ms: 500.0 }
        }

        /// Returns the window that begins at this phase of a slice.
        fn seen(self, window_ms: f64, seed: u64) -> Vec<Seen> {
            let mut rng = Rng::new(seed, 0);
            let granted = (self.cap_per_s * self.slice_ms / 1e3).floor();
            let mut begins_ms = -self.began_ms - self.slice_ms * rng.unit();
            let mut completed = Vec::new();
            let (mut done_ms, mut credit) = (begins_ms, self.credit);
            while begins_ms < window_ms {
                done_ms = begins_ms.max(done_ms);
                for _ in 0..(granted + credit) as u64 {
                    done_ms += 1e3 / self.device_per_s;
                    completed.push(done_ms);
                }
                credit = 0.0;
                begins_ms += self.slice_ms;
            }
            seen(&completed, window_ms, &mut rng)
        }
    }

    /// Returns what ticks see of completions at these times.
    fn seen(completed_ms: &[f64], window_ms: f64, rng: &mut Rng) -> Vec<Seen> {
        let ticks = (window_ms / TICK_MS).ceil() as u64;
        let at = |tick: u64| {
            let t_ms = tick as f64 * TICK_MS + 0.5 * rng.unit();
            let count = completed_ms.partition_point(|done_ms| *done_ms <= t_ms);
            // The recording began a second before the window.
            let time = |ms: f64| ((1e3 + ms) * MS) as u64;
            let last = count.checked_sub(1).map_or(0, |last| time(completed_ms[last]));
            Seen { t_ns: time(t_ms), count: count as u64, reached_ns: Some(last) }
        };
        (0..=ticks).map(at).collect()
    }

    #[test]
    fn a_cap_that_admits_whole_slices_is_found_wherever_the_window_begins() {
        for cap_per_s in [430.0, 500.0, 1_000.0, 5_000.0, 20_000.0] {
            for window_ms in [300.0, 720.0, 800.0, 2_160.0] {
                for seed in 0..50 {
                    let ticks = Slices::of(cap_per_s).seen(window_ms, seed);
                    let rate = rate_per_s(&track(&ticks)).unwrap();
                    let ratio = rate.value / cap_per_s;
                    assert!((ratio - 1.0).abs() < 0.01, "{cap_per_s}, {window_ms} ms: {rate:?}");
                }
            }
        }
    }

    #[test]
    fn ten_large_reads_in_a_slice_are_a_burst() {
        let large = Slices { device_per_s: 500.0, ..Slices::of(100.0) };
        for seed in 0..50 {
            let rate = rate_per_s(&track(&large.seen(720.0, seed))).unwrap();
            assert!((rate.value / 100.0 - 1.0).abs() < 0.01, "{rate:?}");
        }
    }

    #[test]
    fn a_burst_that_ended_late_does_not_decide_the_rate() {
        let ends = |late_ms: [u64; 2]| -> Vec<(u64, u64)> {
            let end = |burst: u64| {
                let late = [(0, late_ms[0]), (20, late_ms[1])];
                let late = late.iter().find(|(at, _)| *at == burst).map_or(0, |(_, late)| *late);
                (1_000 + 100 * burst + late, 50 * burst)
            };
            let seen = |(tick, end): (usize, (u64, u64))| {
                let reached_ns = Some(end.0 * 1_000_000);
                Seen { t_ns: (1_050 + 100 * tick as u64) * 1_000_000, count: end.1, reached_ns }
            };
            track(&(0..=20).map(end).enumerate().map(seen).collect::<Vec<_>>())
        };
        for late_ms in [[0, 0], [30, 0], [0, 30], [25, 30]] {
            let rate = rate_per_s(&ends(late_ms)).unwrap();
            assert!((rate.value - 500.0).abs() < 0.1, "{late_ms:?}: {rate:?}");
        }
    }

    #[test]
    fn what_a_pause_saved_is_not_counted() {
        let saved = Slices { credit: 150.0, began_ms: 0.0, ..Slices::of(500.0) };
        for seed in 0..50 {
            let ticks = saved.seen(720.0, seed);
            let rate = rate_per_s(&track(&ticks)).unwrap();
            assert!((rate.value / 500.0 - 1.0).abs() < 0.01, "{rate:?}");
        }
    }

    #[test]
    fn a_rate_that_is_not_right_has_a_wide_interval() {
        // A window shorter than a slice may lie in a burst, and sees nothing else.
        for (slice_ms, window_ms) in
            [(100.0, 720.0), (103.7, 720.0), (250.0, 720.0), (1e3, 2_160.0)]
        {
            for device_per_s in [6_500.0, 10_000.0, 60_000.0] {
                let cap = Slices { device_per_s, slice_ms, ..Slices::of(5_000.0) };
                for seed in 0..50 {
                    let ticks = cap.seen(window_ms, seed);
                    let granted = (5.0 * slice_ms).floor() * 1e3 / slice_ms;
                    let Some(rate) = rate_per_s(&track(&ticks)).filter(|rate| rate.samples > 0)
                    else {
                        continue;
                    };
                    let is_right = (rate.value / granted - 1.0).abs() < 0.01;
                    let is_covered = rate.low <= granted && granted <= rate.high;
                    assert!(is_right || is_covered, "{slice_ms} ms, {device_per_s}: {rate:?}");
                }
            }
        }
    }

    #[test]
    fn a_load_that_goes_on_is_measured_from_tick_to_tick() {
        let mut rng = Rng::new(3, 0);
        for per_s in [100.0, 300.0, 5_000.0, 60_000.0] {
            let mut done_ms = -50.0;
            let next = std::iter::from_fn(|| {
                done_ms -= (1.0 - rng.unit()).ln() * 1e3 / per_s;
                Some(done_ms)
            });
            let completed: Vec<f64> = next.take_while(|done_ms| *done_ms < 800.0).collect();
            let ticks = seen(&completed, 720.0, &mut Rng::new(4, 0));
            let all: Vec<(u64, u64)> = ticks.iter().map(|tick| (tick.t_ns, tick.count)).collect();
            assert_eq!(track(&ticks), all, "{per_s}");
        }
    }

    #[test]
    fn pauses_in_a_part_of_the_window_are_no_pattern() {
        // Every 50 µs, but for three pauses of 30 ms at the end.
        let steps = (0..13_000).map(|step| f64::from(step) * 0.05);
        let paused = |ms: f64| (500..620).contains(&(ms as i64)) && ms as i64 % 40 >= 10;
        let completed: Vec<f64> = steps.filter(|ms| !paused(*ms)).collect();
        let ticks = seen(&completed, 640.0, &mut Rng::new(5, 0));
        assert_eq!(track(&ticks).len(), ticks.len());
    }

    #[test]
    fn recordings_without_times_of_completions_are_read_as_before() {
        let mut ticks = Slices::of(500.0).seen(720.0, 1);
        assert!(track(&ticks).len() < ticks.len());
        for tick in &mut ticks {
            tick.reached_ns = None;
        }
        assert_eq!(track(&ticks).len(), ticks.len());
        assert!(track(&[]).is_empty());
        let hostile = [
            Seen { t_ns: 9, count: 5, reached_ns: Some(u64::MAX) },
            Seen { t_ns: 3, count: u64::MAX, reached_ns: Some(1) },
            Seen { t_ns: u64::MAX, count: 2, reached_ns: Some(7) },
        ];
        assert_eq!(track(&hostile).len(), 3);
    }
}
