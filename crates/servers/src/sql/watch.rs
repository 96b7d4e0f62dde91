//! A thread that reads the counters of a database while sessions run. Its caller waits only for a
//! limited time, even if the database does not respond.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use blockstone_sys::thread::spawn;
use parking_lot::Mutex;

use super::border::Border;
use super::error::SqlError;
use super::session::Counts;
use super::{CounterValues, Member, Watcher};

/// Time limits of an exact look, and of one that need not be exact.
const PATIENCE: Duration = Duration::from_secs(3);
const HASTE: Duration = Duration::from_millis(50);

/// A watcher whose calls cross the border to its server.
pub struct Behind {
    pub border: Border,
    pub watcher: Box<dyn Watcher>,
}

impl Watcher for Behind {
    fn look(&mut self, sessions: &[Member], exact: bool) -> Result<CounterValues, SqlError> {
        self.border.cross(|| self.watcher.look(sessions, exact))
    }

    fn between(&mut self, sessions: &[Member]) -> Option<Duration> {
        // A failed sample is repeated at the next look, which reports the error.
        let sampled = self.border.cross(|| Ok::<_, SqlError>(self.watcher.between(sessions)));
        sampled.ok().flatten()
    }
}

#[derive(Debug)]
pub struct Watch {
    exchange: Mutex<Exchange>,
}

#[derive(Debug)]
struct Exchange {
    /// `None` once the watcher is to stop.
    ask: Option<SyncSender<bool>>,
    seen: Receiver<CounterValues>,
    thread: Option<JoinHandle<()>>,
    /// Number of looks requested but not yet answered.
    owed: u32,
    last: CounterValues,
}

impl Watch {
    pub fn start(mut watcher: Box<dyn Watcher>, counts: Arc<Counts>) -> Result<Self, SqlError> {
        let (ask, asked) = sync_channel(1);
        let (answer, seen) = sync_channel(1);
        let thread = spawn("watcher", move || {
            let mut pause = watcher.between(&counts.members());
            loop {
                let exact = match pause.map(|pause| asked.recv_timeout(pause)) {
                    None => asked.recv().ok(),
                    Some(Err(RecvTimeoutError::Timeout)) => {
                        pause = watcher.between(&counts.members());
                        continue;
                    }
                    Some(asked) => asked.ok(),
                };
                let Some(exact) = exact else { break };
                // The sessions report a lost database. Here its counters become unmeasured.
                let seen = watcher.look(&counts.members(), exact).unwrap_or_default();
                if answer.send(seen).is_err() {
                    break;
                }
            }
        });
        let thread = thread.map_err(|error| SqlError::no_thread(&error))?;
        let exchange = Exchange {
            ask: Some(ask),
            seen,
            thread: Some(thread),
            owed: 0,
            last: CounterValues::default(),
        };
        Ok(Self { exchange: Mutex::new(exchange) })
    }

    /// Returns a new look if `exact` or if it arrives soon; otherwise the last one.
    pub fn look(&self, exact: bool) -> CounterValues {
        let mut exchange = self.exchange.lock();
        let until = Instant::now() + if exact { PATIENCE } else { HASTE };
        // A late answer is older than the request.
        if !exchange.receive(until) {
            return exchange.last.clone();
        }
        if exchange.ask.as_ref().is_some_and(|ask| ask.send(exact).is_ok()) {
            exchange.owed += 1;
            exchange.receive(until);
        }
        exchange.last.clone()
    }

    /// Stops the watcher. If its database does not respond, its thread is left running.
    pub fn end(&self) {
        let mut exchange = self.exchange.lock();
        exchange.ask = None;
        let ended = exchange.receive(Instant::now() + PATIENCE);
        if let Some(thread) = exchange.thread.take().filter(|_| ended) {
            let _ = thread.join();
        }
    }
}

impl Exchange {
    /// Receives all outstanding answers; returns false if they do not arrive in time.
    fn receive(&mut self, until: Instant) -> bool {
        while self.owed > 0 {
            let left = until.saturating_duration_since(Instant::now());
            match self.seen.recv_timeout(left) {
                Ok(seen) => self.last = seen,
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => self.last = CounterValues::default(),
            }
            self.owed -= 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    struct Slow(Duration, u64);

    /// Counts its samples between looks.
    struct Sampling(u64);

    impl Watcher for Sampling {
        fn look(&mut self, _: &[Member], _: bool) -> Result<CounterValues, SqlError> {
            Ok(CounterValues { statistics: vec![("commits", self.0)], readings: Vec::new() })
        }

        fn between(&mut self, _: &[Member]) -> Option<Duration> {
            self.0 += 1;
            Some(Duration::from_millis(1))
        }
    }

    impl Watcher for Slow {
        fn look(&mut self, _: &[Member], _: bool) -> Result<CounterValues, SqlError> {
            thread::sleep(self.0);
            self.1 += 1;
            Ok(CounterValues { statistics: vec![("commits", self.1)], readings: Vec::new() })
        }
    }

    fn count(seen: &CounterValues) -> u64 {
        seen.statistics.first().map_or(0, |(_, count)| *count)
    }

    #[test]
    fn an_exact_look_is_of_now_and_a_slow_database_holds_nobody_up() {
        let quick = Watch::start(Box::new(Slow(Duration::ZERO, 0)), Arc::default()).unwrap();
        assert_eq!([1, 2, 3].map(|_| count(&quick.look(true))), [1, 2, 3]);
        quick.end();
        let slow = Watch::start(Box::new(Slow(Duration::from_millis(400), 0)), Arc::default());
        let slow = slow.unwrap();
        let started = Instant::now();
        assert_eq!(count(&slow.look(false)), 0);
        assert!(started.elapsed() < Duration::from_millis(300));
        assert_eq!(count(&slow.look(true)), 2, "the answer to the first question is too old");
        slow.end();
    }

    #[test]
    fn samples_are_taken_between_looks() {
        let watch = Watch::start(Box::new(Sampling(0)), Arc::default()).unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while count(&watch.look(true)) < 5 {
            assert!(Instant::now() < until, "no samples are taken");
            thread::sleep(Duration::from_millis(5));
        }
        watch.end();
    }
}
