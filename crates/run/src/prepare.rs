//! Everything before the first write: surveys the paths, settles the parameters, asks the target
//! for its requirements, rejects settings that cannot work. If this fails, nothing has been
//! written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blockstone_base::Capability;
use blockstone_base::identity::{DirectIo, Host, PathKind, StorageTarget};
use blockstone_base::rng;
use blockstone_base::units::Bytes;
use blockstone_measure::capability::MissingCapability;
use blockstone_measure::claim::{self, ClaimError, Device};
use blockstone_measure::{capability, scratch};
use blockstone_record::manifest::NamedCapability;
use blockstone_servers::registry::{Entry, Storage};
use blockstone_servers::{
    Io, Kept, Place, RedoStress, SCRATCH, TargetSpec, registry, without_password,
};
use blockstone_sys::{page_cache, survey};
use blockstone_workload::noise::NoiseSpec;
use blockstone_workload::{Defaults, Parameters, Scale};

use crate::error::RunError;
use crate::files::Files;
use crate::noise::beside;
use crate::settings::{DiskSetting, Profile, Settings};
use crate::{reuse, scan};

/// Default number of schemas, and of sessions on each.
const POPULATION: (u32, u32) = (4, 4);
/// Default of a bulk write: one statement at a time.
const POPULATION_OF_BULK_WRITES: (u32, u32) = (1, 1);
/// Largest schema unless a size is requested.
const SCALE: Bytes = Bytes::mib(256);
/// Largest total size of the schemas by default, so that even many of them are loaded in time.
const ALL_SCHEMAS: Bytes = Bytes::gib(4);
/// A redo log is one part in this many of the data.
const REDO_SHARE: u64 = 16;
/// Smallest and largest redo log.
const REDO_LIMITS: (Bytes, Bytes) = (Bytes::mib(8), Bytes::mib(256));
/// Without `--scale`, schemas take at most one part in this many of the free space.
const FREE_SHARE: u64 = 4;

/// Memory that a run took in addition to its cache, with 4 and with 64 sessions: 63 MiB.
const OWN_BYTES: u64 = 64 << 20;
const SESSION_BYTES: u64 = 64 << 10;
const LESS: &str = "--scale or --schemas";

#[derive(Debug)]
pub struct Prepared<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) parameters: Parameters,
    /// The direct-path matrix, if that is measured.
    pub(crate) scan: Option<scan::Plan>,
    pub(crate) noise: Option<NoiseSpec>,
    pub(crate) spec: TargetSpec,
    pub(crate) entry: &'static Entry,
    pub(crate) host: Host,
    pub(crate) storage: StorageTarget,
    pub(crate) files: Files,
    pub(crate) capabilities: Vec<NamedCapability>,
    /// Directories from which files of killed runs are removed.
    pub(crate) directories: Vec<PathBuf>,
}

/// Returns the disks that a run on `target` uses, given those that were `named`. A target with an
/// address may have its data elsewhere, and a server on another machine has no visible disks. Fails
/// when there is no such target, its server does not answer, or disks are named although the target
/// has its own.
pub fn disks(
    target: &str,
    programs: Option<&Path>,
    named: Vec<DiskSetting>,
) -> Result<Vec<DiskSetting>, RunError> {
    let spec = TargetSpec {
        address: registry::parts(target).1.to_owned(),
        programs: programs.map(Path::to_owned),
        ..TargetSpec::default()
    };
    let elsewhere = match (registry::find(target)?.storage)(&spec)? {
        Storage::Named if named.is_empty() => Some(PathBuf::from(".")),
        Storage::Named => return Ok(named),
        Storage::At(path) => Some(path),
        Storage::Served(path) => path,
    };
    if let Some(disk) = named.into_iter().next() {
        return Err(RunError::DiskElsewhere { path: disk.path, target: target.to_owned() });
    }
    let disk = |path| DiskSetting { path, failure_group: None };
    Ok(elsewhere.into_iter().map(disk).collect())
}

