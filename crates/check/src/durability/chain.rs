//! The chain from a path to its devices, and how each handles flushes, according to sysfs.

use std::path::Path;

use crate::durability::findings::Layer;
use blockstone_base::identity::{BlockDevice, DeviceKind, FileSystem, PathKind, StorageTarget};
use blockstone_sys::proc::{number, numbers, text, under};
use blockstone_sys::survey;

use crate::CheckError;

/// The layers beneath a path.
#[derive(Clone, Debug)]
pub struct Chain {
    pub target: StorageTarget,
    pub layers: Vec<Layer>,
    pub hypervisor: Option<String>,
    pub hostname: String,
}

/// Number of fields of `stat` in newer kernels, and the index of the one that counts flushes
/// (kernel documentation, block/stat).
const STAT_FIELDS: usize = 17;
const FLUSH_IOS: usize = 15;

impl Chain {
    pub fn of(root: &Path, path: &Path) -> Result<Self, CheckError> {
        let target = survey::target(root, path)?;
        let layers = target.devices.iter().map(|device| layer(root, device)).collect();
        let host = survey::host(root);
        Ok(Self { target, layers, hypervisor: host.hypervisor, hostname: host.hostname })
    }

    pub fn is_device(&self) -> bool {
        self.target.kind == PathKind::BlockDevice
    }

    /// Returns the type of the file system; empty for a device.
    pub fn file_system(&self) -> String {
        self.target.file_system.as_ref().map_or_else(String::new, |found| found.kind.clone())
    }

    pub fn mount_options(&self) -> String {
        self.target.file_system.as_ref().map_or_else(String::new, |found| found.options.clone())
    }

    pub fn barrier_off(&self) -> Option<String> {
        barrier_off(self.target.file_system.as_ref()?)
    }

    /// Returns the flushes that each layer has completed so far.
    pub fn flushes(&self, root: &Path) -> Vec<Option<u64>> {
        self.layers.iter().map(|layer| flush_ios(root, layer)).collect()
    }
}

/// Returns the mount option that keeps a file system from flushing its device.
fn barrier_off(fs: &FileSystem) -> Option<String> {
    let off: &[&str] = match fs.kind.as_str() {
        "ext3" | "ext4" => &["nobarrier", "barrier=0"],
        "xfs" | "btrfs" | "f2fs" | "nilfs2" => &["nobarrier"],
        "reiserfs" => &["barrier=none"],
        // It answers fsync(2) immediately.
        "overlay" => &["volatile"],
        _ => &[],
    };
    let options = fs.options.split(',');
    options.map(str::trim).find(|option| off.contains(option)).map(str::to_owned)
}

fn layer(root: &Path, device: &BlockDevice) -> Layer {
    let directory = under(root, "/sys/class/block").join(&device.name);
    // A partition has no queue of its own.
    let fua = number(&directory.join("queue/fua")).or(number(&directory.join("../queue/fua")));
    Layer {
        name: device.name.clone(),
        kind: device.kind,
        model: device.model.clone(),
        write_cache: device.write_cache.clone(),
        fua: fua.map(|fua| fua != 0),
        drive_cache: device.drive_cache.clone(),
        beneath: device.beneath.clone(),
        flush_ios: None,
    }
}

/// Returns the completed flushes. Partitions count none, and device-mapper and RAID pass them on
/// uncounted.
fn flush_ios(root: &Path, layer: &Layer) -> Option<u64> {
    if !matches!(layer.kind, DeviceKind::Disk | DeviceKind::Loop) {
        return None;
    }
    let stat = text(&under(root, "/sys/class/block").join(&layer.name).join("stat"))?;
    let fields: Vec<u64> = numbers(stat.as_bytes()).collect();
    (fields.len() >= STAT_FIELDS).then(|| fields[FLUSH_IOS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_turn_flushes_off_are_known() {
        let of = |kind: &str, options: &str| {
            let (kind, options) = (kind.to_owned(), options.to_owned());
            barrier_off(&FileSystem { kind, options, ..FileSystem::default() })
        };
        assert_eq!(of("ext4", "rw,relatime,nobarrier,data=ordered").unwrap(), "nobarrier");
        assert_eq!(of("ext4", "rw,barrier=0").unwrap(), "barrier=0");
        assert_eq!(of("ext4", "rw,barrier=1,data=writeback"), None);
        assert_eq!(of("overlay", "rw,upperdir=/a,volatile").unwrap(), "volatile");
        assert_eq!(of("xfs", "rw,volatile"), None);
    }

    #[test]
    fn every_layer_says_what_sysfs_says() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = under(root.path(), path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("/sys/class/block/sda/queue/fua", "1\n");
        write("/sys/class/block/sda/stat", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n");
        let device = BlockDevice {
            name: "sda".to_owned(),
            number: "8:0".to_owned(),
            kind: DeviceKind::Disk,
            size_bytes: 1 << 30,
            model: None,
            scheduler: None,
            write_cache: Some("write through".to_owned()),
            rotational: None,
            logical_block_bytes: 512,
            physical_block_bytes: 512,
            queue_depth: None,
            max_request_bytes: None,
            beneath: Vec::new(),
            backing_file_system: None,
            link: None,
            state: None,
            drive_cache: Some("write back".to_owned()),
            zoned: None,
            numa_node: None,
            raid: None,
        };
        let layer = layer(root.path(), &device);
        assert_eq!((layer.fua, layer.drive_cache.as_deref()), (Some(true), Some("write back")));
        assert_eq!(flush_ios(root.path(), &layer), Some(16));
        let mapped = Layer { kind: DeviceKind::DeviceMapper, ..layer };
        assert_eq!(flush_ios(root.path(), &mapped), None);
    }
}
