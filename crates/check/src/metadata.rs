//! Cost of operations on names and inodes, by shape and by the number of files, and where their
//! answers came from.
//!
//! A directory grows from size to size; at each, every operation is timed on a part of its files.
//! Names are derived from numbers, and everything is in one scratch directory, held by its
//! descriptor.

mod classify;
mod cold;
pub mod findings;
mod layout;
mod ranks;
mod server;
mod work;

use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use crate::metadata::findings::{CacheGrowth, Cell, Growth, MetadataFindings, Operation, Shape};
use blockstone_base::identity::PathKind;
use blockstone_measure::{Observer, claim, scratch};
use blockstone_sys::scratch::ScratchDir;
use blockstone_sys::{descriptors, slab, survey};
use rustix::io::Errno;

use crate::CheckError;
use crate::evidence::name_of;
use layout::{Dirs, Kind};
use ranks::{Device, Outcome, Ranks, Task};

pub use cold::Caches;

/// Operations to try, and their limits.
#[derive(Clone, Debug)]
pub struct Settings {
    pub shapes: Vec<Shape>,
    /// Numbers of files, ascending: all for the first shape, the last for the others.
    pub sizes: Vec<u64>,
    pub ranks: u32,
    /// Bytes written to each file that is made durable.
    pub content_bytes: u64,
    /// Caches dropped before reading operations are tried a second time.
    pub drop: Option<Caches>,
    /// Time limit for one operation.
    pub limit: Duration,
}

impl Settings {
    /// Returns settings that take at most four seconds and disturb no one.
    pub fn quick() -> Self {
        Self {
            shapes: vec![Shape::One],
            sizes: vec![2_000],
            ranks: 2,
            content_bytes: 4096,
            drop: None,
            limit: Duration::from_millis(150),
        }
    }
}

/// Maximum number of ranks, which are threads of this process.
pub const RANKS_MAX: u32 = 4_096;
/// Maximum number of files: names have this many digits for each rank.
pub const FILES_MAX: u64 = 100_000_000;

/// Number of files, over all ranks, on which operations that change something are tried.
const CHANGED: u64 = 10_000;
/// Time limit for filling a directory up to the next size.
const FILL_LIMIT: Duration = Duration::from_mins(5);
/// Minimum size of an inode with its entry, on any file system.
const FILE_BYTES: u64 = 600;
/// Number of files that must be made to distinguish their memory from that of other processes.
const LEAST_COUNTED: u64 = 1_000;
/// The same for the files of a rank, which is a thread: the kernel has objects for that, too.
const LEAST_OF_RANK: u64 = 20;
/// Objects of a cache per file from which it counts as a cache that grows with files.
const OBJECTS_PER_FILE: f64 = 0.5;

/// Operations that are tried again after caches were dropped.
const READS: [Operation; 5] = [
    Operation::Readdir,
    Operation::Stat,
    Operation::OpenClose,
    Operation::AccessNegative,
    Operation::ReaddirStat,
];
const CHANGES: [Operation; 3] = [Operation::Rename, Operation::Setattr, Operation::Xattr];

