//! Everything before the first measurement: surveys the path, rejects invalid settings, creates and
//! locks the test file. If this fails, nothing is left behind.

use std::path::{Path, PathBuf};

use blockstone_base::Capability;
use blockstone_base::hint::Hint as _;
use blockstone_base::identity::{Host, PathKind, StorageTarget};
use blockstone_base::rng;
use blockstone_base::text::parent_dir;
use blockstone_base::units::Bytes;
use blockstone_engine::registry;
use blockstone_measure::capability::{self, MissingCapability, named};
use blockstone_measure::claim::{ClaimError, Device};
use blockstone_measure::evidence;
use blockstone_measure::scratch;
use blockstone_record::manifest::NamedCapability;
use blockstone_sys::{clock, survey};

use crate::cpu;
use crate::error::CalibrateError;
use crate::plan::{self, Facts, LARGE};
use crate::settings::{Settings, Subject};
use crate::testfile::{self, TestFile};
use crate::testset::TestSet;

pub(crate) mod together;

/// A test file takes at most one part in this many of the free space.
const FREE_SHARE: u64 = 4;
/// Fewest blocks for which random access makes sense.
const LEAST_BLOCKS: u64 = 128;
/// Hint for a device that may not be overwritten.
const READ_ONLY: &str = "--read-only only reads it";

#[derive(Debug)]
pub struct Prepared<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) host: Host,
    /// All targets combined into one.
    pub(crate) target: StorageTarget,
    pub(crate) targets: Vec<StorageTarget>,
    pub(crate) files: TestSet,
    pub(crate) facts: Facts,
    pub(crate) capabilities: Vec<NamedCapability>,
}

/// Surveys the subject and prepares it for measuring. Fails when the settings do not fit the
/// subject, or the subject cannot be used. Nothing is left behind or removed.
pub fn prepare(settings: &Settings) -> Result<Prepared<'_>, CalibrateError> {
    let root = Path::new("/");
    let targets: Vec<StorageTarget> = settings
        .subjects
        .iter()
        .map(|subject| survey::target(root, subject.path()))
        .collect::<Result<_, _>>()?;
    let pairs = || settings.subjects.iter().zip(&targets);
    together::check(settings, &targets)?;
    check_memory(settings, survey::mem_available_bytes(root))?;
    for (subject, target) in pairs() {
        check_subject(settings, subject, target)?;
        check_block(settings, target)?;
    }
    // Unique to this run, so that blocks of an earlier one are never taken for ours.
    let run_id = rng::mix(clock::now_ns() ^ rng::mix(u64::from(std::process::id())));
    let sizes: Vec<_> = pairs()
        .filter(|(_, target)| target.kind == PathKind::Directory)
        .map(|(subject, target)| directory_size(settings, subject.path(), &targets, target))
        .collect::<Result<_, _>>()?;
    let files: Vec<_> =
        pairs().map(|pair| open(settings, pair, run_id)).collect::<Result<_, _>>()?;
    let sizes = if sizes.is_empty() {
        files.iter().map(|file| existing_size(settings, file)).collect::<Result<_, _>>()?
    } else {
        sizes
    };
    let each = sizes.into_iter().min().unwrap_or(Bytes(0));
    let count = targets.len() as u64;
    let span = Bytes(each.get() * count);
    check_streams(settings, span)?;
    let files = TestSet::new(files);
    let capabilities = capabilities(&files, &targets);
    let writable = files.ours() && !settings.options.read_only;
    let block_device = targets.iter().any(|target| target.kind == PathKind::BlockDevice);
    let facts = Facts {
        ours: files.ours(),
        writable,
        has_log: writable && !block_device,
        span,
        offset: Bytes(settings.options.offset_bytes.get() * count),
        targets: count,
        direct: files.files().iter().all(|file| file.direct.is_full()),
        uring: full(&capabilities, "engine-uring"),
        least_io: targets.iter().map(least_io).max().unwrap_or(Bytes(512)),
    };
    let host = survey::host(root);
    let target = StorageTarget::united(&targets).ok_or(CalibrateError::NoTarget)?;
    Ok(Prepared { settings, host, target, targets, files, facts, capabilities })
}

fn open(
    settings: &Settings,
    (subject, target): (&Subject, &StorageTarget),
    run_id: u64,
) -> Result<TestFile, CalibrateError> {
    let (direct, writes) = (!settings.options.buffered, !settings.options.read_only);
    Ok(match subject {
        Subject::TestFile(path) => {
            TestFile::reuse(path, settings.options.block_bytes, run_id, direct, writes)?
        }
        Subject::Destroy(path) => TestFile::device(path, run_id, direct)?,
        Subject::Held(file) => file.again(direct)?,
        Subject::Path(path) if target.kind == PathKind::Directory => {
            TestFile::create(path, run_id, direct)?
        }
        Subject::Path(path) => TestFile::foreign(path, direct)?,
    })
}

