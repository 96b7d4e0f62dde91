//! Counters of the instance, read while it runs.

use std::array;

use blockstone_base::LatencyHistogram;
use blockstone_sys::usage::ThreadUsage;

use super::Instance;
use crate::wait::{Doing, EVENTS, Event, Ledger, Role, STATISTICS, Statistic, Transfers, Waits};

const ROLES: usize = Role::ALL.len();

/// Counters since the instance was opened, except for [`Snapshot::dirty_blocks`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    statistics: [u64; STATISTICS],
    waits: [[Waits; EVENTS]; ROLES],
    transfers: [Transfers; ROLES],
    /// Changed blocks in the cache that have not been written yet, at this moment.
    pub dirty_blocks: u64,
}

impl Snapshot {
    pub fn statistic(&self, statistic: Statistic) -> u64 {
        self.statistics[statistic as usize]
    }

    /// Returns the statistic of this name, which is that of a column in a recording.
    pub fn statistic_named(&self, name: &str) -> Option<u64> {
        let known = Statistic::ALL.iter().find(|statistic| statistic.name() == name);
        known.map(|&statistic| self.statistic(statistic))
    }

    pub fn waits(&self, role: Role, event: Event) -> Waits {
        self.waits[role as usize][event as usize]
    }

    pub fn transfers(&self, role: Role) -> Transfers {
        self.transfers[role as usize]
    }

    fn add(&mut self, ledger: &Ledger) {
        for (sum, &statistic) in self.statistics.iter_mut().zip(Statistic::ALL) {
            *sum += ledger.statistic(statistic);
        }
        for (sum, &event) in self.waits[ledger.role as usize].iter_mut().zip(Event::ALL) {
            *sum += ledger.waits(event);
        }
        self.transfers[ledger.role as usize] += ledger.transfers();
    }
}

/// A session or a background process, in its current state.
#[derive(Debug)]
pub struct Process<'a> {
    pub role: Role,
    /// Number within its role.
    pub number: usize,
    ledger: &'a Ledger,
}

impl Process<'_> {
    pub fn doing(&self) -> Doing {
        self.ledger.doing()
    }

    pub fn statistic(&self, statistic: Statistic) -> u64 {
        self.ledger.statistic(statistic)
    }

    pub fn waits(&self, event: Event) -> Waits {
        self.ledger.waits(event)
    }

    pub fn transfers(&self) -> Transfers {
        self.ledger.transfers()
    }

    /// Returns the processor time and run queue time of its thread so far. Reads a file of `/proc`,
    /// which takes some microseconds.
    pub fn processor(&self) -> ThreadUsage {
        self.ledger.processor()
    }
}

impl Instance {
    /// Returns all counters so far, by walking over the sessions' counters without taking any lock
    /// of theirs.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            statistics: [0; STATISTICS],
            waits: array::from_fn(|_| [Waits::default(); EVENTS]),
            transfers: [Transfers::default(); ROLES],
            dirty_blocks: self.shared.cache.dirty() as u64,
        };
        self.each_ledger(|ledger| snapshot.add(ledger));
        snapshot
    }

    /// Visits background processes first, then sessions, always in the same order.
    pub fn each_process(&self, mut visit: impl FnMut(&Process<'_>)) {
        let mut seen = [0; ROLES];
        self.each_ledger(|ledger| {
            let number = &mut seen[ledger.role as usize];
            visit(&Process { role: ledger.role, number: *number, ledger });
            *number += 1;
        });
    }

    /// Returns the processor time and run queue time of a role's threads so far. Reads a file of
    /// `/proc` for each thread, some microseconds each: with a thousand sessions, not for every
    /// tick.
    pub fn processor(&self, role: Role) -> ThreadUsage {
        let mut sum = ThreadUsage::default();
        self.each_ledger(|ledger| {
            if ledger.role == role {
                let usage = ledger.processor();
                sum.cpu_ns += usage.cpu_ns;
                sum.run_queue_ns += usage.run_queue_ns;
            }
        });
        sum
    }

    /// Takes the histograms of waits since the last call, by role and event.
    pub fn take_histograms(&self) -> Vec<(Role, Event, LatencyHistogram)> {
        self.shared.histograms.take()
    }

    /// Takes the latencies of reads past the cache since the last call: of every read, including
    /// those that no session waited for.
    pub fn take_direct_reads(&self) -> LatencyHistogram {
        self.shared.histograms.take_direct_reads()
    }

    fn each_ledger(&self, mut visit: impl FnMut(&Ledger)) {
        self.shared.background.iter().for_each(|ledger| visit(ledger));
        let sessions = self.shared.sessions.lock();
        sessions.iter().for_each(|ledger| visit(ledger));
    }
}
