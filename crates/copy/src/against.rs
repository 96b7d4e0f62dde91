//! Makes the same copy in another way, in turn with our own: by cp(1), by a command of the user, or
//! by ourselves with other requests. Copies that are not kept are made next to the target, in a
//! directory that only this user may enter.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use blockstone_measure::scratch;
use blockstone_sys::child::{Program, Signal};
use blockstone_sys::held::{FileType, HeldDir};
use blockstone_sys::path::look;
use blockstone_sys::scratch::ScratchDir;

use crate::CopyError;
use crate::cost::{cached_bytes, drop_cached, page_cache_bytes};

/// ABBA order, so that a steady drift of the machine affects both alike.
pub const ROUNDS: [Tool; 4] = [Tool::Ours, Tool::Peer, Tool::Peer, Tool::Ours];
/// Name of a copy in its room.
pub const COPY: &str = "copy";
/// Placeholders of the source and of the target in a command.
const SOURCE: &str = "{source}";
const TARGET: &str = "{target}";
/// Interval at which the end of a program, and a signal while it runs, are polled.
const LOOK: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Ours,
    Peer,
}

/// Another program that copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Other {
    Cp,
    /// A program and its arguments, with `{source}` and `{target}` in them, or without, as the last
    /// two. No shell is involved.
    Command(Vec<String>),
}

/// One copy by one of the tools.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub tool: Tool,
    /// Sum of the sizes of the files that it made.
    pub bytes: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// Bytes of the sources and the target in the page cache, before and after.
    pub files_cached_bytes: [Option<u64>; 2],
    /// Bytes of all files of the machine in the page cache, before and after.
    pub all_cached_bytes: [Option<u64>; 2],
}

impl Other {
    fn name(&self) -> &str {
        match self {
            Self::Cp => "cp",
            Self::Command(words) => words.first().map_or("", String::as_str),
        }
    }

