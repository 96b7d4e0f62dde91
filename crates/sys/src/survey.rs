//! Description of this machine and of what is beneath a path, from its file system to the last
//! device.
//!
//! Everything read from files under `/proc` and `/sys` is read below a root; what only system calls
//! report about the path itself is queried first and kept separate, so that the rest can be tested
//! on trees of other machines.

pub(crate) mod devices;
mod host;
mod link;
mod place;
mod usage;

use std::io;
use std::path::{Path, PathBuf};

use blockstone_base::capability::Capability;
use blockstone_base::hint::Hint;
use blockstone_base::identity::{
    BlockDevice, CgroupCap, DirectIo, FileSystem, PathKind, StorageTarget,
};

use crate::cgroup::Groups;
pub use crate::mounts::{Mount, Mounts};
use crate::proc;

pub use devices::{named as device, nvme_paths};
pub use host::host;
use place::SurveyedPath;
pub use place::{Alignment, alignment_of};
pub use usage::{user_of, user_of_beside};

#[derive(Debug, thiserror::Error, Hint)]
pub enum SurveyError {
    #[error("use {path}: nothing exists at this path")]
    #[hint("name a directory, file or block device that exists")]
    NotFound { path: PathBuf },
    #[error("use {path}: this is a {what}, which holds no data")]
    #[hint("name a directory, a regular file or a block device")]
    NotStorage { path: PathBuf, what: &'static str },
    #[error("use {path}: {source}")]
    #[hint("the user needs read access to the path and execute access to the directories above it")]
    Io { path: PathBuf, source: io::Error },
    #[error("destroy {path}: cannot tell whether it is in use: {why}")]
    #[hint("{hint}")]
    CannotTell { path: PathBuf, why: String, hint: &'static str },
}

/// Describes what is beneath `path`: the file system, the chain of devices, direct I/O and limits.
///
/// If a file system hides its devices (network, ZFS, an overlay whose upper layer another mount
/// namespace holds), the chain is empty rather than guessed.
pub fn target(root: &Path, path: &Path) -> Result<StorageTarget, SurveyError> {
    Ok(describe(root, &SurveyedPath::of(path)?))
}

/// A directory of a file system that is a layer of an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    pub path: PathBuf,
    /// Type of its file system.
    pub file_system: String,
}

/// Returns where an overlay stores new files of its directory `path`; `None` if that is not an
/// overlay. The layer may be visible only in another mount namespace, and its directory may not
/// exist yet.
pub fn upper_layer(root: &Path, path: &Path) -> Option<Layer> {
    upper_layer_of(root, &SurveyedPath::of(path).ok()?)
}

fn upper_layer_of(root: &Path, place: &SurveyedPath) -> Option<Layer> {
    let mounts = Mounts::read(root);
    let mount = mounts.holding(place.mount_id, place.device, &place.path)?;
    let upper = Path::new(mount.option("upperdir").filter(|_| mount.kind == "overlay")?);
    let shown = mount.root.strip_prefix("/").ok()?;
    let inside = place.path.strip_prefix(&mount.mount_point).ok()?;
    let file_system = mounts.above(upper)?.kind.clone();
    Some(Layer { path: upper.join(shown).join(inside), file_system })
}

/// Surveys a place whose system calls have been answered.
fn describe(root: &Path, place: &SurveyedPath) -> StorageTarget {
    let mounts = Mounts::read(root);
    let (mount, (devices, beneath)) = if place.kind == PathKind::BlockDevice {
        (None, (devices::chain_of_number(root, &mounts, place.device), None))
    } else {
        let mount = mounts.holding(place.mount_id, place.device, &place.path);
        (mount, mount.map(|m| devices::chain_of_mount(root, &mounts, m)).unwrap_or_default())
    };
    let file_system = mount.map(|mount| FileSystem { beneath, ..mount.file_system() });
    let free_bytes = match place.kind {
        PathKind::BlockDevice => devices.first().map_or(0, |device| device.size_bytes),
        PathKind::Directory | PathKind::File => place.free_bytes,
    };
    StorageTarget {
        path: place.path.display().to_string(),
        kind: place.kind,
        direct_io: direct_io(place, file_system.as_ref(), &devices),
        file_system,
        caps: caps(root, &devices),
        devices,
        free_bytes,
    }
}

/// Returns the limits that control groups set on any of these devices.
fn caps(root: &Path, devices: &[BlockDevice]) -> Vec<CgroupCap> {
    let numbers: Vec<&str> = devices.iter().map(|device| device.number.as_str()).collect();
    Groups::read(root).io_caps(&numbers)
}

fn direct_io(
    place: &SurveyedPath,
    file_system: Option<&FileSystem>,
    devices: &[BlockDevice],
) -> DirectIo {
    let logical = devices.iter().map(|device| device.logical_block_bytes).max().unwrap_or(4096);
    let memory = file_system.and_then(FileSystem::in_memory);
    let refused = match (memory, place.alignment) {
        (Some(memory), _) => Some(format!(
            "{memory} keeps files in memory; O_DIRECT is accepted but has no effect; choose a path \
             on a storage device"
        )),
        (None, Alignment::Refused) => Some(
            "the file system refuses O_DIRECT here; I/O would go through the page cache".into(),
        ),
        (None, _) => None,
    };
    let (offset_align_bytes, memory_align_bytes, source) = match place.alignment {
        Alignment::Known { offset_bytes, memory_bytes } => {
            (offset_bytes, memory_bytes, "statx STATX_DIOALIGN")
        }
        Alignment::Unknown | Alignment::Refused => (logical, logical, "logical block size"),
    };
    let capability = refused.map_or(Capability::Full, Capability::degraded);
    DirectIo { capability, offset_align_bytes, memory_align_bytes, source: source.to_owned() }
}

/// Returns the kernel names of the block devices that hold data, sorted: no loop device without a
/// file.
pub fn device_names(root: &Path) -> Vec<String> {
    let class = proc::under(root, "/sys/class/block");
    let mut names = proc::names(&class);
    names.retain(|name| proc::number(&class.join(name).join("size")) != Some(0));
    names
}

/// Returns a whole host as a target, with every device that it has.
pub fn whole_host(root: &Path) -> StorageTarget {
    let devices: Vec<_> = device_names(root).iter().filter_map(|name| device(root, name)).collect();
    StorageTarget {
        path: "/".to_owned(),
        kind: PathKind::Directory,
        file_system: None,
        caps: caps(root, &devices),
        direct_io: DirectIo {
            capability: Capability::degraded("a whole host is watched, not one path"),
            offset_align_bytes: 512,
            memory_align_bytes: 512,
            source: "not asked".to_owned(),
        },
        free_bytes: 0,
        devices,
    }
}

/// Returns the memory that this process could still use without swapping, in bytes: `MemAvailable`,
/// or what its control groups leave, whichever is less. `None` if the kernel does not report it.
pub fn mem_available_bytes(root: &Path) -> Option<u64> {
    let machine = proc::meminfo_bytes(root, "MemAvailable:")?;
    let group = Groups::read(root)
        .memory_limit()
        .map(|limit| limit.limit_bytes.saturating_sub(limit.used_bytes));
    Some(group.map_or(machine, |left| left.min(machine)))
}

#[cfg(test)]
mod tests;
