//! Samples the state of a server's session threads. A thread is on a processor, ready for one, or
//! blocked in a system call. The kernel knows which call, even if the server has no event for the
//! wait.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use blockstone_base::column::{Cell, Reading, Unmeasured};
use blockstone_base::database::{BLOCKED, PEER, RUNNING};
use blockstone_base::rng::Rng;
use blockstone_sys::blocked::{Activity, BlockedIn, activity};

use super::Member;
use super::processes::SESSION;
use crate::unmeasured::{Missing, all};

/// Mean time between two samples, unless they take long.
const PAUSE: Duration = Duration::from_millis(5);
/// Sampling takes at most this fraction of the time: 1 ÷ 50.
const SHARE: u32 = 50;

#[derive(Debug)]
pub struct SampledThreads {
    /// Empty until a thread was sampled.
    time_ns: BTreeMap<&'static str, u64>,
    last: Option<Instant>,
    /// Random pauses avoid a common rhythm with the sessions.
    random: Rng,
}

impl Default for SampledThreads {
    fn default() -> Self {
        let random = Rng::new(0, 0);
        Self { time_ns: BTreeMap::new(), last: None, random }
    }
}

impl SampledThreads {
    /// Adds the time since the last sample to the current state of each thread. Returns the time
    /// until the next sample is due.
    pub fn sample(&mut self, threads: &[Member]) -> Duration {
        let now = Instant::now();
        let passed_ns = self.last.map_or(0, |last| (now - last).as_nanos() as u64);
        self.last = Some(now);
        for member in threads {
            let thread = member.thread.unwrap_or(member.pid);
            let Ok(activity) = activity(Path::new("/"), member.pid, thread) else { continue };
            if self.time_ns.is_empty() {
                self.time_ns = OBJECTS.map(|(_, object)| (object, 0)).into();
            }
            *self.time_ns.entry(object(activity)).or_default() += passed_ns;
        }
        let pause = PAUSE.max(now.elapsed() * SHARE);
        pause.mul_f64(0.5 + self.random.unit())
    }

    /// Returns one row per object, once a thread was sampled.
    pub fn readings(&self) -> impl Iterator<Item = Reading> {
        self.time_ns.iter().map(|(object, ns)| Reading {
            probe: BLOCKED.probe,
            object: format!("{SESSION}/{object}"),
            cells: vec![Cell::from(*ns)],
        })
    }
}

const OBJECTS: [(Activity, &str); 9] = [
    (Activity::Running, RUNNING),
    (Activity::Blocked(BlockedIn::Peer), PEER),
    (Activity::Blocked(BlockedIn::Read), "read"),
    (Activity::Blocked(BlockedIn::Write), "write"),
    (Activity::Blocked(BlockedIn::Flush), "flush"),
    (Activity::Blocked(BlockedIn::Futex), "futex"),
    (Activity::Blocked(BlockedIn::Sleep), "sleep"),
    (Activity::Blocked(BlockedIn::Fault), "fault"),
    (Activity::Blocked(BlockedIn::Other), "other"),
];

fn object(activity: Activity) -> &'static str {
    let found = OBJECTS.iter().find(|(known, _)| *known == activity);
    found.map_or("other", |(_, object)| object)
}

/// Returns why the blocking of the server's threads in process `pid` cannot be observed; nothing if
/// it can.
pub fn unseen(pid: Option<u32>) -> Missing {
    let tried = match pid {
        None => Err(io::Error::other("the server's process is not known, or not on this machine")),
        Some(pid) => activity(Path::new("/"), pid, pid),
    };
    let why = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            Unmeasured::NotInVersion("this kernel has no /proc/PID/syscall".to_owned())
        }
        io::ErrorKind::Other => Unmeasured::NotPermitted(error.to_string()),
        _ => Unmeasured::NotPermitted(format!("/proc/PID/syscall of the server: {error}")),
    };
    tried.err().map(|error| all(&BLOCKED, &why(error))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;

    use blockstone_sys::account::current_thread;

    use super::*;

    fn ns(threads: &SampledThreads, place: &str) -> u64 {
        let wanted = format!("session/{place}");
        let found = threads.readings().find(|reading| reading.object == wanted).unwrap();
        match found.cells[0] {
            Cell::Value(ns) => ns as u64,
            ref other => panic!("{other:?}"),
        }
    }

    #[test]
    fn time_is_counted_where_a_thread_is_blocked() {
        let (tell, told) = channel();
        let (free, waits) = channel::<()>();
        let worker = std::thread::spawn(move || {
            tell.send(current_thread()).unwrap();
            let _ = waits.recv();
        });
        let thread = Some(told.recv().unwrap());
        let member = Member { pid: std::process::id(), thread };
        let gone = Member { pid: std::process::id(), thread: Some(0) };
        let mut threads = SampledThreads::default();
        assert_eq!(threads.readings().count(), 0, "nothing was seen yet");
        threads.sample(&[gone]);
        assert_eq!(threads.readings().count(), 0, "it has ended");
        // It may not be blocked yet.
        std::thread::sleep(Duration::from_millis(50));
        threads.sample(&[member]);
        let before = ns(&threads, "futex");
        std::thread::sleep(Duration::from_millis(20));
        let pause = threads.sample(&[member, gone]);
        assert!(ns(&threads, "futex") >= before + 20_000_000, "{threads:?}");
        assert_eq!((ns(&threads, "read"), ns(&threads, "other")), (0, 0));
        assert!(pause >= PAUSE / 2, "{pause:?}");
        drop(free);
        worker.join().unwrap();
    }

    #[test]
    fn a_session_waits_for_its_client_or_runs() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (tell, told) = channel();
        let ends = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ends);
        let session = std::thread::spawn(move || {
            tell.send(current_thread()).unwrap();
            assert_eq!(theirs.read(&mut [0]).unwrap(), 0);
            tell.send(0).unwrap();
            while !end.load(Ordering::Relaxed) {}
        });
        let member = Member { pid: std::process::id(), thread: Some(told.recv().unwrap()) };
        let mut threads = SampledThreads::default();
        std::thread::sleep(Duration::from_millis(50));
        threads.sample(&[member]);
        std::thread::sleep(Duration::from_millis(20));
        threads.sample(&[member]);
        assert!(ns(&threads, PEER) >= 20_000_000, "{threads:?}");
        assert_eq!(ns(&threads, RUNNING), 0);
        drop(ours);
        told.recv().unwrap();
        threads.sample(&[member]);
        let before = ns(&threads, PEER);
        std::thread::sleep(Duration::from_millis(20));
        threads.sample(&[member]);
        assert!(ns(&threads, RUNNING) >= 20_000_000, "{threads:?}");
        assert_eq!(ns(&threads, PEER), before);
        ends.store(true, Ordering::Relaxed);
        session.join().unwrap();
    }

    #[test]
    fn it_is_said_why_nothing_is_seen() {
        assert!(unseen(Some(std::process::id())).is_empty());
        let [(probe, column, why)] = &unseen(None)[..] else { panic!("one column") };
        assert_eq!((*probe, *column), ("blocked", "time_ns"));
        assert!(matches!(why, Unmeasured::NotPermitted(_)), "{why:?}");
    }
}
