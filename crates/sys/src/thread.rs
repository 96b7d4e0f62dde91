//! Threads on a system that may have none left: the standard library's `spawn` panics if the kernel
//! refuses one (`RLIMIT_NPROC`, `pids.max`); these functions return an error.

use std::io;
use std::panic::resume_unwind;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;

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
    fn each_item_is_worked_on_and_keeps_its_place() {
        let ids =
            |items: &[u32]| each("item", items, |item| (*item * 2, std::thread::current().id()));
        assert!(ids(&[]).is_empty());
        let found = ids(&[1, 2, 3]);
        assert_eq!(found.iter().map(|it| it.0).collect::<Vec<_>>(), [2, 4, 6]);
        assert_eq!(found[0].1, std::thread::current().id(), "the first is done here");
    }
}
