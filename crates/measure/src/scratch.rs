//! The files that a measurement makes in a user's directory: names, and those of killed runs.
//!
//! Such a file carries an exclusive lock (flock) for as long as its run lives. A run that was
//! killed leaves a file whose lock is free: the next run in that directory removes it.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::units::Bytes;
use blockstone_sys::account;
use blockstone_sys::buffer::Arena;
use blockstone_sys::child::{self, Signal};
use blockstone_sys::file::{Access, BlockFile};
use rustix::fs::{FlockOperation, flock};

const PREFIX: &str = "blockstone-test-";
const SUFFIX: &str = ".tmp";
/// The kernel keeps the files of a killed process locked until it has taken down its rings.
const PATIENCE: Duration = Duration::from_secs(1);
/// A younger file may be one that a run has created and not locked yet.
const SETTLED: Duration = Duration::from_millis(100);
/// Cleared at both ends of a device that was measured, so that it counts as empty again.
pub const DEVICE_EDGE: Bytes = Bytes::mib(1);

/// The name of a file that lives as long as its run; `purpose` tells the files of a run apart.
pub fn name(id: u64, purpose: &str) -> String {
    format!("{PREFIX}{}{SUFFIX}", short(id, purpose))
}

/// The name of a file that outlives its run.
pub fn kept_name(id: u64, purpose: &str) -> String {
    format!("blockstone-{}.dat", short(id, purpose))
}

/// Removes and returns what killed runs left in `dir`. Waits a moment for files that are locked.
pub fn remove_orphans(dir: &Path) -> Vec<PathBuf> {
    let patience = Instant::now() + PATIENCE;
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(PREFIX) && name.ends_with(SUFFIX)
        })
        .filter(|path| is_orphan(path, patience) && remove(path).is_ok())
        .collect()
}

/// Removes a file, or a directory after what still works in it: a server that its run left behind.
fn remove(path: &Path) -> std::io::Result<()> {
    if !path.is_dir() {
        return std::fs::remove_file(path);
    }
    for pid in account::working_in(Path::new("/"), &path.canonicalize()?) {
        child::signal(pid, Signal::KILL)?;
    }
    // What was killed goes on for a moment.
    let patience = Instant::now() + PATIENCE;
    loop {
        match std::fs::remove_dir_all(path) {
            Err(_) if Instant::now() < patience => thread::sleep(PATIENCE / 50),
            removed => return removed,
        }
    }
}

/// Whether it is a file or directory, no link or pipe, whose lock is free. One that was touched a
/// moment ago may belong to a run that has created it and not locked it yet.
fn is_orphan(path: &Path, patience: Instant) -> bool {
    let Ok(found) = std::fs::symlink_metadata(path) else { return false };
    let age = found.modified().ok().and_then(|at| at.elapsed().ok());
    if age.is_none_or(|age| age < SETTLED) {
        return false;
    }
    if found.is_dir() {
        let lock = FlockOperation::NonBlockingLockExclusive;
        return std::fs::File::open(path).is_ok_and(|directory| flock(&directory, lock).is_ok());
    }
    if !found.is_file() {
        return false;
    }
    // Network file systems lock exclusively only what is open for writing.
    BlockFile::open(path, Access::ReadWrite, false).is_ok_and(|file| lock(&file, patience))
}

fn lock(file: &BlockFile, patience: Instant) -> bool {
    loop {
        if file.lock_exclusive().is_ok() {
            return true;
        }
        if Instant::now() >= patience {
            return false;
        }
        thread::sleep(PATIENCE / 50);
    }
}

/// Clears both ends of a device that was measured. If that fails, the next run says that it is not
/// empty. Past the page cache, which would send a request for every 4 KiB to a device under a cap.
pub fn clear_edges(device: &Path) {
    let Ok(file) = BlockFile::open(device, Access::ReadWrite, true) else { return };
    let Ok(size_bytes) = file.size_bytes() else { return };
    let edge_bytes = DEVICE_EDGE.get().min(size_bytes);
    let Ok(mut zeros) = Arena::new(1, edge_bytes as usize) else { return };
    zeros.slot(0).fill(0);
    for offset_bytes in [0, size_bytes - edge_bytes] {
        let _ = file.write_at(offset_bytes, zeros.slot(0));
    }
    let _ = file.fsync();
}

/// Twelve hexadecimal digits are enough to tell the files of two runs apart.
fn short(id: u64, purpose: &str) -> String {
    let dash = if purpose.is_empty() { "" } else { "-" };
    format!("{:012x}{dash}{purpose}", id & 0xffff_ffff_ffff)
}