/// Tries all operations in a scratch directory in `path`, which `id` names. Fails if the path
/// cannot be used; a refusal by the kernel is a finding.
pub fn of_path(
    path: &Path,
    id: u64,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<MetadataFindings, CheckError> {
    let target = survey::target(Path::new("/"), path)?;
    if target.kind != PathKind::Directory {
        return Err(CheckError::NoDirectory { path: path.to_owned() });
    }
    claim::directory(path)?;
    has_room(path, settings)?;
    has_descriptors(settings)?;
    let in_memory = target.file_system.as_ref().is_some_and(|found| found.in_memory().is_some());
    let file_system = target.file_system.map(|found| (found.kind, found.mount_point));
    let (kind, mount_point) = file_system.unzip();
    let kind = kind.unwrap_or_default();
    let is_nfs = kind.starts_with("nfs");
    let dir = Path::new(&target.path);
    scratch::remove_orphans(dir, &[]);
    let mut check = Check {
        path,
        in_memory,
        elsewhere: classify::elsewhere(&kind),
        settings,
        scratch: Scratch::make(dir, id).map_err(|source| failed(path, source))?,
        device: Device::open(
            target.devices.first().map(|device| device.name.clone()),
            mount_point.filter(|_| is_nfs),
        ),
        observer,
        cells: Vec::new(),
        memory: Vec::new(),
        memory_unseen: String::new(),
        unfinished: false,
    };
    let tried = check.all();
    let removed = check.scratch.remove();
    tried?;
    removed.map_err(|source| failed(path, source))?;
    Ok(MetadataFindings {
        subject: path.display().to_string(),
        file_system: kind,
        device: check.device.name,
        ranks: settings.ranks,
        growth: growth(&check.cells),
        cells: check.cells,
        memory: check.memory,
        memory_unseen: check.memory_unseen,
        unfinished: check.unfinished,
        signal: check.observer.interrupted().map(str::to_owned),
    })
}

fn failed(path: &Path, source: std::io::Error) -> CheckError {
    let hint = "free some space and inodes, choose another directory, or use fewer --files";
    CheckError::Scratch { dir: path.to_owned(), source, hint }
}

/// Returns the files of each rank at each size: at least one, and the same number for every rank.
fn of_each(settings: &Settings) -> Vec<u64> {
    let each = settings.sizes.iter().map(|files| files.div_ceil(settings.ranks.into()).max(1));
    let mut each: Vec<u64> = each.collect();
    each.dedup();
    each
}

/// Refuses more ranks than there are descriptors for: each holds its directory open, and a file or
/// a directory.
fn has_descriptors(settings: &Settings) -> Result<(), CheckError> {
    let needed = u64::from(settings.ranks) * 2;
    descriptors::make_room(needed).map_err(|limit| {
        let ranks = settings.ranks;
        CheckError::Descriptors { ranks, needed, limit }
    })
}

/// Refuses more files than there are inodes or bytes for.
fn has_room(path: &Path, settings: &Settings) -> Result<(), CheckError> {
    let files = settings.sizes.last().copied().unwrap_or_default().max(settings.ranks.into());
    let Ok(found) = rustix::fs::statvfs(path) else { return Ok(()) };
    // Without a number, as on btrfs, there is no limit.
    let few_inodes = found.f_files > 0 && found.f_favail < files + files / 64;
    let few_bytes = found.f_bavail.saturating_mul(found.f_frsize) < files * FILE_BYTES;
    if few_inodes || few_bytes {
        let what = if few_inodes { "inodes" } else { "bytes" };
        return Err(CheckError::NoRoom { path: path.to_owned(), files, what });
    }
    Ok(())
}

/// The scratch directory, removed with this value.
#[derive(Debug)]
struct Scratch(Option<ScratchDir>);

impl Scratch {
    fn make(dir: &Path, id: u64) -> std::io::Result<Self> {
        let path = dir.join(scratch::name(id, "metadata"));
        Ok(Self(Some(ScratchDir::create(&path, None)?)))
    }

    fn remove(&mut self) -> std::io::Result<()> {
        self.0.take().map_or(Ok(()), |dir| dir.remove())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

struct Check<'a> {
    path: &'a Path,
    in_memory: bool,
    elsewhere: Option<&'static str>,
    settings: &'a Settings,
    scratch: Scratch,
    device: Device,
    observer: &'a mut dyn Observer,
    cells: Vec<Cell>,
    memory: Vec<CacheGrowth>,
    memory_unseen: String,
    unfinished: bool,
}

/// One shape with one number of files.
#[derive(Clone, Copy)]
struct Size<'a> {
    ranks: Ranks<'a>,
    shape: Shape,
    files: u64,
    /// Number of files of each rank.
    each: u64,
}

impl Size<'_> {
    /// Returns the numbers of the files of a rank that are changed: the last, so that the others
    /// are numbered without a gap when these are gone.
    fn changed(&self) -> std::ops::Range<u64> {
        let some = (CHANGED / u64::from(self.ranks.count)).clamp(1, (self.each / 2).max(1));
        self.each - some..self.each
    }
}