fn least_io(target: &StorageTarget) -> Bytes {
    Bytes(u64::from(target.direct_io.offset_align_bytes.max(512)))
}

impl Prepared<'_> {
    /// Returns the first of `required` that is degraded; `None` if all are available.
    pub fn missing(
        &self,
        required: &[String],
    ) -> Result<Option<MissingCapability>, CalibrateError> {
        Ok(capability::missing(&self.capabilities, required)?)
    }

    /// Returns whether it has created a test file: the subject is a directory.
    pub fn creates_file(&self) -> bool {
        self.files.files().iter().all(TestFile::is_created)
    }

    /// Removes the test files of killed runs and returns their paths.
    pub(crate) fn remove_orphans(&self) -> Vec<PathBuf> {
        let directories = self.settings.subjects.iter().filter_map(|subject| match subject {
            Subject::Path(path) if path.is_dir() => Some(path.as_path()),
            Subject::TestFile(path) => Some(parent_dir(path)),
            Subject::Path(_) | Subject::Destroy(_) | Subject::Held(_) => None,
        });
        let own: Vec<&Path> = self.files.files().iter().map(TestFile::path).collect();
        directories.flat_map(|dir| scratch::remove_orphans(dir, &own)).collect()
    }
}

fn check_subject(
    settings: &Settings,
    subject: &Subject,
    target: &StorageTarget,
) -> Result<(), CalibrateError> {
    let path = subject.path().to_owned();
    match (subject, target.kind) {
        (Subject::Path(_), PathKind::BlockDevice) if settings.options.read_only => {}
        (subject, PathKind::BlockDevice) if !matches!(subject, Subject::TestFile(_)) => {
            let destroy = matches!(subject, Subject::Destroy(_));
            let device = Device { path: &path, destroy, instead: Some(READ_ONLY) };
            device.claim(testfile::holds_nothing_but_ours)?;
        }
        (Subject::TestFile(_), kind) if kind != PathKind::File => {
            return Err(CalibrateError::NotAFile { path });
        }
        (Subject::Destroy(_), _) => return Err(CalibrateError::NotADevice { path }),
        _ => {}
    }
    if target.kind != PathKind::Directory && settings.options.asked_size_bytes.is_some() {
        return Err(CalibrateError::SizeOfExisting { path });
    }
    if target.kind != PathKind::Directory && settings.options.keep {
        return Err(CalibrateError::NothingToKeep { path });
    }
    let laid_out = target.kind == PathKind::Directory || matches!(subject, Subject::Destroy(_));
    if settings.options.preconditioning().is_some() && (!laid_out || settings.options.read_only) {
        return Err(CalibrateError::NothingToPrecondition { path });
    }
    let one_directory = target.kind == PathKind::Directory && settings.subjects.len() == 1;
    if settings.options.buffered_writes && (!one_directory || settings.options.read_only) {
        return Err(CalibrateError::NothingToBuffer { path });
    }
    check_part(settings, subject, target.kind)?;
    let written = laid_out || matches!(subject, Subject::TestFile(_));
    if !settings.options.mixes_read_pct.is_empty() && (!written || settings.options.read_only) {
        return Err(CalibrateError::NothingToMix { path });
    }
    Ok(())
}

/// Fails if there is not enough memory: visits of cached blocks need it, and are meaningless if it
/// is swapped.
fn check_memory(settings: &Settings, available: Option<u64>) -> Result<(), CalibrateError> {
    let least = Bytes(2 * cpu::MEMORY.get());
    match available.map(Bytes).filter(|&available| settings.options.cpu && available < least) {
        Some(available) => Err(CalibrateError::Memory { available, least }),
        None => Ok(()),
    }
}

/// Fails if part of a file or device would be written: the rest would not be recognised as ours.
fn check_part(
    settings: &Settings,
    subject: &Subject,
    kind: PathKind,
) -> Result<(), CalibrateError> {
    let path = subject.path().to_owned();
    let whole =
        settings.options.asked_span_bytes.is_none() && settings.options.offset_bytes == Bytes(0);
    let only_read = settings.options.read_only || matches!(subject, Subject::Path(_));
    if kind == PathKind::Directory && !whole {
        return Err(CalibrateError::PartOfDirectory { path });
    }
    if !whole && !only_read {
        return Err(CalibrateError::PartWritten { path });
    }
    if !settings.options.offset_bytes.get().is_multiple_of(LARGE.get()) {
        return Err(CalibrateError::Offset { offset: settings.options.offset_bytes, unit: LARGE });
    }
    Ok(())
}

