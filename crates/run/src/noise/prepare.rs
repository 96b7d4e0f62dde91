//! Everything before the first write: surveys the paths, claims them, and rejects settings that
//! cannot work. If this fails, nothing has been written.

use std::path::{Path, PathBuf};

use blockstone_base::Capability;
use blockstone_base::identity::{Host, PathKind, StorageTarget};
use blockstone_base::rng;
use blockstone_base::units::{Bytes, Nanos};
use blockstone_measure::claim::{self, ClaimError, Device};
use blockstone_measure::{capability, scratch};
use blockstone_record::manifest::NamedCapability;
use blockstone_sys::survey;
use blockstone_workload::noise::{
    NoiseMode, NoisePlace, NoiseSpec, WRITE_MAX, WRITE_MIN, WRITERS_MAX,
};

use super::error::NoiseError;
use super::settings::Settings;

/// Shortest of the alternating phases: a quarter of it is warm-up.
const PHASE_MIN: Nanos = Nanos::millis(2_000);
/// Hint for a device that may not be overwritten.
const INSTEAD: &str = "a directory on it takes noise without destroying anything";

#[derive(Debug)]
pub struct Prepared<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) spec: NoiseSpec,
    pub(crate) host: Host,
    /// All paths combined into one.
    pub(crate) target: StorageTarget,
    pub(crate) capabilities: Vec<NamedCapability>,
}

/// Surveys the paths and prepares noise on them. Fails when the settings contradict each other or
/// the storage. Nothing is written or removed.
pub fn prepare(settings: &Settings) -> Result<Prepared<'_>, NoiseError> {
    check(settings)?;
    let root = Path::new("/");
    let surveys: Vec<StorageTarget> =
        settings.places.iter().map(|path| survey::target(root, path)).collect::<Result<_, _>>()?;
    let id = settings.recording.id.bytes().fold(0, |id, byte| rng::mix(id ^ u64::from(byte)));
    let mut places = Vec::new();
    for (index, (path, survey)) in settings.places.iter().zip(&surveys).enumerate() {
        places.push(match survey.kind {
            PathKind::Directory => {
                claim::directory(path)?;
                NoisePlace::NewFile(path.join(scratch::name(id, &format!("noise{index}"))))
            }
            PathKind::BlockDevice => {
                let destroy = settings.destroy.contains(path);
                Device { path, destroy, instead: Some(INSTEAD) }.claim(|_| Ok(false))?;
                NoisePlace::Device(path.clone())
            }
            PathKind::File => return Err(NoiseError::NotAPlace { path: path.clone() }),
        });
        check_direct(settings, path, survey)?;
    }
    let options = &settings.options;
    let spec = NoiseSpec {
        writers: settings.writers(),
        mode: options.mode(),
        area: options.area_bytes,
        write: options.write_bytes,
        places,
        direct: true,
        seed: settings.seed,
    };
    check_space(settings, &surveys, &spec.demand())?;
    let direct = &surveys[0].direct_io.capability;
    let capabilities =
        vec![capability::named("direct-io", direct.clone()), capability::privilege()];
    let target = StorageTarget::united(&surveys).ok_or(NoiseError::NoPlace)?;
    Ok(Prepared { settings, spec, host: survey::host(root), target, capabilities })
}

impl Prepared<'_> {
    /// Removes the files of killed runs and returns their paths.
    pub(crate) fn remove_orphans(&self) -> Vec<PathBuf> {
        let directories = self.settings.places.iter().filter(|path| path.is_dir());
        directories.flat_map(|dir| scratch::remove_orphans(dir, &[])).collect()
    }
}

fn check(settings: &Settings) -> Result<(), NoiseError> {
    let Settings { places, destroy, options, .. } = settings;
    if places.is_empty() {
        return Err(NoiseError::NoPlace);
    }
    if let Some(path) = destroy.iter().find(|path| !places.contains(path)) {
        return Err(NoiseError::DestroyOther { path: path.clone() });
    }
    let (writers, most) = (settings.writers(), WRITERS_MAX);
    if writers > most || (writers as usize) < places.len() {
        return Err(NoiseError::Count { writers, places: places.len(), most });
    }
    let (write, area) = (options.write_bytes, options.area_bytes);
    if !(WRITE_MIN..=WRITE_MAX).contains(&write) || !write.get().is_power_of_two() {
        return Err(NoiseError::Write { write });
    }
    if area.get() == 0 || !area.get().is_multiple_of(Bytes::mib(1).get()) {
        return Err(NoiseError::Area { area });
    }
    match (options.phase(), options.duration()) {
        (Some(phase), _) if phase < PHASE_MIN => Err(NoiseError::Phase { phase }),
        (Some(phase), Some(duration)) if duration.get() / 2 < phase.get() => {
            Err(NoiseError::Phases { phase, duration })
        }
        _ => Ok(()),
    }
}

/// Fails if noise intended for the device would end up in the page cache.
fn check_direct(
    settings: &Settings,
    path: &Path,
    survey: &StorageTarget,
) -> Result<(), NoiseError> {
    match &survey.direct_io.capability {
        Capability::Degraded { why } if settings.options.mode() != NoiseMode::Buffered => {
            Err(NoiseError::NotDirect { path: path.to_owned(), why: why.clone() })
        }
        _ => Ok(()),
    }
}

fn check_space(
    settings: &Settings,
    surveys: &[StorageTarget],
    demand: &[Bytes],
) -> Result<(), NoiseError> {
    let space = |survey: &StorageTarget| {
        survey.file_system.as_ref().map(|file_system| file_system.mount_point.clone())
    };
    let directories = || surveys.iter().zip(demand).filter(|(it, _)| space(it).is_some());
    for (path, survey) in settings.places.iter().zip(surveys) {
        let (mount, free) = (space(survey), Bytes(survey.free_bytes));
        if mount.is_none() || survey.kind != PathKind::Directory {
            continue;
        }
        let beside = directories().filter(|(other, _)| space(other) == mount);
        let asked = Bytes(beside.map(|(_, bytes)| bytes.get()).sum());
        if asked > free {
            let path = path.clone();
            return Err(ClaimError::NoSpace { path, asked, free, less: "--area" }.into());
        }
    }
    Ok(())
}
