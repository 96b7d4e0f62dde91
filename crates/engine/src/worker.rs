//! The loop of one worker: fill free slots with operations that are due, send them, reap, record.
//! Generic over the engine; everything it touches per operation is its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};

use blockstone_base::{Capability, LatencyHistogram};
use blockstone_sys::clock;

use crate::engine::{Engine, EngineError, Medium, Setup};
use crate::ledger::{BEFORE, Ledger, OPEN, Page, Share, Station, Totals};
use crate::load::Load;
use crate::operations::Operations;
use crate::pacing::{Alarm, Schedule};
use crate::pattern::Pattern;
use crate::request::{Completion, Request, RequestOp, Wait};

/// A worker whose operations failed this many times in a row ends: the file or device is gone.
const FAILURES_IN_A_ROW: u32 = 16;

/// Interval at which an idle worker of an open loop checks whether it should stop.
const STOP_POLL_NS: u64 = 20_000_000;

pub(crate) type Ready = Result<Vec<(&'static str, Capability)>, EngineError>;

#[derive(Debug)]
pub struct Worker {
    pub(crate) index: u32,
    pub(crate) load: Arc<Load>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) ready: Sender<(u32, Ready)>,
    /// One message starts the worker; a hang-up means that another worker could not be opened.
    pub(crate) go: Receiver<()>,
}

/// Opens the engine, waits for the start signal, and works until done or asked to stop.
pub(crate) fn run<E: Engine>(worker: Worker) {
    let Worker { index, load, ledger, ready, go } = worker;
    clock::sharpen_timers();
    let spec = &load.spec;
    let setup = Setup {
        medium: load.medium.clone(),
        worker: index,
        slots: spec.depth_per_worker as usize,
        slot_bytes: spec.block_bytes as usize,
    };
    let engine = match E::open(setup) {
        Ok(engine) => engine,
        Err(error) => return drop(ready.send((index, Err(error)))),
    };
    let told = ready.send((index, Ok(engine.capabilities())));
    drop(ready);
    if told.is_err() || go.recv().is_err() {
        return;
    }
    let mut work = Loop::new(engine, index, &load, &ledger);
    let result = work.run();
    work.look_at_window();
    if let Some(schedule) = work.schedule.take() {
        // Finished work ends the schedule; only a stop or a failure leaves operations due.
        let overdue =
            if work.exhausted { 0 } else { schedule.overdue(work.engine.now_ns()).count() as u64 };
        work.station.overdue.store(overdue, Ordering::Relaxed);
    }
    if let Err(error) = result {
        work.station.failed.store(true, Ordering::Relaxed);
        ledger.note_error(|| format!("worker {index}: {error}"));
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    offset_bytes: u64,
    due_ns: u64,
    submitted_ns: u64,
    /// How much later than possible the worker submitted it.
    late_ns: u64,
    op: RequestOp,
    syncing: bool,
}

struct Loop<'a, E> {
    engine: E,
    index: u32,
    load: &'a Load,
    ledger: &'a Ledger,
    station: &'a Station,
    pattern: Pattern,
    schedule: Option<Schedule>,
    alarm: Alarm,
    operations: Operations,
    active: bool,
    flights: Vec<Flight>,
    free: Vec<usize>,
    /// Time since which there has been a free slot, after all were in flight.
    free_since_ns: u64,
    filled: Vec<usize>,
    totals: Totals,
    started: u64,
    failures_in_a_row: u32,
    exhausted: bool,
    /// State of the ledger's window when it was last checked.
    window: u64,
    /// Last clock read, and whether anything worth timing has happened since.
    now_ns: u64,
    now_is_stale: bool,
}

