//! The chain of block devices, from a file system or a device down to devices with none beneath.

use std::fs;
use std::path::{Path, PathBuf};

use blockstone_base::identity::{BlockDevice, DeviceKind, RaidState};

use super::link;
use crate::mounts::{Mount, Mounts};
use crate::nvme;
use crate::proc::{entries, name_of, names, number, text, under};

/// Returns every device beneath the file system of `mount`, from the top down, without duplicates.
/// If it is an overlay, also returns the type of the file system that stores its files.
pub fn chain_of_mount(
    root: &Path,
    mounts: &Mounts,
    mount: &Mount,
) -> (Vec<BlockDevice>, Option<String>) {
    let mut walk = Walk { root, mounts, found: Vec::new(), seen: Vec::new(), last: None };
    walk.mount(mount);
    (walk.found, walk.last.filter(|_| mount.kind == OVERLAY))
}

pub fn chain_of_number(root: &Path, mounts: &Mounts, number: (u32, u32)) -> Vec<BlockDevice> {
    let mut walk = Walk { root, mounts, found: Vec::new(), seen: Vec::new(), last: None };
    if let Some(name) = name_of_number(root, &format!("{}:{}", number.0, number.1)) {
        walk.device(&name);
    }
    walk.found
}

/// Returns the device with that kernel name; `None` if there is none.
pub fn named(root: &Path, name: &str) -> Option<BlockDevice> {
    Some(block_device(root, name, &directory(root, name)?))
}

struct Walk<'a> {
    root: &'a Path,
    mounts: &'a Mounts,
    found: Vec<BlockDevice>,
    /// Mounts visited so far: an overlay whose layers another namespace holds appears to be on
    /// itself.
    seen: Vec<u64>,
    /// Type of the first file system on the way that is not an overlay.
    last: Option<String>,
}

const OVERLAY: &str = "overlay";

impl Walk<'_> {
    fn mount(&mut self, mount: &Mount) {
        if self.seen.contains(&mount.id) {
            return;
        }
        self.seen.push(mount.id);
        if mount.kind == OVERLAY {
            // New and changed files go to the upper layer; without one, data is in the lowest.
            let lower = mount.option("lowerdir").and_then(|dirs| dirs.rsplit(':').next());
            if let Some(layer) = mount.option("upperdir").or(lower) {
                self.file(Path::new(layer));
            }
            return;
        }
        self.last.get_or_insert_with(|| mount.kind.clone());
        for name in device_names(self.root, mount) {
            self.device(&name);
        }
    }

    fn file(&mut self, path: &Path) {
        let mounts = self.mounts;
        if let Some(mount) = mounts.above(path) {
            self.mount(mount);
        }
    }

    fn device(&mut self, name: &str) {
        if self.found.iter().any(|device| device.name == name) {
            return;
        }
        let Some(directory) = directory(self.root, name) else { return };
        let mut device = block_device(self.root, name, &directory);
        if device.kind == DeviceKind::Loop {
            let holder = device.beneath.first().and_then(|path| self.mounts.above(Path::new(path)));
            device.backing_file_system = holder.map(|mount| mount.kind.clone());
        }
        let (kind, beneath) = (device.kind, device.beneath.clone());
        self.found.push(device);
        for below in beneath {
            if kind == DeviceKind::Loop {
                self.file(Path::new(&below));
            } else {
                self.device(&below);
            }
        }
    }
}

fn device_names(root: &Path, mount: &Mount) -> Vec<String> {
    let mut found = Vec::new();
    if mount.number.starts_with("0:") {
        // An anonymous number: btrfs on one or more devices, or bcachefs with `:` between them.
        let sources = mount.source.split(':').filter(|source| source.starts_with("/dev/"));
        found.extend(sources.filter_map(|source| name_of_path(root, source)));
    } else {
        found.extend(name_of_number(root, &mount.number));
    }
    if mount.kind == "btrfs" {
        for file_system in entries(&under(root, "/sys/fs/btrfs")) {
            let members = names(&file_system.join("devices"));
            if members.iter().any(|member| found.contains(member)) {
                found.extend(members);
            }
        }
    }
    // XFS may keep its log, and files marked real-time, on devices of their own.
    let apart = ["logdev", "rtdev"].into_iter().filter_map(|option| mount.option(option));
    found.extend(apart.filter_map(|source| name_of_path(root, source)));
    found
}

