//! The log buffer: records gather in one half while the log writer writes the other.
//!
//! Everything in the buffer already has its place in a log: the chunk that gathers is bound to one
//! from the start, and while the next log still holds redo that recovery would need, the buffer
//! accepts nothing more. So the log writer never waits for a checkpoint, and no thread that waits
//! for the log writer (a database writer, a commit) can keep the checkpoint from advancing.
//!
//! A session that finds no room waits in a queue and is promised room when its turn comes; while
//! any session is queued, no other takes room, so none starves and none is woken in vain.
//!
//! The queue of changed blocks is under the same lock, because its order must be that of the redo:
//! its head is where recovery would begin.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use blockstone_sys::buffer::{Arena, Slot};

use super::{Lsn, REDO_BLOCK_BYTES, REDO_HEADER_BYTES, REDO_PAYLOAD_BYTES};
use crate::block::{BLOCK_BYTES_MAX, COLUMN_BYTES, COLUMNS};
use crate::cache::Cache;
use crate::error::InstanceError;
use crate::health::Health;
use crate::planted::{Planted, planted};
use crate::turn::{Relay, Seat};
use crate::wait::{Event, Histograms, Ledger};

/// The longest append: an image of the largest block and a change of all columns.
pub const APPEND_BYTES_MAX: usize = BLOCK_BYTES_MAX as usize + 16 + 32 + 2 * COLUMNS * COLUMN_BYTES;
/// Time after which redo that no session waits for is written.
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// How often the log writer tries to take the latch before it pauses, and how long it then pauses.
const SPINS: u32 = 100;
const PAUSE: Duration = Duration::from_micros(20);
/// Distance between marks; a checkpoint begins at one of them.
const MARK_EVERY_BYTES: u64 = 256 << 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RedoAddress {
    /// Number of the log since the instance was created; it is stored in file `sequence % logs`.
    pub sequence: u64,
    pub offset: u64,
}

/// Start of a chunk: what recovery needs to find its first record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub first: Lsn,
    pub place: RedoAddress,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Logs {
    pub count: u64,
    pub bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Chunk {
    pub memory: Slot,
    pub mark: Mark,
    pub payload_bytes: usize,
    /// Changes to the next log since the previous chunk.
    pub switches: u64,
}

/// Reason why an append must be retried later. The caller releases its latch before it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// Both halves of the buffer are full, or others are already waiting for room.
    Buffer,
    /// The next log still holds redo that recovery would need.
    Switch,
}

/// Records to be appended as a unit: they go into the same chunk, so after a crash either all of
/// them are there or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Append<'a> {
    pub records: &'a [u8],
    /// Frame that these records change first since it was last written, and where it keeps the
    /// position of that change.
    pub dirties: Option<(u32, &'a AtomicU64)>,
    /// Whether a session will wait until they are durable.
    pub flush: bool,
}

/// Room in the buffer that was promised to a queued session for its append. If the append has grown
/// in the meantime, because a block was written and its image is needed again, the session may have
/// to wait once more.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    log: &'a Log,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Distance {
    /// Where recovery would begin if all writes that have returned were durable.
    pub oldest: Lsn,
    pub tail: Lsn,
    pub blocked: bool,
}

/// The log buffer and everything that is in redo order.
#[derive(Debug)]
pub(crate) struct Log {
    pub logs: Logs,
    /// The standard library's mutex has no fair handoff, so a descheduled waiter cannot stall the
    /// rest.
    state: Mutex<State>,
    /// The log writer, and whether it is idle. It idles outside the latch: waking it does not give
    /// it the latch, and it must not queue there.
    writer: OnceLock<Thread>,
    idle: AtomicBool,
    rooms: Relay,
    durable: AtomicU64,
    waiters: Mutex<Vec<(Lsn, Arc<Seat>)>>,
    commits: Relay,
    health: Arc<Health>,
}

#[derive(Debug)]
struct State {
    filling: Slot,
    spare: Option<Slot>,
    mark: Mark,
    used: usize,
    room: usize,
    promised: usize,
    /// Sessions that wait for room, and the number of bytes each needs.
    queue: VecDeque<(usize, Arc<Seat>)>,
    blocked: bool,
    switches: u64,
    requested: Lsn,
    /// End of the redo in each log file, or zero.
    ends: Vec<Lsn>,
    checkpoint: Lsn,
    marks: VecDeque<Mark>,
    /// Changed blocks, ordered by their first change since they were last written: position and
    /// frame. If the frame has a different position, the block has been written since.
    dirty: VecDeque<(Lsn, u32)>,
}

