//! Resources that this process has consumed: processor time, context switches, waits for a
//! processor.

use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::proc::{PseudoFile, numbers, numbers_after, under};

/// Processor time and context switches, cumulative; ended threads of a process are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUsage {
    /// Time in user mode in nanoseconds (resolution 1 µs).
    pub cpu_user_ns: u64,
    /// Time in the kernel in nanoseconds (resolution 1 µs).
    pub cpu_system_ns: u64,
    /// Context switches because a thread had to wait.
    pub switches_voluntary: u64,
    /// Context switches because another task was scheduled.
    pub switches_involuntary: u64,
}

pub fn process() -> CpuUsage {
    CpuUsage::of(libc::RUSAGE_SELF)
}

/// Returns the peak resident set of this process, in bytes, from `/proc/self/status`; 0 if the
/// kernel does not report it.
///
/// getrusage(2) is not a source for it: its maximum survives execve(2), so it may be the parent's.
pub fn peak_memory_bytes() -> u64 {
    let status = fs::read("/proc/self/status").unwrap_or_default();
    peak_in(&status).unwrap_or_default()
}

fn peak_in(status: &[u8]) -> Option<u64> {
    Some(numbers_after(status, "VmHWM:")?.next()? * 1024)
}

impl CpuUsage {
    pub fn of_thread() -> Self {
        Self::of(libc::RUSAGE_THREAD)
    }

    pub fn cpu_ns(&self) -> u64 {
        self.cpu_user_ns + self.cpu_system_ns
    }

    pub fn switches(&self) -> u64 {
        self.switches_voluntary + self.switches_involuntary
    }

    fn of(who: libc::c_int) -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: `usage` is a writable rusage; with one of these two and a valid pointer the call
        // cannot fail, and if it did, all-zero bytes are a valid rusage.
        let usage = unsafe {
            libc::getrusage(who, usage.as_mut_ptr());
            usage.assume_init()
        };
        Self::from_rusage(&usage)
    }

    pub(crate) fn from_rusage(usage: &libc::rusage) -> Self {
        let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
        Self {
            cpu_user_ns: ns(usage.ru_utime),
            cpu_system_ns: ns(usage.ru_stime),
            switches_voluntary: usage.ru_nvcsw as u64,
            switches_involuntary: usage.ru_nivcsw as u64,
        }
    }
}

/// Returns the exact processor time of the calling thread in nanoseconds, with one system call.
pub fn thread_cpu_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A thread of this process, whose processor time can be queried by itself and by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(i32);

/// Usage of a thread since it started: cumulative, from `/proc/self/task/TID/schedstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Nanoseconds on a processor; for a running thread, as of the kernel's last tick.
    pub cpu_ns: u64,
    /// Nanoseconds ready to run but waiting for a processor.
    pub run_queue_ns: u64,
}

impl ThreadId {
    pub fn current() -> Self {
        Self(rustix::thread::gettid().as_raw_nonzero().get())
    }

    /// Returns what it has consumed; `None` if it has ended or the kernel keeps no such statistics.
    pub fn usage(self) -> Option<ThreadUsage> {
        let text = fs::read(format!("/proc/self/task/{}/schedstat", self.0)).ok()?;
        let mut numbers = numbers(&text);
        Some(ThreadUsage { cpu_ns: numbers.next()?, run_queue_ns: numbers.next()? })
    }
}

/// Total time for which threads of this process were ready to run but did not run, summed from
/// the second number of `/proc/self/task/TID/schedstat`.
///
/// The kernel keeps no such sum, so the threads' files are held open. Waits between the last read
/// and the end of a thread are not seen; a window whose edges are read under load loses nothing.
#[derive(Debug)]
pub struct RunQueue {
    tasks: PathBuf,
    directory: File,
    threads: Vec<Thread>,
    ended_ns: u64,
}

#[derive(Debug)]
struct Thread {
    id: String,
    schedstat: PseudoFile,
    waited_ns: u64,
}

impl RunQueue {
    /// Opens the threads of this process. Fails when the kernel keeps no scheduling statistics
    /// (`ENOENT`) or they may not be read.
    pub fn open(root: &Path) -> io::Result<Self> {
        PseudoFile::open(root, "/proc/self/schedstat")?;
        let tasks = under(root, "/proc/self/task");
        let directory = File::open(&tasks)?;
        let mut queue = Self { tasks, directory, threads: Vec::new(), ended_ns: 0 };
        queue.rescan()?;
        Ok(queue)
    }

    /// Returns the number of threads at the last [`Self::waited_ns`].
    pub fn threads(&self) -> u64 {
        self.threads.len() as u64
    }

