//! Cost of a copy: time, processor time, what the kernel charged for it and the devices moved, and
//! what it leaves in the page cache.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blockstone_sys::account::{self, Io};
use blockstone_sys::cached::{self, Look};
use blockstone_sys::proc::{self, numbers, numbers_after};
use blockstone_sys::{survey, usage};

/// Time limit for querying the page cache.
const PATIENCE: Duration = Duration::from_secs(5);
const SECTOR_BYTES: u64 = 512;

/// Cost of a copy; `None` if this user or kernel cannot see it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub seconds: f64,
    /// CPU time of this process, including time in the kernel.
    pub cpu_seconds: f64,
    /// Charged to this process as read from storage.
    pub charged_read_bytes: Option<u64>,
    pub charged_write_bytes: Option<u64>,
    /// Read from the devices of the sources, by all processes.
    pub device_read_bytes: Option<u64>,
    /// Written to the device of the target, by all processes.
    pub device_write_bytes: Option<u64>,
}

/// State before a copy, from which its cost is computed afterwards.
#[derive(Debug)]
pub struct Meter {
    began: Instant,
    cpu_ns: u64,
    charged: Option<Io>,
    read_from: Vec<PathBuf>,
    written_to: Vec<PathBuf>,
    device: (Option<u64>, Option<u64>),
}

impl Meter {
    pub fn start<'a>(sources: impl IntoIterator<Item = &'a Path>, target: &Path) -> Self {
        let mut read_from: Vec<PathBuf> = sources.into_iter().filter_map(counters).collect();
        read_from.sort();
        read_from.dedup();
        let written_to: Vec<PathBuf> = counters(target).into_iter().collect();
        Self {
            device: (moved(&read_from, READ), moved(&written_to, WRITTEN)),
            read_from,
            written_to,
            charged: charged(),
            cpu_ns: usage::process().cpu_ns(),
            began: Instant::now(),
        }
    }

    pub fn read(&self) -> Cost {
        let seconds = self.began.elapsed().as_secs_f64();
        let cpu_ns = usage::process().cpu_ns() - self.cpu_ns;
        let (before, now) = (self.charged, charged());
        let device_now = (moved(&self.read_from, READ), moved(&self.written_to, WRITTEN));
        let since = |before: Option<u64>, now: Option<u64>| now?.checked_sub(before?);
        Cost {
            seconds,
            cpu_seconds: cpu_ns as f64 / 1e9,
            charged_read_bytes: since(before.map(|it| it.read_bytes), now.map(|it| it.read_bytes)),
            charged_write_bytes: since(
                before.map(|it| it.write_bytes),
                now.map(|it| it.write_bytes),
            ),
            device_read_bytes: since(self.device.0, device_now.0),
            device_write_bytes: since(self.device.1, device_now.1),
        }
    }
}

/// Positions in `/sys/class/block/*/stat` (kernel documentation, block/stat).
const READ: usize = 2;
const WRITTEN: usize = 6;

fn charged() -> Option<Io> {
    account::account(Path::new("/"), std::process::id(), None)?.io
}

/// Returns the path of the I/O counters of the device that holds `path`.
fn counters(path: &Path) -> Option<PathBuf> {
    let found = survey::target(Path::new("/"), path).ok()?;
    Some(Path::new("/sys/class/block").join(&found.devices.first()?.name).join("stat"))
}

fn moved(counters: &[PathBuf], field: usize) -> Option<u64> {
    let sectors = counters.iter().map(|file| numbers(proc::text(file)?.as_bytes()).nth(field));
    let sectors: Option<Vec<u64>> = sectors.collect();
    Some(sectors.filter(|all| !all.is_empty())?.iter().sum::<u64>() * SECTOR_BYTES)
}

/// Returns the bytes of these files in the page cache. `None` if the kernel does not say (before
/// Linux 6.5) or the file system keeps its files in memory. A file that does not exist counts as 0.
pub fn cached_bytes(files: impl IntoIterator<Item = io::Result<File>>) -> Option<u64> {
    let until = Instant::now() + PATIENCE;
    let mut bytes = 0;
    for file in files.into_iter().flatten() {
        match cached::look_at(&file, file.metadata().map_or(0, |found| found.len()), until) {
            Ok(Look::Cached(found)) => bytes += found.cached_bytes,
            _ => return None,
        }
    }
    Some(bytes)
}

/// Drops these files from the page cache, unless someone else uses their pages.
pub fn drop_cached(files: impl IntoIterator<Item = io::Result<File>>) {
    for file in files.into_iter().flatten() {
        let _ = file.sync_all();
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
}

/// Returns the page cache of all files: `Cached` in `/proc/meminfo`.
pub fn page_cache_bytes() -> Option<u64> {
    let text = proc::text(Path::new("/proc/meminfo"))?;
    Some(numbers_after(text.as_bytes(), "Cached:")?.next()? * 1024)
}