impl Log {
    /// Creates an empty buffer of twice `half_bytes`, whose first record goes to `start`.
    pub fn new(
        logs: Logs,
        half_bytes: u64,
        start: Mark,
        health: Arc<Health>,
    ) -> Result<Self, InstanceError> {
        let mut halves = Arena::new(2, half_bytes as usize)?.into_slots();
        let spare = halves.pop();
        let filling = halves.pop().expect("an arena of two slots has two");
        let mut state = State {
            filling,
            spare,
            mark: start,
            used: 0,
            room: 0,
            promised: 0,
            queue: VecDeque::new(),
            blocked: false,
            switches: 0,
            requested: Lsn(0),
            ends: vec![Lsn(0); logs.count as usize],
            checkpoint: start.first,
            marks: VecDeque::from([start]),
            dirty: VecDeque::new(),
        };
        state.settle(logs);
        Ok(Self {
            logs,
            state: Mutex::new(state),
            writer: OnceLock::new(),
            idle: AtomicBool::new(false),
            rooms: Relay::new(),
            durable: AtomicU64::new(start.first.0),
            waiters: Mutex::default(),
            commits: Relay::new(),
            health,
        })
    }

    /// Appends records and returns the position after them. A frame that they are the first to
    /// change is entered in the queue of changed blocks and records that position, in one step.
    /// `room` was promised before, and is used up whatever the outcome.
    pub fn append(
        &self,
        what: &Append<'_>,
        room: Option<Room<'_>>,
        waits: (&Ledger, &Histograms),
    ) -> Result<Lsn, NoRoom> {
        let mut state = self.latch(waits);
        // A session that was promised room takes it before any other: promises in a chunk that has
        // been taken in the meantime apply to the next one.
        let taken = match room {
            Some(room) => {
                room.redeem(&mut state);
                state.used
            }
            None if state.queue.is_empty() => state.used + state.promised,
            None => usize::MAX,
        };
        if state.blocked {
            return Err(NoRoom::Switch);
        }
        if taken.saturating_add(what.records.len()) > state.room {
            self.request(&mut state, None);
            return Err(NoRoom::Buffer);
        }
        let before = state.used;
        let start = state.tail();
        state.copy_in(what.records);
        let end = state.tail();
        if let Some((frame, first_change)) = what.dirties {
            first_change.store(start.0, Ordering::Release);
            state.dirty.push_back((start, frame));
        }
        let third = state.room / 3;
        if what.flush || before <= third && state.used > third {
            self.request(&mut state, None);
        }
        self.promise(state);
        Ok(end)
    }

