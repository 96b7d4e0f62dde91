//! The buffer cache: a fixed number of frames, a hash table that finds the frame of a cached block,
//! and a clock hand that finds a frame for a block that is not cached.
//!
//! **Finding** takes no latch. A visitor follows the chain of the hash table as it is, latches the
//! frame, and then checks whether the frame still holds the block. A frame changes its block only
//! while it is latched exclusively, so the answer stays valid until the latch is released: the
//! latch is the pin. If a chain changes while a visitor follows it, the worst outcome is a miss,
//! and a miss is confirmed under the latch of the chain's partition.
//!
//! **Missing**: a frame is taken from the clock, unlinked, linked for the new block, and stays
//! latched exclusively until the block has been read. A session that wants the same block finds it
//! and waits for that latch (`read by other session`).
//!
//! **Writing**: a frame that a database writer has claimed is latched shared until its write has
//! returned. Sessions can read it meanwhile; a session that wants to change it waits (`write
//! complete waits`).
//!
//! Latches are taken in one order: frame, then partition. No thread waits for a frame while holding
//! another, except a database writer, whose frames are held by others for no longer than a visit.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use blockstone_base::rng;
use blockstone_sys::buffer::{Arena, Slot};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::InstanceError;
use crate::health::LOOK_AGAIN;
use crate::turn::{Relay, Seat};
use crate::wait::{Event, Histograms, Ledger, Statistic};

const NONE: u32 = u32::MAX;
/// A chain is followed only this far without a latch. With as many chains as frames, chains are far
/// shorter.
const CHAIN_MAX: usize = 32;
const PARTITIONS: usize = 256;

const IDLE: u8 = 0;
const READING: u8 = 1;
const WRITING: u8 = 2;

#[derive(Debug)]
pub(crate) struct Cache {
    frames: Box<[Frame]>,
    heads: Box<[AtomicU32]>,
    partitions: Box<[Partition]>,
    hand: AtomicUsize,
    dirty: AtomicUsize,
    waiting: AtomicUsize,
    freed: AtomicU64,
    queue: Mutex<VecDeque<Arc<Seat>>>,
    relay: Relay,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Partition(Mutex<()>);

/// A frame and its block's state: one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Frame {
    /// Number of its block + 1, or zero. Changes only under the exclusive latch.
    tag: AtomicU64,
    /// Position of its first change since it was last written, or zero.
    first_change: AtomicU64,
    next: AtomicU32,
    state: AtomicU8,
    used: AtomicBool,
    body: RwLock<Slot>,
}

pub(crate) type Shared<'a> = RwLockReadGuard<'a, Slot>;
pub(crate) type Exclusive<'a> = RwLockWriteGuard<'a, Slot>;
pub(crate) type Waits<'a> = (&'a Ledger, &'a Histograms);

/// Result of a search for a block to change, or to read into a frame.
pub(crate) enum Found<T> {
    Here(T),
    Absent,
}

/// A frame that is linked for a block and latched, so that the block can be read into it.
pub(crate) struct Claimed<'a> {
    cache: &'a Cache,
    frame: u32,
    body: Option<Exclusive<'a>>,
    used: bool,
    waits: Waits<'a>,
}

impl Cache {
    pub fn new(frames: usize, block_bytes: usize) -> Result<Self, InstanceError> {
        let arena = Arena::new(frames, block_bytes)?;
        let chains = (frames * 2).next_power_of_two();
        let frame = |slot| Frame {
            tag: AtomicU64::new(0),
            first_change: AtomicU64::new(0),
            next: AtomicU32::new(NONE),
            state: AtomicU8::new(IDLE),
            used: AtomicBool::new(false),
            body: RwLock::new(slot),
        };
        Ok(Self {
            frames: arena.into_slots().into_iter().map(frame).collect(),
            heads: (0..chains).map(|_| AtomicU32::new(NONE)).collect(),
            partitions: (0..PARTITIONS.min(chains)).map(|_| Partition::default()).collect(),
            hand: AtomicUsize::new(0),
            dirty: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            freed: AtomicU64::new(0),
            queue: Mutex::default(),
            relay: Relay::new(),
        })
    }

    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Returns the number of frames whose block was changed and has not been written yet.
    pub fn dirty(&self) -> usize {
        self.dirty.load(Ordering::Relaxed)
    }

