//! The files that a measurement makes in a user's directory: names, and those of killed runs.
//!
//! Such a file carries an exclusive lock (flock) for as long as its run lives. A run that was
//! killed leaves a file whose lock is free: the next run in that directory removes it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blockstone_base::units::Bytes;
use blockstone_sys::buffer::Arena;
use blockstone_sys::file::{Access, BlockFile};
use blockstone_sys::scratch::remove_orphan;

const PREFIX: &str = "blockstone-test-";
const SUFFIX: &str = ".tmp";
/// The kernel keeps the files of a killed process locked until it has taken down its rings.
const PATIENCE: Duration = Duration::from_secs(1);
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

/// Removes and returns what killed runs of this user left in `dir`. Waits a moment for files that
/// are locked.
pub fn remove_orphans(dir: &Path) -> Vec<PathBuf> {
    let patience = Instant::now() + PATIENCE;
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(PREFIX) && name.ends_with(SUFFIX)
        })
        .filter(|path| remove_orphan(path, patience))
        .collect()
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

#[cfg(test)]
mod tests;