    /// Returns the nanoseconds waited so far; never decreases. Fails when the list of threads
    /// cannot be read.
    pub fn waited_ns(&mut self) -> io::Result<u64> {
        // The directory has two links plus one per thread: a cheap way to see that some have
        // started. An ended thread shows when its file is read.
        let changed = self.directory.metadata()?.nlink() != self.threads() + 2;
        let ended_ns = &mut self.ended_ns;
        let before = self.threads.len();
        self.threads.retain_mut(|thread| {
            let alive = thread.refresh();
            *ended_ns += if alive { 0 } else { thread.waited_ns };
            alive
        });
        if changed || self.threads.len() != before {
            self.rescan()?;
        }
        Ok(self.ended_ns + self.threads.iter().map(|thread| thread.waited_ns).sum::<u64>())
    }

    fn rescan(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(&self.tasks)? {
            let id = entry?.file_name().to_string_lossy().into_owned();
            if self.threads.iter().any(|thread| thread.id == id) {
                continue;
            }
            let Ok(schedstat) = PseudoFile::open(&self.tasks, &format!("{id}/schedstat")) else {
                continue;
            };
            let mut thread = Thread { id, schedstat, waited_ns: 0 };
            if thread.refresh() {
                self.threads.push(thread);
            }
        }
        Ok(())
    }
}

impl Thread {
    /// Reads the thread's wait; returns false if the thread has ended.
    fn refresh(&mut self) -> bool {
        let Ok(text) = self.schedstat.read() else { return false };
        let Some(waited_ns) = numbers(text).nth(1) else { return false };
        self.waited_ns = self.waited_ns.max(waited_ns);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn burnt_processor_time_is_seen() {
        let before = process();
        let until = std::time::Instant::now() + std::time::Duration::from_millis(60);
        while std::time::Instant::now() < until {
            std::hint::spin_loop();
        }
        let after = process();
        let burnt =
            after.cpu_user_ns + after.cpu_system_ns - before.cpu_user_ns - before.cpu_system_ns;
        assert!(burnt > 5_000_000, "{burnt} ns seen of 60 ms");
    }

    #[test]
    fn the_most_memory_is_this_process_own() {
        assert_eq!(peak_in(b"VmPeak:\t 9 kB\nVmHWM:\t   1234 kB\n"), Some(1234 * 1024));
        assert_eq!(peak_in(b"Name:\tx\n"), None);
        let before = peak_memory_bytes();
        let held = std::hint::black_box(vec![1_u8; 64 << 20]);
        let with = peak_memory_bytes();
        assert!(with >= before.max(64 << 20), "{before}, then {with}");
        drop(held);
        assert!(peak_memory_bytes() >= 64 << 20, "what was given back was had");
    }

    #[test]
    fn a_thread_is_charged_for_what_it_did() {
        let (idle, busy) = (thread_cpu_ns(), ThreadId::current());
        let until = std::time::Instant::now() + std::time::Duration::from_millis(60);
        while std::time::Instant::now() < until {
            std::hint::spin_loop();
        }
        assert!(thread_cpu_ns() - idle > 5_000_000);
        let blocked = CpuUsage::of_thread().switches_voluntary;
        thread::sleep(std::time::Duration::from_millis(1));
        assert!(CpuUsage::of_thread().switches_voluntary > blocked);
        let seen = thread::spawn(move || busy.usage().unwrap()).join().unwrap();
        assert!(seen.cpu_ns > 5_000_000, "{seen:?}");
        let ended = thread::spawn(ThreadId::current).join().unwrap();
        assert_eq!(ended.usage(), None);
    }

    #[test]
    fn waiting_for_a_processor_is_seen_and_survives_the_thread() {
        let mut queue = RunQueue::open(Path::new("/")).unwrap();
        let start = queue.waited_ns().unwrap();
        let (stop, stopped) = mpsc::channel::<()>();
        let cpus = thread::available_parallelism().unwrap().get();
        let burners: Vec<_> = (0..cpus * 3)
            .map(|_| {
                thread::spawn(|| {
                    let until = std::time::Instant::now() + std::time::Duration::from_millis(200);
                    while std::time::Instant::now() < until {
                        std::hint::spin_loop();
                    }
                })
            })
            .collect();
        thread::spawn(move || stopped.recv());
        thread::sleep(std::time::Duration::from_millis(150));
        let during = queue.waited_ns().unwrap();
        assert!(queue.threads() > cpus as u64 * 3);
        assert!(during - start > 50_000_000, "waited {} ns", during - start);
        for burner in burners {
            burner.join().unwrap();
        }
        drop(stop);
        assert!(queue.waited_ns().unwrap() >= during);
        assert!(queue.waited_ns().unwrap() >= during);
    }
}
