//! Where the noise beside a load writes, and how much space it takes.

use std::path::PathBuf;

use blockstone_base::identity::{PathKind, StorageTarget};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_measure::{Live, Observer, Rate, Session};
use blockstone_target::TargetSpec;
use blockstone_target::registry::{Entry, Storage};
use blockstone_workload::noise::{Areas, NoiseError, NoiseSpec, WRITE};

use crate::error::RunError;
use crate::files::Files;
use crate::settings::Settings;

/// More writers would be a load of their own rather than noise.
const WRITERS_MAX: u32 = 64;
/// The area of a writer, as large as a redo log of a busy database …
const AREA: Bytes = Bytes::mib(256);
/// … or this part of what is free over all of them …
const FREE_SHARE: u64 = 8;
/// … but not less.
const AREA_MIN: Bytes = Bytes::mib(1);

/// The noise of `--noise`; none without. Nothing is created. Fails when there is no place for it.
pub fn spec(
    settings: &Settings,
    entry: &Entry,
    target: &TargetSpec,
    surveys: &[StorageTarget],
    files: &mut Files,
) -> Result<Option<NoiseSpec>, RunError> {
    let Some(writers) = settings.noise else { return Ok(None) };
    if !(1..=WRITERS_MAX).contains(&writers) {
        return Err(RunError::NoiseWriters { writers, most: WRITERS_MAX });
    }
    if matches!((entry.storage)(target)?, Storage::Served(_)) {
        return Err(RunError::NoiseAtServer { target: entry.name.to_owned() });
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut free = u64::MAX;
    for (disk, survey) in settings.disks.iter().zip(surveys).take(writers as usize) {
        if survey.kind != PathKind::Directory {
            return Err(RunError::NoiseOnDevice { path: disk.path.clone() });
        }
        free = free.min(survey.free_bytes);
        paths.push(files.noise_in(&disk.path));
    }
    let share = free / FREE_SHARE / u64::from(writers) / WRITE.get() * WRITE.get();
    let area = AREA.min(Bytes(share));
    match settings.disks.first() {
        Some(disk) if area < AREA_MIN => {
            Err(RunError::NoiseRoom { path: disk.path.clone(), least: AREA_MIN })
        }
        _ => {
            let direct = surveys.iter().all(|survey| survey.direct_io.capability.is_full());
            Ok(Some(NoiseSpec { writers, area, paths, direct, seed: settings.seed }))
        }
    }
}

/// Creates the areas and writes them once, and reports progress.
pub fn lay_out(
    session: &Session,
    observer: &mut dyn Observer,
    spec: NoiseSpec,
) -> Result<Areas, NoiseError> {
    observer.phase("write the noise files");
    let begin_ns = session.now_ns();
    Areas::lay_out(spec, &mut |bytes, total| {
        let elapsed_ns = (session.now_ns() - begin_ns).max(1);
        let left_ns = total.saturating_sub(bytes) as f64 * elapsed_ns as f64 / bytes.max(1) as f64;
        observer.tick(&Live {
            label: "write the noise files",
            rates: &[Rate { value: bytes as f64 * 1e3 / elapsed_ns as f64, unit: "MB/s" }],
            elapsed: session.elapsed(),
            left: Nanos(left_ns as u64),
            is_estimate: false,
        });
        observer.interrupted().is_none()
    })
}
