//! Execution of a plan: directories, then files by several threads, then links and pipes, and last
//! the attributes of directories.

use std::collections::{HashMap, HashSet};
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
use blockstone_sys::thread::scoped;
use rustix::fs::fstat;
use rustix::process::{Resource, getrlimit};

use super::kept::{self, Found};
use super::pace::Pace;
use super::plan::{Entry, Kind, Node, Plan};
use super::workshop::Workshop;
use super::{CopiedFile, Failure, KeptFile, Outcome};
use crate::CopyError;
use crate::attributes::{Attributes, Notes};
use crate::file::{BatchJob, Copier, Job, Options, Watch};

/// Interval between progress reports.
const TICK: Duration = Duration::from_millis(50);
/// Limits of a batch: its bytes are in progress until the first of them are durable, and an
/// interrupted copy moves them again.
const BATCH_FILES: usize = 64;
const BATCH_BYTES: u64 = 64 << 20;

mod names;

#[derive(Clone, Debug)]
pub struct Settings {
    pub file: Options,
    /// Number of files copied in parallel.
    pub jobs: usize,
    /// Bytes per second, over all files together.
    pub rate: Option<Bytes>,
}

/// Progress of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub done_bytes: u64,
    pub all_bytes: u64,
    /// One of the files being copied.
    pub file: &'a Path,
}

/// Carries out a plan. A file that fails is listed in the outcome, and the others are copied. If
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
    let mut workshop = Workshop::below(&plan.root);
    run.directories(&mut workshop);
    run.files(progress);
    if !run.ends() {
        run.others(&mut workshop);
        // Its removal changes the times of the directory that contains it.
        drop(workshop);
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
struct Results<'a> {
    outcome: Outcome,
    /// Entries that failed; anything below them and their other names cannot be made either.
    absent: Vec<usize>,
    /// Identities of directories when they were made or found, by target.
    directories: HashMap<&'a Path, Node>,
    /// Directories that existed before.
    found: HashSet<&'a Path>,
    /// Targets that are to get further names.
    linked: HashMap<usize, Node>,
    current: PathBuf,
}

struct Run<'a> {
    plan: &'a Plan,
    settings: &'a Settings,
    notes: Notes,
    moved: AtomicU64,
    end: AtomicBool,
    pace: Option<Pace>,
    results: Mutex<Results<'a>>,
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
    /// Maximum number of small files that are taken together.
    at_once: usize,
    next: Mutex<usize>,
}

impl<'a> Queue<'a> {
    /// Takes the next file, with those after it that are small too.
    fn take(&self, small_bytes: u64) -> &'a [usize] {
        let Ok(mut next) = self.next.lock() else { return &[] };
        let left = &self.files[*next..];
        let mut bytes = 0;
        let small = left.iter().take(self.at_once).take_while(|&&index| {
            bytes += self.entries[index].bytes;
            self.entries[index].bytes <= small_bytes && bytes <= BATCH_BYTES
        });
        let taken = small.count().max(1).min(left.len());
        *next += taken;
        &left[..taken]
    }
}

/// Returns the number of files in a batch that the limit on open files allows; each file and its
/// directories are open twice.
fn batch_files(jobs: usize) -> usize {
    /// For the whole process, and for a copying thread.
    const OTHERS: [usize; 2] = [32, 8];
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let of_job = (limit.saturating_sub(OTHERS[0]) / jobs).saturating_sub(OTHERS[1]);
    (of_job / 4).clamp(1, BATCH_FILES)
}

/// Source and target location of a file.
struct FilePlace<'a> {
    index: usize,
    entry: &'a Entry,
    from: Arc<HeldDir>,
    dir: Arc<HeldDir>,
    name: &'a Path,
    /// Whether an earlier copy completed it.
    is_complete: bool,
}

impl FilePlace<'_> {
    fn job(&self) -> Job<'_> {
        let source = &self.entry.source;
        Job { source, from: &self.from, target_dir: &self.dir, name: self.name }
    }

    fn path(&self) -> PathBuf {
        let path = self.dir.path().join(self.name);
        path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)
    }
}

