//! Makes the same copy with cp(1), in turn with our own. Copies that are not kept are made next to
//! the target, in a directory that only this user may enter.

use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use blockstone_measure::scratch;
use blockstone_sys::child::Program;
use blockstone_sys::held::{FileType, HeldDir};
use blockstone_sys::scratch::ScratchDir;

use crate::CopyError;
use crate::cost::{cached_bytes, drop_cached, page_cache_bytes};

/// ABBA order, so that a steady drift of the machine affects both alike.
pub const ROUNDS: [Tool; 4] = [Tool::Ours, Tool::Cp, Tool::Cp, Tool::Ours];
/// Name of a copy in its room.
pub const COPY: &str = "copy";
/// Interval at which the end of cp, and a signal while it runs, are polled.
const LOOK: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Ours,
    Cp,
}

/// One copy by one of the tools.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub tool: Tool,
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// Bytes of the sources and the target in the page cache, before and after.
    pub files_cached_bytes: [Option<u64>; 2],
    /// Bytes of all files of the machine in the page cache, before and after.
    pub all_cached_bytes: [Option<u64>; 2],
}

/// A file or directory, by its name in a directory that is held; without a name, that directory
/// itself.
#[derive(Clone, Copy, Debug)]
pub struct Top<'a> {
    pub dir: &'a HeldDir,
    pub name: &'a Path,
}

impl Top<'_> {
    /// Returns its regular files, opened one by one.
    fn files(&self) -> impl Iterator<Item = io::Result<File>> {
        self.regular().into_iter().map(|below| self.dir.read_within(&below))
    }

    /// Returns the regular files of a file or directory, below the directory that is held.
    fn regular(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut left = Vec::new();
        match self.dir.look(self.name) {
            Ok(Some(FileType::RegularFile)) => found.push(self.name.to_owned()),
            Ok(None | Some(FileType::Directory)) => left.push(self.name.to_owned()),
            _ if self.name.as_os_str().is_empty() => left.push(PathBuf::new()),
            _ => {}
        }
        while let Some(below) = left.pop() {
            let Ok(dir) = self.dir.within(&below) else { continue };
            for name in dir.names().unwrap_or_default() {
                match dir.look(Path::new(&name)) {
                    Ok(Some(FileType::RegularFile)) => found.push(below.join(name)),
                    Ok(Some(FileType::Directory)) => left.push(below.join(name)),
                    _ => {}
                }
            }
        }
        found
    }
}

/// Measures one copy of `source` to `target` by `act`, which returns its CPU seconds. The files
/// are dropped from the page cache first.
pub fn round(
    tool: Tool,
    (source, target): (Top<'_>, Top<'_>),
    act: impl FnOnce() -> Result<f64, CopyError>,
) -> Result<Round, CopyError> {
    drop_cached(source.files());
    let cached = || cached_bytes(source.files().chain(target.files()));
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

/// A directory for one copy, on the file system of the target.
#[derive(Debug)]
pub struct Room {
    made: ScratchDir,
    dir: HeldDir,
}

impl Room {
    /// Makes it in the directory of the target, and removes anything killed runs left there.
    pub fn beside(target: &HeldDir) -> Result<Self, CopyError> {
        let path = target.path();
        let made = || {
            scratch::remove_orphans(path, &[]);
            let id = RandomState::new().build_hasher().finish();
            let name = scratch::name(id, "against");
            let made = ScratchDir::create_in(target, &name)?;
            let dir = HeldDir::of(rustix::io::dup(&made)?, &path.join(name));
            Ok(Self { made, dir })
        };
        made().map_err(|source| failed("make a directory in", path, source))
    }

    pub fn dir(&self) -> &HeldDir {
        &self.dir
    }

    /// Returns the copy in it.
    pub fn top(&self) -> Top<'_> {
        Top { dir: &self.dir, name: Path::new(COPY) }
    }

    /// Runs `cp -a` and flushes each file of the target, so that it is as durable as ours
    /// (`sync -f` would also write the data of others). Returns the CPU seconds of both. `go_on` is
    /// called every millisecond and ends the copy if it returns false.
    pub fn cp(&self, source: Top<'_>, go_on: &mut dyn FnMut() -> bool) -> Result<f64, CopyError> {
        let path = self.dir.path();
        let ended = |source| failed("run cp in", path, source);
        let mut cp = Program::find("cp").map_err(ended)?;
        // Neither path leads through a name that another user can replace.
        let from = cp.pass(source.dir).map_err(ended)?;
        let name = if source.name.as_os_str().is_empty() { Path::new(".") } else { source.name };
        cp.args(["--reflink=never", "--sparse=auto", "-a", "-T", "--"]);
        cp.arg(from.join(name)).arg(COPY).dir(&self.dir).map_err(ended)?;
        cp.stderr(Stdio::inherit());
        let cp = cp.spawn().map_err(ended)?;
        while !cp.has_ended().map_err(ended)? {
            if !go_on() {
                return Err(CopyError::Interrupted);
            }
            thread::sleep(LOOK);
        }
        let cp = cp.wait().map_err(ended)?;
        if !cp.status.success() {
            return Err(ended(io::Error::other(cp.status.to_string())));
        }
        let before = blockstone_sys::usage::process().cpu_ns();
        for below in self.top().regular() {
            if !go_on() {
                return Err(CopyError::Interrupted);
            }
            let synced = self.dir.read_within(&below).and_then(|file| file.sync_all());
            synced.map_err(|source| failed("make durable", &path.join(below), source))?;
        }
        let flushes = blockstone_sys::usage::process().cpu_ns() - before;
        Ok((cp.cpu.cpu_ns() + flushes) as f64 / 1e9)
    }

    /// Removes it with the copy.
    pub fn remove(self) -> Result<(), CopyError> {
        let path = self.dir.path();
        self.made.remove().map_err(|source| failed("remove", path, source))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // The next comparison next to this target removes anything that cannot be removed now.
        let _ = self.made.remove();
    }
}

fn failed(operation: &'static str, path: &Path, source: io::Error) -> CopyError {
    let hint = "without --against nothing but the copy itself is made";
    CopyError::Io { operation, path: path.to_owned(), source, hint }
}
