//! Threads that begin their work at the same moment: all of them, or none if the system cannot
//! provide enough.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use crate::thread::{scoped, scoped_small};

/// Number of threads from which each has a small stack.
const MANY: usize = 256;

/// Where threads wait until all of them have arrived.
#[derive(Debug)]
pub struct Meeting {
    /// Threads that have not arrived yet; `None` once it was called off.
    missing: Mutex<Option<usize>>,
    changed: Condvar,
}

impl Meeting {
    pub fn of(threads: usize) -> Self {
        Self { missing: Mutex::new(Some(threads)), changed: Condvar::new() }
    }

    /// Returns true when all threads have arrived; false when the meeting was called off.
    pub fn wait(&self) -> bool {
        let mut missing = self.missing();
        *missing = missing.map(|threads| threads.saturating_sub(1));
        // Only the last of thousands wakes the others.
        if *missing == Some(0) {
            self.changed.notify_all();
        }
        while missing.is_some_and(|threads| threads > 0) {
            missing = self.changed.wait(missing).unwrap_or_else(PoisonError::into_inner);
        }
        missing.is_some()
    }

    /// Starts a thread in `scope` for each item of work, as many as the meeting expects; all of
    /// them meet here before they begin. If the system cannot provide enough threads, those that
    /// wait are sent away.
    pub fn start<'scope, T: Send + 'scope, W: FnOnce() -> T + Send + 'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        works: impl IntoIterator<Item = W>,
    ) -> io::Result<Vec<ScopedJoinHandle<'scope, T>>> {
        let is_large = self.missing().is_some_and(|threads| threads > MANY);
        let start = |(number, work)| {
            let name = format!("{name}-{number}");
            if is_large { scoped_small(scope, &name, work) } else { scoped(scope, &name, work) }
        };
        let started: io::Result<Vec<_>> = works.into_iter().enumerate().map(start).collect();
        if started.is_err() {
            *self.missing() = None;
            self.changed.notify_all();
        }
        started
    }

    fn missing(&self) -> MutexGuard<'_, Option<usize>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn all_meet_or_none_goes_on() {
        let (meeting, met) = (&Meeting::of(3), &AtomicUsize::new(0));
        let work = || {
            met.fetch_add(1, Ordering::Relaxed);
            assert!(meeting.wait());
            met.load(Ordering::Relaxed)
        };
        let seen = thread::scope(|scope| {
            let threads = meeting.start(scope, "meet", [work; 3]).unwrap();
            threads.into_iter().map(|it| it.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(seen, [3; 3]);

        let meeting = &Meeting::of(2);
        thread::scope(|scope| {
            let waits = scope.spawn(|| meeting.wait());
            *meeting.missing() = None;
            meeting.changed.notify_all();
            assert!(!waits.join().unwrap());
        });
    }
}
