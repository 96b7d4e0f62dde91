//! Work of one rank: an operation on many files, each timed.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::metadata::findings::Operation;
use blockstone_base::histogram::SharedHistogram;
use blockstone_sys::clock::now_ns;
use blockstone_sys::usage;
use rustix::fs::{
    Access, AtFlags, Mode, OFlags, RawDir, Timespec, Timestamps, XattrFlags, accessat, fgetxattr,
    fsetxattr, fsync, linkat, mkdirat, openat, renameat, statat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::layout::{Dirs, Kind};

/// Buffer size with which glibc reads a directory.
const LISTING_BYTES: usize = 32 * 1024;
/// Number of edges at which a rank notes its progress: twice the number of batches in an interval.
const MARKS: u64 = 40;
const FILE_MODE: Mode = Mode::from_raw_mode(0o600);
const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const EXISTING: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const ATTRIBUTE: &CStr = c"user.blockstone";

/// An operation on the files `numbers` of `owner`.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    pub operation: Operation,
    pub dirs: &'a Dirs,
    pub owner: u32,
    pub numbers: Range<u64>,
    /// Maximum number of these files.
    pub limit: u64,
    /// Kind of name that [`Operation::Unlink`] removes.
    pub kind: Kind,
    /// Whether the order is spread over all files at any moment, so that the first part represents
    /// the whole.
    pub spread: bool,
    /// Content written to each file that is made durable.
    pub content: &'a [u8],
    /// Latencies of all ranks: a histogram of each of thousands of them would need too much memory.
    pub latency: &'a SharedHistogram,
    /// The job ends after this time, and when `stop` is set.
    pub until_ns: u64,
    pub stop: &'a AtomicBool,
}

/// Result of a job.
#[derive(Debug, Default)]
pub struct Done {
    /// Operations that succeeded: the first of `numbers`, if these are processed in order.
    pub operations: u64,
    /// Times, and operations since the previous mark.
    pub marks: Vec<(u64, u64)>,
    pub cpu_ns: u64,
    pub error: Option<Errno>,
}

