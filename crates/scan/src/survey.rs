//! Finds the files to scan: walks paths, lists everything that is not a file as skipped, and
//! recognises the format of a file by its beginning.

use std::collections::HashSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use blockstone_base::text::shown;
use blockstone_reduce::hash::SEGMENT_BYTES;
use blockstone_reduce::page::{self, Recognised};
use blockstone_reduce::scanned::{FreeSpace, Skipped};
use blockstone_reduce::table::FILES_MAX;
use blockstone_sys::buffer::Arena;
use blockstone_sys::file::{Access, BlockFile, FileError, FileState};
use blockstone_sys::{input, path, thread};

use crate::error::{ScanError, first_line};

/// Number of bytes of a file used to recognise its format.
pub(crate) const HEAD_BYTES: usize = 64 << 10;
/// Files that are looked at concurrently. A look is one small read, so the limit is the device, not
/// a processor.
const LOOKS_IN_FLIGHT: usize = 16;
/// Interval between progress reports.
const TELL_EVERY: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub struct Found {
    pub path: PathBuf,
    pub bytes: u64,
    /// Time of the last modification, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Also `None` if the file was not looked at.
    pub format: Option<Recognised>,
}

/// Which files are opened and read to recognise their format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    All,
    /// Only devices, and files that a scan reads in several pieces. A scan recognises a smaller
    /// file when it reads it, which saves one read.
    Large,
}

#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Files and block devices in the order of the paths, the contents of directories by name.
    pub files: Vec<Found>,
    pub skipped: Vec<Skipped>,
    /// Free space of the file systems, if the caller looked at it.
    pub free: Vec<FreeSpace>,
}

impl Survey {
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub fn knows_a_format(&self) -> bool {
        self.files.iter().any(|file| file.format.is_some())
    }
}

/// Progress of a survey: number of files found, and of those that need no further look.
#[derive(Clone, Copy, Debug)]
pub struct Surveying {
    pub found: usize,
    pub looked_at: usize,
}

/// Receives the progress of a survey, and returns whether to go on.
type Watch<'a> = dyn FnMut(Surveying) -> bool + 'a;

/// Walks `paths`. Symbolic links are followed, as a database follows those to its tablespaces; a
/// file reached twice is scanned once. Reads for recognising formats are limited to `rate` bytes
/// per second. A survey that `watch` ends is an error.
pub fn survey(
    paths: &[PathBuf],
    look: Look,
    rate: Option<u64>,
    watch: &mut Watch<'_>,
) -> Result<Survey, ScanError> {
    let mut walk = Walk {
        look,
        watch,
        ended: false,
        files: Vec::new(),
        unseen: Vec::new(),
        skipped: Vec::new(),
        seen: HashSet::new(),
    };
    for path in paths {
        let found =
            path::look(path).map_err(|source| ScanError::Path { path: path.clone(), source })?;
        if found.file_type().is_block_device() {
            walk.file(path, &found);
        } else if !walk.enter(path, &found) {
            return Err(ScanError::Kind { path: path.clone(), what: kind_name(&found) });
        }
    }
    let Walk { ended, files, unseen, mut skipped, .. } = walk;
    if ended {
        return Err(ScanError::Ended);
    }
    if files.len() > FILES_MAX {
        return Err(ScanError::TooMany { files: files.len() });
    }
    let heads = unseen.iter().map(|&index| &files[index]);
    let heads: Vec<Head<'_>> = heads.map(|file| (file.path.as_path(), file.bytes)).collect();
    let seen = files.len() - heads.len();
    let looked_at = look_at_all(&heads, rate, &mut |looked_at| {
        watch(Surveying { found: files.len(), looked_at: seen + looked_at })
    })?;
    let mut files: Vec<Option<Found>> = files.into_iter().map(Some).collect();
    for (index, looked_at) in unseen.into_iter().zip(looked_at) {
        match (looked_at, &mut files[index]) {
            (Ok(now), found) => *found = Some(now),
            (Err(why), found) => {
                let path = found.take().map_or_else(String::new, |found| shown(&found.path));
                skipped.push(Skipped { path, why, matters: true });
            }
        }
    }
    let files = files.into_iter().flatten().collect();
    Ok(Survey { files, skipped, free: Vec::new() })
}

struct Walk<'a, 'w> {
    look: Look,
    watch: &'a mut Watch<'w>,
    ended: bool,
    files: Vec<Found>,
    /// Indices of the files still to be looked at.
    unseen: Vec<usize>,
    skipped: Vec<Skipped>,
    seen: HashSet<(u64, u64)>,
}

