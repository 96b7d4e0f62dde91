//! A simulated disk in virtual time: latency, parallelism, faults and power loss from one seed.
//!
//! The disk is a separate object that several engines share, on one thread or on many. Time is
//! virtual and common: a request is accepted only when no other engine can still submit an earlier
//! one, so a run is the same every time, however the threads are scheduled (a conservative
//! discrete-event simulation; Chandy and Misra 1979). The price: every open engine must be driven
//! or dropped, because the others wait for its next step.

mod platter;

use std::sync::Arc;
use std::thread::{self, ThreadId};

use blockstone_base::dist::Distribution;
use blockstone_base::rng::Rng;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::request::{Request, RequestOp};
use platter::Platter;
pub use platter::{PowerLoss, SECTOR_BYTES};

const EIO: i32 = 5;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;

#[derive(Clone, Debug, PartialEq)]
pub struct SimSpec {
    /// Size in bytes, a multiple of [`SECTOR_BYTES`].
    pub size_bytes: u64,
    /// Seed of all latencies and faults.
    pub seed: u64,
    /// Service time of a read or write, excluding the time it waits to be served.
    pub service: Distribution,
    /// Service time of a write if it differs; `None` means the same as for a read.
    pub write_service: Option<Distribution>,
    /// Service time of a flush; a durable write takes both.
    pub flush: Distribution,
    /// Requests served concurrently; others wait in order of arrival.
    pub parallelism: u32,
    pub faults: Faults,
}

/// Faults to inject, and when. Requests are counted from 1, over all engines of the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// The request with this number fails with EIO. A write leaves some of its sectors; a flush
    /// drops the writes it covered, which no later flush makes durable.
    pub eio_at: Option<u64>,
    /// Any request fails with EIO with this probability.
    pub eio_probability: f64,
    /// The read or write with this number moves only half of its sectors, rounded down.
    pub short_at: Option<u64>,
    /// Any read or write is short with this probability.
    pub short_probability: f64,
    pub stuck_at: Option<u64>,
    /// Nothing is served between these two times, in nanoseconds.
    pub stall: Option<(u64, u64)>,
    /// At a power loss, a write that is not durable is lost with this probability,
    pub lost_probability: f64,
    /// or torn with this one; otherwise it survives.
    pub torn_probability: f64,
}

impl Default for Faults {
    /// No fault while the power is on; at a power loss, a third each of the non-durable writes
    /// survive, are torn, and are lost.
    fn default() -> Self {
        Self {
            eio_at: None,
            eio_probability: 0.0,
            short_at: None,
            short_probability: 0.0,
            stuck_at: None,
            stall: None,
            lost_probability: 1.0 / 3.0,
            torn_probability: 1.0 / 3.0,
        }
    }
}

/// A simulated disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    turn: Condvar,
}

#[derive(Debug)]
pub(crate) struct State {
    spec: SimSpec,
    platter: Platter,
    latency_rng: Rng,
    fault_rng: Rng,
    power_rng: Rng,
    damage_rng: Rng,
    /// Time at which each of the parallel servers becomes free, in nanoseconds.
    servers_free_ns: Vec<u64>,
    requests: u64,
    /// Number of power losses so far: a request from before one never succeeds.
    epoch: u64,
    seats: Vec<Seat>,
    seats_taken: u64,
}

/// An engine's place in the order of events.
#[derive(Debug)]
struct Seat {
    id: u64,
    worker: u32,
    thread: ThreadId,
    now_ns: u64,
    /// Time of its next event; `None` while its thread is computing.
    event_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub slot: usize,
    pub done_ns: u64,
    result: Result<u32, i32>,
    effect: Effect,
    epoch: u64,
}

#[derive(Clone, Copy, Debug)]
enum Effect {
    Nothing,
    Durable {
        version: u64,
    },
    /// All writes that had completed by this time become durable.
    Flush {
        as_of_ns: u64,
    },
    /// The flush failed: the writes it covered are dropped and never become durable.
    Drop {
        as_of_ns: u64,
    },
}

impl SimSpec {
    /// A disk without faults: 100 µs for a read or write, 500 µs for a flush, eight requests
    /// concurrently.
    pub fn new(size_bytes: u64, seed: u64) -> Self {
        Self {
            size_bytes,
            seed,
            service: Distribution::Constant { ns: 100_000.0 },
            write_service: None,
            flush: Distribution::Constant { ns: 500_000.0 },
            parallelism: 8,
            faults: Faults::default(),
        }
    }
}