impl Check<'_> {
    fn all(&mut self) -> Result<(), CheckError> {
        let settings = self.settings;
        let content = vec![0x5a; settings.content_bytes as usize];
        for (number, &shape) in settings.shapes.iter().enumerate() {
            let Some(scratch) = &self.scratch.0 else { return Ok(()) };
            let dirs = Dirs::make(scratch.as_fd(), shape, settings.ranks)
                .map_err(|source| failed(self.path, source))?;
            let ranks = Ranks { count: settings.ranks, dirs: &dirs, content: &content };
            let sizes = of_each(settings);
            let sizes = if number == 0 { &sizes[..] } else { last(&sizes) };
            let mut filled = 0;
            for &each in sizes {
                let size = Size { ranks, shape, files: each * u64::from(settings.ranks), each };
                if !self.fill(&size, filled)? || !self.at(&size)? {
                    break;
                }
                filled = size.changed().start;
            }
            self.clear(&ranks, filled);
            if self.is_over() {
                break;
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.unfinished || self.observer.interrupted().is_some()
    }

    /// Makes the files from `filled` on; returns whether all exist.
    fn fill(&mut self, size: &Size, filled: u64) -> Result<bool, CheckError> {
        self.observer.phase("create");
        let measured = size.changed().start.max(filled);
        let before = slab::slabs(Path::new("/"));
        for numbers in [filled..measured, measured..size.each] {
            let wanted = numbers.end - numbers.start;
            let is_measured = numbers.end == size.each;
            let task = Task::new(Operation::Create, numbers, FILL_LIMIT);
            let outcome = size.ranks.run(&task, &mut self.device, self.observer)?;
            if let Some(error) = outcome.error {
                return Err(failed(self.path, error.into()));
            }
            if outcome.operations.iter().any(|made| *made < wanted) {
                self.unfinished |= self.observer.interrupted().is_none();
                return Ok(false);
            }
            if is_measured {
                self.take(size, Operation::Create, false, outcome);
            }
        }
        self.count_memory(before, size.each - filled, size.ranks.count.into());
        Ok(true)
    }

    /// Records how much the kernel's caches grew while each of some ranks made files.
    fn count_memory(&mut self, before: std::io::Result<Slabs>, each: u64, ranks: u64) {
        let made = each * ranks;
        if made < LEAST_COUNTED {
            return;
        }
        if each < LEAST_OF_RANK {
            if self.memory.is_empty() {
                let why = "each rank made too few to tell their memory from that of its thread";
                why.clone_into(&mut self.memory_unseen);
            }
            return;
        }
        let (before, after) = match (before, slab::slabs(Path::new("/"))) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(error), _) | (_, Err(error)) => {
                self.memory_unseen = format!("/proc/slabinfo cannot be read: {error}");
                return;
            }
        };
        let grown = after.into_iter().filter_map(|(cache, now)| {
            let then = before.get(&cache).map_or(0, |slab| slab.objects);
            let objects = now.objects.saturating_sub(then) as f64 / made as f64;
            let bytes_per_file = objects * now.object_bytes;
            (objects >= OBJECTS_PER_FILE).then_some(CacheGrowth { cache, bytes_per_file })
        });
        self.memory_unseen = String::new();
        self.memory = grown.collect();
        self.memory.sort_by(|a, b| b.bytes_per_file.total_cmp(&a.bytes_per_file));
    }

    /// Tries all operations but creation; returns whether there was time for all.
    fn at(&mut self, size: &Size) -> Result<bool, CheckError> {
        if let Some(caches) = self.settings.drop {
            for operation in READS {
                let dir = size.ranks.dirs.root(0);
                cold::drop_caches(dir, self.device.name.as_deref(), caches)
                    .map_err(|source| CheckError::Drop { source })?;
                self.tried(size, operation, 0..size.each, true)?;
                if self.is_over() {
                    return Ok(false);
                }
            }
        }
        for operation in READS {
            self.tried(size, operation, 0..size.each, false)?;
        }
        for operation in CHANGES {
            self.tried(size, operation, size.changed(), false)?;
        }
        for (operation, undone, kind) in [
            (Operation::Link, Operation::Unlink, Kind::Linked),
            (Operation::CreateFsync, Operation::Unlink, Kind::Synced),
            (Operation::Mkdir, Operation::Rmdir, Kind::Directory),
        ] {
            let made = self.tried(size, operation, size.changed(), false)?;
            let task = Task { kind, limits: made, ..Task::new(undone, size.changed(), FILL_LIMIT) };
            let outcome = size.ranks.run(&task, &mut self.device, self.observer)?;
            if undone == Operation::Rmdir {
                self.take(size, undone, false, outcome);
            }
        }
        if self.is_over() {
            return Ok(false);
        }
        self.observer.phase("unlink");
        let task = Task::new(Operation::Unlink, size.changed(), FILL_LIMIT);
        let outcome = size.ranks.run(&task, &mut self.device, self.observer)?;
        if let Some(error) = outcome.error {
            return Err(failed(self.path, error.into()));
        }
        self.take(size, Operation::Unlink, false, outcome);
        Ok(!self.is_over())
    }

    /// Tries one operation; returns how often each rank did it.
    fn tried(
        &mut self,
        size: &Size,
        operation: Operation,
        numbers: std::ops::Range<u64>,
        cold: bool,
    ) -> Result<Vec<u64>, CheckError> {
        if self.observer.interrupted().is_some() {
            return Ok(vec![0; size.ranks.count as usize]);
        }
        self.observer.phase(operation.name());
        let task = Task::new(operation, numbers, self.settings.limit);
        let outcome = size.ranks.run(&task, &mut self.device, self.observer)?;
        let made = outcome.operations.clone();
        self.take(size, operation, cold, outcome);
        Ok(made)
    }

    /// Makes a cell from an outcome.
    fn take(&mut self, size: &Size, operation: Operation, cold: bool, outcome: Outcome) {
        let operations = outcome.total();
        let error = outcome.error.map(|error: Errno| name_of(error.raw_os_error()));
        let seen = classify::OperationEvidence {
            operation,
            operations,
            error: error.as_deref(),
            in_memory: self.in_memory,
            elsewhere: self.elsewhere,
            asked: outcome.asked.as_ref(),
            bytes_read: outcome.bytes_read,
            moved: outcome.moved,
        };
        let (class, evidence) = classify::classify(&seen);
        self.cells.push(Cell {
            operation,
            shape: size.shape,
            files: size.files,
            cold,
            class,
            evidence,
            operations,
            error,
            ops_per_s: outcome.ops_per_s,
            latency: outcome.latency,
            cpu_ns_per_op: outcome.cpu_ns as f64 / operations.max(1) as f64,
            bytes_read: outcome.bytes_read,
            moved: outcome.moved,
            rpcs: outcome.asked.map(|asked| asked.values().sum()),
        });
    }

    /// Removes the remaining files by name, all ranks in parallel and without a list of them, in
    /// the order in which they were made: files whose inodes are in one block are removed together.
    /// Errors occur again, and are reported, when the whole directory is removed.
    fn clear(&mut self, ranks: &Ranks<'_>, filled: u64) {
        if filled > 0 && self.observer.interrupted().is_none() {
            self.observer.phase("remove");
            let task = Task::new(Operation::Unlink, 0..filled, FILL_LIMIT);
            let task = Task { spread: false, ..task };
            let _ = ranks.run(&task, &mut self.device, self.observer);
        }
    }
}