impl Walk<'_, '_> {
    /// Returns false for anything that is neither a directory nor a regular file.
    fn enter(&mut self, path: &Path, found: &Metadata) -> bool {
        if found.is_dir() {
            self.directory(path, found);
        } else if found.is_file() {
            self.file(path, found);
        }
        found.is_dir() || found.is_file()
    }

    fn directory(&mut self, path: &Path, found: &Metadata) {
        if !self.seen.insert((found.dev(), found.ino())) {
            self.skip(path, "this directory was already scanned", false);
            return;
        }
        let paths = match path::entries(path) {
            Ok(paths) => paths,
            Err(error) => return self.skip(path, &error.to_string(), true),
        };
        for path in paths {
            self.ended |= !(self.watch)(Surveying { found: self.files.len(), looked_at: 0 });
            if self.ended {
                return;
            }
            match path::look(&path) {
                Ok(found) if self.enter(&path, &found) => {}
                Ok(found) => {
                    let why = format!("a {} in a directory is not scanned", kind_name(&found));
                    self.skip(&path, &why, false);
                }
                Err(error) => self.skip(&path, &error.to_string(), true),
            }
        }
    }

    fn file(&mut self, path: &Path, found: &Metadata) {
        // A device is identified by its number, whatever name leads to it.
        let device = found.file_type().is_block_device();
        let key = if device { (u64::MAX, found.rdev()) } else { (found.dev(), found.ino()) };
        if !self.seen.insert(key) {
            return self.skip(path, "this file is scanned under another name", false);
        }
        let is_small = !device && found.len() <= SEGMENT_BYTES as u64;
        if !is_small || self.look == Look::All {
            self.unseen.push(self.files.len());
        } else if let Err(error) = input::open(path) {
            return self.skip(path, &error.to_string(), true);
        }
        self.files.push(Found {
            path: path.to_owned(),
            bytes: found.len(),
            modified_ns: found.mtime() * 1_000_000_000 + found.mtime_nsec(),
            format: None,
        });
    }

    fn skip(&mut self, path: &Path, why: &str, matters: bool) {
        let path = shown(path);
        self.skipped.push(Skipped { path, why: why.to_owned(), matters });
    }
}

/// A file whose beginning is to be read, and its size in bytes.
type Head<'a> = (&'a Path, u64);

/// Hands out the next file to look at, no faster than the rate.
struct Looks<'a> {
    files: &'a [Head<'a>],
    next: AtomicUsize,
    ended: AtomicBool,
    rate: Option<u64>,
    free_at: Mutex<Instant>,
}

impl<'a> Looks<'a> {
    /// Returns the next file, once the rate allows it; `None` if all are taken, or after the end.
    fn take(&self) -> Option<(usize, &'a Path)> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let &(path, bytes) = self.files.get(index)?;
        if let Some(rate) = self.rate {
            let seconds = bytes.min(HEAD_BYTES as u64) as f64 / rate.max(1) as f64;
            let due = {
                let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
                let due = (*free_at).max(Instant::now());
                *free_at = due + Duration::from_secs_f64(seconds.min(1e6));
                due
            };
            while !self.ended.load(Ordering::Relaxed) {
                let left = due.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                std::thread::sleep(left.min(TELL_EVERY));
            }
        }
        (!self.ended.load(Ordering::Relaxed)).then_some((index, path))
    }
}

