//! Accounting of time: wait events under the names database administrators know, statistics, and
//! the I/O of each role. Counted by the thread that waits, read by any thread at any time.
//!
//! A wait is the wall time from the point where a thread could not continue to the point where it
//! did. That includes the processor time of the system call that waits and the time in the run
//! queue after it. The kernel's figures for a session's processor time and run queue can therefore
//! not be added to its waits, because they would be counted on both sides. So a random sample of
//! the stretches outside of waits is measured more closely: how long they took
//! ([`Statistic::OutsideSampledNs`]), how much of that the thread was on a processor
//! ([`Statistic::OutsideSampledCpuNs`]), and how much it was off the processor because it waited
//! for something that no event names ([`Statistic::OutsideSampledBlockedNs`]); otherwise it was
//! ready to run. The shares in the sample are taken as those of all time outside of waits, which is
//! known exactly: database time less waits. Database time = CPU + run queue + waits + remainder,
//! and the remainder is the time blocked outside of any event.
//!
//! Times count while they pass: a wait or call in progress is included with the time it has taken
//! so far. Otherwise the edges of a window would cut off different amounts of calls and of waits.

use std::array;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use blockstone_base::{LatencyHistogram, counters, named, rng};
use blockstone_sys::clock;
use blockstone_sys::usage::{CpuUsage, ThreadId, ThreadUsage};
use parking_lot::Mutex;

/// One in this many stretches outside of waits is sampled, at a cost of a microsecond.
const SAMPLE: u64 = 16;
/// Maximum time between two charges of processor time to a running thread.
const TICK_NS: u64 = 10_000_000;

named! {
    Role {
        Session = "session",
        Dbwr = "dbwr",
        Lgwr = "lgwr",
        Ckpt = "ckpt",
    }
}

named! {
    Event {
        /// A blocking read of one block into the cache.
        DbFileSequentialRead = "db file sequential read",
        /// A blocking read of several adjacent blocks into the cache.
        DbFileScatteredRead = "db file scattered read",
        /// Waiting for the oldest outstanding read past the cache.
        DirectPathRead = "direct path read",
        /// Writes past the cache, all in flight at once.
        DirectPathWrite = "direct path write",
        /// Making durable what was written past the cache.
        DirectPathSync = "direct path sync",
        DbFileParallelWrite = "db file parallel write",
        /// A write of redo to all copies of the log.
        LogFileParallelWrite = "log file parallel write",
        /// Waiting for the redo of a commit to become durable.
        LogFileSync = "log file sync",
        ControlFileParallelWrite = "control file parallel write",
        /// Waiting for a frame of the cache that can be reused.
        FreeBufferWaits = "free buffer waits",
        /// Waiting to change a block that is being written.
        WriteCompleteWaits = "write complete waits",
        /// Waiting for a block that another session is changing.
        BufferBusyWaits = "buffer busy waits",
        /// Waiting for a block that another session is reading.
        ReadByOtherSession = "read by other session",
        LogBufferSpace = "log buffer space",
        /// Waiting for the next redo log, until the checkpoint no longer needs its content.
        LogFileSwitch = "log file switch (checkpoint incomplete)",
        /// Waiting for the latch of a partition of the cache's hash table.
        LatchCacheBuffersChains = "latch: cache buffers chains",
        /// Waiting for the latch of the log buffer's end.
        LatchRedoAllocation = "latch: redo allocation",
    }
}

