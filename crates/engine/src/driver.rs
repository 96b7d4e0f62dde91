//! Starting a load on many threads at one moment, watching it, and stopping it without hanging on
//! a device that does not answer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use blockstone_base::Capability;
use blockstone_base::load::{Access, LoadSpec, Op, Pacing};
use blockstone_sys::clock;

use crate::content::{Content, NoContent};
use crate::engine::{EngineError, Medium};
use crate::ledger::{Ledger, SecondHistogram, Totals};
use crate::registry::{self, Entry};
use crate::worker::Worker;

/// A worker needs little stack; 64 of them must not need much memory.
const STACK_BYTES: usize = 256 << 10;

/// What [`Running::wait`] gives requests in flight once its limit has passed.
const WAIT_GRACE: Duration = Duration::from_secs(1);

/// A load, ready to start.
#[derive(Clone)]
pub struct Load {
    /// What is sent. `span_bytes` is visited in whole blocks; a rest at its end is left out.
    pub spec: LoadSpec,
    /// Where it is sent.
    pub medium: Medium,
    /// What blocks hold.
    pub content: Arc<dyn Content>,
    /// When the load is done by itself.
    pub length: Length,
    /// Sequence of the first write; every write of the load gets one of its own, upwards.
    pub first_sequence: u64,
    /// Verify the checksum of one read in so many; every read's stamp is verified. Not zero.
    pub checksum_every: u64,
    /// The instant on the engine's clock from which histogram seconds count.
    pub origin_ns: u64,
}

/// When a load is done by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Never: it runs until stopped. A sequential worker begins its part of the span again. An
    /// append ends where the span ends all the same: going on would overwrite, not append.
    Endless,
    /// When every block of the span was visited once (sequential or append).
    Once,
    /// When every worker has performed this many operations, failed ones included.
    Operations(u64),
}

/// A load that runs. Dropping it tells the workers to stop and does not wait for them.
#[derive(Debug)]
pub struct Running {
    ledger: Arc<Ledger>,
    threads: Vec<JoinHandle<()>>,
    capabilities: Vec<(&'static str, Capability)>,
}

/// What a load did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its counters at the end.
    pub totals: Totals,
    /// Every latency, by second and window.
    pub histograms: Vec<SecondHistogram>,
    /// The first failure: worker, operation, offset, file and cause.
    pub first_error: Option<String>,
    /// The first block that was not what had been written, and why.
    pub first_mismatch: Option<String>,
    /// Workers that gave up: too many failures in a row, or an engine that broke.
    pub failed_workers: u32,
    /// Workers that did not end within the grace given. They are left behind, each with a request
    /// that the device does not answer; what they had completed is counted.
    pub stuck_workers: u32,
    /// Operations of an open loop that were due at the end and had not been submitted, because
    /// the ones before them held all slots; without those of stuck workers.
    pub overdue_ops: u64,
}

impl Load {
    /// An endless load without content; set the other fields as needed.
    pub fn new(spec: LoadSpec, medium: Medium) -> Self {
        Self {
            spec,
            medium,
            content: Arc::new(NoContent),
            length: Length::Endless,
            first_sequence: 1,
            checksum_every: 64,
            origin_ns: 0,
        }
    }

    /// Refuses what contradicts itself, so that the loop can rely on it.
    fn check(&self, entry: &Entry) -> Result<(), EngineError> {
        let spec = &self.spec;
        let depth_max = entry.depth_max;
        let problems = [
            (spec.workers == 0, "there is no worker", "use one worker or more"),
            (
                spec.depth_per_worker == 0 || spec.depth_per_worker > depth_max,
                "the engine cannot have that many requests in flight a worker",
                "psync takes a depth of 1 and more workers; the others up to 4096",
            ),
            (
                spec.block_bytes == 0 || spec.block_bytes > 1 << 30,
                "a block is at least a byte and at most 1 GiB",
                "choose another block size",
            ),
            (
                spec.block_bytes.saturating_mul(u64::from(spec.workers)) > spec.span_bytes,
                "the span is shorter than one block for each worker",
                "use a larger span, a smaller block or fewer workers",
            ),
            (
                (spec.op == Op::Commit) != spec.sync.is_some(),
                "a commit has a sync method, and nothing else has",
                "set the sync method for commits only",
            ),
            (
                spec.access == Access::Random && self.length == Length::Once,
                "random access does not visit every block once",
                "use sequential access, or a number of operations",
            ),
            (
                spec.access == Access::Append && spec.op == Op::Read,
                "a read cannot append",
                "use sequential access",
            ),
            (self.checksum_every == 0, "one read in zero is no share", "use 1 for every read"),
            (
                matches!(spec.pacing, Pacing::Open { rate_per_s, .. }
                    if !(rate_per_s.is_finite() && rate_per_s > 0.0)),
                "the rate is not a positive number",
                "use a rate above zero",
            ),
        ];
        match problems.into_iter().find(|(wrong, ..)| *wrong) {
            None => Ok(()),
            Some((_, problem, hint)) => Err(EngineError::Contradiction {
                medium: self.medium.name(),
                problem: problem.to_owned(),
                hint,
            }),
        }
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Load")
            .field("spec", &self.spec)
            .field("medium", &self.medium)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// Opens every worker's engine on its own thread, then starts them all at one moment.
///
/// # Errors
/// When the load contradicts itself, or a worker cannot be started; the others end at once then,
/// without having sent anything.
pub fn start(load: Load) -> Result<Running, EngineError> {
    let entry = registry::find(&load.spec.engine)?;
    load.check(entry)?;
    let workers = load.spec.workers;
    let open_loop = matches!(load.spec.pacing, Pacing::Open { .. });
    let ledger = Arc::new(Ledger::new(load.spec.op, workers, load.origin_ns, open_loop));
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
        // A worker that is gone by now panicked; stopping reports it.
        let _ = gate.send(());
    }
    Ok(Running { ledger, threads, capabilities })
}

impl Running {
    /// Counters since the start, summed over the workers without disturbing them.
    pub fn totals(&self) -> Totals {
        self.ledger.totals()
    }

    /// From now on completions count as inside the window.
    pub fn open_window(&self) {
        self.ledger.window.store(true, Ordering::Relaxed);
    }

    /// From now on completions count as outside the window.
    pub fn close_window(&self) {
        self.ledger.window.store(false, Ordering::Relaxed);
    }

    /// Whether every worker has ended, its work done or not.
    pub fn finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// The first failure so far.
    pub fn first_error(&self) -> Option<String> {
        self.ledger.first_error()
    }

    /// What the engine was given by the system beyond the bare ability to submit.
    pub fn capabilities(&self) -> &[(&'static str, Capability)] {
        &self.capabilities
    }

    /// Tells the workers to stop, waits for their requests in flight for at most `grace`, and
    /// collects what they did.
    pub fn stop(mut self, grace: Duration) -> Outcome {
        self.ledger.stop.store(true, Ordering::Relaxed);
        self.watch(grace);
        let mut stuck_workers = 0;
        for (index, thread) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            if !thread.is_finished() {
                stuck_workers += 1;
            } else if thread.join().is_err() {
                self.ledger.stations[index].failed.store(true, Ordering::Relaxed);
                self.ledger.note_error(|| format!("worker {index} panicked: this is a defect"));
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
            overdue_ops: stations.iter().map(|s| s.overdue.load(Ordering::Relaxed)).sum(),
        }
    }

    /// Waits up to `limit` for a load that ends by itself, then stops what is left of it.
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
