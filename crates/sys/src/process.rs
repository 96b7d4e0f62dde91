//! Processes and threads: how a child ended and what it consumed until then, and thread priorities.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::OnceLock;

use blockstone_base::Capability;
use rustix::fs::Mode;

use crate::usage::CpuUsage;

/// Returns whether `signal` was ignored when this process began, or is now; `false` if unknown.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Makes what this process and its children create from now on readable only by this user.
pub fn keep_private() {
    let before = rustix::process::umask(PRIVATE);
    let _ = STARTED_WITH.set(before);
}

/// Returns the permissions that this process was started not to give to new files (`umask`).
pub fn umask() -> u32 {
    let mask = STARTED_WITH.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
        mask.map_or(PRIVATE, Mode::from_raw_mode)
    });
    mask.as_raw_mode()
}

const PRIVATE: Mode = Mode::from_raw_mode(0o077);
/// The mask before [`keep_private`].
static STARTED_WITH: OnceLock<Mode> = OnceLock::new();

/// Gives the calling thread priority over others: sets its nice value, which is per thread on
/// Linux. For a user who may not do that, it stays as it was.
pub fn favour_thread(nice: i32) -> Capability {
    match rustix::process::setpriority_process(None, nice) {
        Ok(()) => Capability::Full,
        Err(error) => Capability::degraded(format!(
            "the thread keeps its priority ({error}); CAP_SYS_NICE or ulimit -e allows more"
        )),
    }
}

/// Makes the calling thread real-time: with only a nice value, a thread that wakes waits for the
/// next tick if the kernel does not preempt. For a user who may not do that, it stays as it was.
pub fn favour_thread_at_once() -> Capability {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the pointer is readable for the call, and 0 names the calling thread.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) };
    if set == 0 {
        return Capability::Full;
    }
    let error = io::Error::last_os_error();
    Capability::degraded(format!(
        "the thread is not real-time ({error}); CAP_SYS_NICE or ulimit -r allows it"
    ))
}

/// How a child ended, and what it consumed, including its threads and those of its own children
/// that it waited for.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub cpu: CpuUsage,
    /// Largest resident set of any of these processes, in bytes; at least that of this process when
    /// it started the child, because the kernel keeps the maximum through execve(2).
    pub memory_peak_bytes: u64,
}

/// Returns whether a child has ended. It remains until [`wait`] is called, so that its ID is not
/// reused and what the kernel charged to it can be read. Fails when it was already waited for
/// (`ECHILD`).
pub fn has_ended(child: &Child) -> io::Result<bool> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(Pid::from_child(child)), options)?.is_some())
}

/// Sends `signal` to every process of the group led by a child that has not been waited for; an
/// empty group is not an error.
pub fn signal_group(child: &Child, signal: rustix::process::Signal) -> io::Result<()> {
    match rustix::process::kill_process_group(rustix::process::Pid::from_child(child), signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits for `child`, using wait4(2), so that nothing of another child is mixed in.
///
/// Output that the child writes into pipes must be read first, or the child never ends. Fails when
/// it was already waited for (`ECHILD`).
pub fn wait(mut child: Child) -> io::Result<Ended> {
    // A child that reads its input to the end would wait for us.
    drop(child.stdin.take());
    let id = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are writable for the call; `child` was moved in here and is never
        // waited for by the standard library, so the ID cannot have been reused.
        let ended = unsafe { libc::wait4(id, &raw mut status, 0, usage.as_mut_ptr()) };
        if ended == id {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: it was initialised to all-zero bytes, which are a valid rusage.
    let usage = unsafe { usage.assume_init() };
    Ok(Ended {
        status: ExitStatus::from_raw(status),
        cpu: CpuUsage::from_rusage(&usage),
        // In KiB on Linux.
        memory_peak_bytes: usage.ru_maxrss as u64 * 1024,
    })
}

/// Returns the processor time that a process has consumed so far, in nanoseconds: all its threads,
/// including ended ones and the kernel's io_uring workers that run on its behalf. Exact while it
/// runs, unlike `/proc/PID/stat`, which has a resolution of 10 ms. Fails when there is no such
/// process (`ESRCH`).
pub fn cpu_ns(id: u32) -> io::Result<u64> {
    let id = libc::pid_t::try_from(id).map_err(io::Error::other)?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is writable for the call.
    let error = unsafe { libc::clock_getcpuclockid(id, &raw mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is writable for the call.
    if unsafe { libc::clock_gettime(clock, &raw mut now) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_thread_is_favoured_or_it_says_why_not() {
        let (capability, nice) = std::thread::spawn(|| {
            let capability = favour_thread(-1);
            (capability, rustix::process::getpriority_process(None).unwrap())
        })
        .join()
        .unwrap();
        assert_eq!(capability.is_full(), nice == -1, "{capability:?}, nice {nice}");
        assert_ne!(rustix::process::getpriority_process(None), Ok(-1), "only that thread");
    }

    #[test]
    fn a_thread_is_favoured_at_once_or_it_says_why_not() {
        let policy = || std::fs::read_to_string("/proc/thread-self/sched").unwrap_or_default();
        let (capability, sched) =
            std::thread::spawn(move || (favour_thread_at_once(), policy())).join().unwrap();
        // SCHED_RR is 2, and its priority 1 is the kernel's 98.
        let is = sched.lines().any(|line| line.starts_with("policy") && line.ends_with(" 2"));
        assert!(sched.is_empty() || capability.is_full() == is, "{capability:?}: {sched}");
    }

    #[test]
    fn a_child_is_charged_for_what_it_did_and_for_nothing_else() {
        let spin = "n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done; exit 7";
        let busy = wait(Command::new("sh").args(["-c", spin]).spawn().unwrap()).unwrap();
        assert_eq!(busy.status.code(), Some(7));
        let idle = wait(Command::new("sh").args(["-c", "sleep 0.1"]).spawn().unwrap()).unwrap();
        assert!(idle.status.success());
        assert!(busy.cpu.cpu_user_ns > 20_000_000, "{busy:?}");
        assert!(idle.cpu.cpu_user_ns < busy.cpu.cpu_user_ns / 2, "{idle:?} beside {busy:?}");
        let large = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); :";
        let large = wait(Command::new("sh").args(["-c", large]).spawn().unwrap()).unwrap();
        assert!(large.memory_peak_bytes >= 200_000_000, "{large:?}");
    }

    #[test]
    fn the_processor_time_of_a_process_grows_as_it_works() {
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let consumed = || cpu_ns(child.id()).unwrap();
        let before_ns = consumed();
        let deadline_ns = crate::clock::now_ns() + 30_000_000_000;
        while consumed() < before_ns + 20_000_000 {
            assert!(crate::clock::now_ns() < deadline_ns, "it consumed nothing in 30 s");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(cpu_ns(child.id()).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
