//! Another user of the machine, who renames and replaces files in a directory of their own while a
//! program works there.

use std::ffi::{CStr, OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, OFlags, RenameFlags, inotify, renameat_with};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// User and group id of an attacker: the overflow id, which owns no files.
pub const STRANGER: u32 = 65_534;

/// Actions of an attacker, which continue until it is stopped.
#[derive(Clone, Debug)]
pub enum Play {
    /// Reads everything that is written to this pipe.
    Listen(PathBuf),
    /// Keeps both ends of this pipe open and writes nothing.
    Hold(PathBuf),
    /// Moves each new file in `dir` away and puts a link to `victim` in its place.
    ReplaceFiles { dir: PathBuf, victim: PathBuf },
    /// Moves each new directory in `dir` away after this delay and creates another in its place,
    /// with these names: links to `victim`, or files with mode 0666.
    ReplaceDirectories { dir: PathBuf, after: Duration, names: Vec<Bait>, victim: PathBuf },
    /// Exchanges two names over and over.
    Exchange(PathBuf, PathBuf),
}

/// A name that a program is expected to use.
#[derive(Clone, Debug)]
pub struct Bait {
    pub name: OsString,
    /// Whether it is a link to the victim, rather than a file.
    pub is_link: bool,
}

/// Results of an attack.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// Bytes received from the pipe.
    pub received: Vec<u8>,
    /// Number of names changed.
    pub changes: u64,
}

/// A thread with only the rights of [`STRANGER`]; it ends when this value is dropped.
#[derive(Debug)]
pub struct Attacker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Played>>>,
}

impl Attacker {
    /// Starts the attack. Needs root, whose rights the thread drops.
    pub fn start(play: Play) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("attacker".to_owned()).spawn({
            let stop = Arc::clone(&stop);
            move || {
                become_stranger()?;
                play.until(&stop, &ready)
            }
        })?;
        // If the attack fails before it is ready, `end` returns the error.
        let _ = is_ready.recv();
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops the attack and returns its results.
    pub fn end(mut self) -> io::Result<Played> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(Result::ok).unwrap_or_else(|| Err(io::Error::other("the attacker panicked")))
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Gives this thread the rights of [`STRANGER`]. Other threads keep theirs: in Linux, credentials
/// belong to a thread, and unlike libc's wrappers these calls change only the calling one.
fn become_stranger() -> io::Result<()> {
    let (user, group) = (Uid::from_raw(STRANGER), Gid::from_raw(STRANGER));
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    Ok(())
}

impl Play {
    fn until(&self, stop: &AtomicBool, ready: &SyncSender<()>) -> io::Result<Played> {
        match self {
            Self::Listen(pipe) => listen(pipe, stop, ready),
            Self::Hold(pipe) => hold(pipe, stop, ready),
            Self::ReplaceFiles { dir, victim } => each_new(dir, stop, ready, |path, meta| {
                if !meta.is_file() {
                    return Ok(false);
                }
                fs::rename(path, aside(path))?;
                symlink(victim, path)?;
                Ok(true)
            }),
            Self::ReplaceDirectories { dir, after, names, victim } => {
                each_new(dir, stop, ready, |path, meta| {
                    if !meta.is_dir() {
                        return Ok(false);
                    }
                    thread::sleep(*after);
                    fs::rename(path, aside(path))?;
                    fs::create_dir(path)?;
                    names.iter().try_for_each(|bait| bait.lay(path, victim))?;
                    Ok(true)
                })
            }
            Self::Exchange(one, other) => Ok(exchange(one, other, stop, ready)),
        }
    }
}

impl Bait {
    fn lay(&self, dir: &Path, victim: &Path) -> io::Result<()> {
        let path = dir.join(&self.name);
        if self.is_link {
            return symlink(victim, path);
        }
        fs::write(&path, vec![7; 1 << 16])?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))
    }
}

const ASIDE: &str = ".moved-";

