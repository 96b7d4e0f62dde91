//! A bound on the page cache of some processes, by a memory control group, version 1 or 2.
//!
//! A group limits all memory of its processes together. To bound only the page cache, the limit
//! follows the rest: it is the bound plus what the group uses in addition to its page cache.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use blockstone_base::hint::Hint;
use blockstone_base::units::Bytes;

use crate::cgroup::Groups;
use crate::proc::{number, numbers_after, under};

/// Name prefix of our groups, followed by the process that created them.
const NAME: &str = "blockstone-page-cache-";
/// Lowest bound: below it, read-ahead and writeback get in each other's way.
pub const LEAST: Bytes = Bytes::mib(16);
/// Reserve for memory, other than page cache, that a process allocates between two checks.
const HEADROOM: u64 = 4 << 20;
const LOOK: Duration = Duration::from_millis(50);
/// How long processes that have ended may take to leave the group.
const LEAVE: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error, Hint)]
#[error("bound the page cache by {}: {source}", path.display())]
#[hint("{hint}")]
pub struct PageCacheError {
    path: PathBuf,
    source: io::Error,
    hint: &'static str,
}

const HINT: &str = "be root, or have a group with the memory controller delegated: systemd-run \
                    --user --scope -p Delegate=yes blockstone run …";

/// Processes whose page cache is bounded. The group is removed on drop.
#[derive(Debug)]
pub struct PageCacheBound {
    group: Group,
    /// Group of this process before it joined.
    from: PathBuf,
    joined: bool,
    follower: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Clone, Debug)]
struct Group {
    dir: PathBuf,
    files: &'static Files,
}

/// Names of the files in a version of control groups.
#[derive(Debug)]
struct Files {
    limit: &'static str,
    used: &'static str,
    /// Keys of `memory.stat`: file pages, and those of them that do not belong to a file on
    /// storage.
    cached: &'static str,
    shared: &'static str,
}

const V1: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cached: "cache",
    shared: "shmem",
};
const V2: Files =
    Files { limit: "memory.max", used: "memory.current", cached: "file", shared: "shmem" };

impl PageCacheBound {
    /// Creates a group below this process's group, or with version 2 next to it: there, a group
    /// with processes cannot have child groups. No process is in it yet.
    pub fn create(root: &Path, most: Bytes) -> Result<Self, PageCacheError> {
        let groups = Groups::read(root);
        let (parent, own, files) = if let Some(own) = groups.memory() {
            (under(root, own), under(root, own), &V1)
        } else {
            let own = groups.unified().ok_or_else(|| PageCacheError {
                path: PathBuf::from("/sys/fs/cgroup"),
                source: io::ErrorKind::NotFound.into(),
                hint: "this machine has no control groups of memory in sight",
            })?;
            let is_top = groups.name() == "/";
            let parent = if is_top { own } else { own.parent().unwrap_or(own) };
            (under(root, parent), under(root, own), &V2)
        };
        remove_left(&parent);
        let dir = parent.join(format!("{NAME}{}", std::process::id()));
        let failed = |source| PageCacheError { path: dir.clone(), source, hint: HINT };
        fs::create_dir(&dir).map_err(failed)?;
        let group = Group { dir: dir.clone(), files };
        let mut bound = Self { group: group.clone(), from: own, joined: false, follower: None };
        group.hold(most.get()).map_err(failed)?;
        let (end, ended) = channel();
        let follow = move || {
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                // Pages that cannot be reclaimed now are tried again at the next check.
                let _ = group.hold(most.get());
            }
        };
        let thread = thread::Builder::new().name("page-cache".to_owned()).spawn(follow);
        bound.follower = Some((end, thread.map_err(failed)?));
        Ok(bound)
    }

    /// Moves a process into the group; its children will be in it too. Does nothing if it has
    /// ended.
    pub fn add(&self, pid: u32) -> Result<(), PageCacheError> {
        const ESRCH: i32 = 3;
        let joined = fs::write(self.group.dir.join("cgroup.procs"), pid.to_string());
        let ended = |error: &io::Error| error.raw_os_error() == Some(ESRCH);
        joined
            .or_else(|error| if ended(&error) { Ok(()) } else { Err(error) })
            .map_err(|source| PageCacheError { path: self.group.dir.clone(), source, hint: HINT })
    }

    /// Moves this process into the group until the bound is dropped.
    pub fn join(&mut self) -> Result<(), PageCacheError> {
        self.joined = true;
        self.add(std::process::id())
    }
}