/// Fails if the streams do not fit: each reads its own part.
fn check_streams(settings: &Settings, span: Bytes) -> Result<(), CalibrateError> {
    let most = settings.options.streams.iter().copied().max().unwrap_or(0);
    let least = Bytes(LARGE.get() * u64::from(most).max(8));
    if most > 0 && span < least {
        return Err(CalibrateError::Streams { streams: most, span, least });
    }
    Ok(())
}

fn check_block(settings: &Settings, target: &StorageTarget) -> Result<(), CalibrateError> {
    let block = settings.options.block_bytes;
    let align = least_io(target);
    let refuse = |why: &str| Err(CalibrateError::BlockSize { block, why: why.to_owned(), align });
    if !block.get().is_power_of_two() {
        return refuse("it is not a power of two");
    }
    if block < align {
        return refuse(&format!("direct I/O on this path is done in units of {align}"));
    }
    if block > LARGE {
        return refuse(&format!("the largest is {LARGE}"));
    }
    Ok(())
}

fn directory_size(
    settings: &Settings,
    path: &Path,
    targets: &[StorageTarget],
    target: &StorageTarget,
) -> Result<Bytes, CalibrateError> {
    let free = Bytes(target.free_bytes / together::sharing_space(targets, target));
    let most = plan::budget(settings.options.thoroughness()).file;
    let default = most.min(Bytes(free.get() / FREE_SHARE));
    let asked = settings.options.asked_size_bytes.unwrap_or(default);
    let least = Bytes((settings.options.block_bytes.get() * LEAST_BLOCKS).max(LARGE.get() * 8));
    if settings.options.asked_size_bytes.is_some() && asked < least {
        return Err(too_small(settings, path, asked, least));
    }
    let log = plan::LOG_SIZE.get() + plan::append_span(asked);
    let log = if settings.options.read_only { 0 } else { log };
    if asked < least || asked.get() + log > free.get() {
        let asked = Bytes(asked.max(least).get() + log);
        let path = path.to_owned();
        return Err(ClaimError::NoSpace { path, asked, free, less: "--size" }.into());
    }
    Ok(Bytes(asked.get() / LARGE.get() * LARGE.get()))
}

fn existing_size(settings: &Settings, file: &TestFile) -> Result<Bytes, CalibrateError> {
    let size = Bytes(file.main().size_bytes()?);
    let block = settings.options.block_bytes;
    let after = Bytes(size.get().saturating_sub(settings.options.offset_bytes.get()));
    let size = settings.options.asked_span_bytes.map_or(after, |span| span.min(after));
    let several = settings.subjects.len() > 1;
    let whole = if several { LARGE.get() } else { 0 };
    let least = Bytes((block.get() * LEAST_BLOCKS).max(whole));
    if size < least {
        return Err(too_small(settings, file.path(), size, least));
    }
    // Whole large requests, so that sequential streams never reach a short end, and several files
    // can take turns.
    let unit = if several || size.get() >= LARGE.get() * 8 { LARGE.get() } else { block.get() };
    Ok(Bytes(size.get() / unit * unit))
}

fn too_small(settings: &Settings, path: &Path, size: Bytes, least: Bytes) -> CalibrateError {
    let path = path.to_owned();
    let block = settings.options.block_bytes;
    let hint = format!(
        "blocks of {block} are visited at random, so choose a larger file or --size, or a smaller \
         --block-size"
    );
    ClaimError::TooSmall { path, least, size, hint }.into()
}

fn capabilities(files: &TestSet, targets: &[StorageTarget]) -> Vec<NamedCapability> {
    let paths: Vec<String> = targets.iter().map(|target| target.path.clone()).collect();
    let mut out = vec![named("direct-io", files.direct(&paths))];
    for entry in registry::ALL {
        if entry.name != "sim" {
            out.push(named(&format!("engine-{}", entry.name), (entry.capability)()));
        }
    }
    let fiemap = |(file, target): (&TestFile, &StorageTarget)| match target.kind {
        PathKind::BlockDevice => Capability::Full,
        _ => evidence::map(file.main())
            .map_or_else(|error| Capability::degraded(error.told()), |map| map.fiemap),
    };
    let degraded = files.files().iter().zip(targets).map(fiemap).find(|one| !one.is_full());
    out.push(named("fiemap", degraded.unwrap_or(Capability::Full)));
    out.push(capability::privilege());
    out
}

fn full(capabilities: &[NamedCapability], name: &str) -> bool {
    capabilities.iter().any(|known| known.name == name && known.capability.is_full())
}
