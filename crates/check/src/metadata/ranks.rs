//! An operation by all ranks in parallel, with what the kernel and the device counted meanwhile.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::metadata::findings::{Moved, Operation};
use blockstone_base::LatencyHistogram;
use blockstone_base::histogram::SharedHistogram;
use blockstone_base::stats::{self, Estimate};
use blockstone_measure::Observer;
use blockstone_sys::clock::now_ns;
use blockstone_sys::meeting::Meeting;
use blockstone_sys::proc::{PseudoFile, numbers};
use blockstone_sys::{account, thread};
use rustix::io::Errno;

use super::layout::{Dirs, Kind};
use super::server::{self, Requests};
use super::work::{Done, Job};
use crate::CheckError;

/// Interval at which signals are polled.
const LOOK: Duration = Duration::from_millis(5);
const SECTOR_BYTES: u64 = 512;

/// Threads that work at the same time, each on the files of the next rank, so that none meets the
/// files it made itself.
#[derive(Clone, Copy, Debug)]
pub struct Ranks<'a> {
    pub count: u32,
    pub dirs: &'a Dirs,
    pub content: &'a [u8],
}

/// An operation to run.
#[derive(Clone, Debug)]
pub struct Task {
    pub operation: Operation,
    pub kind: Kind,
    /// Numbers of the files of each rank.
    pub numbers: std::ops::Range<u64>,
    /// Maximum number by rank; empty for all.
    pub limits: Vec<u64>,
    /// No operation starts after this time.
    pub limit: Duration,
    /// Whether the order is spread over all files, or follows their numbers.
    pub spread: bool,
}

impl Task {
    pub fn new(operation: Operation, numbers: std::ops::Range<u64>, limit: Duration) -> Self {
        let spread = operation != Operation::Create;
        Self { operation, kind: Kind::File, numbers, limits: Vec::new(), limit, spread }
    }
}

/// Result of a task.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number by rank.
    pub operations: Vec<u64>,
    pub latency: LatencyHistogram,
    pub ops_per_s: Option<Estimate>,
    pub cpu_ns: u64,
    pub bytes_read: Option<u64>,
    pub moved: Option<Moved>,
    /// Requests to a server.
    pub asked: Option<Requests>,
    pub error: Option<Errno>,
}

impl Outcome {
    pub fn total(&self) -> u64 {
        self.operations.iter().sum()
    }
}

impl Ranks<'_> {
    /// Fails if not enough threads can be started.
    pub fn run(
        &self,
        task: &Task,
        device: &mut Device,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, CheckError> {
        let stop = AtomicBool::new(false);
        let ended = AtomicU32::new(0);
        let latency = SharedHistogram::new();
        let start = Meeting::of(self.count as usize + 1);
        let limit_ns = u64::try_from(task.limit.as_nanos()).unwrap_or(u64::MAX);
        let read_before = bytes_read();
        let moved_before = device.moved();
        let asked_before = device.asked();
        let done: Vec<Done> = std::thread::scope(|scope| {
            let (here, stop, ended, latency) = (&start, &stop, &ended, &latency);
            let work = |rank| {
                move || {
                    if !here.wait() {
                        return Done::default();
                    }
                    let until_ns = now_ns().saturating_add(limit_ns);
                    let done = self.job(task, rank, until_ns, (stop, latency)).run();
                    ended.fetch_add(1, Ordering::Release);
                    done
                }
            };
            let ranks = here.start(scope, "rank", (0..self.count).map(work))?;
            start.wait();
            while ended.load(Ordering::Acquire) < self.count {
                if observer.interrupted().is_some() {
                    stop.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(LOOK);
            }
            Ok(ranks.into_iter().map(|rank| rank.join().unwrap_or_default()).collect())
        })
        .map_err(|source: io::Error| self.no_threads(source))?;
        let moved = device.moved().zip(moved_before).map(|(now, then)| since(now, then));
        let asked = device.asked().zip(asked_before);
        let asked = asked.map(|(now, then)| server::since(now, &then));
        let bytes_read = bytes_read().zip(read_before).map(|(now, then)| now - then);
        let latency = latency.take();
        Ok(Outcome { latency, bytes_read, moved, asked, ..collect(&done) })
    }

    /// Names the limit on threads that is in the way.
    fn no_threads(&self, source: io::Error) -> CheckError {
        let limit = thread::limit(Path::new("/")).map_or_else(String::new, |it| {
            format!("; {} is {}, and {} of it are in use", it.name, it.limit, it.used)
        });
        CheckError::Threads { ranks: self.count, source, limit }
    }

    fn job<'a>(
        &'a self,
        task: &'a Task,
        rank: u32,
        until_ns: u64,
        (stop, latency): (&'a AtomicBool, &'a SharedHistogram),
    ) -> Job<'a> {
        let owner = match task.operation {
            Operation::Create => rank,
            _ => (rank + 1) % self.count,
        };
        Job {
            operation: task.operation,
            dirs: self.dirs,
            owner,
            numbers: task.numbers.clone(),
            limit: task.limits.get(rank as usize).copied().unwrap_or(u64::MAX),
            kind: task.kind,
            spread: task.spread,
            content: self.content,
            latency,
            until_ns,
            stop,
        }
    }
}

