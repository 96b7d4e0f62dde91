//! Threads that write, or read, at the same time.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::order::findings::{Mode, Side};
use blockstone_base::rng;
use blockstone_sys::buffer::Slot;
use blockstone_sys::file::{BlockFile, FileError};
use blockstone_sys::meeting::Meeting;
use blockstone_sys::thread::scoped;
use blockstone_sys::usage::{CpuUsage, thread_cpu_ns};
use rustix::io::Errno;

use super::scratch::{BLOCK, FILLED, Files, ScratchFile, goes_round};
use super::witness::Waited;
use crate::CheckError;

const SECTOR: usize = 512;
/// Minimum for each thread, unless that takes too long.
const LEAST_REQUESTS: u64 = 8;
/// Maximum multiple of the planned time.
const PATIENCE: u32 = 5;
/// Number of blocks that a writer allocates ahead for all.
const AHEAD: u64 = 256;
/// Interval at which a request to end early is polled.
const LOOK: Duration = Duration::from_millis(20);

/// Totals over threads, in one run or in several.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub requests: u64,
    /// Time of all threads together, in nanoseconds.
    pub thread_ns: u64,
    /// Time from the first to the last, in nanoseconds.
    pub elapsed_ns: u64,
    pub switches: u64,
    pub cpu_ns: u64,
    pub error: Option<i32>,
    /// Appends in whose place another was written.
    pub lost: u64,
    /// `None` if the kernel did not count.
    pub waits: Option<Waited>,
    runs: u32,
}

impl Totals {
    pub fn is_tried(&self) -> bool {
        self.runs > 0
    }

    pub fn add(&mut self, other: &Self) {
        self.waits = match (self.runs, self.waits, other.waits) {
            (0, _, waits) => waits,
            (_, Some(a), Some(b)) => Some(Waited { waits: a.waits + b.waits, ns: a.ns + b.ns }),
            _ => None,
        };
        self.requests += other.requests;
        self.thread_ns += other.thread_ns;
        self.elapsed_ns += other.elapsed_ns;
        self.switches += other.switches;
        self.cpu_ns += other.cpu_ns;
        self.error = self.error.or(other.error);
        self.lost += other.lost;
        self.runs += 1;
    }

    pub fn side(&self) -> Side {
        let by = |amount: u64, of: u64| if of == 0 { 0.0 } else { amount as f64 / of as f64 };
        Side {
            requests: self.requests,
            iops: by(self.requests, self.elapsed_ns) * 1e9,
            lock_time_share: self.waits.map(|waited| by(waited.ns, self.thread_ns)),
            waits_per_request: self.waits.map(|waited| by(waited.waits, self.requests)),
            switches_per_request: by(self.switches, self.requests),
            cpu_ns_per_request: by(self.cpu_ns, self.requests),
            lost: self.lost,
        }
    }

    fn of_thread(&mut self, done: &Done) {
        self.requests += done.requests;
        self.thread_ns += done.ns;
        self.elapsed_ns = self.elapsed_ns.max(done.ns);
        self.switches += done.switches;
        self.cpu_ns += done.cpu_ns;
        self.error = self.error.or(done.error);
    }
}

/// Result of one thread.
#[derive(Debug, Default)]
struct Done {
    requests: u64,
    ns: u64,
    switches: u64,
    cpu_ns: u64,
    error: Option<i32>,
}

/// State that all threads of a file share.
#[derive(Debug, Default)]
struct Shared {
    /// Number of the next request.
    next: AtomicU64,
    /// Blocks that are allocated, if one of the writers allocates them for all.
    room: AtomicU64,
    allocating: Mutex<()>,
}

/// One thread to start.
#[derive(Clone, Copy, Debug)]
struct Worker<'a> {
    scratch: &'a ScratchFile,
    file: &'a BlockFile,
    mode: Mode,
    shared: &'a Shared,
    time: Duration,
    /// Whether to end early: the writer next to the readers is done, or a signal came.
    ended: &'a AtomicBool,
}

