//! Files that a measurement creates in a user's directory: their names, and removing those of
//! killed runs.
//!
//! Such a file has an exclusive lock (flock) for as long as its run lives. A killed run leaves a
//! file whose lock is free: the next run in that directory removes it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blockstone_sys::path::names;
use blockstone_sys::scratch::remove_orphan;

const PREFIX: &str = "blockstone-test-";
const SUFFIX: &str = ".tmp";
/// How long to wait for locks: the kernel keeps the files of a killed process locked until it has
/// torn down its rings.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the name of a file that lives as long as its run; `purpose` distinguishes the files of a
/// run.
pub fn name(id: u64, purpose: &str) -> String {
    format!("{PREFIX}{}{SUFFIX}", short(id, purpose))
}

/// Returns the name of a file that outlives its run.
pub fn kept_name(id: u64, purpose: &str) -> String {
    format!("blockstone-{}.dat", short(id, purpose))
}

/// Removes what killed runs of this user left in `dir`, where this run has created the files `own`,
/// and returns the paths. Waits a moment for files that are locked.
pub fn remove_orphans(dir: &Path, own: &[&Path]) -> Vec<PathBuf> {
    let patience = Instant::now() + PATIENCE;
    let Ok(names) = names(dir) else { return Vec::new() };
    let is_test = |name: &OsString| {
        name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
    };
    names
        .into_iter()
        .filter(is_test)
        .map(|name| dir.join(name))
        .filter(|path| !own.contains(&path.as_path()) && remove_orphan(path, patience))
        .collect()
}

/// Returns twelve hexadecimal digits, enough to distinguish the files of two runs.
fn short(id: u64, purpose: &str) -> String {
    let dash = if purpose.is_empty() { "" } else { "-" };
    format!("{:012x}{dash}{purpose}", id & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests;