impl SimDisk {
    /// Creates a disk of zeros.
    ///
    /// # Panics
    /// If the spec has no parallelism or a size that is not a whole number of sectors.
    pub fn new(spec: SimSpec) -> Self {
        assert!(spec.parallelism > 0, "a disk serves at least one request at once");
        assert!(spec.size_bytes.is_multiple_of(SECTOR_BYTES as u64), "a disk is whole sectors");
        let state = State {
            platter: Platter::default(),
            latency_rng: Rng::new(spec.seed, 0),
            fault_rng: Rng::new(spec.seed, 1),
            power_rng: Rng::new(spec.seed, 2),
            damage_rng: Rng::new(spec.seed, 3),
            servers_free_ns: vec![0; spec.parallelism as usize],
            requests: 0,
            epoch: 0,
            seats: Vec::new(),
            seats_taken: 0,
            spec,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), turn: Condvar::new() }))
    }

    pub fn size_bytes(&self) -> u64 {
        self.lock().spec.size_bytes
    }

    /// Reads whole sectors immediately, without faults and without advancing time.
    pub fn read(&self, offset_bytes: u64, out: &mut [u8]) {
        self.lock().platter.read(offset_bytes, out);
    }

    /// Writes whole sectors immediately, as [`SimDisk::read`] reads them; not durable before a
    /// sync.
    pub fn write(&self, offset_bytes: u64, data: &[u8]) {
        self.lock().platter.write(offset_bytes, data, 0);
    }

    pub fn sync(&self) {
        let mut state = self.lock();
        let now_ns = state.seats.iter().map(|seat| seat.now_ns).max().unwrap_or(0);
        state.platter.sync(now_ns);
    }

    /// Cuts the power and turns it on again. Reads see what survived; requests that were in flight
    /// complete with EIO and take no further effect.
    pub fn power_loss(&self) -> PowerLoss {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.epoch += 1;
        let Faults { lost_probability, torn_probability, .. } = state.spec.faults;
        state.platter.power_loss(lost_probability, torn_probability, &mut state.power_rng)
    }

    pub fn set_faults(&self, faults: Faults) {
        self.lock().spec.faults = faults;
    }

    /// Registers an engine of this thread and returns its place in the order of events.
    pub(crate) fn take_seat(&self, worker: u32) -> u64 {
        let mut state = self.lock();
        let id = state.seats_taken;
        state.seats_taken += 1;
        let thread = thread::current().id();
        state.seats.push(Seat { id, worker, thread, now_ns: 0, event_ns: None });
        id
    }

    /// Gives up the place: no other engine waits for this one any more.
    pub(crate) fn leave(&self, seat: u64) {
        self.lock().seats.retain(|taken| taken.id != seat);
        self.0.turn.notify_all();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Waits until the event of `seat` at `event_ns` is the next of all. An event at the end of
    /// time never is: a stuck request blocks its thread, as a real one does.
    pub(crate) fn turn<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        seat: u64,
        event_ns: u64,
    ) -> MutexGuard<'a, State> {
        state.seat(seat).event_ns = Some(event_ns);
        self.0.turn.notify_all();
        while !state.is_next(seat, event_ns) {
            self.0.turn.wait(&mut state);
        }
        let mine = state.seat(seat);
        mine.event_ns = None;
        mine.now_ns = event_ns;
        state
    }
}

impl State {
    /// The current time for this thread: whatever one of its engines has seen happen is past for
    /// all of them.
    pub fn thread_now_ns(&self) -> u64 {
        let thread = thread::current().id();
        let of_thread = self.seats.iter().filter(|seat| seat.thread == thread);
        of_thread.map(|seat| seat.now_ns).max().unwrap_or(0)
    }

    fn seat(&mut self, id: u64) -> &mut Seat {
        self.seats.iter_mut().find(|seat| seat.id == id).expect("an engine keeps its seat")
    }

    /// Whether no other engine can act before `event_ns`. One that is computing might, unless it
    /// belongs to the thread that asks. Ties are broken by worker, then by order of opening.
    fn is_next(&self, id: u64, event_ns: u64) -> bool {
        let mine = self.seats.iter().find(|seat| seat.id == id).expect("an engine keeps its seat");
        let key = (event_ns, mine.worker, id);
        event_ns < u64::MAX
            && self.seats.iter().filter(|other| other.id != id).all(|other| match other.event_ns {
                Some(theirs_ns) => (theirs_ns, other.worker, other.id) > key,
                None => other.thread == mine.thread,
            })
    }