fn collect(done: &[Done]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut marks: Vec<(u64, u64)> = Vec::new();
    for rank in done {
        outcome.operations.push(rank.operations);
        outcome.cpu_ns += rank.cpu_ns;
        outcome.error = outcome.error.or(rank.error);
        marks.extend(&rank.marks);
    }
    marks.sort_unstable();
    outcome.ops_per_s = rate(&marks);
    outcome
}

/// Returns the rate of marks `(time, operations since the previous mark of its rank)`, with its
/// interval.
fn rate(marks: &[(u64, u64)]) -> Option<Estimate> {
    let mut total = 0;
    let mut ticks: Vec<(u64, u64)> = Vec::with_capacity(marks.len());
    for &(at_ns, operations) in marks {
        total += operations;
        match ticks.last_mut() {
            Some(last) if last.0 == at_ns => last.1 = total,
            _ => ticks.push((at_ns, total)),
        }
    }
    // A rate that might as well be twice as high is not reported.
    let rate = stats::rate_per_s(&ticks).map(Estimate::not_negative);
    rate.filter(|rate| rate.high <= 2.0 * rate.value)
}

/// Returns the bytes that the kernel has charged to this process as fetched from storage.
fn bytes_read() -> Option<u64> {
    Some(account::account(Path::new("/"), std::process::id(), None)?.io?.read_bytes)
}

/// Counters of the device beneath the directory, or of the server.
#[derive(Debug)]
pub struct Device {
    pub name: Option<String>,
    stat: Option<PseudoFile>,
    mount_point: Option<String>,
}

impl Device {
    pub fn open(name: Option<String>, mount_point: Option<String>) -> Self {
        let open = |name: &String| {
            PseudoFile::open(Path::new("/"), &format!("/sys/class/block/{name}/stat")).ok()
        };
        let stat = name.as_ref().and_then(open);
        Self { name, stat, mount_point }
    }

    fn asked(&self) -> Option<Requests> {
        server::requests(self.mount_point.as_ref()?)
    }

    fn moved(&mut self) -> Option<Moved> {
        counted(self.stat.as_mut()?.read().ok()?)
    }
}

/// Parses the counters in the order of the kernel's Documentation/block/stat.rst.
fn counted(text: &[u8]) -> Option<Moved> {
    let all: Vec<u64> = numbers(text).collect();
    Some(Moved {
        reads: *all.first()?,
        read_bytes: all.get(2)? * SECTOR_BYTES,
        writes: *all.get(4)?,
        write_bytes: all.get(6)? * SECTOR_BYTES,
        // Since Linux 5.5.
        flushes: all.get(15).copied().unwrap_or_default(),
    })
}

fn since(now: Moved, then: Moved) -> Moved {
    Moved {
        reads: now.reads.saturating_sub(then.reads),
        read_bytes: now.read_bytes.saturating_sub(then.read_bytes),
        writes: now.writes.saturating_sub(then.writes),
        write_bytes: now.write_bytes.saturating_sub(then.write_bytes),
        flushes: now.flushes.saturating_sub(then.flushes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_a_device_are_read_by_their_place() {
        let text = b"  10 1 80 5   20 2 160 9  0 7 14  0 0 0 0  3 4\n";
        let found = counted(text).unwrap();
        assert_eq!((found.reads, found.read_bytes), (10, 80 * 512));
        assert_eq!((found.writes, found.write_bytes, found.flushes), (20, 160 * 512, 3));
        assert_eq!(counted(b"1 2"), None);
    }

    #[test]
    fn marks_of_all_ranks_make_one_rate() {
        let marks: Vec<(u64, u64)> =
            (0..=40).flat_map(|at| [(at * 1_000_000, 100), (at * 1_000_000 + 7, 100)]).collect();
        let rate = rate(&marks).unwrap();
        assert!((rate.value - 200_000.0).abs() < 5_000.0, "{rate:?}");
        assert_eq!(super::rate(&[]), None);
    }

    #[test]
    fn a_rate_that_may_as_well_be_twice_as_high_is_none() {
        let marks = |gaps_ns: &[u64]| -> Vec<(u64, u64)> {
            let mut at_ns = 0;
            let mark = |gap_ns: &u64| {
                at_ns += gap_ns;
                (at_ns, 8)
            };
            gaps_ns.iter().map(mark).collect()
        };
        let steady = rate(&marks(&[1_000_000; 20])).unwrap();
        assert!((steady.value - 8_000.0).abs() < 1.0, "{steady:?}");
        assert!(rate(&marks(&[1_000, 90_000_000, 1_000])).is_none());
    }
}