named! {
    /// Counters other than waits; all are cumulative since the instance was opened. Those that a
    /// recording keeps have the name of its column, where they are described.
    Statistic {
        LogicalReads = "logical_reads",
        /// Blocks visited that were in the cache, possibly after a wait.
        CacheHits = "cache_hits",
        PhysicalReads = "physical_reads",
        SingleBlockReads = "single_block_reads",
        MultiblockReads = "multiblock_reads",
        DirectReads = "direct_reads",
        DirectBlocks = "direct_blocks",
        /// Duration of those reads in nanoseconds, whether or not a session waited for them.
        DirectReadNs = "direct_read_ns",
        BlockChanges = "block_changes",
        /// Redo that this session generated; `RedoBytes` is the redo that the log writer took.
        GeneratedRedoBytes = "generated_redo_bytes",
        FullPageImages = "full_page_images",
        PhysicalWrites = "physical_writes",
        /// Adjacent blocks count as one request; copies are not counted.
        WriteRequests = "write_requests",
        RedoBytes = "redo_bytes",
        RedoWrites = "redo_writes",
        /// Includes headers and padding; copies are not counted.
        RedoWrittenBytes = "redo_written_bytes",
        ProtectionBytes = "protection_bytes",
        Commits = "commits",
        LogSwitches = "log_switches",
        Checkpoints = "checkpoints",
        BlocksRepaired = "blocks_repaired",
        DegradedReads = "degraded_reads",
        /// Frames that were examined in search of a free one.
        FramesInspected = "frames_inspected",
        DbTimeNs = "db_time_ns",
        OutsideSampledNs = "outside_sampled_ns",
        OutsideSampledCpuNs = "outside_sampled_cpu_ns",
        OutsideSampledBlockedNs = "outside_sampled_blocked_ns",
    }
}

pub const EVENTS: usize = Event::ALL.len();
pub const STATISTICS: usize = Statistic::ALL.len();

counters! {
/// Cumulative waits of one event.
pub struct Waits {
    pub count,
    /// Wall time in nanoseconds, including that of waits in progress.
    pub time_ns,
}
}

counters! {
/// Cumulative I/O requests of a role; a mirrored write counts once. These are the columns of
/// [`blockstone_base::database::ROLE`], where each is described.
pub struct Transfers {
    pub read_ios,
    pub read_bytes,
    pub read_ns,
    pub write_ios,
    pub write_bytes,
    pub write_ns,
}
}

/// Counters of one thread. Only that thread adds to them, so adding is a load and a store.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Ledger {
    pub role: Role,
    stripe: usize,
    statistics: [AtomicU64; STATISTICS],
    waits: [[AtomicU64; 2]; EVENTS],
    transfers: [AtomicU64; Transfers::COUNT],
    /// State of the random generator that draws samples.
    draws: AtomicU64,
    /// The stretch being sampled, and whether there is one.
    sample: Mutex<Option<Sample>>,
    sampling: AtomicBool,
    thread: Mutex<Thread>,
}

/// The thread that uses a ledger, from its first call on.
#[derive(Debug, Default)]
struct Thread {
    id: Option<ThreadId>,
    /// Consumption of earlier threads that used this ledger.
    earlier: ThreadUsage,
    at_start: ThreadUsage,
    seen: ThreadUsage,
}

/// Activity of a thread at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Outside of calls.
    Nothing,
    /// In a call, outside of waits.
    Working,
    Waiting(Event),
}

/// Histograms of waits by role and event since they were last taken. Striped, so that sessions do
/// not wait for one another to record how long they waited.
#[derive(Debug)]
pub(crate) struct Histograms {
    stripes: Vec<Mutex<[Option<Box<LatencyHistogram>>; EVENTS]>>,
    /// Latencies of the reads past the cache themselves, whether or not a session waited for them.
    direct_reads: [Mutex<Option<Box<LatencyHistogram>>>; SESSION_STRIPES],
}

const SESSION_STRIPES: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    Read = 0,
    Write = 3,
}

impl Ledger {
    pub fn new(role: Role, number: usize) -> Self {
        let stripe = match role {
            Role::Session => number % SESSION_STRIPES,
            other => SESSION_STRIPES - 1 + other as usize,
        };
        Self {
            role,
            stripe,
            statistics: array::from_fn(|_| AtomicU64::new(0)),
            waits: array::from_fn(|_| array::from_fn(|_| AtomicU64::new(0))),
            transfers: array::from_fn(|_| AtomicU64::new(0)),
            draws: AtomicU64::new((number as u64) << 32),
            sample: Mutex::default(),
            sampling: AtomicBool::new(false),
            thread: Mutex::default(),
        }
    }

