//! The same copy by cp(1), interleaved with ours.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use blockstone_sys::child::{self, Signal};
use blockstone_sys::process;

use crate::CopyError;
use crate::cost::{cached_bytes, drop_cached, page_cache_bytes};

/// In ABBA order, so that a steady drift of the machine affects both alike.
pub const ROUNDS: [Tool; 4] = [Tool::Ours, Tool::Cp, Tool::Cp, Tool::Ours];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Ours,
    Cp,
}

/// One copy by one of them.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub tool: Tool,
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// Of the sources and the target in the page cache, before and after.
    pub files_cached_bytes: [Option<u64>; 2],
    /// All files of the machine in the page cache.
    pub all_cached_bytes: [Option<u64>; 2],
}

/// Measures one copy of `sources` to `target` by `act`, which returns its CPU seconds. The files
/// are dropped from the page cache first.
pub fn round(
    tool: Tool,
    (sources, target): (&[PathBuf], &Path),
    act: impl FnOnce() -> Result<f64, CopyError>,
) -> Result<Round, CopyError> {
    let files = || sources.iter().flat_map(|source| regular(source));
    drop_cached(files().collect::<Vec<_>>().iter().map(PathBuf::as_path));
    let cached = || {
        let both: Vec<PathBuf> = files().chain(regular(target)).collect();
        cached_bytes(both.iter().map(PathBuf::as_path))
    };
    let (files_before, all_before) = (cached(), page_cache_bytes());
    let began = Instant::now();
    let cpu_seconds = act()?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(Round {
        tool,
        seconds,
        cpu_seconds,
        all_cached_bytes: [all_before, page_cache_bytes()],
        files_cached_bytes: [files_before, cached()],
    })
}

/// Runs `cp -a` and flushes each file of the target, so that it is as durable as ours (`sync -f`
/// would also write the data of others). Returns the CPU seconds of both.
pub fn cp(sources: &[PathBuf], target: &Path) -> Result<f64, CopyError> {
    let mut command = Command::new("cp");
    command.args(["--reflink=never", "--sparse=auto", "-a", "-T", "--"]);
    command.args(sources).arg(target);
    let ended = |source| failed("run cp to", target, source);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    child::confine(&mut command, None, Signal::KILL);
    let cp = process::wait(command.spawn().map_err(ended)?).map_err(ended)?;
    if !cp.status.success() {
        return Err(ended(io::Error::other(cp.status.to_string())));
    }
    let before = blockstone_sys::usage::process().cpu_ns();
    for file in regular(target) {
        fs::File::open(&file)
            .and_then(|opened| opened.sync_all())
            .map_err(|source| failed("make durable", &file, source))?;
    }
    let flushes = blockstone_sys::usage::process().cpu_ns() - before;
    Ok((cp.cpu.cpu_ns() + flushes) as f64 / 1e9)
}

/// A unique name beside `target`.
pub fn beside(target: &Path, number: usize) -> PathBuf {
    let name = target.file_name().unwrap_or(OsStr::new("target"));
    let mut own = OsStr::new(".blockstone-against-").to_owned();
    own.push(format!("{}-{number}-", std::process::id()));
    own.push(name);
    target.with_file_name(own)
}

/// Removes what a round made.
pub fn remove(target: &Path) -> Result<(), CopyError> {
    let is_dir = fs::symlink_metadata(target).is_ok_and(|found| found.is_dir());
    let removed = if is_dir { fs::remove_dir_all(target) } else { fs::remove_file(target) };
    removed.map_err(|source| failed("remove", target, source))
}

/// The regular files of a file or directory.
fn regular(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        match fs::symlink_metadata(&path) {
            Ok(it) if it.is_file() => found.push(path),
            Ok(it) if it.is_dir() => {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                left.extend(entries.map(|entry| entry.path()));
            }
            _ => {}
        }
    }
    found
}

fn failed(operation: &'static str, path: &Path, source: io::Error) -> CopyError {
    let hint = "without --against nothing but the copy itself is made";
    CopyError::Io { operation, path: path.to_owned(), source, hint }
}