type Slabs = std::collections::BTreeMap<String, slab::Slab>;

fn last(sizes: &[u64]) -> &[u64] {
    &sizes[sizes.len().saturating_sub(1)..]
}

/// Returns how the cost of each operation grows in one directory.
fn growth(cells: &[Cell]) -> Vec<Growth> {
    let of = |operation: Operation| {
        let of_it = |cell: &&Cell| {
            let is_of_it = cell.operation == operation && cell.shape == Shape::One;
            is_of_it && !cell.cold && cell.operations > 0
        };
        let point = |cell: &Cell| (cell.files, cell.cpu_ns_per_op);
        let points: Vec<(u64, f64)> = cells.iter().filter(of_it).map(point).collect();
        (points.len() > 1).then(|| Growth::of(operation, points))
    };
    Operation::ALL.iter().filter_map(|&operation| of(operation)).collect()
}

#[cfg(test)]
mod tests {
    use blockstone_testkit::ScratchDir;

    use super::*;

    struct Quiet;

    impl Observer for Quiet {}

    fn settings(ranks: u32, sizes: &[u64]) -> Settings {
        let limit = Duration::from_millis(20);
        Settings {
            shapes: vec![Shape::Own],
            sizes: sizes.to_vec(),
            ranks,
            limit,
            ..Settings::quick()
        }
    }

    #[test]
    fn every_rank_has_the_same_number_of_files() {
        assert_eq!(of_each(&settings(2, &[1_000, 10_000])), [500, 5_000]);
        assert_eq!(of_each(&settings(4_096, &[1_000, 2_000, 10_000])), [1, 3]);
    }

    #[test]
    fn hundreds_of_ranks_work_at_the_same_time() {
        let scratch = ScratchDir::on_disk().unwrap();
        let found = of_path(scratch.path(), 1, &settings(300, &[100]), &mut Quiet).unwrap();
        for operation in [Operation::Create, Operation::Stat, Operation::Unlink] {
            let cell = found.cells.iter().find(|cell| cell.operation == operation).unwrap();
            assert_eq!((cell.files, cell.operations), (300, 300), "{cell:#?}");
            assert!(cell.latency.count() >= 300, "{cell:#?}");
        }
        assert!(found.cells.iter().all(|cell| cell.error.is_none()), "{found:#?}");
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left");
    }
}