    /// Registers the calling thread as the one that counts here.
    pub fn attach(&self) {
        let id = ThreadId::current();
        let now = id.usage().unwrap_or_default();
        let mut thread = self.thread.lock();
        let earlier = thread.consumed();
        *thread = Thread { id: Some(id), earlier, at_start: now, seen: now };
    }

    /// Records the consumption of the thread before it ends.
    pub fn detach(&self) {
        self.processor();
        self.thread.lock().id = None;
    }

    /// Returns the consumption of the thread since it was attached, and of those before it.
    pub fn processor(&self) -> ThreadUsage {
        let mut thread = self.thread.lock();
        if let Some(now) = thread.id.and_then(ThreadId::usage) {
            thread.seen = now;
        }
        thread.consumed()
    }

    #[inline]
    pub fn add(&self, statistic: Statistic, count: u64) {
        bump(&self.statistics[statistic as usize], count);
    }

    pub fn statistic(&self, statistic: Statistic) -> u64 {
        so_far(&self.statistics[statistic as usize])
    }

    pub fn waits(&self, event: Event) -> Waits {
        let [count, time_ns] = &self.waits[event as usize];
        Waits { count: count.load(Relaxed), time_ns: so_far(time_ns) }
    }

    pub fn transfers(&self) -> Transfers {
        Transfers::from(array::from_fn(|at| self.transfers[at].load(Relaxed)))
    }

    /// Counts I/O requests that took `elapsed_ns` together.
    pub fn moved(&self, direction: Direction, ios: u64, bytes: u64, elapsed_ns: u64) {
        let at = direction as usize;
        bump(&self.transfers[at], ios);
        bump(&self.transfers[at + 1], bytes);
        bump(&self.transfers[at + 2], elapsed_ns);
    }

    /// Counts a session's read past the cache that took `elapsed_ns`.
    pub fn read_past_cache(&self, histograms: &Histograms, elapsed_ns: u64) {
        self.add(Statistic::DirectReads, 1);
        self.add(Statistic::DirectReadNs, elapsed_ns);
        let mut histogram = histograms.direct_reads[self.stripe].lock();
        histogram.get_or_insert_default().record(elapsed_ns);
    }

    /// Runs `work`, which waits for `event`, and returns how long it took in nanoseconds.
    pub fn timed<T>(
        &self,
        histograms: &Histograms,
        event: Event,
        work: impl FnOnce() -> T,
    ) -> (T, u64) {
        let [count, time_ns] = &self.waits[event as usize];
        self.end_stretch();
        let start_ns = begin(time_ns);
        let result = work();
        let elapsed_ns = end(time_ns) - start_ns;
        self.begin_stretch();
        bump(count, 1);
        histograms.record(self.stripe, event, elapsed_ns);
        (result, elapsed_ns)
    }

    /// Runs `work`, a call of a session: its time is database time.
    pub fn called<T>(&self, work: impl FnOnce() -> T) -> T {
        let db_time_ns = &self.statistics[Statistic::DbTimeNs as usize];
        begin(db_time_ns);
        self.begin_stretch();
        let result = work();
        self.end_stretch();
        end(db_time_ns);
        result
    }

    /// Returns what the thread is doing at this moment. A background process outside of waits
    /// counts as idle.
    pub fn doing(&self) -> Doing {
        // A counter in progress lacks the time of its start.
        let under_way = |time_ns: &AtomicU64| time_ns.load(Relaxed).cast_signed() < 0;
        let is_waiting = |event: &Event| under_way(&self.waits[*event as usize][1]);
        let is_in_call = under_way(&self.statistics[Statistic::DbTimeNs as usize]);
        match Event::ALL.iter().copied().find(is_waiting) {
            _ if self.role == Role::Session && !is_in_call => Doing::Nothing,
            Some(event) => Doing::Waiting(event),
            None if is_in_call => Doing::Working,
            None => Doing::Nothing,
        }
    }