/// Surveys the disks and prepares a run on them. Fails when the settings contradict each other or
/// the storage. Nothing is written.
pub fn prepare(settings: &Settings) -> Result<Prepared<'_>, RunError> {
    let entry = registry::find(&settings.target)?;
    let root = Path::new("/");
    let surveys: Vec<StorageTarget> = settings
        .disks
        .iter()
        .map(|disk| survey::target(root, &disk.path))
        .collect::<Result<_, _>>()?;
    let kept = kept(settings, entry, &surveys)?;
    if kept.is_none() {
        if settings.database.accept_loss {
            return Err(RunError::NoLoss);
        }
        check_disks(settings, &surveys)?;
    }
    if settings.run_time().get() == 0 && settings.wanted.loops.is_none() {
        return Err(RunError::NoTime);
    }
    let scan = scan_plan(settings, entry, &surveys)?;
    let parameters = match &scan {
        Some(plan) => plan.parameters(settings.database.block_bytes),
        None => method(settings, &surveys, kept.as_ref())?,
    };
    let mut files = Files::new(settings.recording.id.bytes().fold(0, |id, byte| {
        // The run's own identity, not its seed: two runs of one seed must not meet in one file.
        rng::mix(id ^ u64::from(byte))
    }));
    let mut spec = target_spec(settings, &parameters, &surveys, kept.is_some(), &mut files);
    spec.options.io = io(settings, entry, &spec);
    let own = io_settings(settings, entry, &spec)?;
    let read_size = scan.as_ref().and_then(|plan| plan.setting);
    let read_size = read_size.map(|(name, blocks)| (name.to_owned(), blocks.to_string()));
    // The user's settings come later, so they take precedence.
    spec.settings.splice(0..0, own.into_iter().chain(read_size));
    if let Some(kept) = &kept {
        reuse::adapt(&mut spec, settings, kept)?;
    } else if entry.takes_space {
        check_data(settings, &spec, &surveys)?;
    }
    check_page_cache(entry, &spec)?;
    check_memory(entry, &spec, survey::mem_available_bytes(root))?;
    let mut demand = (entry.demand)(&spec)?.places;
    check_space(settings, &surveys, &demand)?;
    let noise = beside::spec(settings, entry, &spec, &surveys, &mut files)?;
    if let Some(noise) = &noise {
        let more = noise.demand().into_iter();
        demand.iter_mut().zip(more).for_each(|(all, more)| *all = Bytes(all.get() + more.get()));
        check_space(settings, &surveys, &demand)?;
    }
    let capabilities = capabilities(&surveys);
    let storage = match surveys.is_empty().then(|| (entry.storage)(&spec)).transpose()? {
        Some(Storage::Served(_)) => far_away(&without_password(&settings.target)),
        _ => StorageTarget::united(&surveys).ok_or(RunError::NoDisk)?,
    };
    let directories = surveys
        .iter()
        .filter(|survey| survey.kind == PathKind::Directory)
        .map(|survey| PathBuf::from(&survey.path))
        .collect();
    Ok(Prepared {
        settings,
        parameters,
        scan,
        noise,
        spec,
        entry,
        host: survey::host(root),
        storage,
        files,
        capabilities,
        directories,
    })
}

/// Returns what an earlier run kept on the disks; `None` if they have to be set up.
fn kept(
    settings: &Settings,
    entry: &Entry,
    surveys: &[StorageTarget],
) -> Result<Option<Kept>, RunError> {
    let Some(kept) = entry.kept.filter(|_| reuse::may_be(settings, surveys)) else {
        return Ok(None);
    };
    let paths: Vec<PathBuf> = settings.disks.iter().map(|disk| disk.path.clone()).collect();
    Ok(kept(&paths)?)
}

