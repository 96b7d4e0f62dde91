//! Storage that is main memory: file systems, devices, and device chains that end there.

use super::{BlockDevice, DeviceKind, FileSystem, StorageTarget};

const FILE_SYSTEMS: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// Prefixes of kernel names of devices that keep their data in main memory.
const DEVICES: [(&str, &str); 3] = [
    ("zram", "compressed memory"),
    ("ram", "a RAM disk"),
    ("nullb", "a null_blk device, which keeps data in memory or nowhere"),
];
/// Prefixes of kernel names of devices behind which a program serves the data.
const SERVED_DEVICES: [&str; 3] = ["nbd", "ublkb", "rbd"];
const SCSI_DEBUG: &str = "Linux scsi_debug";

/// A device in which a chain ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainEnd {
    pub keeps: Keeps,
    /// Name and description of the device.
    pub what: String,
}

/// Location of a device's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    Memory,
    PersistentMemory,
    /// A program serves the data and may keep it anywhere.
    Server,
    Storage,
}

/// Returns whether a file system of this type keeps its files in main memory.
pub fn keeps_in_memory(file_system: &str) -> bool {
    FILE_SYSTEMS.contains(&file_system)
}

impl StorageTarget {
    /// Returns the devices in which the chain ends.
    pub fn ends(&self) -> Vec<ChainEnd> {
        self.devices.iter().filter_map(BlockDevice::end).collect()
    }

    /// Returns the storage of the target if that is main memory only: `tmpfs` or
    /// `zram0, compressed memory`.
    pub fn is_memory(&self) -> Option<String> {
        if let Some(memory) = self.file_system.as_ref().and_then(FileSystem::in_memory) {
            return Some(memory);
        }
        let ends = self.ends();
        let all = !ends.is_empty() && ends.iter().all(|end| end.keeps == Keeps::Memory);
        all.then(|| ends.iter().map(|end| end.what.as_str()).collect::<Vec<_>>().join("; "))
    }
}

impl FileSystem {
    /// Returns the storage of the files, if that is main memory: `tmpfs`, `overlay on tmpfs`.
    pub fn in_memory(&self) -> Option<String> {
        let beneath = self.beneath.as_deref().filter(|kind| keeps_in_memory(kind));
        if keeps_in_memory(&self.kind) {
            return Some(self.kind.clone());
        }
        beneath.map(|beneath| format!("{} on {beneath}", self.kind))
    }
}

impl BlockDevice {
    /// Returns this device as an end of the chain, if the chain ends here.
    fn end(&self) -> Option<ChainEnd> {
        let Self { name, kind, model, beneath, backing_file_system, .. } = self;
        let is =
            |keeps: Keeps, what: String| Some(ChainEnd { keeps, what: format!("{name}{what}") });
        if *kind == DeviceKind::Loop {
            let on = backing_file_system.as_deref().filter(|kind| keeps_in_memory(kind))?;
            let file = beneath.first().map_or("its file", String::as_str);
            return is(Keeps::Memory, format!(", whose backing file {file} lies on {on}"));
        }
        let called = |prefix: &str| is_numbered(name, prefix);
        // zram may write pages that have been idle for a long time to a device beneath.
        if let Some((_, what)) = DEVICES.iter().find(|(prefix, _)| called(prefix)) {
            return is(Keeps::Memory, format!(", {what}"));
        }
        if !beneath.is_empty() {
            return None;
        }
        if model.as_deref() == Some(SCSI_DEBUG) {
            return is(Keeps::Memory, ", a scsi_debug disk in memory".to_owned());
        }
        if called("pmem") {
            return is(Keeps::PersistentMemory, ", persistent memory".to_owned());
        }
        let served = SERVED_DEVICES.iter().any(|prefix| called(prefix));
        is(if served { Keeps::Server } else { Keeps::Storage }, String::new())
    }
}

/// Returns whether a kernel name is this prefix followed by a number: `ram0`, not `rambler`.
fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}
