//! Starts a load on many threads simultaneously, watches it, and stops it without hanging on a
//! device that does not answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use blockstone_base::{Capability, LatencyHistogram};
use blockstone_sys::clock;

use crate::engine::EngineError;
use crate::ledger::{Ledger, OPEN, Share, TimedHistogram, Totals};
use crate::load::Load;
use crate::registry;
use crate::worker::Worker;

/// A worker needs little stack, and 64 of them must not take much memory.
const STACK_BYTES: usize = 256 << 10;

/// Grace that [`Running::wait`] gives requests in flight once its limit has passed.
const WAIT_GRACE: Duration = Duration::from_secs(1);

/// A running load. Dropping it tells the workers to stop and does not wait for them.
#[derive(Debug)]
pub struct Running {
    ledger: Arc<Ledger>,
    threads: Vec<JoinHandle<()>>,
    capabilities: Vec<(&'static str, Capability)>,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub totals: Totals,
    /// Every latency, by second and window.
    pub histograms: Vec<TimedHistogram>,
    /// First failure: worker, operation, offset, file and cause.
    pub first_error: Option<String>,
    /// First block that did not hold what had been written, and why.
    pub first_mismatch: Option<String>,
    /// Workers that gave up: too many failures in a row, or an engine that broke.
    pub failed_workers: u32,
    /// Workers that did not end within the grace period. They are left behind, each with a request
    /// that the device does not answer; the operations they had completed are counted.
    pub stuck_workers: u32,
    /// Operations of an open loop that were due at the end and had not been submitted, because
    /// earlier ones occupied all slots; excluding those of stuck workers.
    pub overdue_ops: u64,
    /// Operations in flight or overdue when the window closed: their duration up to then, from the
    /// intended start, in nanoseconds; excluding those of stuck workers. Each took at least that
    /// long.
    pub unfinished: LatencyHistogram,
}

/// Opens every worker's engine on its own thread, then starts all workers simultaneously. Fails if
/// the load contradicts itself or a worker cannot be started; the other workers then end
/// immediately, without having sent anything.
pub fn start(load: Load) -> Result<Running, EngineError> {
    let entry = registry::find(&load.spec.engine)?;
    load.check(entry.depth_max)?;
    let workers = load.spec.workers;
    let ledger = Arc::new(Ledger::new(&load));
    let load = Arc::new(load);
    let (ready, opened) = mpsc::channel();
    let mut threads = Vec::with_capacity(workers as usize);
    let mut gates: Vec<Sender<()>> = Vec::with_capacity(workers as usize);
    for index in 0..workers {
        let (gate, go) = mpsc::channel();
        let worker = Worker {
            index,
            load: Arc::clone(&load),
            ledger: Arc::clone(&ledger),
            ready: ready.clone(),
            go,
        };
        let thread = thread::Builder::new()
            .name(format!("worker-{index}"))
            .stack_size(STACK_BYTES)
            .spawn(move || (entry.run)(worker))
            .map_err(|source| EngineError::Thread { worker: index, workers, source })?;
        threads.push(thread);
        gates.push(gate);
    }
    drop(ready);
    // Any error drops the gates, and every worker that waits at one ends.
    let mut capabilities = Vec::new();
    let mut missing: Vec<bool> = vec![true; workers as usize];
    for (index, result) in opened {
        missing[index as usize] = false;
        capabilities = result?;
    }
    if let Some(index) = missing.iter().position(|&missing| missing) {
        return Err(EngineError::Vanished { worker: index as u32 });
    }
    for gate in gates {
        // A worker that is already gone has panicked; stopping reports it.
        let _ = gate.send(());
    }
    Ok(Running { ledger, threads, capabilities })
}

impl Running {
    /// Returns the counters since the start, summed over the workers without disturbing them.
    pub fn totals(&self) -> Totals {
        self.ledger.totals()
    }

    /// Returns the part of each file if the load has several; empty if it has one.
    pub fn shares(&self) -> Vec<Share> {
        self.ledger.shares()
    }

    /// Counts completions as inside the window from now on.
    pub fn open_window(&self) {
        self.ledger.window.store(OPEN, Ordering::Relaxed);
    }

    /// Counts completions as outside the window from now on. Operations that are in flight or
    /// overdue now count as unfinished.
    pub fn close_window(&self) {
        self.ledger.window.store(clock::now_ns(), Ordering::Relaxed);
    }

    /// Whether every worker has ended, with its work done or not.
    pub fn finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    pub fn first_error(&self) -> Option<String> {
        self.ledger.first_error()
    }

    /// Capabilities that the system granted the engine or refused, beyond the bare ability to
    /// submit.
    pub fn capabilities(&self) -> &[(&'static str, Capability)] {
        &self.capabilities
    }

    /// Tells the workers to stop, waits at most `grace` for their requests in flight, and collects
    /// their results.
    pub fn stop(mut self, grace: Duration) -> Outcome {
        self.ledger.stop.store(true, Ordering::Relaxed);
        self.watch(grace);
        let mut stuck_workers = 0;
        for (index, thread) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            if !thread.is_finished() {
                stuck_workers += 1;
            } else if thread.join().is_err() {
                self.ledger.stations[index].failed.store(true, Ordering::Relaxed);
                self.ledger.note_error(|| format!("worker {index} panicked: this is a bug"));
            }
        }
        let stations = &self.ledger.stations;
        let failed = stations.iter().filter(|station| station.failed.load(Ordering::Relaxed));
        Outcome {
            histograms: self.ledger.histograms(),
            totals: self.ledger.totals(),
            first_error: self.ledger.first_error(),
            first_mismatch: self.ledger.first_mismatch(),
            failed_workers: failed.count() as u32,
            stuck_workers,
            unfinished: self.ledger.unfinished(),
            overdue_ops: stations.iter().map(|s| s.overdue.load(Ordering::Relaxed)).sum(),
        }
    }

    /// Waits up to `limit` for a load that ends on its own, then stops whatever is left of it.
    pub fn wait(self, limit: Duration) -> Outcome {
        self.watch(limit);
        self.stop(WAIT_GRACE)
    }

    fn watch(&self, limit: Duration) {
        let deadline_ns = clock::now_ns().saturating_add(limit.as_nanos() as u64);
        while !self.finished() && clock::now_ns() < deadline_ns {
            clock::sleep_until_ns(deadline_ns.min(clock::now_ns() + 500_000));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ledger.stop.store(true, Ordering::Relaxed);
    }
}
