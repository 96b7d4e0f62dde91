//! Waits of sessions whose database runs in this process and reports none itself: the time of a
//! call that was spent neither on a processor nor in the run queue, both as measured by the kernel.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::EVENT;
use blockstone_sys::usage::{ThreadId, thread_cpu_ns};

use super::processes::SESSION;

/// Calls that were off the processor for less than this are ignored.
const LEAST_NS: u64 = 20_000;

/// A part of a transaction, by what it can wait for.
#[derive(Clone, Copy, Debug)]
pub enum TransactionStep {
    /// Waits for the writer: one session writes at a time.
    Begin,
    Statement,
    Commit,
    /// Creates a table from another.
    Copy,
    Flush,
}

const EVENTS: [&str; 5] =
    ["Lock/writer", "IO/file read", "commit", "IO/file read and write", "IO/checkpoint"];
/// Events at the end of the list that only bulk writes have.
const OF_COPIES: usize = 2;

/// Number and time of the waits of all sessions, for each [`TransactionStep`].
#[derive(Debug, Default)]
pub struct Blocked([(AtomicU64, AtomicU64); EVENTS.len()]);

impl Blocked {
    /// Returns one row per event for the series [`EVENT`]; those of bulk writes only with `copies`.
    pub fn readings(&self, copies: bool) -> impl Iterator<Item = Reading> {
        let shown = EVENTS.len() - if copies { 0 } else { OF_COPIES };
        EVENTS.iter().zip(&self.0).take(shown).map(|(event, (count, ns))| Reading {
            probe: EVENT.probe,
            object: format!("{SESSION}/{event}"),
            cells: [count, ns].map(|it| Cell::from(it.load(Ordering::Relaxed))).into(),
        })
    }
}

/// Times the calls of one session, on its thread.
#[derive(Debug)]
pub struct Stopwatch {
    thread: ThreadId,
    run_queue_ns: u64,
}

impl Stopwatch {
    pub fn start() -> Self {
        let mut watch = Self { thread: ThreadId::current(), run_queue_ns: 0 };
        watch.take_run_queue_ns();
        watch
    }

    /// Runs `work`, and adds to `blocked` the time it was off the processor without waiting for
    /// one.
    pub fn timed<T>(
        &mut self,
        blocked: &Blocked,
        part: TransactionStep,
        work: impl FnOnce() -> T,
    ) -> T {
        let (started, cpu_ns) = (Instant::now(), thread_cpu_ns());
        let done = work();
        let cpu_ns = thread_cpu_ns() - cpu_ns;
        let off_ns = (started.elapsed().as_nanos() as u64).saturating_sub(cpu_ns);
        if off_ns < LEAST_NS {
            return done;
        }
        let blocked_ns = off_ns.saturating_sub(self.take_run_queue_ns());
        if blocked_ns >= LEAST_NS {
            let (count, ns) = &blocked.0[part as usize];
            count.fetch_add(1, Ordering::Relaxed);
            ns.fetch_add(blocked_ns, Ordering::Relaxed);
        }
        done
    }

    /// Returns the time in the run queue since the last call.
    fn take_run_queue_ns(&mut self) -> u64 {
        let Some(usage) = self.thread.usage() else { return 0 };
        let since_ns = usage.run_queue_ns.saturating_sub(self.run_queue_ns);
        self.run_queue_ns = usage.run_queue_ns;
        since_ns
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_asleep_is_blocked_and_time_at_work_is_not() {
        let blocked = Blocked::default();
        let mut watch = Stopwatch::start();
        watch.timed(&blocked, TransactionStep::Commit, || thread::sleep(Duration::from_millis(30)));
        watch.timed(&blocked, TransactionStep::Statement, || {
            let until = thread_cpu_ns() + 20_000_000;
            while thread_cpu_ns() < until {}
        });
        let of = |part: TransactionStep| blocked.0[part as usize].1.load(Ordering::Relaxed);
        assert!(of(TransactionStep::Commit) > 20_000_000, "{blocked:?}");
        assert!(of(TransactionStep::Statement) < 10_000_000, "{blocked:?}");
        assert_eq!(of(TransactionStep::Begin), 0);
        let objects: Vec<_> = blocked.readings(false).map(|row| row.object).collect();
        assert_eq!(objects, ["session/Lock/writer", "session/IO/file read", "session/commit"]);
        assert_eq!(blocked.readings(true).count(), EVENTS.len());
    }
}
