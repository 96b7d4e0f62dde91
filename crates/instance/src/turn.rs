//! Turns: how a thread waits to be called, and how thousands are called without a stampede.
//!
//! A thread with news for a thousand others does not wake them all. Putting each on a run queue
//! costs microseconds that it needs for its own work, and all of them together would keep it from
//! the processor. Instead it wakes a few, and each thread that wakes calls the next before it
//! continues: however many are waiting, no more than those few have been woken and are not yet
//! running.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

const WAITING: u8 = 0;
/// Called in turn: calls the next.
const CALLED: u8 = 1;
/// Dismissed, because nothing more will happen.
const DISMISSED: u8 = 2;
/// Left of its own accord, after its time limit.
const GONE: u8 = 3;
/// Threads woken and not yet running, per processor.
const UNDER_WAY: usize = 8;

#[derive(Debug)]
pub(crate) struct Seat {
    thread: Thread,
    state: AtomicU8,
}

/// Calls threads when what they wait for has happened.
#[derive(Debug)]
pub(crate) struct Relay {
    due: Mutex<Due>,
    most: usize,
}

#[derive(Debug, Default)]
struct Due {
    seats: VecDeque<Arc<Seat>>,
    under_way: usize,
}

impl Seat {
    /// Creates a place for the calling thread, which must be registered where callers look for it
    /// before the thread waits.
    pub fn here() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), state: AtomicU8::new(WAITING) })
    }

    /// Waits until it is called by `relay`, or dismissed.
    pub fn wait(&self, relay: &Relay) {
        while self.state.load(Ordering::Acquire) == WAITING {
            thread::park();
        }
        self.pass_on(relay);
    }

    /// Like [`Seat::wait`], but leaves after `limit`; returns whether it was called before that.
    pub fn wait_for(&self, relay: &Relay, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while self.state.load(Ordering::Acquire) == WAITING {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() && self.turn(GONE) {
                return false;
            }
            thread::park_timeout(left);
        }
        self.pass_on(relay);
        true
    }

    fn pass_on(&self, relay: &Relay) {
        if self.state.load(Ordering::Acquire) == CALLED {
            relay.pass_on();
        }
    }

    fn turn(&self, state: u8) -> bool {
        self.state.compare_exchange(WAITING, state, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Dismisses it, whatever it is waiting for.
    pub fn dismiss(&self) {
        if self.turn(DISMISSED) {
            self.thread.unpark();
        }
    }
}

impl Relay {
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self { due: Mutex::default(), most: processors * UNDER_WAY }
    }

    /// Calls all of `seats` in order: some now, the others as those wake.
    pub fn call(&self, seats: impl IntoIterator<Item = Arc<Seat>>) {
        let mut now = Vec::with_capacity(self.most);
        {
            let mut due = self.due.lock();
            due.seats.extend(seats);
            while due.under_way < self.most
                && let Some(seat) = due.seats.pop_front()
            {
                if seat.turn(CALLED) {
                    due.under_way += 1;
                    now.push(seat);
                }
            }
        }
        // Not under the lock, because it is the first thing that they take.
        for seat in now {
            seat.thread.unpark();
        }
    }

    /// Calls the next thread in place of one that was called and is now awake.
    fn pass_on(&self) {
        let mut due = self.due.lock();
        while let Some(seat) = due.seats.pop_front() {
            if seat.turn(CALLED) {
                drop(due);
                seat.thread.unpark();
                return;
            }
        }
        due.under_way -= 1;
    }

    pub fn dismiss(&self) {
        let seats = std::mem::take(&mut self.due.lock().seats);
        for seat in seats {
            seat.dismiss();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn all_are_called_in_turn_and_few_at_a_time() {
        let (relay, waiting) = (Relay::new(), Mutex::new(Vec::new()));
        let (awake, rounds) = (AtomicUsize::new(0), 50);
        thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let seat = Seat::here();
                        waiting.lock().push(Arc::clone(&seat));
                        seat.wait(&relay);
                        awake.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            while awake.load(Ordering::Relaxed) < 64 * rounds {
                let seats = std::mem::take(&mut *waiting.lock());
                relay.call(seats);
                assert!(relay.due.lock().under_way <= relay.most);
                thread::yield_now();
            }
        });
        assert_eq!(relay.due.lock().under_way, 0);
    }

    #[test]
    fn who_left_is_not_called_and_who_is_dismissed_calls_nobody() {
        let relay = Relay::new();
        let (left, dismissed, called) = (Seat::here(), Seat::here(), Seat::here());
        assert!(!left.wait_for(&relay, Duration::from_millis(1)));
        dismissed.dismiss();
        dismissed.wait(&relay);
        relay.call([left, dismissed, Arc::clone(&called)]);
        assert_eq!(relay.due.lock().under_way, 1);
        assert!(called.wait_for(&relay, Duration::from_hours(1)));
        assert_eq!(relay.due.lock().under_way, 0);
        let (late, none) = (Seat::here(), Relay { most: 0, ..Relay::new() });
        none.call([Arc::clone(&late)]);
        none.dismiss();
        late.wait(&none);
    }
}