pub fn name_of_number(root: &Path, number: &str) -> Option<String> {
    name_of(&fs::canonicalize(under(root, "/sys/dev/block").join(number)).ok()?)
}

/// Resolves `/dev/sda1`, or a udev link (`/dev/mapper/vg-data`, `/dev/disk/by-uuid/…`).
pub fn name_of_path(root: &Path, path: &str) -> Option<String> {
    let resolved = fs::canonicalize(under(root, path)).ok();
    let name = resolved.as_deref().and_then(name_of);
    // Without udev links a mapped device is known by the name it was given.
    let mapped = || {
        let given = path.strip_prefix("/dev/mapper/")?;
        entries(&under(root, "/sys/block"))
            .iter()
            .find(|directory| text(&directory.join("dm/name")).as_deref() == Some(given))
            .and_then(|directory| name_of(directory))
    };
    let direct = || Some(path.strip_prefix("/dev/")?.replace('/', "!"));
    name.filter(|name| directory(root, name).is_some()).or_else(mapped).or_else(direct)
}

/// Returns the device's directory under /sys/devices, whose ancestors are the hardware it is
/// attached to.
pub fn directory(root: &Path, name: &str) -> Option<PathBuf> {
    fs::canonicalize(under(root, "/sys/class/block").join(name)).ok()
}

fn block_device(root: &Path, name: &str, directory: &Path) -> BlockDevice {
    let kind = kind_of(name, directory);
    let parent = directory.parent().unwrap_or(directory);
    // A partition has no queue of its own: its disk's queue applies.
    let whole = if kind == DeviceKind::Partition { parent } else { directory };
    let queue = |file: &str| number(&whole.join("queue").join(file));
    let queue_text = |file: &str| text(&whole.join("queue").join(file));
    let block = |file: &str| queue(file).map_or(512, |bytes| bytes as u32);
    BlockDevice {
        name: name.to_owned(),
        number: text(&directory.join("dev")).unwrap_or_default(),
        kind,
        size_bytes: number(&directory.join("size")).unwrap_or_default() * 512,
        model: model(whole),
        scheduler: queue_text("scheduler").map(|list| active(&list)),
        write_cache: queue_text("write_cache"),
        drive_cache: drive_cache(root, whole),
        zoned: zoned(whole),
        rotational: queue("rotational").map(|flag| flag != 0),
        logical_block_bytes: block("logical_block_size"),
        physical_block_bytes: block("physical_block_size"),
        queue_depth: queue("nr_requests").map(|depth| depth as u32),
        max_request_bytes: queue("max_sectors_kb").map(|kib| kib * 1024),
        beneath: beneath(root, kind, directory, parent),
        backing_file_system: None,
        link: link::of_device(root, directory),
        state: text(&whole.join("device/state")),
        numa_node: crate::processors::node_of_device(root, directory),
        raid: (kind == DeviceKind::Raid).then(|| raid(directory)).flatten(),
    }
}

/// Returns the cache that the drive declares: a SCSI or ATA disk in its caching page, an `NVMe`
/// controller in its identity.
fn drive_cache(root: &Path, whole: &Path) -> Option<String> {
    let scsi = entries(&whole.join("device/scsi_disk"));
    if let Some(disk) = scsi.first() {
        return text(&disk.join("cache_type"));
    }
    let disk = name_of(whole)?;
    let controllers = nvme::controllers(root).into_iter();
    let mut its = controllers.filter(|it| it.disks.contains(&disk));
    its.find_map(|it| nvme::write_cache(root, &it.name).ok()).map(|cache| cache.name().to_owned())
}

/// Where the Block Device Characteristics page (B1h) has its ZONED field, and what it means (SBC-4;
/// the kernel makes this page of word 69 of an ATA identity).
const ZONED_BYTE: usize = 8;
const ZONED_MEANS: [&str; 3] = ["none", "host-aware", "drive-managed"];

