//! Owners of sampled threads: the role of a thread, even if it has ended by the time it is looked
//! up.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_sys::account;
use blockstone_sys::perf::Sample;

use super::code::{REMEMBER_MAX, REMEMBER_NS};
use crate::io::Resolve;

pub struct Threads {
    root: PathBuf,
    resolve: Resolve,
    known: HashMap<u32, Thread>,
}

#[derive(Debug, Default)]
struct Thread {
    name: Option<Arc<str>>,
    role: Option<Role>,
    ended_ns: Option<u64>,
}

#[derive(Debug)]
struct Role {
    text: Arc<str>,
    process: u32,
    first_ns: u64,
    looked_ns: u64,
}

/// Intervals at which a role is looked up again: a process sets its title after it has started, and
/// a database reports a session after it was seen. The longer a role is known, the longer the
/// interval.
const AGAIN_NS: [u64; 2] = [100_000_000, 10_000_000_000];
/// Work on a processor that had no task: that of the interrupts that woke it.
const INTERRUPTS: &str = "interrupts";

impl Threads {
    pub fn new(root: &Path, resolve: Resolve) -> Self {
        Self { root: root.to_owned(), resolve, known: HashMap::new() }
    }

    /// Records that a thread started; it has its parent's name until it sets its own.
    pub fn began(&mut self, thread: u32, parent: u32) {
        let of_parent = self.known.entry(parent).or_default();
        if of_parent.name.is_none() {
            of_parent.name = account::thread_name(&self.root, parent, parent).map(Into::into);
        }
        let name = of_parent.name.clone();
        self.known.insert(thread, Thread { name, ..Thread::default() });
    }

    /// Records that a thread has another name, and most likely another role.
    pub fn named(&mut self, thread: u32, name: &str) {
        let known = self.known.entry(thread).or_default();
        known.name = Some(name.into());
        known.role = None;
    }

    /// Records that a thread is ending: nothing more will be learned about it.
    pub fn ended(&mut self, thread: u32, now_ns: u64) {
        self.known.entry(thread).or_default().ended_ns = Some(now_ns);
    }

    pub fn role(&mut self, sample: &Sample, now_ns: u64) -> Arc<str> {
        match (sample.process, sample.is_kernel) {
            (0, true) => return INTERRUPTS.into(),
            (0, false) => return "other namespaces".into(),
            (u32::MAX, _) => return "ended".into(),
            _ => {}
        }
        let known = self.known.entry(sample.thread).or_default();
        let first_ns = match &known.role {
            Some(role) if role.process == sample.process => {
                let [least, most] = AGAIN_NS;
                let again_ns = (role.looked_ns - role.first_ns).clamp(least, most);
                if known.ended_ns.is_some() || now_ns < role.looked_ns + again_ns {
                    return Arc::clone(&role.text);
                }
                role.first_ns
            }
            _ => now_ns,
        };
        if known.name.is_none() {
            let name = account::thread_name(&self.root, sample.process, sample.thread);
            known.name = name.map(Into::into);
        }
        let name = known.name.as_deref().unwrap_or("unknown");
        let text: Arc<str> = (self.resolve)(sample.process, sample.thread, name).into();
        let role =
            Role { text: Arc::clone(&text), process: sample.process, first_ns, looked_ns: now_ns };
        known.role = Some(role);
        text
    }

    pub fn tidy(&mut self, now_ns: u64) {
        let is_needed =
            |thread: &Thread| thread.ended_ns.is_none_or(|ns| ns + REMEMBER_NS > now_ns);
        self.known.retain(|_, thread| is_needed(thread));
        if self.known.len() > REMEMBER_MAX {
            self.known.clear();
        }
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").field("known", &self.known).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn threads() -> (tempfile::TempDir, Threads) {
        let root = tempfile::tempdir().unwrap();
        let resolve = |process: u32, _: u32, name: &str| format!("{name} of {process}");
        let threads = Threads::new(root.path(), Box::new(resolve));
        (root, threads)
    }

    fn sample(process: u32, thread: u32) -> Sample {
        Sample { process, thread, address: 0, is_kernel: true }
    }

    #[test]
    fn one_that_was_never_seen_alive_has_the_name_it_gave_itself_or_its_parents() {
        let (root, mut threads) = threads();
        let comm = root.path().join("proc/5/task/5");
        std::fs::create_dir_all(&comm).unwrap();
        std::fs::write(comm.join("comm"), "postmaster\n").unwrap();
        threads.began(6, 5);
        threads.began(7, 5);
        threads.named(7, "dd");
        assert_eq!(&*threads.role(&sample(6, 6), 0), "postmaster of 6");
        assert_eq!(&*threads.role(&sample(7, 7), 0), "dd of 7");
        assert_eq!(&*threads.role(&sample(9, 9), 0), "unknown of 9");
        assert_eq!(&*threads.role(&sample(0, 0), 0), INTERRUPTS);
        assert_eq!(&*threads.role(&sample(u32::MAX, u32::MAX), 0), "ended");
    }

    #[test]
    fn a_role_is_asked_for_again_while_its_thread_lives_and_kept_for_a_while_after() {
        let (_root, mut threads) = threads();
        threads.named(7, "dd");
        let mut asked = 0;
        threads.resolve = Box::new(move |_, _, _| {
            asked += 1;
            asked.to_string()
        });
        let role = |threads: &mut Threads, now_ns| threads.role(&sample(7, 7), now_ns).to_string();
        assert_eq!(role(&mut threads, 0), "1");
        assert_eq!(role(&mut threads, SECOND / 20), "1");
        assert_eq!(role(&mut threads, SECOND / 5), "2");
        let hour =
            (0..3600 * 5).map(|fifth| role(&mut threads, SECOND / 5 * fifth)).last().unwrap();
        assert!((360..400).contains(&hour.parse::<u32>().unwrap()), "{hour}");
        threads.ended(7, 3600 * SECOND);
        assert_eq!(role(&mut threads, 3700 * SECOND), hour);
        threads.tidy(3601 * SECOND);
        assert_eq!(role(&mut threads, 3700 * SECOND), hour);
        threads.tidy(3602 * SECOND);
        assert_ne!(role(&mut threads, 3700 * SECOND), hour);
    }
}