    /// Begins a stretch outside of waits, and decides whether to sample it.
    #[inline]
    fn begin_stretch(&self) {
        if self.role != Role::Session {
            return;
        }
        let draw = self.draws.load(Relaxed).wrapping_add(1);
        self.draws.store(draw, Relaxed);
        if rng::mix(draw).is_multiple_of(SAMPLE) {
            *self.sample.lock() = Some(Sample::begin());
            self.sampling.store(true, Relaxed);
        }
    }

    #[inline]
    fn end_stretch(&self) {
        if self.sampling.load(Relaxed) {
            self.sampling.store(false, Relaxed);
            self.end_sample();
        }
    }

    #[cold]
    fn end_sample(&self) {
        let Some(sample) = self.sample.lock().take() else { return };
        let Stretch { elapsed_ns, cpu_ns, blocked_ns } = sample.end();
        self.add(Statistic::OutsideSampledNs, elapsed_ns);
        self.add(Statistic::OutsideSampledCpuNs, cpu_ns);
        self.add(Statistic::OutsideSampledBlockedNs, blocked_ns);
    }
}

impl Thread {
    fn consumed(&self) -> ThreadUsage {
        let Self { earlier, at_start, seen, .. } = self;
        ThreadUsage {
            cpu_ns: earlier.cpu_ns + seen.cpu_ns - at_start.cpu_ns,
            run_queue_ns: earlier.run_queue_ns + seen.run_queue_ns - at_start.run_queue_ns,
        }
    }
}

impl Histograms {
    pub fn new() -> Self {
        let stripes = SESSION_STRIPES + Role::ALL.len() - 1;
        Self {
            stripes: (0..stripes).map(|_| Mutex::new(array::from_fn(|_| None))).collect(),
            direct_reads: array::from_fn(|_| Mutex::new(None)),
        }
    }

    /// A session whose stripe is taken moves on to another one: waiting here would be a wait that
    /// no event names.
    fn record(&self, stripe: usize, event: Event, elapsed_ns: u64) {
        let mine = &self.stripes[stripe];
        let others = if stripe < SESSION_STRIPES { &self.stripes[..SESSION_STRIPES] } else { &[] };
        let free = || others.iter().find_map(Mutex::try_lock);
        let mut events = mine.try_lock().or_else(free).unwrap_or_else(|| mine.lock());
        events[event as usize].get_or_insert_default().record(elapsed_ns);
    }

    pub fn take_direct_reads(&self) -> LatencyHistogram {
        let mut sum = LatencyHistogram::new();
        for stripe in &self.direct_reads {
            let taken = stripe.lock().take();
            if let Some(histogram) = taken {
                sum.merge(&histogram);
            }
        }
        sum
    }

    /// Takes the histograms recorded since the last call, by role and event; empty ones are
    /// omitted.
    pub fn take(&self) -> Vec<(Role, Event, LatencyHistogram)> {
        let mut taken: Vec<(Role, Event, LatencyHistogram)> = Vec::new();
        for (stripe, events) in self.stripes.iter().enumerate() {
            let role = Role::ALL[(stripe + 1).saturating_sub(SESSION_STRIPES)];
            // The lock is held only for the exchange: merging must not delay sessions.
            let events = std::mem::replace(&mut *events.lock(), array::from_fn(|_| None));
            for (&event, histogram) in Event::ALL.iter().zip(events) {
                let Some(histogram) = histogram else { continue };
                match taken.iter_mut().find(|(r, e, _)| (*r, *e) == (role, event)) {
                    Some((_, _, sum)) => sum.merge(&histogram),
                    None => taken.push((role, event, *histogram)),
                }
            }
        }
        taken
    }
}