    fn latch(&self, (ledger, histograms): (&Ledger, &Histograms)) -> MutexGuard<'_, State> {
        self.try_state().unwrap_or_else(|| {
            ledger.timed(histograms, Event::LatchRedoAllocation, || self.state()).0
        })
    }

    /// A panic under this lock ends its process, and with it the instance.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_state(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Takes the latch for the log writer, which does not queue for it behind thousands of
    /// sessions: it takes it as soon as it is free.
    fn state_before_others(&self) -> MutexGuard<'_, State> {
        loop {
            for _ in 0..SPINS {
                if let Some(state) = self.try_state() {
                    return state;
                }
                std::hint::spin_loop();
            }
            // Its holder may need this processor to release it.
            thread::sleep(PAUSE);
        }
    }

    fn waiters(&self) -> MutexGuard<'_, Vec<(Lsn, Arc<Seat>)>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_writer(&self) {
        if self.idle.swap(false, Ordering::AcqRel)
            && let Some(writer) = self.writer.get()
        {
            writer.unpark();
        }
    }

    /// Asks the log writer for all redo up to `lsn`, or to the end.
    fn request(&self, state: &mut State, lsn: Option<Lsn>) {
        let wanted = lsn.unwrap_or_else(|| state.tail());
        if state.requested < wanted {
            state.requested = wanted;
            self.wake_writer();
        }
    }

    /// Promises room to the sessions at the head of the queue, as far as it goes, and releases the
    /// latch. If some remain, asks the log writer to make more room.
    fn promise(&self, mut state: MutexGuard<'_, State>) {
        if state.queue.is_empty() {
            return;
        }
        let mut called = Vec::new();
        while let Some((bytes, _)) = state.queue.front()
            && !state.blocked
            && state.used + state.promised + bytes <= state.room
        {
            let (bytes, seat) = state.queue.pop_front().expect("it was there just now");
            state.promised += bytes;
            called.push(seat);
        }
        if !state.queue.is_empty() && state.used > 0 {
            self.request(&mut state, None);
        }
        drop(state);
        if !called.is_empty() {
            self.rooms.call(called);
        }
    }

    /// Waits for `bytes` of room after an append found none.
    pub fn wait_for_room(
        &self,
        reason: NoRoom,
        bytes: usize,
        (ledger, histograms): (&Ledger, &Histograms),
    ) -> Result<Room<'_>, InstanceError> {
        let event = match reason {
            NoRoom::Buffer => Event::LogBufferSpace,
            NoRoom::Switch => Event::LogFileSwitch,
        };
        let wait = || {
            let seat = Seat::here();
            let mut state = self.state();
            self.health.check()?;
            state.queue.push_back((bytes, Arc::clone(&seat)));
            self.promise(state);
            seat.wait(&self.rooms);
            self.health.check()?;
            Ok(Room { log: self, bytes })
        };
        ledger.timed(histograms, event, wait).0
    }

    #[inline]
    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// Asks the log writer for all redo up to `lsn`.
    pub fn demand(&self, lsn: Lsn) {
        if self.durable() < lsn {
            self.request(&mut self.state(), Some(lsn));
        }
    }

    /// Waits until all redo up to `lsn`, which the log writer was asked for, is durable.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), InstanceError> {
        let seat = {
            let mut waiters = self.waiters();
            self.health.check()?;
            // Checked under the lock: the log writer first updates the durable position, then takes
            // the lock.
            if self.durable() >= lsn {
                return Ok(());
            }
            let seat = Seat::here();
            waiters.push((lsn, Arc::clone(&seat)));
            seat
        };
        seat.wait(&self.commits);
        if self.durable() >= lsn { Ok(()) } else { self.health.check() }
    }

    /// Returns the next chunk, for the log writer: when a session has asked for it, a third of the
    /// buffer is full, or it is old. Returns `None` when the instance stops.
    pub fn take(&self) -> Option<Chunk> {
        let writer = self.writer.get_or_init(thread::current);
        assert_eq!(writer.id(), thread::current().id(), "one thread writes the log");
        let mut flush_at = Instant::now() + FLUSH_AFTER;
        let mut state = loop {
            let mut state = self.state_before_others();
            if !self.health.is_running() {
                return None;
            }
            if Instant::now() >= flush_at {
                state.requested = state.tail();
                flush_at += FLUSH_AFTER;
            }
            if state.used > 0 && state.requested > state.mark.first {
                break state;
            }
            self.idle.store(true, Ordering::Release);
            drop(state);
            thread::park_timeout(flush_at.saturating_duration_since(Instant::now()));
        };
        let spare = state.spare.take().expect("the log writer gave the last chunk back");
        let memory = std::mem::replace(&mut state.filling, spare);
        let (mark, payload_bytes) = (state.mark, state.used);
        let blocks = payload_bytes.div_ceil(REDO_PAYLOAD_BYTES);
        state.mark.first = state.tail();
        state.mark.place.offset += (blocks * REDO_BLOCK_BYTES) as u64;
        state.used = 0;
        state.settle(self.logs);
        let switches = std::mem::take(&mut state.switches);
        self.promise(state);
        Some(Chunk { memory, mark, payload_bytes, switches })
    }

    /// Returns the memory of a chunk that is durable now, and wakes sessions that waited for it.
    pub fn give_back(&self, chunk: Chunk) {
        let durable = Lsn(chunk.mark.first.0 + chunk.payload_bytes as u64);
        self.state_before_others().spare = Some(chunk.memory);
        self.durable.store(durable.0, Ordering::Release);
        let served: Vec<Arc<Seat>> = {
            let mut waiters = self.waiters();
            waiters.extract_if(.., |(lsn, _)| *lsn <= durable).map(|(_, seat)| seat).collect()
        };
        self.commits.call(served);
    }

    /// Wakes all sessions that wait here because the instance has stopped; later ones see that
    /// under the same locks.
    pub fn stop(&self) {
        let queue = std::mem::take(&mut self.state().queue);
        let waiters = std::mem::take(&mut *self.waiters());
        self.wake_writer();
        for seat in queue.iter().map(|(_, seat)| seat).chain(waiters.iter().map(|(_, seat)| seat)) {
            seat.dismiss();
        }
        self.rooms.dismiss();
        self.commits.dismiss();
    }

    pub fn distance(&self, cache: &Cache) -> Distance {
        let mut state = self.state();
        let oldest = state.oldest(cache);
        Distance { oldest, tail: state.tail(), blocked: state.blocked }
    }

    /// Claims for the caller the oldest changed frames that are not being written.
    pub fn claim(&self, cache: &Cache, most: usize, claimed: &mut Vec<u32>) {
        let mut state = self.state();
        state.oldest(cache);
        for &(lsn, frame) in state.dirty.iter().take(most * 16) {
            if claimed.len() == most {
                break;
            }
            if cache.begin_write(frame, lsn.0) {
                claimed.push(frame);
            }
        }
    }

    /// Returns where recovery may begin once all writes that have returned are durable: the
    /// position, and the chunk it is in or after.
    pub fn checkpoint_candidate(&self, cache: &Cache) -> (Lsn, Mark) {
        let mut state = self.state();
        let lsn = state.oldest(cache);
        while state.marks.get(1).is_some_and(|mark| mark.first <= lsn) {
            state.marks.pop_front();
        }
        (lsn, *state.marks.front().expect("the first mark stays"))
    }

    /// Records that recovery now reads from `lsn` on: logs that end before it may be overwritten.
    pub fn checkpointed(&self, lsn: Lsn) {
        let mut state = self.state();
        state.checkpoint = lsn;
        if state.blocked {
            state.settle(self.logs);
            self.promise(state);
        }
    }
}