impl<'a, E: Engine> Loop<'a, E> {
    fn new(engine: E, index: u32, load: &'a Load, ledger: &'a Ledger) -> Self {
        let spec = &load.spec;
        let depth = spec.depth_per_worker as usize;
        let now_ns = engine.now_ns();
        Self {
            engine,
            index,
            load,
            ledger,
            station: &ledger.stations[index as usize],
            pattern: Pattern::new(spec, load.length, index, &ledger.append_cursor),
            schedule: Schedule::new(spec.pacing, index, spec.workers, spec.seed, now_ns),
            alarm: Alarm::default(),
            operations: Operations::new(spec, index),
            active: load.content.is_active(),
            flights: vec![Flight::default(); depth],
            free: (0..depth).rev().collect(),
            free_since_ns: 0,
            filled: Vec::with_capacity(depth),
            totals: Totals::default(),
            started: 0,
            failures_in_a_row: 0,
            exhausted: false,
            window: BEFORE,
            now_ns,
            now_is_stale: true,
        }
    }

    fn run(&mut self) -> Result<(), EngineError> {
        let mut completions = Vec::with_capacity(self.flights.len());
        loop {
            let stopping = self.ledger.stop.load(Ordering::Relaxed) || self.has_failed();
            if !stopping {
                self.fill()?;
            }
            if self.free.len() == self.flights.len() && (stopping || self.exhausted) {
                return Ok(());
            }
            self.mark_submitted();
            let wait = self.wait(stopping);
            self.engine.reap(wait, &mut completions)?;
            if completions.is_empty() {
                self.awake(wait, &mut completions)?;
            }
            if completions.is_empty() {
                self.now_is_stale = true;
            } else {
                self.account(&completions)?;
                completions.clear();
            }
        }
    }

    /// Whether so many operations in a row failed that further ones would tell nothing new.
    fn has_failed(&self) -> bool {
        self.failures_in_a_row >= FAILURES_IN_A_ROW
    }

    /// Puts operations that are due into free slots.
    fn fill(&mut self) -> Result<(), EngineError> {
        if self.schedule.is_some() && self.now_is_stale {
            self.now_ns = self.engine.now_ns();
            self.now_is_stale = false;
        }
        while let Some(&slot) = self.free.last() {
            if self.exhausted || self.schedule.as_ref().is_some_and(|s| s.next_ns() > self.now_ns) {
                break;
            }
            let Some(offset_bytes) = self.pattern.next(slot) else {
                self.exhausted = true;
                break;
            };
            if !self.filled.is_empty() {
                // One by one: a device that gets its requests in batches answers in batches, with a
                // pause between them (measured at depth 16: 52,000 instead of 57,000 reads per
                // second).
                self.mark_submitted();
                self.now_is_stale |= self.engine.send()?;
            }
            self.free.pop();
            let due_ns = self.schedule.as_mut().map_or(0, Schedule::take);
            let op = self.operations.first(self.started);
            self.flights[slot] = Flight { offset_bytes, due_ns, op, ..Flight::default() };
            let len_bytes = self.load.spec.block_bytes as u32;
            if self.active && op != RequestOp::Read {
                let workers = u64::from(self.load.spec.workers);
                let number = self.started * workers + u64::from(self.index);
                let sequence = self.load.first_sequence + number;
                let data = &mut self.engine.buffer(slot)[..len_bytes as usize];
                self.load.content.prepare(offset_bytes, sequence, data);
                self.now_is_stale = true;
            }
            self.started += 1;
            self.engine.submit(Request { op, offset_bytes, len_bytes, slot })?;
            self.filled.push(slot);
        }
        Ok(())
    }

    /// Sets the submission time of the filled slots. A single operation that follows a single
    /// completion with only some 30 ns of bookkeeping in between takes that completion's time,
    /// which makes one clock read per operation. Otherwise the clock is read once for the batch.
    #[inline]
    fn mark_submitted(&mut self) {
        if self.filled.is_empty() {
            return;
        }
        if self.now_is_stale || self.filled.len() > 1 {
            self.now_ns = self.engine.now_ns();
            self.now_is_stale = false;
        }
        for slot in self.filled.drain(..) {
            let flight = &mut self.flights[slot];
            flight.submitted_ns = self.now_ns;
            if self.schedule.is_none() {
                flight.due_ns = self.now_ns;
            } else {
                let could_ns = flight.due_ns.max(self.free_since_ns);
                flight.late_ns = self.now_ns.saturating_sub(could_ns);
            }
        }
    }

