//! A plan carried out: directories, then files by several threads, then links and pipes, and last
//! what directories carry.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::units::Bytes;
use blockstone_sys::held::HeldDir;
use rustix::fs::{
    AtFlags, FileType, Mode, fstat, fsync, linkat, mkdirat, mknodat, readlinkat, statat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;

use super::pace::Pace;
use super::plan::{Entry, Kind, Node, Plan};
use super::{CopiedFile, Failure, Outcome};
use crate::CopyError;
use crate::attributes::{Attributes, Notes, failed};
use crate::file::{BatchJob, Copier, Job, Options, Watch};

/// How often progress is reported.
const TICK: Duration = Duration::from_millis(50);
/// Bytes in progress before the first of them are durable; an interrupted copy moves them again.
const BATCH_FILES: usize = 64;
const BATCH_BYTES: u64 = 64 << 20;
/// Mode of a new directory until its attributes are set.
const NEW_DIRECTORY: Mode = Mode::RWXU;

#[derive(Clone, Debug)]
pub struct Settings {
    pub file: Options,
    /// Files that are copied at once.
    pub jobs: usize,
    /// Bytes a second, of all files together.
    pub rate: Option<Bytes>,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub done_bytes: u64,
    pub all_bytes: u64,
    /// A file that is being copied.
    pub file: &'a Path,
}

/// Carries out a plan. A file that fails is listed in the outcome, and the others are copied. When
/// `progress` returns false, the copy ends as soon as it can be resumed.
pub fn copy(
    plan: Plan,
    settings: &Settings,
    progress: &mut dyn FnMut(Step<'_>) -> bool,
) -> Outcome {
    let run = Run {
        plan: &plan,
        settings,
        notes: Notes::default(),
        moved: AtomicU64::new(0),
        end: AtomicBool::new(false),
        pace: settings.rate.map(Pace::new),
        results: Mutex::new(Results::default()),
    };
    run.directories();
    run.files(progress);
    if !run.ends() {
        run.others();
        run.finish_directories();
    }
    let interrupted = run.ends();
    let Run { notes, results, .. } = run;
    let mut outcome = results.into_inner().unwrap_or_default().outcome;
    outcome.interrupted = interrupted;
    outcome.files.sort_by(|a, b| a.source.cmp(&b.source));
    outcome.failed.splice(0..0, plan.failed);
    outcome.notes = plan.notes.into_list();
    outcome.notes.extend(notes.into_list());
    outcome
}

#[derive(Default)]
struct Results {
    outcome: Outcome,
    /// Entries that failed; what is below them and their other names cannot be made either.
    absent: Vec<usize>,
    /// Directories, with what they were when they were made or found.
    made: Vec<(usize, Node)>,
    current: PathBuf,
}

struct Run<'a> {
    plan: &'a Plan,
    settings: &'a Settings,
    notes: Notes,
    moved: AtomicU64,
    end: AtomicBool,
    pace: Option<Pace>,
    results: Mutex<Results>,
}

impl Watch for Run<'_> {
    fn moved(&self, bytes: u64) -> ControlFlow<()> {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
        if self.ends() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn pace(&self, bytes: u64) {
        if let Some(pace) = &self.pace {
            pace.wait(bytes, &self.end);
        }
    }
}

/// Files in the order in which they are copied.
struct Queue<'a> {
    entries: &'a [Entry],
    files: &'a [usize],
    next: Mutex<usize>,
}

impl<'a> Queue<'a> {
    /// The next file, with those behind it that are small too.
    fn take(&self, small_bytes: u64) -> &'a [usize] {
        let Ok(mut next) = self.next.lock() else { return &[] };
        let left = &self.files[*next..];
        let mut bytes = 0;
        let small = left.iter().take(BATCH_FILES).take_while(|&&index| {
            bytes += self.entries[index].bytes;
            self.entries[index].bytes <= small_bytes && bytes <= BATCH_BYTES
        });
        let taken = small.count().max(1).min(left.len());
        *next += taken;
        &left[..taken]
    }
}

/// Where a file is made.
struct FilePlace<'a> {
    index: usize,
    entry: &'a Entry,
    dir: Arc<HeldDir>,
    name: &'a Path,
}

impl FilePlace<'_> {
    fn path(&self) -> PathBuf {
        let path = self.dir.path().join(self.name);
        path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)
    }
}

/// What became of an entry.
enum Done {
    Made,
    /// It was there from an earlier copy.
    Kept,
}