/// Returns the path to which the previous holder of a name is moved.
fn aside(path: &Path) -> PathBuf {
    let mut name = OsString::from(ASIDE);
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

fn listen(pipe: &Path, stop: &AtomicBool, ready: &SyncSender<()>) -> io::Result<Played> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut reader = fs::OpenOptions::new().read(true).custom_flags(flags).open(pipe)?;
    let _ = ready.send(());
    let (mut played, mut piece) = (Played::default(), vec![0; 1 << 16]);
    loop {
        let is_last = stop.load(Ordering::Relaxed);
        match reader.read(&mut piece) {
            Ok(0) => {}
            Ok(bytes) => {
                played.received.extend_from_slice(&piece[..bytes]);
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if is_last {
            return Ok(played);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn hold(pipe: &Path, stop: &AtomicBool, ready: &SyncSender<()>) -> io::Result<Played> {
    let _both_ends = fs::OpenOptions::new().read(true).write(true).open(pipe)?;
    let _ = ready.send(());
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(Played::default())
}

/// Calls `act` for each new name in `dir` as soon as it appears; `act` returns whether it changed
/// it.
fn each_new(
    dir: &Path,
    stop: &AtomicBool,
    ready: &SyncSender<()>,
    act: impl Fn(&Path, &fs::Metadata) -> io::Result<bool>,
) -> io::Result<Played> {
    use inotify::{CreateFlags, WatchFlags};
    let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    inotify::add_watch(&watch, dir, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
    let _ = ready.send(());
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    let mut played = Played::default();
    while !stop.load(Ordering::Relaxed) {
        let name = match events.next() {
            Ok(event) => event.file_name().map(CStr::to_owned),
            Err(Errno::AGAIN) => {
                let patience = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
                poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&patience))?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let Some(name) = name.filter(|name| !name.to_bytes().starts_with(ASIDE.as_bytes())) else {
            continue;
        };
        let path = dir.join(OsStr::from_bytes(name.to_bytes()));
        // Names that are already gone, or that the attacker may not change, are skipped.
        let changed = fs::symlink_metadata(&path).and_then(|meta| act(&path, &meta));
        played.changes += u64::from(changed.unwrap_or(false));
    }
    Ok(played)
}

fn exchange(one: &Path, other: &Path, stop: &AtomicBool, ready: &SyncSender<()>) -> Played {
    let _ = ready.send(());
    let mut played = Played::default();
    while !stop.load(Ordering::Relaxed) {
        // Fails if the program removed a name, or if the attacker may not change it.
        let exchanged = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
        played.changes += u64::from(exchanged.is_ok());
        // Long enough that some consecutive steps of the program see the same file under a name,
        // and short enough that others do not.
        thread::sleep(Duration::from_micros(20 + 30 * (played.changes % 8)));
    }
    played
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;
    use crate::ScratchDir;

    fn theirs() -> (ScratchDir, PathBuf) {
        let scratch = ScratchDir::on_disk().unwrap();
        let dir = scratch.path().join("theirs");
        fs::create_dir(&dir).unwrap();
        chown(&dir, Some(STRANGER), Some(STRANGER)).unwrap();
        (scratch, dir)
    }

    fn until(seen: impl Fn() -> bool) {
        let patience = std::time::Instant::now() + Duration::from_mins(1);
        while !seen() {
            assert!(std::time::Instant::now() < patience, "the attacker does nothing");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn new_names_are_replaced_with_the_rights_of_a_stranger() {
        crate::require!(Root);
        let (scratch, dir) = theirs();
        let victim = scratch.path().join("victim");
        fs::write(&victim, "of root").unwrap();
        let play = Play::ReplaceFiles { dir: dir.clone(), victim: victim.clone() };
        let attacker = Attacker::start(play).unwrap();
        fs::write(dir.join("new"), "new").unwrap();
        until(|| dir.join("new").is_symlink());
        assert_eq!(attacker.end().unwrap().changes, 1);
        assert_eq!(fs::read_link(dir.join("new")).unwrap(), victim);
        assert_eq!(fs::read_to_string(dir.join(".moved-new")).unwrap(), "new");

        // In a directory owned by root, nothing can be changed.
        let play = Play::ReplaceFiles { dir: scratch.path().to_owned(), victim };
        let attacker = Attacker::start(play).unwrap();
        fs::write(scratch.path().join("other"), "other").unwrap();
        thread::sleep(Duration::from_millis(50));
        assert_eq!(attacker.end().unwrap().changes, 0);
        assert!(!scratch.path().join("other").is_symlink());
    }

    #[test]
    fn names_are_exchanged_and_a_pipe_is_read() {
        crate::require!(Root);
        let (_scratch, dir) = theirs();
        let (one, other, pipe) = (dir.join("one"), dir.join("other"), dir.join("pipe"));
        fs::write(&one, "one").unwrap();
        symlink("one", &other).unwrap();
        let attacker = Attacker::start(Play::Exchange(one.clone(), other)).unwrap();
        until(|| one.is_symlink());
        assert!(attacker.end().unwrap().changes > 0);

        rustix::fs::mkfifoat(CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o622)).unwrap();
        chown(&pipe, Some(STRANGER), Some(STRANGER)).unwrap();
        let attacker = Attacker::start(Play::Listen(pipe.clone())).unwrap();
        fs::write(&pipe, "said").unwrap();
        assert_eq!(attacker.end().unwrap().received, b"said");
    }
}