impl Room<'_> {
    /// Takes the promise back, under the latch.
    fn redeem(self, state: &mut State) {
        state.promised -= self.bytes;
        std::mem::forget(self);
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let mut state = self.log.state();
        state.promised -= self.bytes;
        self.log.promise(state);
    }
}

impl State {
    fn tail(&self) -> Lsn {
        Lsn(self.mark.first.0 + self.used as u64)
    }

    /// Finds room for the chunk that will gather next: in this log, in the next one, or nowhere
    /// yet.
    fn settle(&mut self, logs: Logs) {
        let blocks = |bytes: u64| bytes as usize / REDO_BLOCK_BYTES;
        let left = blocks(logs.bytes - self.mark.place.offset) * REDO_PAYLOAD_BYTES;
        let switch = left < APPEND_BYTES_MAX;
        if switch {
            let RedoAddress { sequence, .. } = self.mark.place;
            let next = ((sequence + 1) % logs.count) as usize;
            self.blocked = self.ends[next] > self.checkpoint && !planted(Planted::RedoOverwritten);
            if self.blocked {
                self.room = 0;
                return;
            }
            self.ends[(sequence % logs.count) as usize] = self.mark.first;
            self.mark.place = RedoAddress { sequence: sequence + 1, offset: 0 };
            self.switches += 1;
        }
        let last = self.marks.back().expect("the first mark stays");
        if switch || self.mark.first.0 - last.first.0 >= MARK_EVERY_BYTES {
            self.marks.push_back(self.mark);
        }
        let left = blocks(logs.bytes - self.mark.place.offset) * REDO_PAYLOAD_BYTES;
        self.room = left.min(self.filling.len() / REDO_BLOCK_BYTES * REDO_PAYLOAD_BYTES);
    }

    fn copy_in(&mut self, mut records: &[u8]) {
        while !records.is_empty() {
            let (block, at) = (self.used / REDO_PAYLOAD_BYTES, self.used % REDO_PAYLOAD_BYTES);
            let len = records.len().min(REDO_PAYLOAD_BYTES - at);
            let (piece, rest) = records.split_at(len);
            let start = block * REDO_BLOCK_BYTES + REDO_HEADER_BYTES + at;
            self.filling[start..start + len].copy_from_slice(piece);
            self.used += len;
            records = rest;
        }
    }

    /// Returns the first change of the block that has waited longest to be written, or the end.
    fn oldest(&mut self, cache: &Cache) -> Lsn {
        while let Some(&(lsn, frame)) = self.dirty.front() {
            if cache.first_change(frame) == lsn.0 {
                return lsn;
            }
            self.dirty.pop_front();
        }
        self.tail()
    }
}