    fn wait(&self, stopping: bool) -> Wait {
        let Some(schedule) = &self.schedule else { return Wait::One };
        if self.free.is_empty() || stopping || self.exhausted {
            return Wait::One;
        }
        let wake_ns = self.alarm.wake_ns(schedule.next_ns());
        let idle = self.free.len() == self.flights.len();
        Wait::Until(if idle { wake_ns.min(self.now_ns + STOP_POLL_NS) } else { wake_ns })
    }

    /// After a wait that ended without a completion, stays awake until the next operation is due or
    /// one completes.
    fn awake(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let (Wait::Until(wake_ns), Some(schedule)) = (wait, &self.schedule) else { return Ok(()) };
        let (due_ns, now_ns) = (schedule.next_ns(), self.engine.now_ns());
        if now_ns < wake_ns || wake_ns < self.alarm.wake_ns(due_ns) {
            return Ok(());
        }
        if self.now_ns < wake_ns {
            self.alarm.woke(wake_ns, now_ns);
        }
        let (engine, mut seen_ns, mut result) = (&mut self.engine, now_ns, Ok(()));
        let now_ns = self.alarm.spin_until(due_ns, now_ns, || {
            result = engine.reap(Wait::Until(seen_ns), out);
            seen_ns = engine.now_ns();
            (result.is_ok() && out.is_empty()).then_some(seen_ns)
        });
        result?;
        if now_ns < due_ns && out.is_empty() {
            self.engine.reap(Wait::Until(due_ns), out)?;
        }
        Ok(())
    }

    fn account(&mut self, completions: &[Completion]) -> Result<(), EngineError> {
        self.now_ns = completions[completions.len() - 1].completed_ns;
        self.now_is_stale = completions.len() > 1;
        self.look_at_window();
        let station = self.station;
        let mut page = station.page();
        for completion in completions {
            self.complete(completion, &mut page)?;
        }
        drop(page);
        station.publish(&self.totals);
        Ok(())
    }

    /// Notices a window that was opened or closed, before completions are accounted for: each of
    /// them then is in the window, or was unfinished at its end.
    #[inline]
    fn look_at_window(&mut self) {
        let window = self.ledger.window.load(Ordering::Relaxed);
        if window != self.window {
            self.window = window;
            if window != OPEN {
                self.note_unfinished(window);
            }
        }
    }

    /// Records the operations that are in flight or overdue. The simulated engine has its own
    /// clock, which is far behind the machine's.
    #[cold]
    fn note_unfinished(&mut self, closed_ns: u64) {
        let closed_ns = closed_ns.min(self.engine.now_ns());
        let mut lasted = LatencyHistogram::new();
        let in_flight = (0..self.flights.len()).filter(|slot| !self.free.contains(slot));
        let in_flight = in_flight.map(|slot| self.flights[slot].due_ns);
        let schedule = self.schedule.clone().filter(|_| !self.exhausted);
        let overdue = schedule.into_iter().flat_map(|schedule| schedule.overdue(closed_ns));
        for due_ns in in_flight.chain(overdue).filter(|due_ns| *due_ns < closed_ns) {
            lasted.record(closed_ns - due_ns);
        }
        self.ledger.add_unfinished(&lasted);
        self.now_is_stale = true;
    }

