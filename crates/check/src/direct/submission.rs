//! How processes request their I/O: in calls that block, or asynchronously, through AIO or
//! `io_uring`; and which process does so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use blockstone_base::Capability;
use blockstone_sys::{account, descriptors};

use crate::direct::findings::{Requested, Submitter};
use crate::iosize::counter::Counter;

/// Longest command line that is kept.
const TITLE_CHARS: usize = 60;

/// Counts the requests of a process and of its descendants, from their start on.
#[derive(Debug)]
pub struct Submissions {
    counter: Counter,
    seen: BTreeMap<u32, Seen>,
}

/// Facts about a process that are gone when it has ended.
#[derive(Debug)]
struct Seen {
    title: String,
    rings: Option<u64>,
    aio_contexts: Option<u64>,
}

impl Submissions {
    pub fn start(root: &Path, family: &dyn Fn() -> BTreeSet<u32>) -> Self {
        let mut counter = Counter::by_process();
        counter.follow(root, family);
        Self { counter, seen: BTreeMap::new() }
    }

    /// Notes the title of a process, and the means of asynchronous I/O that it has now.
    pub fn look(&mut self, root: &Path, pid: u32) {
        let Some(process) = account::process(root, pid) else { return };
        let means = descriptors::async_means(root, pid).ok();
        let title = process.title.chars().filter(|it| !it.is_control()).take(TITLE_CHARS);
        let (rings, aio_contexts) = means.map(|it| (it.rings, it.aio_contexts)).unzip();
        let aio_contexts = aio_contexts.flatten();
        let seen = Seen { title: title.collect(), rings, aio_contexts };
        let seen = match self.seen.remove(&pid) {
            // It may have had them only for a time.
            Some(before) => Seen {
                rings: seen.rings.max(before.rings),
                aio_contexts: seen.aio_contexts.max(before.aio_contexts),
                ..seen
            },
            None => seen,
        };
        self.seen.insert(pid, seen);
    }

    /// Returns the processes that requested something, or have the means to do so asynchronously,
    /// those with most requests first; and why requests were not counted, if they were not.
    pub fn found(mut self) -> (Vec<Submitter>, Option<String>) {
        let sizes = self.counter.sizes();
        let is_counted = self.counter.capability().is_full();
        let mut counts: BTreeMap<u32, Requested> = BTreeMap::new();
        for size in sizes {
            let requested = counts.entry(size.tgid).or_default();
            let calls = size.sum.calls;
            match size.call {
                // Another layer, without a call.
                "" => {}
                "io_uring" => requested.io_uring += calls,
                "aio" => requested.aio += calls,
                "page fault" => requested.mapped += calls,
                _ => requested.blocking += calls,
            }
        }
        let mut pids: Vec<u32> = self.seen.keys().chain(counts.keys()).copied().collect();
        pids.sort_unstable();
        pids.dedup();
        let submitter = |pid: u32| {
            let seen = self.seen.get(&pid);
            let requested = counts.get(&pid).copied().unwrap_or_default();
            Submitter {
                pid,
                title: seen.map_or_else(|| "it has ended".to_owned(), |it| it.title.clone()),
                requested: is_counted.then_some(requested),
                rings: seen.and_then(|it| it.rings),
                aio_contexts: seen.and_then(|it| it.aio_contexts),
            }
        };
        // Without a process, what was counted is not that of a call.
        let found = pids.into_iter().filter(|pid| *pid != 0).map(submitter);
        let mut found: Vec<Submitter> = found.filter(|it| !it.is_idle()).collect();
        found.sort_by_key(|it| std::cmp::Reverse(it.requested.unwrap_or_default().total()));
        let why = match self.counter.capability() {
            Capability::Full => None,
            Capability::Degraded { why } => Some(why),
        };
        (found, why)
    }
}