#[derive(Debug)]
struct Sample {
    before: CpuUsage,
    start_ns: u64,
}

#[allow(clippy::struct_field_names, reason = "a unit is part of each name")]
struct Stretch {
    elapsed_ns: u64,
    cpu_ns: u64,
    blocked_ns: u64,
}

impl Sample {
    /// The thread's own clock would be exact, but reading it makes the scheduler check whether the
    /// thread's time slice is over, so preemptions would cluster in the sampled stretches.
    fn begin() -> Self {
        Self { before: CpuUsage::of_thread(), start_ns: clock::now_ns() }
    }

    fn end(self) -> Stretch {
        let elapsed_ns = clock::now_ns() - self.start_ns;
        let (before, after) = (self.before, CpuUsage::of_thread());
        if after.switches() == before.switches() {
            // The thread never left its processor.
            return Stretch { elapsed_ns, cpu_ns: elapsed_ns, blocked_ns: 0 };
        }
        // If it did, the kernel's account includes time that had not been charged before, up to a
        // tick.
        let charged_ns = after.cpu_ns().saturating_sub(before.cpu_ns());
        let cpu_ns = charged_ns.saturating_sub(TICK_NS).min(elapsed_ns);
        // A thread that never gave up the processor voluntarily was ready to run.
        let blocked = after.switches_voluntary != before.switches_voluntary;
        Stretch { elapsed_ns, cpu_ns, blocked_ns: if blocked { elapsed_ns - cpu_ns } else { 0 } }
    }
}

#[inline]
fn bump(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(count), Relaxed);
}

/// Starts an activity whose time counts while it passes: until it ends the counter lacks the time
/// of its start, which makes it negative, as no sum of times is longer than the time since boot.
#[inline]
fn begin(time_ns: &AtomicU64) -> u64 {
    let now_ns = clock::now_ns();
    time_ns.store(time_ns.load(Relaxed).wrapping_sub(now_ns), Relaxed);
    now_ns
}

#[inline]
fn end(time_ns: &AtomicU64) -> u64 {
    let now_ns = clock::now_ns();
    bump(time_ns, now_ns);
    now_ns
}