/// Returns the zones that the kernel sees, or those that the drive admits to.
fn zoned(whole: &Path) -> Option<String> {
    let seen = text(&whole.join("queue/zoned"))?;
    if seen != ZONED_MEANS[0] {
        return Some(seen);
    }
    let page = fs::read(whole.join("device/vpd_pgb1")).unwrap_or_default();
    let field = page.get(ZONED_BYTE).map_or(0, |byte| byte >> 4 & 3);
    Some(ZONED_MEANS.get(usize::from(field)).map_or(seen, |&means| means.to_owned()))
}

/// Returns the state of an md array; `None` if md does not even report its number of disks.
fn raid(directory: &Path) -> Option<RaidState> {
    let md = directory.join("md");
    Some(RaidState {
        // `3 (4)` during a reshape.
        disks: text(&md.join("raid_disks"))?.split_whitespace().next()?.parse().ok()?,
        disks_missing: number(&md.join("degraded")),
        sync_action: text(&md.join("sync_action")),
    })
}

fn kind_of(name: &str, directory: &Path) -> DeviceKind {
    const MARKS: [(&str, DeviceKind); 4] = [
        ("partition", DeviceKind::Partition),
        ("loop", DeviceKind::Loop),
        ("dm", DeviceKind::DeviceMapper),
        ("md", DeviceKind::Raid),
    ];
    match MARKS.iter().find(|(entry, _)| directory.join(entry).exists()) {
        Some(&(_, kind)) => kind,
        None if name.starts_with("zram") => DeviceKind::Zram,
        None => DeviceKind::Disk,
    }
}

fn beneath(root: &Path, kind: DeviceKind, directory: &Path, parent: &Path) -> Vec<String> {
    match kind {
        DeviceKind::Partition => name_of(parent).into_iter().collect(),
        DeviceKind::Loop => text(&directory.join("loop/backing_file")).into_iter().collect(),
        // Swapped-out pages of zram may go to a device; `none` if they do not.
        DeviceKind::Zram => text(&directory.join("backing_dev"))
            .and_then(|path| Some(path.strip_prefix("/dev/")?.to_owned()))
            .into_iter()
            .collect(),
        DeviceKind::Disk => {
            let all = names(&under(root, "/sys/class/block"));
            nvme_paths(&name_of(directory).unwrap_or_default(), all)
        }
        DeviceKind::DeviceMapper | DeviceKind::Raid => names(&directory.join("slaves")),
    }
}

/// Returns the paths to an `NVMe` disk that has several: `nvme0c0n1` and `nvme0c1n1` for `nvme0n1`.
/// They have no node under /dev, but requests are sent to them, and counted there.
pub fn nvme_paths(name: &str, among: Vec<String>) -> Vec<String> {
    let parts = |name: &str| {
        let rest = name.strip_prefix("nvme")?;
        let (subsystem, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        Some((subsystem.to_owned(), rest.to_owned()))
    };
    let Some((subsystem, namespace)) = parts(name).filter(|(_, rest)| rest.starts_with('n')) else {
        return Vec::new();
    };
    let is_path = |other: &String| {
        parts(other).is_some_and(|(of, rest)| {
            let controller = rest.strip_prefix('c').and_then(|rest| rest.find('n'));
            of == subsystem && controller.is_some_and(|at| rest[1 + at..] == namespace)
        })
    };
    among.into_iter().filter(is_path).collect()
}

/// Returns vendor and model of a disk, `LVM vg-data` for a mapped device, `raid1` for an array.
fn model(directory: &Path) -> Option<String> {
    if let Some(level) = text(&directory.join("md/level")) {
        return Some(level);
    }
    if let Some(name) = text(&directory.join("dm/name")) {
        let uuid = text(&directory.join("dm/uuid")).unwrap_or_default();
        // The creator's prefix is in front of the first dash: LVM, CRYPT, mpath.
        let maker = uuid.split_once('-').map_or("", |(maker, _)| maker);
        return Some(format!("{maker} {name}").trim_start().to_owned());
    }
    let model = text(&directory.join("device/model"))?;
    // A SCSI device has a vendor name, a virtio one a number.
    let vendor = text(&directory.join("device/vendor")).filter(|v| !v.starts_with("0x"));
    Some(vendor.map_or(model.clone(), |vendor| format!("{vendor} {model}")))
}

/// Returns the scheduler in brackets: `none [mq-deadline] kyber`.
fn active(list: &str) -> String {
    let bracketed = list.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(list, |(name, _)| name).to_owned()
}
