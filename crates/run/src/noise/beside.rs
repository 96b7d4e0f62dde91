//! Places and space for the noise alongside a load.

use blockstone_base::identity::{PathKind, StorageTarget};
use blockstone_base::units::Bytes;
use blockstone_measure::{Layout, Observer, Session};
use blockstone_servers::TargetSpec;
use blockstone_servers::registry::{Entry, Storage};
use blockstone_workload::noise::{
    Areas, NoiseError, NoisePlace, NoiseSpec, WRITE_MAX, WRITE_MIN, WRITERS_MAX,
};

use crate::error::RunError;
use crate::files::Files;
use crate::settings::{FormOptions, Noise, Settings};

/// Largest default area of a writer, the size of a redo log of a busy database.
const AREA: Bytes = Bytes::mib(256);
/// By default, all areas together take at most one part in this many of the free space.
const FREE_SHARE: u64 = 8;
/// Smallest area.
const AREA_MIN: Bytes = Bytes::mib(1);

/// Returns the noise of `--noise`; `None` without it. Nothing is created. Fails when there is no
/// place for the noise.
pub fn spec(
    settings: &Settings,
    entry: &Entry,
    target: &TargetSpec,
    surveys: &[StorageTarget],
    files: &mut Files,
) -> Result<Option<NoiseSpec>, RunError> {
    let form = &settings.form;
    let Some(Noise { writers, mode }) = form.noise else { return Ok(None) };
    check(form, writers)?;
    if matches!((entry.storage)(target)?, Storage::Served(_)) {
        return Err(RunError::NoiseAtServer { target: entry.name.to_owned() });
    }
    let mut places: Vec<NoisePlace> = Vec::new();
    let mut free = u64::MAX;
    for (disk, survey) in settings.disks.iter().zip(surveys).take(writers as usize) {
        if survey.kind != PathKind::Directory {
            return Err(RunError::NoiseOnDevice { path: disk.path.clone() });
        }
        free = free.min(survey.free_bytes);
        places.push(NoisePlace::NewFile(files.noise_in(&disk.path)));
    }
    let share = free / FREE_SHARE / u64::from(writers) / AREA_MIN.get() * AREA_MIN.get();
    let area = form.noise_area_bytes.unwrap_or(AREA.min(Bytes(share)));
    match settings.disks.first() {
        Some(disk) if area < AREA_MIN => {
            Err(RunError::NoiseRoom { path: disk.path.clone(), least: AREA_MIN })
        }
        _ => {
            let direct = surveys.iter().all(|survey| survey.direct_io.capability.is_full());
            let (write, seed) = (form.noise_write(), settings.seed);
            Ok(Some(NoiseSpec { writers, mode, area, write, places, direct, seed }))
        }
    }
}

/// Fails if the noise cannot be written in whole pieces.
fn check(form: &FormOptions, writers: u32) -> Result<(), RunError> {
    let (write, area) = (form.noise_write(), form.noise_area_bytes);
    if !(1..=WRITERS_MAX).contains(&writers) {
        return Err(RunError::NoiseWriters { writers, most: WRITERS_MAX });
    }
    if !(WRITE_MIN..=WRITE_MAX).contains(&write) || !write.get().is_power_of_two() {
        return Err(RunError::NoiseWrite { write });
    }
    match area.filter(|area| !area.get().is_multiple_of(AREA_MIN.get()) || area.get() == 0) {
        Some(area) => Err(RunError::NoiseArea { area }),
        None => Ok(()),
    }
}

/// Creates the areas and writes them once, and reports progress.
pub fn lay_out(
    session: &Session,
    observer: &mut dyn Observer,
    spec: NoiseSpec,
) -> Result<Areas, NoiseError> {
    let layout = Layout::begin(session, observer, "write the noise files");
    Areas::lay_out(spec, &mut |written, total| layout.shown(observer, written, total))
}