/// Returns a counter including the time of an activity in progress.
fn so_far(counter: &AtomicU64) -> u64 {
    loop {
        let value = counter.load(Relaxed);
        if value.cast_signed() >= 0 {
            return value;
        }
        let now_ns = clock::now_ns();
        if counter.load(Relaxed) == value {
            return value.wrapping_add(now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use blockstone_sys::usage;

    use super::*;

    #[test]
    fn a_thread_is_seen_in_its_call_and_in_the_wait_within() {
        let (histograms, session) = (Histograms::new(), Ledger::new(Role::Session, 0));
        assert_eq!(session.doing(), Doing::Nothing);
        session.called(|| {
            assert_eq!(session.doing(), Doing::Working);
            session.timed(&histograms, Event::LogFileSync, || {
                assert_eq!(session.doing(), Doing::Waiting(Event::LogFileSync));
            });
            assert_eq!(session.doing(), Doing::Working);
        });
        assert_eq!(session.doing(), Doing::Nothing);
        let writer = Ledger::new(Role::Dbwr, 0);
        assert_eq!(writer.doing(), Doing::Nothing);
        writer.timed(&histograms, Event::DbFileParallelWrite, || {
            assert_eq!(writer.doing(), Doing::Waiting(Event::DbFileParallelWrite));
        });
    }

    #[test]
    fn columns_of_a_recording_are_statistics_of_the_same_name() {
        for column in blockstone_base::database::INSTANCE.columns {
            let known = Statistic::ALL.iter().any(|statistic| statistic.name() == column.name);
            assert!(known || column.name == "dirty_blocks", "{}", column.name);
        }
    }

    #[test]
    fn waits_are_counted_timed_and_their_histograms_add_up_over_stripes() {
        let histograms = Histograms::new();
        let ledgers: Vec<_> = (0..20).map(|n| Ledger::new(Role::Session, n)).collect();
        let log_writer = Ledger::new(Role::Lgwr, 0);
        for ledger in &ledgers {
            let nap = || std::thread::sleep(Duration::from_millis(1));
            let ((), elapsed_ns) = ledger.timed(&histograms, Event::LogFileSync, nap);
            assert!(elapsed_ns >= 1_000_000);
            assert_eq!(ledger.waits(Event::LogFileSync), Waits { count: 1, time_ns: elapsed_ns });
        }
        log_writer.timed(&histograms, Event::LogFileParallelWrite, || ());
        let taken = histograms.take();
        let counts: Vec<_> = taken.iter().map(|(r, e, h)| (*r, *e, h.count())).collect();
        assert_eq!(
            counts,
            [(Role::Session, Event::LogFileSync, 20), (Role::Lgwr, Event::LogFileParallelWrite, 1)]
        );
        assert!(histograms.take().is_empty());
    }

    #[test]
    fn what_is_outside_of_waits_is_told_apart_and_the_thread_is_charged_after_its_end() {
        let histograms = Histograms::new();
        let ledger = Ledger::new(Role::Session, 0);
        let burn = |ns| {
            let until_ns = usage::thread_cpu_ns() + ns;
            while usage::thread_cpu_ns() < until_ns {}
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                ledger.attach();
                for _ in 0..400 {
                    ledger.called(|| {
                        burn(100_000);
                        ledger.timed(&histograms, Event::BufferBusyWaits, || burn(100_000));
                        std::thread::sleep(Duration::from_micros(100));
                    });
                }
                ledger.detach();
            });
        });
        let of = |statistic| ledger.statistic(statistic);
        let outside_ns = of(Statistic::DbTimeNs) - ledger.waits(Event::BufferBusyWaits).time_ns;
        assert!(outside_ns > 400 * 200_000, "{outside_ns}");
        let sampled_ns = of(Statistic::OutsideSampledNs);
        assert!(sampled_ns > outside_ns / SAMPLE / 3, "{sampled_ns} of {outside_ns}");
        assert!(sampled_ns < outside_ns / SAMPLE * 3, "{sampled_ns} of {outside_ns}");
        let (cpu_ns, blocked_ns) =
            (of(Statistic::OutsideSampledCpuNs), of(Statistic::OutsideSampledBlockedNs));
        assert!(cpu_ns > 5 * 100_000 && blocked_ns > 5 * 100_000, "{cpu_ns}, {blocked_ns}");
        assert!(cpu_ns + blocked_ns <= sampled_ns, "{cpu_ns} + {blocked_ns} of {sampled_ns}");
        assert!(ledger.processor().cpu_ns >= 70_000_000, "{:?}", ledger.processor());
    }

    #[test]
    fn what_is_under_way_counts_with_what_it_has_taken() {
        let histograms = Histograms::new();
        let ledger = Ledger::new(Role::Session, 0);
        let pause = Duration::from_millis(5);
        let times = || {
            let waits = ledger.waits(Event::LogFileSync);
            (waits.count, waits.time_ns, ledger.statistic(Statistic::DbTimeNs))
        };
        ledger.called(|| {
            ledger.timed(&histograms, Event::LogFileSync, || {
                std::thread::sleep(pause);
                let (count, wait_ns, call_ns) = times();
                assert!(count == 0 && wait_ns >= 5_000_000 && call_ns >= wait_ns, "{:?}", times());
            });
        });
        let ended = times();
        std::thread::sleep(pause);
        assert_eq!(times(), ended, "what has ended takes no more time");
        assert!(ended.0 == 1 && ended.2 >= ended.1);
    }
}
