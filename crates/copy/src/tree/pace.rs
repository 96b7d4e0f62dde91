//! A rate shared by all files of a copy.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::units::Bytes;

use crate::file::Watch;

/// The longest time that one request may take at the given rate.
const SMOOTH: Duration = Duration::from_millis(50);
/// The smallest request size that a rate results in.
const REQUEST_BYTES_MIN: u64 = 64 << 10;

/// Returns the largest power of two that is moved in 50 ms at that rate, but no more than
/// requested.
pub fn smooth_request(asked: Bytes, rate: Option<Bytes>) -> Bytes {
    let Some(rate) = rate else { return asked };
    let at_once = (rate.get() / (1000 / SMOOTH.as_millis() as u64)).max(REQUEST_BYTES_MIN);
    Bytes(asked.get().min(1 << at_once.ilog2()))
}

/// Delays each request until those before it have had their time.
#[derive(Debug)]
pub struct Pace {
    ns_per_byte: f64,
    free_at: Mutex<Instant>,
}

impl Pace {
    pub fn new(rate: Bytes) -> Self {
        let ns_per_byte = 1e9 / rate.get().max(1) as f64;
        Self { ns_per_byte, free_at: Mutex::new(Instant::now()) }
    }

    /// Waits until `bytes` may be moved, or for the end.
    pub fn wait(&self, bytes: u64, end: &AtomicBool) {
        let start = {
            let Ok(mut free_at) = self.free_at.lock() else { return };
            // Unused time does not accumulate into a burst.
            let start = (*free_at).max(Instant::now());
            *free_at = start + Duration::from_nanos((bytes as f64 * self.ns_per_byte) as u64);
            start
        };
        while !end.load(Ordering::Relaxed) {
            let left = start.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(SMOOTH));
        }
    }
}

/// Watches one file or pipe: paces it, and passes `act` the bytes so far; `act` returns whether to
/// continue.
pub struct Steady<F> {
    pace: Option<Pace>,
    end: AtomicBool,
    told: Mutex<(u64, F)>,
}

impl<F: FnMut(u64) -> bool + Send> Steady<F> {
    pub fn new(rate: Option<Bytes>, act: F) -> Self {
        let told = Mutex::new((0, act));
        Self { pace: rate.map(Pace::new), end: AtomicBool::new(false), told }
    }
}

impl<F: FnMut(u64) -> bool + Send> Watch for Steady<F> {
    fn moved(&self, bytes: u64) -> ControlFlow<()> {
        let Ok(mut told) = self.told.lock() else { return ControlFlow::Break(()) };
        told.0 += bytes;
        let so_far = told.0;
        if (told.1)(so_far) {
            return ControlFlow::Continue(());
        }
        self.end.store(true, Ordering::Relaxed);
        ControlFlow::Break(())
    }

    fn pace(&self, bytes: u64) {
        if let Some(pace) = &self.pace {
            pace.wait(bytes, &self.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_shrink_with_the_rate_and_never_grow() {
        let request = |rate| smooth_request(Bytes(8 << 20), rate).get();
        assert_eq!(request(None), 8 << 20);
        assert_eq!(request(Some(Bytes(1 << 40))), 8 << 20);
        assert_eq!(request(Some(Bytes(100_000_000))), 4 << 20);
        assert_eq!(request(Some(Bytes(1))), 64 << 10);
    }

    #[test]
    fn several_threads_share_one_rate() {
        let (pace, end) = (Pace::new(Bytes(1_000_000)), AtomicBool::new(false));
        let began = Instant::now();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..4).for_each(|_| pace.wait(10_000, &end)));
            }
        });
        // The last of twelve starts after eleven have had 10 ms each.
        assert!(began.elapsed() >= Duration::from_millis(110), "{:?}", began.elapsed());
        end.store(true, Ordering::Relaxed);
        pace.wait(u64::MAX >> 20, &end);
        pace.wait(1, &end);
    }
}