/// Returns the parameters of sessions that visit rows by key. Kept data has its own size and seed.
fn method(
    settings: &Settings,
    surveys: &[StorageTarget],
    kept: Option<&Kept>,
) -> Result<Parameters, RunError> {
    let profile = settings.form.profile;
    let usual = match profile {
        Profile::BulkWrite => POPULATION_OF_BULK_WRITES,
        Profile::Slob | Profile::Oltp | Profile::Scan => POPULATION,
    };
    let (defaults, seed) = if let Some(kept) = kept {
        let population = (kept.schemas, usual.1);
        (Defaults { population, scale: Scale::Blocks(kept.rows) }, kept.seed)
    } else {
        let population = settings.wanted.population(usual)?;
        let scale = default_scale(settings, surveys, population.schemas());
        (Defaults { population: usual, scale }, settings.seed)
    };
    let parameters = settings.wanted.settle(defaults, settings.database.block_bytes, seed)?;
    let parameters = Parameters {
        order_entry: profile == Profile::Oltp,
        bulk_write: profile == Profile::BulkWrite,
        ..parameters
    };
    parameters.check()?;
    Ok(parameters)
}

fn scan_plan(
    settings: &Settings,
    entry: &Entry,
    surveys: &[StorageTarget],
) -> Result<Option<scan::Plan>, RunError> {
    if settings.form.profile != Profile::Scan {
        return Ok(None);
    }
    let most = scan::SIZE.min(Bytes(room(settings, surveys)));
    let size = settings.wanted.scan_rows.unwrap_or(Scale::Bytes(most));
    let seed = settings.wanted.seed.unwrap_or(settings.seed);
    let spec = TargetSpec {
        address: registry::parts(&settings.target).1.to_owned(),
        programs: settings.programs.clone(),
        options: settings.database.clone(),
        ..TargetSpec::default()
    };
    scan::Plan::new(&settings.form, entry, size, &spec, seed).map(Some)
}

impl Prepared<'_> {
    /// Returns the number of schemas.
    pub fn schemas(&self) -> u32 {
        self.parameters.population.schemas()
    }

    /// Returns the first of `required` that is degraded; `None` if all are available.
    pub fn missing(&self, required: &[String]) -> Result<Option<MissingCapability>, RunError> {
        Ok(capability::missing(&self.capabilities, required)?)
    }

    /// Removes the files of killed runs and returns their paths.
    pub(crate) fn remove_orphans(&self) -> Vec<PathBuf> {
        self.directories.iter().flat_map(|dir| scratch::remove_orphans(dir, &[])).collect()
    }
}

fn check_disks(settings: &Settings, surveys: &[StorageTarget]) -> Result<(), RunError> {
    for path in &settings.destroy {
        if !settings.disks.iter().any(|disk| disk.path == *path) {
            return Err(RunError::DestroyOther { path: path.clone() });
        }
    }
    for (disk, survey) in settings.disks.iter().zip(surveys) {
        let path = disk.path.clone();
        match survey.kind {
            PathKind::Directory => claim::directory(&path)?,
            PathKind::File => return Err(RunError::NotADisk { path }),
            PathKind::BlockDevice => {
                let destroy = settings.destroy.contains(&path);
                Device { path: &path, destroy, instead: None }.claim(|_| Ok(false))?;
            }
        }
    }
    Ok(())
}

/// Returns how much space the data may take without `--scale`.
fn room(settings: &Settings, surveys: &[StorageTarget]) -> u64 {
    free_bytes(surveys) / FREE_SHARE / settings.database.redundancy.copies() as u64
}

/// Returns a scale that leaves most of the free space free.
fn default_scale(settings: &Settings, surveys: &[StorageTarget], schemas: u32) -> Scale {
    let share = room(settings, surveys).min(ALL_SCHEMAS.get()) / u64::from(schemas.max(1));
    Scale::Bytes(SCALE.min(Bytes(share)))
}

/// Returns the file system that a disk takes its space from; a device is its own.
fn space_of(survey: &StorageTarget) -> &str {
    survey.file_system.as_ref().map_or(&survey.path, |fs| &fs.mount_point)
}