impl Job<'_> {
    pub fn run(&self) -> Done {
        let mut done = Done::default();
        let cpu_ns = usage::thread_cpu_ns();
        let mut meter = Meter::new(&mut done, self);
        let result = match self.operation {
            Operation::Readdir | Operation::ReaddirStat => self.list(&mut meter),
            Operation::Rename => self.rename(&mut meter),
            _ => self.each(&mut meter),
        };
        meter.mark();
        done.cpu_ns = usage::thread_cpu_ns() - cpu_ns;
        done.error = result.err();
        done
    }

    fn each(&self, meter: &mut Meter) -> Result<(), Errno> {
        for number in self.order() {
            if self.operation == Operation::Create {
                self.dirs.prepare(self.owner, number)?;
            }
            let began_ns = now_ns();
            self.once(number)?;
            if meter.after(began_ns) {
                break;
            }
        }
        Ok(())
    }

    /// Gives each file another name, and then its own again.
    fn rename(&self, meter: &mut Meter) -> Result<(), Errno> {
        for number in self.order() {
            let root = self.dirs.root(self.owner);
            let own = self.dirs.path(Kind::File, self.owner, number);
            let other = self.dirs.path(Kind::Renamed, self.owner, number);
            let began_ns = now_ns();
            renameat(root, own.as_c_str(), root, other.as_c_str())?;
            meter.after(began_ns);
            let began_ns = now_ns();
            renameat(root, other.as_c_str(), root, own.as_c_str())?;
            if meter.after(began_ns) {
                break;
            }
        }
        Ok(())
    }

    fn once(&self, number: u64) -> Result<(), Errno> {
        let root = self.dirs.root(self.owner);
        let path = |kind| self.dirs.path(kind, self.owner, number);
        let file = path(Kind::File);
        let name = file.as_c_str();
        match self.operation {
            Operation::Create => drop(openat(root, name, NEW, FILE_MODE)?),
            Operation::CreateFsync => self.create_durably(number)?,
            Operation::OpenClose => drop(openat(root, name, EXISTING, Mode::empty())?),
            Operation::Stat => drop(statat(root, name, AtFlags::SYMLINK_NOFOLLOW)?),
            Operation::AccessNegative => {
                let missing = path(Kind::Missing);
                match accessat(root, missing.as_c_str(), Access::EXISTS, AtFlags::empty()) {
                    Err(Errno::NOENT) => {}
                    Ok(()) => return Err(Errno::EXIST),
                    Err(error) => return Err(error),
                }
            }
            Operation::Link => {
                let second = path(Kind::Linked);
                linkat(root, name, root, second.as_c_str(), AtFlags::empty())?;
            }
            Operation::Setattr => {
                let time = Timespec { tv_sec: 1_000_000_000 + number as i64, tv_nsec: 0 };
                let times = Timestamps { last_access: time, last_modification: time };
                utimensat(root, name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Operation::Xattr => {
                let open = openat(root, name, EXISTING, Mode::empty())?;
                fsetxattr(&open, ATTRIBUTE, &number.to_le_bytes(), XattrFlags::empty())?;
                let mut value = [0; 8];
                fgetxattr(&open, ATTRIBUTE, &mut value)?;
            }
            Operation::Mkdir => {
                mkdirat(root, path(Kind::Directory).as_c_str(), Mode::from_raw_mode(0o700))?;
            }
            Operation::Rmdir => {
                unlinkat(root, path(Kind::Directory).as_c_str(), AtFlags::REMOVEDIR)?;
            }
            Operation::Unlink => unlinkat(root, path(self.kind).as_c_str(), AtFlags::empty())?,
            // These have their own functions.
            Operation::Readdir | Operation::ReaddirStat | Operation::Rename => {}
        }
        Ok(())
    }

    fn create_durably(&self, number: u64) -> Result<(), Errno> {
        let root = self.dirs.root(self.owner);
        let leaf = self.dirs.open_leaf(self.owner, number)?;
        let dir = leaf.as_ref().map_or(root, OwnedFd::as_fd);
        let path = self.dirs.path(Kind::Synced, self.owner, number);
        let file = openat(root, path.as_c_str(), NEW, FILE_MODE)?;
        let mut rest = self.content;
        while !rest.is_empty() {
            match rustix::io::write(&file, rest)? {
                0 => return Err(Errno::NOSPC),
                bytes => rest = &rest[bytes..],
            }
        }
        fsync(&file)?;
        fsync(dir)
    }

    /// Lists the directories that hold these files.
    fn list(&self, meter: &mut Meter) -> Result<(), Errno> {
        let mut buffer = vec![MaybeUninit::uninit(); LISTING_BYTES];
        for number in self.dirs.leaves(self.numbers.end) {
            let dir = match self.dirs.open_leaf(self.owner, number)? {
                Some(leaf) => leaf,
                // It needs its own file description, because the position belongs to the open
                // directory.
                None => openat(
                    self.dirs.root(self.owner),
                    c".",
                    super::layout::DIRECTORY,
                    Mode::empty(),
                )?,
            };
            if self.list_one(dir.as_fd(), &mut buffer, meter)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether there was no time for the rest.
    fn list_one(
        &self,
        dir: BorrowedFd,
        buffer: &mut [MaybeUninit<u8>],
        meter: &mut Meter,
    ) -> Result<bool, Errno> {
        let stats = self.operation == Operation::ReaddirStat;
        let mut entries = RawDir::new(dir, buffer);
        loop {
            let (asks, began_ns) = (entries.is_buffer_empty(), now_ns());
            let Some(entry) = entries.next() else { return Ok(false) };
            let entry = entry?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            let is_over = if stats {
                statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                meter.after(began_ns)
            } else if asks {
                meter.after(began_ns)
            } else {
                meter.counted()
            };
            if is_over {
                return Ok(true);
            }
        }
    }

    fn order(&self) -> impl Iterator<Item = u64> + use<> {
        let Range { start, end } = self.numbers.clone();
        let files = end.saturating_sub(start);
        let step = if self.spread { stride(files) } else { 1 };
        let at = move |at: u64| (u128::from(at) * u128::from(step) % u128::from(files)) as u64;
        (0..files.min(self.limit)).map(move |number| start + at(number))
    }
}

/// Returns a step, about the golden ratio, that visits each of `files` once.
fn stride(files: u64) -> u64 {
    let mut step = (files as f64 * 0.618_033_988_75) as u64;
    step = step.max(1);
    while gcd(step, files) != 1 {
        step += 1;
    }
    step
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Counts and times operations.
struct Meter<'a> {
    done: &'a mut Done,
    latency: &'a SharedHistogram,
    until_ns: u64,
    stop: &'a AtomicBool,
    every: u64,
    unmarked: u64,
}

impl<'a> Meter<'a> {
    fn new(done: &'a mut Done, job: &Job<'a>) -> Self {
        let files = job.numbers.end - job.numbers.start;
        done.marks.push((now_ns(), 0));
        let every = (files / MARKS).max(1);
        Self {
            done,
            latency: job.latency,
            until_ns: job.until_ns,
            stop: job.stop,
            every,
            unmarked: 0,
        }
    }

    /// Records an operation; returns whether it was the last that there is time for.
    fn after(&mut self, began_ns: u64) -> bool {
        let now_ns = now_ns();
        self.latency.record(now_ns - began_ns);
        self.add(now_ns)
    }

    /// Counts one more, which took no call.
    fn counted(&mut self) -> bool {
        self.done.operations += 1;
        self.unmarked += 1;
        false
    }

    fn add(&mut self, now_ns: u64) -> bool {
        self.done.operations += 1;
        self.unmarked += 1;
        if self.unmarked >= self.every {
            self.done.marks.push((now_ns, self.unmarked));
            self.unmarked = 0;
        }
        now_ns >= self.until_ns || self.stop.load(Ordering::Relaxed)
    }

    fn mark(&mut self) {
        if self.unmarked > 0 {
            self.done.marks.push((now_ns(), self.unmarked));
            self.unmarked = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_visited_once_in_an_order_that_is_spread() {
        for files in [1, 2, 3, 10, 97, 1_000, 4_096] {
            let step = stride(files);
            let mut seen: Vec<u64> = (0..files).map(|at| at * step % files).collect();
            if files >= 1_000 {
                let early = seen[..100].iter().filter(|it| **it < files / 2).count();
                assert!((40..=60).contains(&early), "{early} of the first hundred");
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..files).collect::<Vec<_>>());
        }
    }
}