impl Drop for PageCacheBound {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.follower.take() {
            drop(end);
            let _ = thread.join();
        }
        if self.joined {
            let _ = fs::write(self.from.join("cgroup.procs"), std::process::id().to_string());
        }
        let until = Instant::now() + LEAVE;
        while fs::remove_dir(&self.group.dir).is_err() && Instant::now() < until {
            if !self.group.dir.exists() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Group {
    /// Sets the limit to `most` bytes of page cache plus all other memory in use.
    fn hold(&self, most: u64) -> io::Result<()> {
        let Files { limit, used, cached, shared } = self.files;
        let stat = fs::read(self.dir.join("memory.stat")).unwrap_or_default();
        let of = |key: &str| numbers_after(&stat, key).and_then(|mut it| it.next());
        let cached = of(cached).unwrap_or(0).saturating_sub(of(shared).unwrap_or(0));
        let used = number(&self.dir.join(used)).unwrap_or(0);
        let beside = used.saturating_sub(cached);
        fs::write(self.dir.join(limit), (most + beside + HEADROOM).to_string())
    }
}

/// Removes the groups of killed processes. A group in use stays, because it has processes.
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(NAME) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a machine that has only version-2 control groups, as plain files.
    fn unified(group: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/self/cgroup", &format!("0::{group}\n"));
        let mount = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        put("proc/self/mountinfo", mount);
        put("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        put(&format!("sys/fs/cgroup{group}/cgroup.procs"), "");
        root
    }

    #[test]
    fn in_version_2_the_group_lies_beside_our_own() {
        let root = unified("/app.slice/run.scope");
        let beside = root.path().join("sys/fs/cgroup/app.slice");
        fs::create_dir(beside.join(format!("{NAME}1"))).unwrap();
        let mut bound = PageCacheBound::create(root.path(), Bytes::mib(64)).unwrap();
        let dir = beside.join(format!("{NAME}{}", std::process::id()));
        assert!(!beside.join(format!("{NAME}1")).exists(), "what a killed run left is removed");
        // The kernel would create these files.
        let put = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
        put("memory.stat", "anon 1000000\nfile 70000000\nshmem 5000000\nfile_mapped 1\n");
        put("memory.current", "73000000\n");
        bound.group.hold(64 << 20).unwrap();
        let limit: u64 = fs::read_to_string(dir.join("memory.max")).unwrap().parse().unwrap();
        assert_eq!(limit, (64 << 20) + HEADROOM + 73_000_000 - 65_000_000);
        bound.join().unwrap();
        assert_eq!(
            fs::read_to_string(dir.join("cgroup.procs")).unwrap(),
            std::process::id().to_string()
        );
        // The kernel's files disappear with their directory.
        for name in ["memory.stat", "memory.current", "memory.max", "cgroup.procs"] {
            bound.follower = None;
            fs::remove_file(dir.join(name)).unwrap();
        }
        drop(bound);
        let back = fs::read_to_string(beside.join("run.scope/cgroup.procs")).unwrap();
        assert_eq!(back, std::process::id().to_string());
        assert!(!dir.exists());
    }

    #[test]
    fn without_control_groups_it_says_so() {
        let root = tempfile::tempdir().unwrap();
        let error = PageCacheBound::create(root.path(), LEAST).unwrap_err().told();
        assert!(error.contains("/sys/fs/cgroup") && error.contains("\nhint: "), "{error}");
    }
}
