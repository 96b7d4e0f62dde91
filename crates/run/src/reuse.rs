//! Disks that an earlier run kept: whether these are such disks, and whether their contents fit
//! this run. They are never removed.

use std::path::Path;

use blockstone_base::identity::{PathKind, StorageTarget};
use blockstone_base::units::Bytes;
use blockstone_measure::contents;
use blockstone_servers::{Kept, TargetSpec};
use blockstone_sys::survey;

use crate::error::RunError;
use crate::settings::Settings;

/// Returns whether every disk is a file, or a device that was named twice and is not empty.
pub fn may_be(settings: &Settings, surveys: &[StorageTarget]) -> bool {
    let disks = settings.disks.iter().zip(surveys);
    !settings.disks.is_empty()
        && disks.into_iter().all(|(disk, survey)| match survey.kind {
            PathKind::Directory => false,
            PathKind::File => true,
            PathKind::BlockDevice => settings.destroy.contains(&disk.path) && holds(&disk.path),
        })
}

fn holds(device: &Path) -> bool {
    matches!(contents::edges_hold_data(device), Ok(true))
        && matches!(survey::user_of(Path::new("/"), device), Ok(None))
}

/// Adapts `spec` to the kept data. Fails when an option requests something else.
pub fn adapt(spec: &mut TargetSpec, settings: &Settings, kept: &Kept) -> Result<(), RunError> {
    let wanted = &settings.wanted;
    let redo = settings.database.redo_log_bytes.unwrap_or(kept.redo);
    let obfuscate = wanted.obfuscate.unwrap_or(kept.obfuscate);
    let scans = if spec.scan_rows == 0 { kept.scan_rows } else { spec.scan_rows };
    let sizes = |bytes: Bytes| bytes.to_string();
    let pairs = [
        ("--block-size", sizes(kept.block), sizes(spec.options.block_bytes)),
        ("--redundancy", kept.redundancy.name().into(), spec.options.redundancy.name().into()),
        (
            "--allocation-unit",
            sizes(kept.allocation_unit),
            sizes(spec.options.allocation_unit_bytes),
        ),
        ("--redo-size", sizes(kept.redo), sizes(redo)),
        ("--scale", kept.rows.to_string(), spec.rows.to_string()),
        ("--scan-size", kept.scan_rows.to_string(), scans.to_string()),
        ("--seed", kept.seed.to_string(), spec.seed.to_string()),
        ("--obfuscate", format!("{:.2}", kept.obfuscate), format!("{obfuscate:.2}")),
        ("--schemas", kept.schemas.to_string(), spec.schemas.max(kept.schemas).to_string()),
    ];
    let room = kept.scan_rows / kept.rows.max(1);
    if room < u64::from(spec.copies) {
        let path = settings.disks.first().map(|disk| disk.path.clone()).unwrap_or_default();
        return Err(RunError::NoRoomForTables { path, room, asked: spec.copies });
    }
    if let Some((option, is, asked)) = pairs.into_iter().find(|(_, is, asked)| is != asked) {
        let path = settings.disks.first().map(|disk| disk.path.clone()).unwrap_or_default();
        return Err(RunError::KeptOther { path, option, is, asked });
    }
    // A run on some of the schemas leaves the others as they are.
    *spec = TargetSpec {
        schemas: kept.schemas,
        scan_rows: kept.scan_rows,
        obfuscate: kept.obfuscate,
        reuse: true,
        ..spec.clone()
    };
    spec.options.redo_log_bytes = Some(kept.redo);
    Ok(())
}