impl Run<'_> {
    fn ends(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Results) -> T) -> T {
        // A thread that panicked ends the program anyway: the scope passes that on.
        act(&mut self.results.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn fails(&self, index: usize, error: CopyError) {
        let path = self.plan.entries[index].source.clone();
        self.with(|results| {
            results.absent.push(index);
            results.outcome.failed.push(Failure { path, error });
        });
    }

    fn held(&self, dir: &Path) -> Result<HeldDir, CopyError> {
        self.plan.root.within(dir).map_err(|source| CopyError::Io {
            operation: "open the directory",
            path: self.plan.root.path().join(dir),
            source,
            hint: "it was replaced meanwhile, or this user may not read it",
        })
    }

    /// Where an entry is made: the directory that holds it, its name there, its path for messages.
    fn place<'e>(&self, entry: &'e Entry) -> Result<(HeldDir, &'e Path, PathBuf), CopyError> {
        let dir = self.held(entry.target.parent().unwrap_or(Path::new("")))?;
        let name = entry.target.file_name().map_or(Path::new(""), Path::new);
        let path = dir.path().join(name);
        Ok((dir, name, path))
    }

    fn is_below_absent(&self, entry: &Entry) -> bool {
        self.with(|results| {
            let mut absent = results.absent.iter().map(|&index| &self.plan.entries[index]);
            absent.any(|absent| {
                matches!(absent.kind, Kind::Directory(_))
                    && entry.target.starts_with(&absent.target)
            })
        })
    }

    fn directories(&self) {
        for (index, entry) in self.plan.entries.iter().enumerate() {
            if !matches!(entry.kind, Kind::Directory(_)) || self.is_below_absent(entry) {
                continue;
            }
            match self.directory(entry) {
                Ok(node) => self.with(|results| results.made.push((index, node))),
                Err(error) => self.fails(index, error),
            }
        }
    }

    fn directory(&self, entry: &Entry) -> Result<Node, CopyError> {
        let (dir, name, path) = self.place(entry)?;
        match mkdirat(&dir, name, NEW_DIRECTORY) {
            Err(Errno::EXIST) if self.settings.file.force || self.settings.file.resume => {}
            made => made.map_err(failed("make the directory", &path))?,
        }
        let held = dir.within(name).map_err(|source| CopyError::Io {
            operation: "open the directory",
            path: path.clone(),
            source,
            hint: "only a directory can be filled; remove what is in its place",
        })?;
        Ok(Node::of(&fstat(&held).map_err(failed("look at", &path))?))
    }

    fn files(&self, progress: &mut dyn FnMut(Step<'_>) -> bool) {
        let entries = self.plan.entries.iter().enumerate();
        let files: Vec<usize> = entries
            .filter(|(_, it)| matches!(it.kind, Kind::File))
            .map(|(index, _)| index)
            .collect();
        let queue = Queue { entries: &self.plan.entries, files: &files, next: Mutex::new(0) };
        let jobs = self.settings.jobs.clamp(1, files.len().max(1));
        let ended = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    self.work(&queue);
                    ended.fetch_add(1, Ordering::Release);
                });
            }
            let mut pause = Duration::from_millis(1);
            while ended.load(Ordering::Acquire) < jobs {
                thread::sleep(pause);
                pause = (pause * 2).min(TICK);
                let file = self.with(|results| results.current.clone());
                let done_bytes = self.moved.load(Ordering::Relaxed);
                if !progress(Step { done_bytes, all_bytes: self.plan.data_bytes, file: &file }) {
                    self.end.store(true, Ordering::Relaxed);
                }
            }
        });
        // Where no thread had any.
        while let &[index] = queue.take(0)
            && !self.ends()
        {
            let path = self.plan.entries[index].source.clone();
            let source = io::ErrorKind::OutOfMemory.into();
            let hint = "see the error of the first file";
            self.fails(index, CopyError::Io { operation: "copy", path, source, hint });
        }
    }

    /// One thread of those that copy files.
    fn work(&self, queue: &Queue<'_>) {
        let mut copier = match Copier::new(self.settings.file) {
            Ok(copier) => copier,
            // Reported for one file; other threads may still copy the rest.
            Err(error) => {
                if let Some(&index) = queue.take(0).first() {
                    self.fails(index, error);
                }
                return;
            }
        };
        while let taken = queue.take(copier.small().get())
            && !taken.is_empty()
            && !self.ends()
        {
            let mut places = Vec::new();
            for &index in taken {
                let entry = &self.plan.entries[index];
                if self.is_below_absent(entry) {
                    continue;
                }
                match self.file_place(entry, places.last()) {
                    Ok(Some(place)) => places.push(FilePlace { index, ..place }),
                    Ok(None) => self.with(|results| {
                        results.outcome.kept_files += 1;
                        results.outcome.kept_bytes += entry.bytes;
                    }),
                    Err(error) => self.fails(index, error),
                }
            }
            self.copy_files(&mut copier, &places);
        }
    }

    fn copy_files(&self, with: &mut Copier, places: &[FilePlace<'_>]) {
        let Some(first) = places.first() else { return };
        self.with(|results| results.current.clone_from(&first.entry.source));
        let began = Instant::now();
        let carries: Vec<_> = places.iter().map(|place| self.carry(place)).collect();
        let jobs = places.iter().zip(&carries).map(|(place, carry)| {
            let job = Job { source: &place.entry.source, target_dir: &place.dir, name: place.name };
            BatchJob { job, carry }
        });
        let jobs: Vec<BatchJob<'_>> = jobs.collect();
        let copied = match &jobs[..] {
            [one] => vec![with.copy(&one.job, one.carry, self)],
            jobs => with.copy_batch(jobs, self),
        };
        // Files of a batch have no time of their own.
        let seconds = (jobs.len() == 1).then(|| began.elapsed().as_secs_f64());
        for (place, copied) in places.iter().zip(copied) {
            match copied {
                Ok(copied) => self.with(|results| {
                    let (source, target) = (place.entry.source.clone(), place.path());
                    results.outcome.files.push(CopiedFile { source, target, copied, seconds });
                }),
                Err(CopyError::Interrupted) => self.end.store(true, Ordering::Relaxed),
                Err(error) => self.fails(place.index, error),
            }
        }
    }

    /// None for a file that an earlier copy completed.
    fn file_place<'e>(
        &self,
        entry: &'e Entry,
        last: Option<&FilePlace<'e>>,
    ) -> Result<Option<FilePlace<'e>>, CopyError> {
        let parent = entry.target.parent();
        let dir = match last {
            Some(last) if last.entry.target.parent() == parent => Arc::clone(&last.dir),
            _ => Arc::new(self.held(parent.unwrap_or(Path::new("")))?),
        };
        let name = entry.target.file_name().map_or(Path::new(""), Path::new);
        let complete = self.settings.file.resume && is_complete(entry, &dir, name)?;
        Ok((!complete).then_some(FilePlace { index: 0, entry, dir, name }))
    }

    /// Gives a target what its source carries, if that is the file that was planned.
    fn carry<'c>(
        &'c self,
        place: &'c FilePlace<'_>,
    ) -> impl Fn(&File, &File) -> Result<(), CopyError> {
        move |source, target| {
            let path = &place.entry.source;
            let found = fstat(source).map_err(failed("look at", path))?;
            if Node::of(&found) != place.entry.node {
                return Err(replaced("copy", path));
            }
            let attributes = Attributes::of(source).map_err(|source| CopyError::Io {
                operation: "read the attributes of",
                path: path.clone(),
                source,
                hint: "check that the file system is in order",
            })?;
            attributes.apply(target, &place.path(), &self.notes)
        }
    }

    /// Links, pipes and devices, once the files that they name are there.
    fn others(&self) {
        for (index, entry) in self.plan.entries.iter().enumerate() {
            if matches!(entry.kind, Kind::Directory(_) | Kind::File) || self.is_below_absent(entry)
            {
                continue;
            }
            // Its first name failed, which was reported.
            if let Kind::Same(first) = entry.kind
                && self.with(|results| results.absent.contains(&first))
            {
                continue;
            }
            match self.other(entry) {
                Ok(Done::Made) => self.with(|Results { outcome, .. }| match entry.kind {
                    Kind::Link(..) => outcome.links += 1,
                    Kind::Same(_) => outcome.hard_links += 1,
                    _ => outcome.specials += 1,
                }),
                Ok(Done::Kept) => self.with(|results| results.outcome.kept_files += 1),
                Err(error) => self.fails(index, error),
            }
        }
    }

    fn other(&self, entry: &Entry) -> Result<Done, CopyError> {
        let (dir, name, path) = self.place(entry)?;
        let there = match statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => Some(there),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(failed("look at", &path)(error)),
        };
        let make = |name: &Path| match &entry.kind {
            Kind::Same(first) => {
                let first = &self.plan.entries[*first].target;
                let from = self.held(first.parent().unwrap_or(Path::new("")))?;
                let first = first.file_name().unwrap_or_default();
                linkat(&from, first, &dir, name, AtFlags::empty()).map_err(failed("link", &path))
            }
            Kind::Link(to, attributes) => {
                symlinkat(to, &dir, name).map_err(failed("make the link", &path))?;
                attributes.apply_at(&dir, name, &path, &self.notes)
            }
            Kind::Special(kind, number, attributes) => {
                mknodat(&dir, name, *kind, Mode::RUSR | Mode::WUSR, *number)
                    .map_err(failed("make the pipe or device", &path))?;
                attributes.apply_at(&dir, name, &path, &self.notes)
            }
            Kind::Directory(_) | Kind::File => Ok(()),
        };
        let Some(there) = there else { return make(name).map(|()| Done::Made) };
        if self.settings.file.resume && self.is_as_wanted(entry, &dir, name, &there) {
            return Ok(Done::Kept);
        }
        if !self.settings.file.force && !self.settings.file.resume {
            return Err(failed("make", &path)(Errno::EXIST));
        }
        if FileType::from_raw_mode(there.st_mode) == FileType::Directory {
            return Err(failed("replace", &path)(Errno::ISDIR));
        }
        // The old one is replaced by a rename, so that the name always exists.
        let new =
            PathBuf::from(format!(".blockstone-{}", rustix::process::getpid().as_raw_nonzero()));
        match unlinkat(&dir, &new, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed("remove", &dir.path().join(&new))(error)),
        }
        make(&new)?;
        let rename = dir.rename(&new, name);
        // rename(2) does nothing if both are names of the same file.
        let _ = unlinkat(&dir, &new, AtFlags::empty());
        rename.map(|()| Done::Made).map_err(|source| CopyError::Io {
            operation: "replace",
            path: path.clone(),
            source,
            hint: "check that this user may write to the directory",
        })
    }

    fn is_as_wanted(
        &self,
        entry: &Entry,
        dir: &HeldDir,
        name: &Path,
        there: &rustix::fs::Stat,
    ) -> bool {
        match &entry.kind {
            Kind::Same(first) => {
                let first = &self.plan.entries[*first].target;
                let first = self.held(first.parent().unwrap_or(Path::new(""))).and_then(|from| {
                    statat(&from, first.file_name().unwrap_or_default(), AtFlags::SYMLINK_NOFOLLOW)
                        .map_err(failed("look at", first))
                });
                first.is_ok_and(|first| Node::of(&first) == Node::of(there))
            }
            Kind::Link(to, _) => {
                use std::os::unix::ffi::OsStrExt as _;
                readlinkat(dir, name, Vec::new()).is_ok_and(|it| it.as_bytes() == to.as_bytes())
            }
            Kind::Special(kind, number, _) => {
                FileType::from_raw_mode(there.st_mode) == *kind && there.st_rdev == *number
            }
            Kind::Directory(_) | Kind::File => false,
        }
    }

    /// The deepest first: what is made in a directory changes its times.
    fn finish_directories(&self) {
        let made = self.with(|results| std::mem::take(&mut results.made));
        for (index, node) in made.into_iter().rev() {
            match self.finish_directory(&self.plan.entries[index], node) {
                Ok(()) => self.with(|results| results.outcome.directories += 1),
                Err(error) => self.fails(index, error),
            }
        }
    }

    fn finish_directory(&self, entry: &Entry, node: Node) -> Result<(), CopyError> {
        let Kind::Directory(attributes) = &entry.kind else { return Ok(()) };
        let held = self.held(&entry.target)?;
        let path = held.path();
        if Node::of(&fstat(&held).map_err(failed("look at", path))?) != node {
            return Err(replaced("finish the directory", path));
        }
        fsync(&held).map_err(failed("make durable", path))?;
        attributes.apply(&held, path, &self.notes)
    }
}

fn replaced(operation: &'static str, path: &Path) -> CopyError {
    CopyError::Io {
        operation,
        path: path.to_owned(),
        source: io::Error::other("something else has its name now"),
        hint: "copy it when nobody changes names in these directories",
    }
}

/// Whether an earlier copy completed this target: it has the size and the modification time of the
/// source, which a copy sets last.
fn is_complete(entry: &Entry, dir: &HeldDir, name: &Path) -> Result<bool, CopyError> {
    let stat = |found: rustix::io::Result<rustix::fs::Stat>| match found {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(failed("look at", &entry.source)(error)),
    };
    let there = stat(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW))?;
    let source = stat(rustix::fs::lstat(&entry.source))?;
    Ok(matches!((source, there), (Some(source), Some(there))
        if FileType::from_raw_mode(there.st_mode) == FileType::RegularFile
            && FileType::from_raw_mode(source.st_mode) == FileType::RegularFile
            && (source.st_size, source.st_mtime, source.st_mtime_nsec)
                == (there.st_size, there.st_mtime, there.st_mtime_nsec)))
}