fn free_bytes(surveys: &[StorageTarget]) -> u64 {
    let by_space: BTreeMap<&str, u64> =
        surveys.iter().map(|survey| (space_of(survey), survey.free_bytes)).collect();
    by_space.values().sum()
}

/// Checks the size of the rows alone first, before detailed planning of what cannot fit.
fn check_data(
    settings: &Settings,
    spec: &TargetSpec,
    surveys: &[StorageTarget],
) -> Result<(), RunError> {
    let row = settings
        .database
        .block_bytes
        .get()
        .saturating_mul(settings.database.redundancy.copies() as u64);
    let copied = spec.rows.saturating_mul(spec.copies.into());
    let of_schema = spec.rows.saturating_add(spec.scan_rows).saturating_add(copied);
    let rows = u64::from(spec.schemas).saturating_mul(of_schema);
    let (asked, free) = (Bytes(rows.saturating_mul(row)), Bytes(free_bytes(surveys)));
    match settings.disks.first() {
        Some(disk) if asked > free => {
            Err(ClaimError::NoSpace { path: disk.path.clone(), asked, free, less: LESS }.into())
        }
        _ => Ok(()),
    }
}

fn check_space(
    settings: &Settings,
    surveys: &[StorageTarget],
    demand: &[Bytes],
) -> Result<(), RunError> {
    for (disk, survey) in settings.disks.iter().zip(surveys) {
        let (path, free) = (disk.path.clone(), Bytes(survey.free_bytes));
        let beside =
            surveys.iter().zip(demand).filter(|(other, _)| space_of(other) == space_of(survey));
        let asked = Bytes(beside.map(|(_, bytes)| bytes.get()).sum());
        if asked > free {
            return Err(match survey.kind {
                PathKind::BlockDevice => {
                    let hint = format!("use a smaller {LESS}");
                    ClaimError::TooSmall { path, least: asked, size: free, hint }
                }
                PathKind::Directory | PathKind::File => {
                    ClaimError::NoSpace { path, asked, free, less: LESS }
                }
            }
            .into());
        }
    }
    Ok(())
}

/// Returns a size with which log switches are neither rare nor constant.
fn redo_size(settings: &Settings, parameters: &Parameters) -> Bytes {
    let blocks =
        u64::from(parameters.population.schemas()).saturating_mul(parameters.rows_per_schema);
    let share = blocks.saturating_mul(settings.database.block_bytes.get()) / REDO_SHARE;
    let (least, most) = REDO_LIMITS;
    let mib = Bytes::mib(1).get();
    Bytes(share / mib * mib).clamp(least, most)
}

fn target_spec(
    settings: &Settings,
    parameters: &Parameters,
    surveys: &[StorageTarget],
    reused: bool,
    files: &mut Files,
) -> TargetSpec {
    let places = settings.disks.iter().zip(surveys).map(|(disk, survey)| {
        let path = match survey.kind {
            PathKind::Directory => files.file_in(&disk.path),
            PathKind::BlockDevice if !reused => files.device(&disk.path),
            // Kept disks are not removed by this run.
            PathKind::BlockDevice | PathKind::File => disk.path.clone(),
        };
        let name = disk.path.display().to_string();
        Place { path, name, failure_group: disk.failure_group.clone() }
    });
    let mut options = settings.database.clone();
    options.redo_log_bytes.get_or_insert_with(|| redo_size(settings, parameters));
    TargetSpec {
        places: places.collect(),
        schemas: parameters.population.schemas(),
        rows: parameters.rows_per_schema,
        scan_rows: if parameters.scan_pct > 0 { parameters.scan_rows } else { 0 },
        order_rows: parameters.order_rows(),
        copies: parameters.copies(),
        sessions: parameters.population.sessions(),
        work_unit: parameters.most_rows(),
        options,
        redo_stress: settings.wanted.redo_stress.unwrap_or(RedoStress::Lite),
        obfuscate: settings.wanted.obfuscate.unwrap_or(1.0),
        seed: parameters.seed,
        reuse: false,
        address: registry::parts(&settings.target).1.to_owned(),
        settings: settings.target_settings.clone(),
        programs: settings.programs.clone(),
    }
}