    pub fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Returns the block `number`, if it is cached; waits while it is latched exclusively.
    #[inline]
    pub fn read(&self, number: u64, waits: Waits<'_>) -> Found<Shared<'_>> {
        let tag = number + 1;
        while let Some(frame) = self.find(tag) {
            let frame = &self.frames[frame as usize];
            // Readers may overtake a waiting writer: a visit is short, and while a database writer
            // also holds the latch, the change could not be made anyway.
            let body = match frame.body.try_read_recursive() {
                Some(body) => body,
                None => frame.wait_to_read(waits),
            };
            if frame.tag.load(Ordering::Relaxed) == tag {
                frame.touch();
                return Found::Here(body);
            }
        }
        Found::Absent
    }

    /// Returns the block `number` for changing, if it is cached, with its frame.
    #[inline]
    pub fn write(&self, number: u64, waits: Waits<'_>) -> Found<(u32, Exclusive<'_>)> {
        let tag = number + 1;
        while let Some(index) = self.find(tag) {
            let frame = &self.frames[index as usize];
            let body = match frame.body.try_write() {
                Some(body) => body,
                None => frame.wait_to_write(waits),
            };
            if frame.tag.load(Ordering::Relaxed) == tag {
                frame.touch();
                return Found::Here((index, body));
            }
        }
        Found::Absent
    }

    /// Follows a chain without a latch; may miss a cached block while the chain changes.
    #[inline]
    fn find(&self, tag: u64) -> Option<u32> {
        let mut index = self.heads[self.chain(tag)].load(Ordering::Acquire);
        for _ in 0..CHAIN_MAX {
            let frame = self.frames.get(index as usize)?;
            if frame.tag.load(Ordering::Relaxed) == tag {
                return Some(index);
            }
            index = frame.next.load(Ordering::Acquire);
        }
        None
    }

    #[inline]
    fn chain(&self, tag: u64) -> usize {
        rng::mix(tag) as usize & (self.heads.len() - 1)
    }

    /// Claims a frame for block `number`, which was not found. Reports if the block has been cached
    /// in the meantime, or if no frame is free and the caller must wait.
    pub fn claim<'a>(&'a self, number: u64, used: bool, waits: Waits<'a>) -> Claim<'a> {
        let freed = Freed(self.freed.load(Ordering::Acquire));
        let Some((index, body)) = self.victim(waits.0) else { return Claim::NoFrame(freed) };
        let frame = &self.frames[index as usize];
        let old = frame.tag.load(Ordering::Relaxed);
        if old != 0 {
            self.unlink(index, old, waits);
        }
        if !self.link(index, number + 1, waits) {
            return Claim::Present;
        }
        Claim::Frame(Claimed { cache: self, frame: index, body: Some(body), used, waits })
    }

    /// Returns a frame whose block may be evicted, latched exclusively: clean and not visited since
    /// the hand last passed.
    fn victim(&self, ledger: &Ledger) -> Option<(u32, Exclusive<'_>)> {
        let frames = self.frames.len();
        let mut inspected = 0;
        let mut found = None;
        while found.is_none() && inspected < 2 * frames && self.dirty() < frames {
            let index = self.hand.fetch_add(1, Ordering::Relaxed) % frames;
            let frame = &self.frames[index];
            inspected += 1;
            if frame.first_change.load(Ordering::Relaxed) != 0 {
                continue;
            }
            if frame.used.load(Ordering::Relaxed) {
                frame.used.store(false, Ordering::Relaxed);
                continue;
            }
            let latched = frame.body.try_write();
            found = latched.filter(|_| frame.is_clean()).map(|body| (index as u32, body));
        }
        ledger.add(Statistic::FramesInspected, inspected as u64);
        found
    }

    fn partition(&self, chain: usize, (ledger, histograms): Waits<'_>) -> MutexGuard<'_, ()> {
        let latch = &self.partitions[chain & (self.partitions.len() - 1)].0;
        latch.try_lock().unwrap_or_else(|| {
            ledger.timed(histograms, Event::LatchCacheBuffersChains, || latch.lock()).0
        })
    }

    /// Links a latched frame for `tag`; returns false if another frame has it already.
    fn link(&self, index: u32, tag: u64, waits: Waits<'_>) -> bool {
        let chain = self.chain(tag);
        let _latch = self.partition(chain, waits);
        let head = self.heads[chain].load(Ordering::Relaxed);
        let mut at = head;
        while let Some(frame) = self.frames.get(at as usize) {
            if frame.tag.load(Ordering::Relaxed) == tag {
                return false;
            }
            at = frame.next.load(Ordering::Relaxed);
        }
        let frame = &self.frames[index as usize];
        frame.state.store(READING, Ordering::Relaxed);
        frame.tag.store(tag, Ordering::Relaxed);
        frame.next.store(head, Ordering::Release);
        self.heads[chain].store(index, Ordering::Release);
        true
    }

    /// Removes a latched frame from the chain of `tag`.
    fn unlink(&self, index: u32, tag: u64, waits: Waits<'_>) {
        let chain = self.chain(tag);
        let _latch = self.partition(chain, waits);
        let frame = &self.frames[index as usize];
        let mut link = &self.heads[chain];
        while link.load(Ordering::Relaxed) != index {
            let at = link.load(Ordering::Relaxed) as usize;
            link = &self.frames[at].next;
        }
        link.store(frame.next.load(Ordering::Relaxed), Ordering::Release);
        frame.tag.store(0, Ordering::Relaxed);
    }

    /// Waits until a database writer has freed frames, but not for long: the clock may find one
    /// sooner.
    pub fn wait_for_frame(&self, since: Freed, (ledger, histograms): Waits<'_>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        ledger.timed(histograms, Event::FreeBufferWaits, || {
            let seat = {
                let mut queue = self.queue.lock();
                if self.freed.load(Ordering::Acquire) != since.0 {
                    return;
                }
                let seat = Seat::here();
                queue.push_back(Arc::clone(&seat));
                seat
            };
            if !seat.wait_for(&self.relay, LOOK_AGAIN) {
                self.queue.lock().retain(|waiting| !Arc::ptr_eq(waiting, &seat));
            }
        });
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the frame's first change since it was last written, or zero.
    #[inline]
    pub fn first_change(&self, frame: u32) -> u64 {
        self.frames[frame as usize].first_change.load(Ordering::Acquire)
    }

    /// Returns the place where the log records the first change of a frame.
    pub fn first_change_of(&self, frame: u32) -> &AtomicU64 {
        &self.frames[frame as usize].first_change
    }

    /// Counts a frame that has just become dirty; returns the number of dirty frames.
    pub fn became_dirty(&self) -> usize {
        self.dirty.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Claims for writing a frame that has been dirty since `first_change`; returns false if
    /// another database writer has claimed or cleaned it. Only the claimer of a frame cleans it, so
    /// its state stays valid after the claim.
    pub fn begin_write(&self, frame: u32, first_change: u64) -> bool {
        let frame = &self.frames[frame as usize];
        let swap = |from, to| {
            frame.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        if frame.first_change.load(Ordering::Acquire) != first_change || !swap(IDLE, WRITING) {
            return false;
        }
        let still = frame.first_change.load(Ordering::Acquire) == first_change;
        if !still {
            swap(WRITING, IDLE);
        }
        still
    }

    /// Latches the body of a frame that is claimed for writing, once no session is changing it.
    pub fn body(&self, frame: u32) -> Exclusive<'_> {
        self.frames[frame as usize].body.write()
    }

    /// Marks a frame as identical to its block on disk. Called while its latch is held.
    pub fn written(&self, frame: u32) {
        let frame = &self.frames[frame as usize];
        let first_change = frame.first_change.swap(0, Ordering::AcqRel);
        assert!(first_change != 0, "a frame is cleaned by the one who claimed it dirty");
        frame.state.store(IDLE, Ordering::Release);
    }

    /// Announces that `frames` frames are clean again and no longer latched; as many waiting
    /// sessions are called.
    pub fn became_clean(&self, frames: usize) {
        self.dirty.fetch_sub(frames, Ordering::Relaxed);
        let called: Vec<Arc<Seat>> = {
            let mut queue = self.queue.lock();
            self.freed.fetch_add(1, Ordering::Release);
            let count = frames.min(queue.len());
            queue.drain(..count).collect()
        };
        self.relay.call(called);
    }
}

pub(crate) enum Claim<'a> {
    Frame(Claimed<'a>),
    /// The block has been cached in the meantime.
    Present,
    /// No frame is free; wait until more have been freed than at that point.
    NoFrame(Freed),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Freed(u64);

impl Frame {
    #[inline]
    fn touch(&self) {
        // A store would take the line from the other processors even if it changes nothing.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    fn is_clean(&self) -> bool {
        self.first_change.load(Ordering::Acquire) == 0 && self.state.load(Ordering::Relaxed) == IDLE
    }

    #[cold]
    fn wait_to_read(&self, (ledger, histograms): Waits<'_>) -> Shared<'_> {
        let event = match self.state.load(Ordering::Relaxed) {
            READING => Event::ReadByOtherSession,
            _ => Event::BufferBusyWaits,
        };
        ledger.timed(histograms, event, || self.body.read_recursive()).0
    }

    #[cold]
    fn wait_to_write(&self, (ledger, histograms): Waits<'_>) -> Exclusive<'_> {
        let event = match self.state.load(Ordering::Relaxed) {
            READING => Event::ReadByOtherSession,
            WRITING => Event::WriteCompleteWaits,
            _ => Event::BufferBusyWaits,
        };
        ledger.timed(histograms, event, || self.body.write()).0
    }
}

impl<'a> Claimed<'a> {
    pub fn memory(&mut self) -> &mut [u8] {
        self.body.as_mut().expect("a claim has its body until it ends")
    }

    /// The block has been read: it stays latched, and others may find it.
    pub fn filled(mut self) -> (u32, Exclusive<'a>) {
        let frame = &self.cache.frames[self.frame as usize];
        if self.used {
            frame.touch();
        }
        frame.state.store(IDLE, Ordering::Relaxed);
        (self.frame, self.body.take().expect("a claim has its body until it ends"))
    }
}

impl Drop for Claimed<'_> {
    /// Removes a block that could not be read from the cache.
    fn drop(&mut self) {
        if self.body.is_some() {
            let frame = &self.cache.frames[self.frame as usize];
            let tag = frame.tag.load(Ordering::Relaxed);
            self.cache.unlink(self.frame, tag, self.waits);
            frame.state.store(IDLE, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::Role;

    /// A cache as seen by one thread, as each thread has its own ledger.
    struct Fixture {
        cache: Arc<Cache>,
        ledger: Ledger,
        histograms: Histograms,
    }

    impl Fixture {
        fn new(frames: usize) -> Self {
            Self::of(Arc::new(Cache::new(frames, 4096).unwrap()), 0)
        }

        fn of(cache: Arc<Cache>, thread: usize) -> Self {
            let ledger = Ledger::new(Role::Session, thread);
            Self { cache, ledger, histograms: Histograms::new() }
        }

        fn waits(&self) -> Waits<'_> {
            (&self.ledger, &self.histograms)
        }

        fn fill(&self, number: u64) -> u32 {
            match self.cache.claim(number, false, self.waits()) {
                Claim::Frame(mut claimed) => {
                    claimed.memory().fill(number as u8);
                    claimed.filled().0
                }
                Claim::Present | Claim::NoFrame(_) => panic!("no frame for block {number}"),
            }
        }

        fn holds(&self, number: u64) -> bool {
            match self.cache.read(number, self.waits()) {
                Found::Here(body) => {
                    assert!(body.iter().all(|&byte| byte == number as u8));
                    true
                }
                Found::Absent => false,
            }
        }

        fn make_dirty(&self, frame: u32, first_change: u64) {
            self.cache.first_change_of(frame).store(first_change, Ordering::Release);
            self.cache.became_dirty();
        }
    }

    #[test]
    fn a_block_is_found_until_its_frame_is_needed_and_visited_ones_stay() {
        let fixture = Fixture::new(8);
        for number in 0..8 {
            fixture.fill(number);
        }
        assert!((0..8).all(|number| fixture.holds(number)));
        for number in 100..108 {
            fixture.fill(number);
        }
        assert!((0..8).all(|number| !fixture.holds(number)), "all had been visited once");
        fixture.holds(103);
        fixture.fill(200);
        assert!(fixture.holds(103), "it was visited since the hand passed");
        let again = fixture.cache.claim(103, false, fixture.waits());
        assert!(matches!(again, Claim::Present));
    }

    #[test]
    fn a_block_that_could_not_be_read_is_not_in_the_cache() {
        let fixture = Fixture::new(8);
        let claim = fixture.cache.claim(5, false, fixture.waits());
        assert!(matches!(claim, Claim::Frame(_)));
        drop(claim);
        assert!(!fixture.holds(5));
        fixture.fill(5);
        assert!(fixture.holds(5));
    }

    #[test]
    fn dirty_frames_stay_and_are_written_by_one_writer_once() {
        let fixture = Fixture::new(8);
        let cache = &fixture.cache;
        let frames: Vec<u32> = (0..8).map(|number| fixture.fill(number)).collect();
        frames.iter().zip(50..).for_each(|(&frame, at)| fixture.make_dirty(frame, at));
        let claim = cache.claim(9, false, fixture.waits());
        assert!(matches!(claim, Claim::NoFrame(_)), "every frame is dirty");
        assert!(cache.begin_write(frames[3], 53));
        assert!(!cache.begin_write(frames[3], 53), "another writer has it");
        cache.written(frames[3]);
        cache.became_clean(1);
        assert!(!cache.begin_write(frames[3], 53), "it is clean since");
        assert_eq!(cache.dirty(), 7);
        assert_eq!(fixture.fill(9), frames[3]);
        fixture.make_dirty(frames[3], 60);
        assert!(!cache.begin_write(frames[3], 53) && cache.begin_write(frames[3], 60));
    }

    #[test]
    fn many_threads_find_only_what_they_look_for() {
        let fixture = Fixture::new(64);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let cache = Arc::clone(&fixture.cache);
                scope.spawn(move || {
                    let fixture = Fixture::of(cache, thread);
                    let mut rng = rng::Rng::new(7, thread as u64);
                    for _ in 0..20_000 {
                        let number = rng.below(200);
                        if !fixture.holds(number)
                            && let Claim::Frame(mut claimed) =
                                fixture.cache.claim(number, true, fixture.waits())
                        {
                            claimed.memory().fill(number as u8);
                            drop(claimed.filled());
                        }
                    }
                });
            }
        });
    }
}