    #[inline]
    fn complete(&mut self, completion: &Completion, page: &mut Page) -> Result<(), EngineError> {
        let (slot, flight) = (completion.slot, self.flights[completion.slot]);
        let len_bytes = self.load.spec.block_bytes as u32;
        let expected = if flight.syncing { 0 } else { len_bytes };
        if completion.result != Ok(expected) {
            self.fail(completion, flight);
            return Ok(());
        }
        if let (Some(op), false) = (self.operations.then, flight.syncing) {
            let syncing = &mut self.flights[slot];
            syncing.syncing = true;
            if self.load.spec.flush_alone {
                syncing.due_ns = completion.completed_ns;
                syncing.submitted_ns = completion.completed_ns;
            }
            let offset_bytes = flight.offset_bytes;
            return self.engine.submit(Request { op, offset_bytes, len_bytes: 0, slot });
        }
        self.failures_in_a_row = 0;
        let latency_ns = completion.completed_ns.saturating_sub(flight.due_ns);
        let service_ns = completion.completed_ns.saturating_sub(flight.submitted_ns);
        let lag_ns = latency_ns.saturating_sub(service_ns);
        self.now_is_stale |= self.ledger.turn(page, completion.completed_ns, self.window == OPEN);
        page.record(latency_ns, service_ns);
        self.totals.completed_ops += 1;
        self.totals.completed_bytes += u64::from(len_bytes);
        self.totals.latency_ns_sum += latency_ns;
        self.share(flight.offset_bytes, || Share {
            completed_ops: 1,
            completed_bytes: u64::from(len_bytes),
            latency_ns_sum: latency_ns,
            failed_ops: 0,
        });
        self.totals.service_ns_sum += service_ns;
        self.totals.lag_ns_sum += lag_ns;
        self.totals.lag_ns_max = self.totals.lag_ns_max.max(lag_ns);
        self.totals.late_ns_sum += flight.late_ns;
        self.totals.spin_ns_sum += self.alarm.take_spun_ns();
        self.totals.last_completed_ns = self.ledger.since_origin_ns(completion.completed_ns);
        if self.active && flight.op == RequestOp::Read {
            self.verify(slot, flight.offset_bytes);
        }
        self.release(slot, completion.completed_ns);
        Ok(())
    }

    /// Counts an operation for the file that holds this offset, if there are several.
    #[inline]
    fn share(&self, offset_bytes: u64, part: impl FnOnce() -> Share) {
        if let Medium::Files(files) = &self.load.medium {
            self.station.add(files.place(offset_bytes).file, &part());
        }
    }

    #[inline]
    fn release(&mut self, slot: usize, now_ns: u64) {
        if self.free.is_empty() {
            self.free_since_ns = now_ns;
        }
        self.free.push(slot);
    }

    fn verify(&mut self, slot: usize, offset_bytes: u64) {
        let sample = self.totals.completed_ops.is_multiple_of(self.load.checksum_every);
        let data = &self.engine.buffer(slot)[..self.load.spec.block_bytes as usize];
        let check = self.load.content.verify(offset_bytes, data, sample);
        self.totals.stamps_verified += u64::from(check.stamps);
        self.totals.checksums_verified += u64::from(check.checksums);
        self.totals.mismatches += u64::from(check.mismatches);
        if let Some(mismatch) = check.first {
            self.ledger.note_mismatch(|| {
                let (name, _) = self.load.medium.locate(offset_bytes);
                format!("{name}: {mismatch}")
            });
        }
        self.now_is_stale = true;
    }

    #[cold]
    fn fail(&mut self, completion: &Completion, flight: Flight) {
        self.totals.failed_ops += 1;
        self.share(flight.offset_bytes, || Share { failed_ops: 1, ..Share::default() });
        self.failures_in_a_row += 1;
        self.release(completion.slot, completion.completed_ns);
        self.now_is_stale = true;
        let op = self.operations.then.filter(|_| flight.syncing).unwrap_or(flight.op);
        let cause = match completion.result {
            Err(errno) => std::io::Error::from_raw_os_error(errno).to_string(),
            Ok(bytes) => format!("only {bytes} bytes were transferred"),
        };
        self.ledger.note_error(|| {
            let (name, offset_bytes) = self.load.medium.locate(flight.offset_bytes);
            format!(
                "worker {}: {} of {} bytes at offset {offset_bytes} of {name}: {cause}",
                self.index,
                op.name(),
                self.load.spec.block_bytes,
            )
        });
        if self.has_failed() {
            self.station.failed.store(true, Ordering::Relaxed);
        }
    }
}
