//! The system call in which a thread of this program or another is blocked.

use std::io;
use std::path::Path;

use crate::proc::under;

/// Activity of a thread at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// On a processor, or ready for one.
    Running,
    Blocked(BlockedIn),
}

/// Kind of wait in which a thread is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockedIn {
    /// Reading a file.
    Read,
    /// Writing a file.
    Write,
    /// Waiting until a file is on stable storage.
    Flush,
    /// Waiting for a lock or condition that another thread releases or signals.
    Futex,
    /// Waiting for the other end of a connection.
    Peer,
    /// Sleeping for a fixed time.
    Sleep,
    /// Not in a system call: a page of memory has to be fetched first.
    Fault,
    Other,
}

/// System calls by kind of wait. Those that depend on the descriptor are assumed to be on files.
const CALLS: &[(BlockedIn, &[libc::c_long])] = &[
    (
        BlockedIn::Read,
        &[
            libc::SYS_read,
            libc::SYS_readv,
            libc::SYS_pread64,
            libc::SYS_preadv,
            libc::SYS_preadv2,
            libc::SYS_io_getevents,
        ],
    ),
    (
        BlockedIn::Write,
        &[
            libc::SYS_write,
            libc::SYS_writev,
            libc::SYS_pwrite64,
            libc::SYS_pwritev,
            libc::SYS_pwritev2,
            libc::SYS_io_submit,
            libc::SYS_fallocate,
            libc::SYS_ftruncate,
        ],
    ),
    (
        BlockedIn::Flush,
        &[libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_sync_file_range, libc::SYS_msync],
    ),
    (BlockedIn::Futex, &[libc::SYS_futex]),
    (
        BlockedIn::Peer,
        &[
            libc::SYS_recvfrom,
            libc::SYS_recvmsg,
            libc::SYS_sendto,
            libc::SYS_sendmsg,
            libc::SYS_ppoll,
            libc::SYS_pselect6,
            libc::SYS_epoll_pwait,
            libc::SYS_accept4,
        ],
    ),
    #[cfg(target_arch = "x86_64")]
    (BlockedIn::Peer, &[libc::SYS_poll, libc::SYS_epoll_wait]),
    // With descriptors it would wait for a peer, but servers call it to sleep.
    #[cfg(target_arch = "x86_64")]
    (BlockedIn::Sleep, &[libc::SYS_select]),
    (BlockedIn::Sleep, &[libc::SYS_nanosleep, libc::SYS_clock_nanosleep]),
];

/// Calls whose descriptor may be a connection.
const OF_ANY: [libc::c_long; 4] =
    [libc::SYS_read, libc::SYS_readv, libc::SYS_write, libc::SYS_writev];

/// Returns what `thread` of process `pid` is doing now. Fails when it has ended (`ENOENT`,
/// `ESRCH`), when this user may not see it (`EACCES`, `EPERM`), or when the kernel does not provide
/// it (`ENOENT`).
pub fn activity(root: &Path, pid: u32, thread: u32) -> io::Result<Activity> {
    let task = under(root, format!("/proc/{pid}/task/{thread}"));
    let text = std::fs::read_to_string(task.join("syscall"))?;
    let Some((number, mut arguments)) = call(&text) else { return Ok(Activity::Running) };
    let mut place = place(number);
    if OF_ANY.contains(&number)
        && let Some(descriptor) = arguments.next().and_then(hexadecimal)
        && let Ok(file) = std::fs::read_link(task.join(format!("fd/{descriptor}")))
        && file.to_string_lossy().starts_with("socket:")
    {
        place = BlockedIn::Peer;
    }
    Ok(Activity::Blocked(place))
}

/// Parses the call's number and arguments; `None` for a running thread.
fn call(text: &str) -> Option<(libc::c_long, impl Iterator<Item = &str>)> {
    let mut words = text.split_ascii_whitespace();
    Some((words.next()?.parse().ok()?, words))
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

fn place(number: libc::c_long) -> BlockedIn {
    if number < 0 {
        return BlockedIn::Fault;
    }
    let known = CALLS.iter().find(|(_, numbers)| numbers.contains(&number));
    known.map_or(BlockedIn::Other, |(place, _)| *place)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::account::current_thread;

    /// Waits until the thread that does `work` is seen at `place`, then ends it with `end`.
    fn seen_at(place: BlockedIn, work: impl FnOnce() + Send + 'static, end: impl FnOnce()) {
        let (tell, told) = channel();
        let worker = std::thread::spawn(move || {
            tell.send(current_thread()).unwrap();
            work();
        });
        let thread = told.recv().unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        let wanted = Activity::Blocked(place);
        let now = || activity(Path::new("/"), std::process::id(), thread).unwrap();
        while now() != wanted {
            assert!(Instant::now() < until, "{:?} instead of {wanted:?}", now());
            std::thread::sleep(Duration::from_millis(1));
        }
        end();
        worker.join().unwrap();
    }

    #[test]
    fn a_thread_is_seen_where_it_is_blocked() {
        let (free, waits) = channel::<()>();
        seen_at(BlockedIn::Futex, move || assert!(waits.recv().is_err()), || drop(free));
        seen_at(BlockedIn::Sleep, || std::thread::sleep(Duration::from_millis(300)), || {});
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let reads = move || assert_eq!(theirs.read(&mut [0]).unwrap(), 0);
        seen_at(BlockedIn::Peer, reads, || drop(ours));
        let (mut read, write) = io::pipe().unwrap();
        let reads = move || assert_eq!(read.read(&mut [0]).unwrap(), 0);
        seen_at(BlockedIn::Read, reads, || drop(write));
        let own = activity(Path::new("/"), std::process::id(), current_thread()).unwrap();
        // The thread sees itself in the very call that it uses to look.
        assert_eq!(own, Activity::Blocked(BlockedIn::Read));
    }

    #[test]
    fn what_the_kernel_writes_is_read() {
        let root = tempfile::tempdir().unwrap();
        let task = root.path().join("proc/7/task/8");
        std::fs::create_dir_all(task.join("fd")).unwrap();
        let of = |text: &str| {
            std::fs::write(task.join("syscall"), text).unwrap();
            activity(root.path(), 7, 8).unwrap()
        };
        assert_eq!(of("running\n"), Activity::Running);
        assert_eq!(of(""), Activity::Running);
        assert_eq!(of("-1 0x7ffe 0x7fcc\n"), Activity::Blocked(BlockedIn::Fault));
        let call = |number: libc::c_long| format!("{number} 0x5 0x0 0x0 0x0 0x0 0x0 0x1 0x2\n");
        for (number, place) in [
            (libc::SYS_pread64, BlockedIn::Read),
            (libc::SYS_read, BlockedIn::Read),
            (libc::SYS_fdatasync, BlockedIn::Flush),
            (libc::SYS_pwrite64, BlockedIn::Write),
            (libc::SYS_futex, BlockedIn::Futex),
            (libc::SYS_mmap, BlockedIn::Other),
            (99_999, BlockedIn::Other),
        ] {
            assert_eq!(of(&call(number)), Activity::Blocked(place), "{number}");
        }
        std::os::unix::fs::symlink("socket:[77]", task.join("fd/5")).unwrap();
        assert_eq!(of(&call(libc::SYS_read)), Activity::Blocked(BlockedIn::Peer));
        assert_eq!(of(&call(libc::SYS_pread64)), Activity::Blocked(BlockedIn::Read));
        assert!(activity(root.path(), 7, 9).is_err());
    }
}