/// Runs one side of a mode. Errors of the kernel are in the totals; `None` if it was interrupted.
pub fn run(
    files: &Files,
    mode: Mode,
    writers: u32,
    time: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<Option<Totals>, CheckError> {
    let mut totals = Totals::default();
    let shared: Vec<_> = files.files.iter().map(|_| Shared::default()).collect();
    let ended = AtomicBool::new(false);
    let mut workers = Vec::new();
    for number in 0..writers as usize {
        let at = number % files.files.len();
        let (scratch, shared) = (&files.files[at], &shared[at]);
        match &scratch.tested {
            Ok(file) => {
                let ended = &ended;
                workers.push(Worker { scratch, file, mode, shared, time, ended });
            }
            Err(error) => {
                totals.error = totals.error.or(errno_of(error));
                return Ok(Some(totals));
            }
        }
    }
    let mut buffers = Vec::new();
    for number in 0..=workers.len() as u64 {
        let mut buffer = Slot::new(2 * BLOCK)?;
        rng::fill(number, &mut buffer);
        buffers.push(buffer);
    }
    let filler = buffers.pop().filter(|_| mode == Mode::Readers);
    let start = &Meeting::of(workers.len());
    let mut is_interrupted = false;
    thread::scope(|scope| {
        let filling = filler.as_ref();
        let filling = filling.map(|buffer| scoped(scope, "fill", || fill(files, buffer, &ended)));
        let filling = filling.transpose()?;
        let (sender, results) = mpsc::channel();
        let works = workers.iter().zip(&mut buffers).map(|(worker, buffer)| {
            let sender = sender.clone();
            move || {
                if start.wait() {
                    let _ = sender.send(worker.work(buffer));
                }
            }
        });
        // The filling writer ends with the others.
        start
            .start(scope, "worker", works)
            .inspect_err(|_| ended.store(true, Ordering::Relaxed))?;
        drop(sender);
        loop {
            match results.recv_timeout(LOOK) {
                Ok(done) => totals.of_thread(&done),
                Err(RecvTimeoutError::Timeout) if interrupted() => {
                    is_interrupted = true;
                    ended.store(true, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        ended.store(true, Ordering::Relaxed);
        let outcome = filling.map(|thread| thread.join().unwrap_or(Ok(())));
        totals.error = totals.error.or(outcome.and_then(Result::err));
        Ok(())
    })
    .map_err(|source: io::Error| CheckError::Thread { source })?;
    if mode == Mode::Append {
        totals.lost = totals.requests.saturating_sub(files.blocks()?);
    }
    Ok((!is_interrupted).then_some(totals))
}

impl Worker<'_> {
    fn work(&self, buffer: &mut [u8]) -> Done {
        let mut done = Done::default();
        let (before, before_cpu_ns) = (CpuUsage::of_thread(), thread_cpu_ns());
        let start = Instant::now();
        loop {
            let elapsed = start.elapsed();
            let is_enough = done.requests >= LEAST_REQUESTS || elapsed >= self.time * PATIENCE;
            if (elapsed >= self.time && is_enough) || self.ended.load(Ordering::Relaxed) {
                break;
            }
            let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.scratch.requests && !goes_round(self.mode) {
                break;
            }
            if let Err(errno) = self.request(number % self.scratch.requests, buffer) {
                done.error = Some(errno);
                break;
            }
            done.requests += 1;
        }
        done.ns = start.elapsed().as_nanos() as u64;
        let after = CpuUsage::of_thread();
        done.switches = after.switches_voluntary - before.switches_voluntary;
        done.cpu_ns = thread_cpu_ns() - before_cpu_ns;
        done
    }

    fn request(&self, number: u64, buffer: &mut [u8]) -> Result<usize, i32> {
        let (file, first) = (self.file, self.scratch.first_byte);
        let at = first + number * BLOCK as u64;
        match self.mode {
            Mode::Readers => file.read_at(at, &mut buffer[..BLOCK]),
            Mode::Append => match file.append(&buffer[..BLOCK]) {
                // The rest would count as lost.
                Ok(bytes) if bytes < BLOCK => Err(Errno::NOSPC.raw_os_error()),
                appended => appended,
            },
            Mode::AllocateAhead => {
                self.allocate(number + 1)?;
                file.write_at(at, &buffer[..BLOCK])
            }
            Mode::SubBlock => file.write_at(at + SECTOR as u64, &buffer[..SECTOR]),
            Mode::Straddle | Mode::SecondPass => {
                file.write_at(2 * number * BLOCK as u64, &buffer[..2 * BLOCK])
            }
            _ => file.write_at(at, &buffer[..BLOCK]),
        }
    }

    /// Allocates up to this number of blocks. One writer allocates; others wait for it only if they
    /// need more too.
    fn allocate(&self, blocks: u64) -> Result<(), i32> {
        let room = &self.shared.room;
        if room.load(Ordering::Acquire) >= blocks {
            return Ok(());
        }
        let _alone = self.shared.allocating.lock().unwrap_or_else(PoisonError::into_inner);
        if room.load(Ordering::Acquire) < blocks {
            let more = blocks.next_multiple_of(AHEAD);
            let allocated = self.scratch.reserve(more);
            allocated.map_err(|error| errno_of(&error).unwrap_or_default())?;
            room.store(more, Ordering::Release);
        }
        Ok(())
    }
}

/// Fills a hole next to readers, until they are done; they end with it. The error is the kernel's.
fn fill(files: &Files, buffer: &[u8], ended: &AtomicBool) -> Result<(), i32> {
    let (file, from) = files.filled();
    let tested = file.tested.as_ref().map_err(|error| errno_of(error).unwrap_or_default())?;
    let mut places = (0..FILLED)
        .take_while(|_| !ended.load(Ordering::Relaxed))
        .map(|number| file.first_byte + (from + number) * BLOCK as u64);
    let outcome = places.try_for_each(|at| tested.write_at(at, &buffer[..BLOCK]).map(drop));
    ended.store(true, Ordering::Relaxed);
    outcome
}

fn errno_of(error: &FileError) -> Option<i32> {
    match error {
        FileError::Open { source, .. }
        | FileError::Create { source, .. }
        | FileError::Io { source, .. } => source.raw_os_error(),
        FileError::Locked { .. } => None,
    }
}