    /// Accepts a request at `now_ns`: moves its data and determines how and when it will end.
    pub fn accept(&mut self, request: Request, data: &mut [u8], now_ns: u64) -> Flight {
        self.requests += 1;
        let faults = &self.spec.faults;
        let at = |fault: Option<u64>| fault == Some(self.requests);
        let stuck = at(faults.stuck_at);
        let draw = self.fault_rng.unit();
        let fails = at(faults.eio_at) || draw < faults.eio_probability;
        let short = at(faults.short_at) || draw < faults.eio_probability + faults.short_probability;
        let done_ns = if stuck { u64::MAX } else { self.serve(request.op, now_ns) };
        let mut effect = Effect::Nothing;
        let result = if stuck {
            Ok(0)
        } else if fails {
            effect = self.damage(request, data, now_ns, done_ns);
            Err(EIO)
        } else if request.op.is_sync() {
            effect = Effect::Flush { as_of_ns: now_ns };
            Ok(0)
        } else {
            self.extent(request, short).map(|bytes| {
                effect = self.transfer(request, &mut data[..bytes], done_ns);
                bytes as u32
            })
        };
        Flight { slot: request.slot, done_ns, result, effect, epoch: self.epoch }
    }

    /// Returns the completion time of a request that arrives at `now_ns`.
    fn serve(&mut self, op: RequestOp, now_ns: u64) -> u64 {
        let rng = &mut self.latency_rng;
        let writes = self.spec.write_service.as_ref().unwrap_or(&self.spec.service);
        let service_ns = match op {
            RequestOp::Read => self.spec.service.sample_ns(rng),
            RequestOp::Write => writes.sample_ns(rng),
            RequestOp::WriteDsync => writes.sample_ns(rng) + self.spec.flush.sample_ns(rng),
            RequestOp::Fdatasync | RequestOp::Fsync => self.spec.flush.sample_ns(rng),
        };
        let server = self.servers_free_ns.iter_mut().min().expect("a disk has a server");
        let mut start_ns = now_ns.max(*server);
        if let Some((from_ns, until_ns)) = self.spec.faults.stall
            && (from_ns..until_ns).contains(&start_ns)
        {
            start_ns = until_ns;
        }
        *server = start_ns + service_ns as u64;
        *server
    }

    /// Returns how many bytes of a read or write are moved.
    fn extent(&self, request: Request, short: bool) -> Result<usize, i32> {
        let (len, sector) = (request.len_bytes as usize, SECTOR_BYTES as u64);
        let room = self.spec.size_bytes.saturating_sub(request.offset_bytes);
        if !len.is_multiple_of(SECTOR_BYTES) || !request.offset_bytes.is_multiple_of(sector) {
            return Err(EINVAL);
        }
        if room == 0 && request.op != RequestOp::Read {
            return Err(ENOSPC);
        }
        let len = if short { len / SECTOR_BYTES / 2 * SECTOR_BYTES } else { len };
        Ok(len.min(room as usize))
    }

    /// Returns the effect that a failing request still has: a write leaves some of its sectors, and
    /// a flush drops the writes that it covered.
    fn damage(&mut self, request: Request, data: &[u8], now_ns: u64, done_ns: u64) -> Effect {
        if request.op.is_sync() {
            return Effect::Drop { as_of_ns: now_ns };
        }
        if let Ok(bytes) = self.extent(request, false)
            && request.op != RequestOp::Read
        {
            let sectors = (request.offset_bytes..).step_by(SECTOR_BYTES);
            for (offset, sector) in sectors.zip(data[..bytes].chunks(SECTOR_BYTES)) {
                if self.damage_rng.below(2) == 0 {
                    self.platter.write(offset, sector, done_ns);
                }
            }
        }
        Effect::Nothing
    }

    fn transfer(&mut self, request: Request, data: &mut [u8], done_ns: u64) -> Effect {
        if request.op == RequestOp::Read {
            self.platter.read(request.offset_bytes, data);
            return Effect::Nothing;
        }
        let version = self.platter.write(request.offset_bytes, data, done_ns);
        if request.op == RequestOp::WriteDsync {
            Effect::Durable { version }
        } else {
            Effect::Nothing
        }
    }

    /// Ends a request: its effect takes place, unless the power was lost in between.
    pub fn finish(&mut self, flight: Flight) -> Result<u32, i32> {
        if flight.epoch != self.epoch {
            return Err(EIO);
        }
        match flight.effect {
            Effect::Nothing => {}
            Effect::Durable { version } => self.platter.sync_one(version),
            Effect::Flush { as_of_ns } => self.platter.sync(as_of_ns),
            Effect::Drop { as_of_ns } => self.platter.drop_unsynced(as_of_ns),
        }
        flight.result
    }
}