    /// Checks that the program exists, so that a misspelt name fails before the first copy.
    pub fn check(&self) -> Result<(), CopyError> {
        let Self::Command(_) = self else { return Ok(()) };
        let name = Path::new(self.name());
        let dirs = std::env::var_os("PATH").unwrap_or_default();
        let is_path = self.name().contains('/');
        let is_there = |path: &Path| look(path).is_ok_and(|found| found.is_file());
        let is_found = || std::env::split_paths(&dirs).any(|dir| is_there(&dir.join(name)));
        if if is_path { is_there(name) } else { is_found() } {
            return Ok(());
        }
        Err(failed("run", name, io::ErrorKind::NotFound.into()))
    }
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
    let sizes = target.files().map(|file| Ok(file?.metadata()?.len()));
    let sizes: io::Result<Vec<u64>> = sizes.collect();
    let bytes = sizes.map_err(|error| failed("look at the copy in", target.dir.path(), error))?;
    Ok(Round {
        tool,
        bytes: bytes.iter().sum(),
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

    /// Runs another program and flushes each file of the target, so that it is as durable as ours
    /// (`sync -f` would also write the data of others). Returns the CPU seconds of both. `go_on` is
    /// called every millisecond and ends the copy if it returns false.
    pub fn copy(
        &self,
        by: &Other,
        source: Top<'_>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<f64, CopyError> {
        let path = self.dir.path();
        let ended = |source| failed("run", Path::new(by.name()), source);
        let child = self.program(by, source).and_then(Program::spawn).map_err(ended)?;
        while !child.has_ended().map_err(ended)? {
            if !go_on() {
                // Also what a command started itself: it would go on writing.
                let _ = child.signal_group(Signal::KILL);
                return Err(CopyError::Interrupted);
            }
            thread::sleep(LOOK);
        }
        let child = child.wait().map_err(ended)?;
        if !child.status.success() {
            return Err(ended(io::Error::other(child.status.to_string())));
        }
        if self.dir.look(Path::new(COPY)).map_err(ended)?.is_none() {
            return Err(ended(io::Error::other("it made no {target}")));
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
        Ok((child.cpu.cpu_ns() + flushes) as f64 / 1e9)
    }

    /// Returns a program that copies `source` into this directory.
    fn program(&self, by: &Other, source: Top<'_>) -> io::Result<Program> {
        let name = if source.name.as_os_str().is_empty() { Path::new(".") } else { source.name };
        let mut program = match by {
            Other::Cp => Program::find("cp")?,
            Other::Command(_) => Program::typed(OsStr::new(by.name())),
        };
        // Neither path leads through a name that another user can replace.
        let from = program.pass(source.dir)?.join(name);
        let to = program.pass(&self.dir)?.join(COPY);
        match by {
            Other::Cp => {
                program.args(["--reflink=never", "--sparse=auto", "-a", "-T", "--"]);
                program.arg(from).arg(to);
            }
            Other::Command(words) => {
                program.args(filled(words.get(1..).unwrap_or_default(), &from, &to)?);
            }
        }
        program.group().stderr(Stdio::inherit());
        Ok(program)
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

/// Returns the arguments of a command with the paths in them. Fails when a path would become part
/// of a script, and has characters that mean something there.
fn filled(arguments: &[String], source: &Path, target: &Path) -> io::Result<Vec<OsString>> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./+,@%=:".contains(byte);
    let is_script = |argument: &&String| {
        let rest = argument.replace(SOURCE, "").replace(TARGET, "");
        rest != **argument && !rest.as_bytes().iter().all(is_plain)
    };
    let is_odd = |path: &Path| !path.as_os_str().as_encoded_bytes().iter().all(is_plain);
    if let Some(script) = arguments.iter().find(is_script)
        && [source, target].into_iter().any(is_odd)
    {
        let why = format!("the name of the source would be part of `{script}`; name it apart");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let has = |name: &str| arguments.iter().any(|argument| argument.contains(name));
    let missing = [SOURCE, TARGET].into_iter().filter(|name| !has(name));
    let all = arguments.iter().map(String::as_str).chain(missing);
    let filled = all.map(|argument| {
        let mut filled = OsString::new();
        let mut rest = argument;
        while let Some((at, name, path)) = [(SOURCE, source), (TARGET, target)]
            .into_iter()
            .filter_map(|(name, path)| Some((rest.find(name)?, name, path)))
            .min_by_key(|found| found.0)
        {
            filled.push(&rest[..at]);
            filled.push(path);
            rest = &rest[at + name.len()..];
        }
        filled.push(rest);
        filled
    });
    Ok(filled.collect())
}

fn failed(operation: &'static str, path: &Path, source: io::Error) -> CopyError {
    let hint = "without --against nothing but the copy itself is made";
    CopyError::Io { operation, path: path.to_owned(), source, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_paths_where_it_names_them_and_otherwise_last() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let filled = filled(&words, Path::new("/s/a b{target}"), Path::new("/t")).unwrap();
            filled.iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let odd = "/s/a b{target}";
        assert_eq!(of(&["-a"]), ["-a", odd, "/t"]);
        assert_eq!(of(&["if={source}", "of={target}"]), ["if=/s/a b{target}", "of=/t"]);
        assert_eq!(of(&["--to={target}"]), ["--to=/t", odd]);
    }

    #[test]
    fn a_name_of_another_becomes_no_part_of_a_script() {
        let script = ["-c".to_owned(), "cat <{source} >{target}".to_owned()];
        let of = |source: &str| filled(&script, Path::new(source), Path::new("/t"));
        assert_eq!(of("/s/a").unwrap()[1], "cat </s/a >/t");
        for source in ["/s/$(id)", "/s/a;b", "/s/`a`", "/s/a b", "/s/a\nb", "/s/ä"] {
            assert_eq!(of(source).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{source}");
        }
        let apart = ["-c", "cat <\"$1\" >\"$2\"", "sh", "{source}", "{target}"];
        let filled = filled(&apart.map(str::to_owned), Path::new("/s/$(id)"), Path::new("/t"));
        assert_eq!(filled.unwrap()[3], "/s/$(id)");
    }
}