/// Looks at the files, several at a time, and returns the results in the order of the files.
fn look_at_all(
    files: &[Head<'_>],
    rate: Option<u64>,
    watch: &mut dyn FnMut(usize) -> bool,
) -> Result<Vec<Looked>, ScanError> {
    let (next, ended, free_at) =
        (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(Instant::now()));
    let looks = Looks { files, next, ended, rate, free_at };
    std::thread::scope(|scope| {
        let (tell, looked) = channel();
        for number in 0..LOOKS_IN_FLIGHT.min(files.len()) {
            let mut arena = Arena::new(1, HEAD_BYTES)?;
            let (tell, looks) = (tell.clone(), &looks);
            let work = move || look_at_each(looks, arena.slot(0), &tell);
            match thread::scoped(scope, &format!("look {number}"), work) {
                Ok(_) => {}
                Err(source) if number == 0 => {
                    let threads = LOOKS_IN_FLIGHT;
                    return Err(ScanError::Thread { number, threads, source });
                }
                // The threads already started look at all files.
                Err(_) => break,
            }
        }
        drop(tell);
        let gathered = gather(files.len(), &looked, watch);
        looks.ended.store(true, Ordering::Relaxed);
        gathered
    })
}

/// The kind as which a file was recognised, or the reason why it cannot be scanned.
type Looked = Result<Found, String>;

fn look_at_each(looks: &Looks<'_>, head: &mut [u8], tell: &Sender<(usize, Looked)>) {
    while let Some((index, path)) = looks.take() {
        if tell.send((index, look(path, head))).is_err() {
            return;
        }
    }
}

fn gather(
    count: usize,
    looked: &Receiver<(usize, Looked)>,
    watch: &mut dyn FnMut(usize) -> bool,
) -> Result<Vec<Looked>, ScanError> {
    let mut all: Vec<Option<Looked>> = (0..count).map(|_| None).collect();
    let mut looked_at = 0;
    loop {
        match looked.recv_timeout(TELL_EVERY) {
            Ok((index, looked)) => {
                all[index] = Some(looked);
                looked_at += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if !watch(looked_at) {
            return Err(ScanError::Ended);
        }
    }
    all.into_iter().collect::<Option<Vec<Looked>>>().ok_or(ScanError::Vanished)
}

fn look(path: &Path, head: &mut [u8]) -> Looked {
    let mut read = |direct| {
        let file = BlockFile::open(path, Access::Read, direct)?;
        let len = file
            .read_at(0, &mut *head)
            .map_err(|errno| file.error("read", io::Error::from_raw_os_error(errno)))?;
        let format = page::recognise(&head[..len]);
        let FileState { bytes, modified_ns } = file.state()?;
        Ok::<_, FileError>(Found { path: path.to_owned(), bytes, modified_ns, format })
    };
    read(true).or_else(|_| read(false)).map_err(|error| first_line(&error))
}

fn kind_name(found: &Metadata) -> &'static str {
    let kind = found.file_type();
    if kind.is_fifo() {
        "FIFO"
    } else if kind.is_socket() {
        "socket"
    } else if kind.is_char_device() {
        "character device"
    } else if kind.is_block_device() {
        "block device"
    } else {
        "node of unknown kind"
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_are_looked_at_no_faster_than_the_rate() {
        let dir = tempfile::tempdir().unwrap();
        for name in 0..11 {
            fs::write(dir.path().join(name.to_string()), vec![7; 20_000]).unwrap();
        }
        let (paths, began) = ([dir.path().to_owned()], Instant::now());
        survey(&paths, Look::All, Some(1_000_000), &mut |_| true).unwrap();
        // The last one begins after ten have taken 20 ms each.
        assert!(began.elapsed() >= Duration::from_millis(190), "{:?}", began.elapsed());
        let mut tells = 0;
        let ended = survey(&paths, Look::All, Some(1), &mut |_| {
            tells += 1;
            tells < 20
        });
        assert!(matches!(ended, Err(ScanError::Ended)), "{ended:?}");
        assert!(began.elapsed() < Duration::from_mins(1), "a file would be due in hours");
    }

    #[test]
    fn files_are_in_the_order_of_their_names_and_all_are_told_of() {
        let dir = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..200).map(|index| format!("{index:03}")).collect();
        for name in &names {
            fs::write(dir.path().join(name), [7; 5000]).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", dir.path().join("050-dangling")).unwrap();
        let (mut found, mut looked_at) = (Vec::new(), Vec::new());
        let survey = survey(&[dir.path().to_owned()], Look::All, None, &mut |surveying| {
            found.push(surveying.found);
            looked_at.push(surveying.looked_at);
            true
        });
        let survey = survey.unwrap();
        let paths = survey.files.iter().map(|file| file.path.file_name().unwrap());
        assert!(paths.eq(names.iter().map(String::as_str)));
        assert!(survey.files.iter().all(|file| file.bytes == 5000));
        assert_eq!((survey.skipped.len(), survey.skipped[0].matters), (1, true));
        assert!(found.is_sorted() && looked_at.is_sorted());
        assert_eq!((found.last(), looked_at.last()), (Some(&200), Some(&200)));
    }

    #[test]
    fn it_can_be_ended_while_it_walks_and_while_it_looks() {
        let dir = tempfile::tempdir().unwrap();
        for index in 0..50 {
            fs::write(dir.path().join(index.to_string()), b"x").unwrap();
        }
        let paths = [dir.path().to_owned()];
        let walking = survey(&paths, Look::All, None, &mut |surveying| surveying.found < 10);
        assert!(matches!(walking, Err(ScanError::Ended)));
        let looking = survey(&paths, Look::All, None, &mut |surveying| surveying.looked_at < 10);
        assert!(matches!(looking, Err(ScanError::Ended)));
    }
}
