//! Threads on a system that may have none left: the standard library's `spawn` panics if the kernel
//! refuses one (`RLIMIT_NPROC`, `pids.max`); these functions return an error.

use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use rustix::process::{Resource, Uid, getrlimit};
use rustix::thread::set_thread_res_uid;

use crate::account;
use crate::cgroup::Groups;
use crate::proc::{number, numbers_after, text, under};

/// Stack of each of thousands of threads, of which they use a small part.
const SMALL_STACK_BYTES: usize = 256 << 10;

/// Starts a thread. Fails when the system has none left.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work)
}

/// Does `work` as user `uid` towards files and sockets; only in this thread, and only root may.
pub fn as_user<T>(uid: u32, work: impl FnOnce() -> T) -> io::Result<T> {
    struct Back(Uid);
    impl Drop for Back {
        fn drop(&mut self) {
            // The real user is still root, who may always do this.
            let _ = set_thread_res_uid(None, self.0, None);
        }
    }
    let back = Back(rustix::process::geteuid());
    set_thread_res_uid(None, Uid::from_raw(uid), None)?;
    let done = work();
    drop(back);
    Ok(done)
}

/// Starts a thread that ends within `scope`. Fails when the system has none left.
pub fn scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, work)
}

/// Starts one of thousands of threads, likewise.
pub fn scoped_small<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let builder = Builder::new().name(name.to_owned()).stack_size(SMALL_STACK_BYTES);
    builder.spawn_scoped(scope, work)
}

/// A limit on threads, and how many of them there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadLimit {
    /// The file or the setting that has it.
    pub name: String,
    pub limit: u64,
    pub used: u64,
}

/// Returns the limit that leaves the least room for more threads of this process.
pub fn limit(root: &Path) -> Option<ThreadLimit> {
    let limit = |name: &str, limit, used| ThreadLimit { name: name.to_owned(), limit, used };
    let group = Groups::read(root).thread_limit();
    let group = group.map(|(file, most, used)| limit(&file.display().to_string(), most, used));
    let uid = rustix::process::getuid();
    let of_user = getrlimit(Resource::Nproc).current.filter(|_| !uid.is_root());
    let of_user = of_user.map(|most| limit("RLIMIT_NPROC (ulimit -u)", most, threads(root, uid)));
    let of_kernel = number(&under(root, "/proc/sys/kernel/threads-max"));
    let of_kernel = of_kernel.map(|most| limit("kernel.threads-max", most, all_threads(root)));
    // A stack is a mapping, and the page that guards it is another.
    let maps = number(&under(root, "/proc/sys/vm/max_map_count"));
    let mapped = || text(&under(root, "/proc/self/maps")).map_or(0, |it| it.lines().count() as u64);
    let maps = maps.map(|most| limit("half of vm.max_map_count", most / 2, mapped() / 2));
    let all = [group, of_user, of_kernel, maps].into_iter().flatten();
    all.min_by_key(|it| it.limit.saturating_sub(it.used))
}

/// Counts the threads of a user.
fn threads(root: &Path, uid: Uid) -> u64 {
    let count = |pid: u32| {
        let status = text(&under(root, format!("/proc/{pid}/status")))?;
        let first = |key| numbers_after(status.as_bytes(), key)?.next();
        (first("Uid:")? == u64::from(uid.as_raw())).then(|| first("Threads:")).flatten()
    };
    account::all(root).into_iter().filter_map(count).sum()
}

/// Counts the threads of all users, by `/proc/loadavg`: `0.20 0.18 0.12 1/80 11206`.
fn all_threads(root: &Path) -> u64 {
    let count = || {
        let text = text(&under(root, "/proc/loadavg"))?;
        text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
    };
    count().unwrap_or(0)
}

/// Returns the results of `work` on each item, in order. The first is done in this thread, each
/// other in its own thread, or in this one if the system has none left.
pub fn each<I: Sync, T: Send>(name: &str, items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let Some((first, others)) = items.split_first() else { return Vec::new() };
    std::thread::scope(|scope| {
        let work = &work;
        let start = |item| scoped(scope, name, move || work(item));
        let started: Vec<_> = others.iter().map(start).collect();
        let mut made = vec![work(first)];
        made.extend(started.into_iter().zip(others).map(|(thread, item)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => work(item),
        }));
        made
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_with_the_least_room_is_named() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/threads-max", "30000\n");
        write("proc/loadavg", "0.20 0.18 0.12 1/800 11206\n");
        write("proc/sys/vm/max_map_count", "65530\n");
        write("proc/self/maps", "a\nb\n");
        let expected = ThreadLimit { name: "kernel.threads-max".into(), limit: 30_000, used: 800 };
        // Except for root, the limit of the user may be lower.
        let found = limit(root.path()).unwrap();
        assert!(found == expected || found.name.starts_with("RLIMIT_NPROC"), "{found:?}");
        write("proc/self/cgroup", "0::/bench\n");
        write(
            "proc/self/mountinfo",
            "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        write("sys/fs/cgroup/bench/pids.max", "1000\n");
        write("sys/fs/cgroup/bench/pids.current", "37\n");
        let found = limit(root.path()).unwrap();
        let name = "/sys/fs/cgroup/bench/pids.max".to_owned();
        assert_eq!(found, ThreadLimit { name, limit: 1_000, used: 37 });
    }

    #[test]
    fn each_item_is_worked_on_and_keeps_its_place() {
        let ids =
            |items: &[u32]| each("item", items, |item| (*item * 2, std::thread::current().id()));
        assert!(ids(&[]).is_empty());
        let found = ids(&[1, 2, 3]);
        assert_eq!(found.iter().map(|it| it.0).collect::<Vec<_>>(), [2, 4, 6]);
        assert_eq!(found[0].1, std::thread::current().id(), "the first is done here");
    }
}
