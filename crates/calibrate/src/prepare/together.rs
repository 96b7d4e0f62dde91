//! Several targets that are measured as one.

use std::path::PathBuf;

use blockstone_base::identity::{FileSystem, PathKind, StorageTarget};

use crate::error::CalibrateError;
use crate::settings::{Settings, Subject};

/// Way in which a target is used.
#[derive(Clone, Copy, PartialEq)]
enum Treatment {
    TestFile,
    OnlyRead,
    Destroyed,
}

/// Fails unless all targets are treated alike, and each is named only once.
pub fn check(settings: &Settings, targets: &[StorageTarget]) -> Result<(), CalibrateError> {
    let treatment = |(subject, target): (&Subject, &StorageTarget)| match subject {
        Subject::Destroy(_) => Treatment::Destroyed,
        Subject::Path(_) if target.kind == PathKind::Directory => Treatment::TestFile,
        Subject::Path(_) | Subject::TestFile(_) | Subject::Held(_) => Treatment::OnlyRead,
    };
    let treatments: Vec<_> = settings.subjects.iter().zip(targets).map(treatment).collect();
    for (at, target) in targets.iter().enumerate() {
        let refuse = |other: &StorageTarget, why| {
            let [first, other] = [other, target].map(|target| PathBuf::from(&target.path));
            Err(CalibrateError::Together { first, other, why })
        };
        if let Some(twice) = targets[..at].iter().find(|known| known.path == target.path) {
            return refuse(twice, "they are the same");
        }
        if treatments[at] != treatments[0] {
            return refuse(
                &targets[0],
                "test files, files that are only read, and devices that \
                                        are overwritten are measured apart",
            );
        }
    }
    match targets {
        [first, _, ..] if settings.options.keep => {
            Err(CalibrateError::KeepOfSeveral { path: PathBuf::from(&first.path) })
        }
        _ => Ok(()),
    }
}

/// Returns how many of `targets` are directories on the same file system as `target`, itself
/// included.
pub fn sharing_space(targets: &[StorageTarget], target: &StorageTarget) -> u64 {
    let held = |other: &&StorageTarget| {
        let place = |of: &FileSystem| (of.kind.clone(), of.source.clone(), of.mount_point.clone());
        let place = |of: &StorageTarget| of.file_system.as_ref().map(place);
        other.kind == PathKind::Directory && place(other) == place(target)
    };
    (targets.iter().filter(held).count() as u64).max(1)
}

/// Returns the pairs of targets that have a device in common, with its name: the one nearest to the
/// top.
pub fn sharing_devices(targets: &[StorageTarget]) -> Vec<(&str, &str, &str)> {
    let mut pairs = Vec::new();
    for (at, one) in targets.iter().enumerate() {
        for other in &targets[at + 1..] {
            let common = |name: &String| other.devices.iter().any(|device| device.name == *name);
            let shared = one.devices.iter().map(|device| &device.name).find(|name| common(name));
            pairs
                .extend(shared.map(|name| (one.path.as_str(), other.path.as_str(), name.as_str())));
        }
    }
    pairs
}