/// Returns the expected capabilities of the disks, before they are opened.
fn capabilities(surveys: &[StorageTarget]) -> Vec<NamedCapability> {
    let direct = surveys.iter().map(|survey| &survey.direct_io.capability);
    let direct = direct.clone().find(|one| !one.is_full()).or(direct.clone().next()).cloned();
    direct
        .map(|direct| capability::named("direct-io", direct))
        .into_iter()
        .chain([capability::privilege()])
        .collect()
}

/// Returns how the database reads and writes: as requested, or in the way that makes a bound on its
/// page cache tight, if the path supports that.
fn io(settings: &Settings, entry: &Entry, spec: &TargetSpec) -> Option<Io> {
    let bounded = settings.database.page_cache_bytes.and(entry.family.io_bounded);
    settings.database.io.or(bounded.filter(|&io| (entry.family.io)(io, spec).is_ok()))
}

/// Returns the database settings for this kind of I/O; empty without one.
fn io_settings(
    settings: &Settings,
    entry: &Entry,
    spec: &TargetSpec,
) -> Result<Vec<(String, String)>, RunError> {
    let Some(io) = spec.options.io else { return Ok(Vec::new()) };
    (entry.family.io)(io, spec).map_err(|refused| {
        let target = without_password(&settings.target);
        RunError::Io { io: io.name(), target, refused }
    })
}

/// Fails if the bound would have no effect, or is too tight.
fn check_page_cache(entry: &Entry, spec: &TargetSpec) -> Result<(), RunError> {
    let Some(most) = spec.options.page_cache_bytes else { return Ok(()) };
    let refused = |why: String, hint| {
        Err(RunError::PageCache { target: entry.family.name.to_owned(), why, hint })
    };
    if !entry.family.through_page_cache {
        let hint = "omit --page-cache, or name --target sqlite:DIR or postgres:scratch";
        return refused("it does not read through the page cache".to_owned(), hint);
    }
    if !entry.family.in_process && spec.address != SCRATCH {
        let hint = "its service manager can: systemctl set-property NAME MemoryMax=…";
        return refused("the server was not started by this run".to_owned(), hint);
    }
    if most < page_cache::LEAST {
        let hint = "ask for 16M or more, and for more data with --scale";
        return refused(format!("{most} are too little to read and write through"), hint);
    }
    Ok(())
}

/// Fails if there is so little memory that the kernel would kill this process, or its whole control
/// group.
fn check_memory(entry: &Entry, spec: &TargetSpec, available: Option<u64>) -> Result<(), RunError> {
    let is_here = entry.family.in_process || spec.address == SCRATCH;
    let cache = if is_here && entry.takes_space { spec.options.cache_bytes.get() } else { 0 };
    let sessions = u64::from(spec.sessions) * SESSION_BYTES;
    let needed = Bytes(OWN_BYTES + sessions + cache);
    match available.map(Bytes) {
        Some(available) if available < needed => Err(RunError::Memory { needed, available }),
        _ => Ok(()),
    }
}

/// Describes the storage of a server on another machine, of which nothing is known here.
fn far_away(target: &str) -> StorageTarget {
    let why = "the storage belongs to a server on another machine";
    StorageTarget {
        path: target.to_owned(),
        kind: PathKind::Directory,
        file_system: None,
        devices: Vec::new(),
        direct_io: DirectIo {
            capability: Capability::degraded(why),
            offset_align_bytes: 0,
            memory_align_bytes: 0,
            source: String::new(),
        },
        caps: Vec::new(),
        free_bytes: 0,
    }
}