impl<'a> Run<'a> {
    fn ends(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Results<'a>) -> T) -> T {
        // A thread that panicked ends the program anyway: the scope propagates the panic.
        act(&mut self.results.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn fails(&self, index: usize, error: CopyError) {
        let path = self.plan.entries[index].source.clone();
        self.with(|results| {
            results.absent.push(index);
            results.outcome.failed.push(Failure { path, error });
        });
    }

    /// Opens a directory of the target that was made or found before; another one that has its name
    /// now is refused.
    fn held(&self, dir: &Path) -> Result<HeldDir, CopyError> {
        let operation = "open the directory";
        let held = self.plan.root.within(dir).map_err(|source| CopyError::Io {
            operation,
            path: self.plan.root.path().join(dir),
            source,
            hint: "it was replaced meanwhile, or this user may not read it",
        })?;
        if let Some(node) = self.with(|results| results.directories.get(dir).copied()) {
            let found = fstat(&held).map_err(CopyError::io("look at", held.path()))?;
            if Node::of(&found) != node {
                return Err(CopyError::replaced(operation, held.path()));
            }
        }
        Ok(held)
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

    fn files(&self, progress: &mut dyn FnMut(Step<'_>) -> bool) {
        let entries = self.plan.entries.iter().enumerate();
        let files: Vec<usize> = entries
            .filter(|(_, it)| matches!(it.kind, Kind::File))
            .map(|(index, _)| index)
            .collect();
        let jobs = self.settings.jobs.clamp(1, files.len().max(1));
        let (entries, at_once) = (&*self.plan.entries, batch_files(jobs));
        let queue = Queue { entries, files: &files, at_once, next: Mutex::new(0) };
        let (ended, mut no_thread) = (AtomicUsize::new(0), None);
        thread::scope(|scope| {
            let work = || {
                self.work(&queue);
                ended.fetch_add(1, Ordering::Release);
            };
            let started = (0..jobs).map(|_| scoped(scope, "copy", work));
            // Fewer threads can still copy everything.
            let (started, refused): (Vec<_>, Vec<_>) = started.partition(Result::is_ok);
            if started.is_empty() {
                no_thread = refused.into_iter().find_map(Result::err);
                return;
            }
            let jobs = started.len();
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
        // Files that are left if no thread could start or had memory.
        while let &[index] = queue.take(0)
            && !self.ends()
        {
            let path = self.plan.entries[index].source.clone();
            let (operation, hint) = ("start a thread to copy", "raise ulimit -u");
            let error = match no_thread.take() {
                Some(source) => CopyError::Io { operation, path, source, hint },
                None => CopyError::Io {
                    operation: "copy",
                    path,
                    source: io::ErrorKind::OutOfMemory.into(),
                    hint: "see the error of the first file",
                },
            };
            self.fails(index, error);
        }
    }

    /// Runs one of the threads that copy files.
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
            let mut places: Vec<FilePlace<'_>> = Vec::new();
            for &index in taken {
                if self.is_below_absent(&self.plan.entries[index]) {
                    continue;
                }
                let place = self.file_place(index, places.last());
                match place.and_then(|place| Ok((self.keeps(&mut copier, &place)?, place))) {
                    Ok((false, place)) => places.push(place),
                    Ok((true, _)) => {}
                    Err(CopyError::Interrupted) => self.end.store(true, Ordering::Relaxed),
                    Err(error) => self.fails(index, error),
                }
            }
            self.copy_files(&mut copier, &places);
        }
    }

    /// Returns whether a target stays as an earlier copy completed it. It is read again if it is to
    /// be verified, and its source is read if there is to be a manifest.
    fn keeps(&self, with: &mut Copier, place: &FilePlace<'_>) -> Result<bool, CopyError> {
        if !place.is_complete {
            return Ok(false);
        }
        let Options { hash, verify, force, .. } = self.settings.file;
        let mut kept = None;
        if hash || verify {
            self.with(|results| results.current.clone_from(&place.entry.source));
            kept = match with.keep(&place.job(), self) {
                Err(CopyError::NotKept { .. }) if force => return Ok(false),
                read => Some(read?),
            };
        }
        self.with(|Results { outcome, .. }| {
            outcome.kept_files += 1;
            outcome.kept_bytes += place.entry.bytes;
            outcome.kept.extend(kept.map(|kept| KeptFile { target: place.path(), kept }));
        });
        Ok(true)
    }

    fn copy_files(&self, with: &mut Copier, places: &[FilePlace<'_>]) {
        let Some(first) = places.first() else { return };
        self.with(|results| results.current.clone_from(&first.entry.source));
        let began = Instant::now();
        let carries: Vec<_> = places.iter().map(|place| self.carry(place)).collect();
        let jobs =
            places.iter().zip(&carries).map(|(place, carry)| BatchJob { job: place.job(), carry });
        let jobs: Vec<BatchJob<'_>> = jobs.collect();
        let copied = match &jobs[..] {
            [one] => vec![with.copy(&one.job, one.carry, self)],
            jobs => with.copy_batch(jobs, self),
        };
        // Files of a batch have no individual times.
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

    /// Returns the source and target location of a file. Fails if a resumed copy finds something
    /// else there.
    fn file_place(
        &self,
        index: usize,
        last: Option<&FilePlace<'a>>,
    ) -> Result<FilePlace<'a>, CopyError> {
        let entry = &self.plan.entries[index];
        let (above, parent) = (entry.below().parent(), entry.target.parent());
        let above = above.unwrap_or(Path::new(""));
        let from = match last {
            // The base need not be readable.
            _ if above.as_os_str().is_empty() => Arc::clone(&entry.base),
            Some(last)
                if Arc::ptr_eq(&last.entry.base, &entry.base)
                    && last.entry.below().parent() == Some(above) =>
            {
                Arc::clone(&last.from)
            }
            _ => {
                let from = entry.base.within(above);
                Arc::new(from.map_err(CopyError::io("open the directory of", &entry.source))?)
            }
        };
        let dir = match last {
            Some(last) if last.entry.target.parent() == parent => Arc::clone(&last.dir),
            _ => Arc::new(self.held(parent.unwrap_or(Path::new("")))?),
        };
        let name = entry.target.file_name().map_or(Path::new(""), Path::new);
        let mut place = FilePlace { index, entry, from, dir, name, is_complete: false };
        let Options { resume, force, .. } = self.settings.file;
        if resume {
            let source = (&*place.from, place.job().source_name());
            match kept::file(entry, source, (&place.dir, name))? {
                Found::Complete => {
                    place.is_complete = true;
                    self.note_linked(index, || place.dir.read(name));
                }
                Found::Other(why) if !force => {
                    return Err(CopyError::NotKept { path: place.path(), why });
                }
                Found::Other(_) | Found::Nothing => {}
            }
        }
        Ok(place)
    }

    /// Notes the identity of a target, if it is to get further names.
    fn note_linked(&self, index: usize, target: impl FnOnce() -> io::Result<File>) {
        if self.plan.entries[index].names > 1
            && let Ok(found) = target().and_then(|target| Ok(fstat(target)?))
        {
            self.with(|results| results.linked.insert(index, Node::of(&found)));
        }
    }

    /// Returns a function that gives a target the attributes of its source, if that is the planned
    /// file.
    fn carry<'c>(
        &'c self,
        place: &'c FilePlace<'_>,
    ) -> impl Fn(&File, &File) -> Result<(), CopyError> {
        move |source, target| {
            let path = &place.entry.source;
            let found = fstat(source).map_err(CopyError::io("look at", path))?;
            if Node::of(&found) != place.entry.node {
                return Err(CopyError::replaced("copy", path));
            }
            let attributes = Attributes::of(source).map_err(|source| CopyError::Io {
                operation: "read the attributes of",
                path: path.clone(),
                source,
                hint: "check that the file system is in order",
            })?;
            self.note_linked(place.index, || target.try_clone());
            attributes.apply(target, &place.path(), &self.notes)
        }
    }
}
