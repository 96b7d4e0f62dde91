//! The measured storage and its surroundings: the host, the path, the file system and the devices
//! beneath it. Collected by `sys` and kept in every recording, so that nothing later has to query
//! the machine.

mod memory;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use memory::{ChainEnd, Keeps, keeps_in_memory};

use crate::capability::Capability;
use crate::named;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    pub hostname: String,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Architecture, as `uname -m` prints it.
    pub architecture: String,
    pub cpu_model: String,
    /// Processors online.
    pub cpus: u32,
    /// Processors this process may use: the lower of affinity and cgroup quota, in thousandths.
    pub cpus_allowed_milli: u32,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// Hypervisor, if one identifies itself.
    pub hypervisor: Option<String>,
    /// Cloud that rents out the machine, according to its firmware tables; none if these do not
    /// name one, and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<Cloud>,
    /// Type of the rented machine, such as `m5.large`; none if the firmware tables do not name it,
    /// and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_type: Option<String>,
    /// Idle states, frequencies and nodes of the processors; none if sysfs does not show them, and
    /// in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<Processors>,
    /// Random number that the kernel drew when it started, the same in all containers of a machine;
    /// none in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Database servers that were already running, by process name.
    pub databases_running: Vec<String>,
}

/// Properties of the first processor that this process may use, as reported by sysfs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Processors {
    /// Driver of the idle states (`cpuidle`); none without idle states.
    pub idle_driver: Option<String>,
    /// Idle states, the lightest first.
    pub idle_states: Vec<IdleState>,
    /// Driver of the frequency (`cpufreq`); none if it cannot be set.
    pub frequency_driver: Option<String>,
    /// Governor that chooses the frequency: `performance`, `powersave`, `schedutil`.
    pub frequency_governor: Option<String>,
    /// Lowest frequency that the governor may choose.
    pub frequency_hz_min: Option<u64>,
    /// Highest frequency that the governor may choose.
    pub frequency_hz_max: Option<u64>,
    /// Highest frequency of the processor.
    pub hardware_hz_max: Option<u64>,
    /// Number of NUMA nodes that have processors.
    pub numa_nodes: u32,
}

/// A state in which an idle processor saves power.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// Name given by the driver: `POLL`, `C1`, `C6`.
    pub name: String,
    /// Time to leave the state in nanoseconds, as the driver states it.
    pub exit_latency_ns: u64,
    /// Whether an administrator has switched it off.
    pub disabled: bool,
}

/// Use of the processors in a window, read just before its start and just after its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessorUse {
    /// Idle states, summed over the processors that this process may use.
    pub idle: Vec<IdleUse>,
    /// Frequency of the fastest of these processors when the window closed.
    pub frequency_hz_fastest: Option<u64>,
    /// Processors that were busy for 1 % of the window or took an interrupt of a disk.
    pub cpus: Vec<CpuUse>,
}

/// Number of times that processors entered an idle state, and the time they stayed in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleUse {
    pub state: String,
    pub entries: u64,
    pub time_ns: u64,
}

/// Use of one processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuUse {
    pub cpu: u32,
    /// NUMA node of the processor.
    pub node: Option<u32>,
    /// Time in nanoseconds in programs, the kernel and interrupts (resolution 10 ms).
    pub busy_ns: u64,
    /// Interrupts of the target's disks that the processor took; none if the kernel does not say
    /// which these are.
    pub interrupts: Option<u64>,
}

named! {
    /// A cloud whose volumes have published limits.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    Cloud {
        Aws = "AWS",
        Azure = "Azure",
        Google = "Google Cloud",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathKind {
    /// A directory, in which a test file is created.
    Directory,
    /// A regular file, which is only read unless Blockstone created it.
    File,
    BlockDevice,
}

/// The storage under test, from the path down to the devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageTarget {
    /// Path as resolved.
    pub path: String,
    pub kind: PathKind,
    /// File system that holds the path; none for a block device.
    pub file_system: Option<FileSystem>,
    /// Every device from the top of the chain (a partition, a loop device) to the bottom.
    pub devices: Vec<BlockDevice>,
    /// Direct I/O as the kernel describes it for this path.
    pub direct_io: DirectIo,
    /// Limits that a control group puts on the devices.
    pub caps: Vec<CgroupCap>,
    /// Free bytes available to this user (the size, for a file or a device).
    pub free_bytes: u64,
}

impl StorageTarget {
    /// Combines several targets into one: the first, with the paths, devices and limits of all.
    /// Devices at the top of a chain come first; the free space of a file system counts once.
    pub fn united(targets: &[Self]) -> Option<Self> {
        let mut all = targets.first()?.clone();
        let paths: Vec<&str> = targets.iter().map(|target| target.path.as_str()).collect();
        all.path = paths.join(", ");
        let tops = targets.iter().filter_map(|target| target.devices.first());
        let beneath = targets.iter().flat_map(|target| target.devices.iter().skip(1));
        all.devices.clear();
        for device in tops.chain(beneath) {
            if !all.devices.iter().any(|known| known.name == device.name) {
                all.devices.push(device.clone());
            }
        }
        for cap in targets.iter().flat_map(|target| &target.caps) {
            if !all.caps.contains(cap) {
                all.caps.push(cap.clone());
            }
        }
        let is_first = |at: usize| {
            let of = &targets[at].file_system;
            of.is_none() || targets[..at].iter().all(|before| before.file_system != *of)
        };
        let each = targets.iter().enumerate().filter(|(at, _)| is_first(*at));
        all.free_bytes = each.map(|(_, target)| target.free_bytes).sum();
        Some(all)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSystem {
    /// File system type, as in /proc/self/mountinfo: `ext4`, `xfs`, `tmpfs`.
    pub kind: String,
    /// Mounted device or name.
    pub source: String,
    pub mount_point: String,
    /// Mount and superblock options, comma-separated.
    pub options: String,
    /// Type of the file system that stores the files, if it is not this one: for an overlay, that
    /// of its upper layer. None if the layer is not visible from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beneath: Option<String>,
}

named! {
    /// Kind of a block device.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    DeviceKind {
        /// A whole disk, real or virtual.
        Disk = "disk",
        Partition = "partition",
        /// A loop device over a file.
        Loop = "loop",
        /// Device mapper: LVM, crypt, multipath.
        DeviceMapper = "dm",
        /// Linux software RAID.
        Raid = "md",
        /// Compressed memory.
        Zram = "zram",
    }
}

/// One block device of the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDevice {
    /// Kernel name, such as `vda1`.
    pub name: String,
    /// `major:minor`.
    pub number: String,
    pub kind: DeviceKind,
    pub size_bytes: u64,
    /// Vendor and model of a disk, or the kind of a virtual device: `LVM vg-data`, `CRYPT secret`,
    /// `raid1`.
    pub model: Option<String>,
    /// Active I/O scheduler.
    pub scheduler: Option<String>,
    /// `write back` (volatile cache, flushes needed) or `write through`.
    pub write_cache: Option<String>,
    /// Cache that the drive itself declares, whatever the kernel takes it for: `none`, `write
    /// through` or `write back`. None if it cannot be asked, and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive_cache: Option<String>,
    /// Zones that are written in sequence: `none`, `host-managed`, `host-aware` or `drive-managed`
    /// (a shingled disk that hides them). None if it cannot be asked, and in recordings of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zoned: Option<String>,
    /// Whether the kernel treats it as a rotating disk.
    pub rotational: Option<bool>,
    /// Logical block size in bytes.
    pub logical_block_bytes: u32,
    /// Physical block size in bytes.
    pub physical_block_bytes: u32,
    /// Request queue depth (`nr_requests`).
    pub queue_depth: Option<u32>,
    /// Largest request that the block layer sends, in bytes.
    pub max_request_bytes: Option<u64>,
    /// Names of the devices beneath, or the backing file of a loop device.
    pub beneath: Vec<String>,
    /// Type of the file system that holds the backing file of a loop device.
    #[serde(default)]
    pub backing_file_system: Option<String>,
    /// Link to the device, if the kernel knows its speed.
    pub link: Option<Link>,
    /// State of a disk or of a path to one, as the kernel names it: `running` and `offline` for a
    /// SCSI disk, `live` and `connecting` for `NVMe`. None if it has none, and in recordings of
    /// older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// NUMA node that the device is attached to; none if the firmware does not say, and in
    /// recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// Completeness of a Linux RAID; none for other devices, and in older recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid: Option<RaidState>,
}

/// State of a Linux RAID (md) when the measurement began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RaidState {
    /// Number of disks that the array should have.
    pub disks: u64,
    /// Number of missing disks; none for levels without redundancy.
    pub disks_missing: Option<u64>,
    /// Current background activity: `idle`, `resync`, `recover`, `check`, `repair`, `reshape`.
    pub sync_action: Option<String>,
}

/// A link that no transfer can outrun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Description in the usual notation: `PCIe 8.0 GT/s x4`, `SATA 6.0 Gb/s`.
    pub description: String,
    /// Maximum payload in bytes per second.
    pub bytes_per_s: f64,
    /// Maximum payload in bytes per second that both ends could carry; none if only one speed is
    /// known, and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s_max: Option<f64>,
    /// Description of the link that both ends could carry, in the usual notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description_max: Option<String>,
    /// Source of the link speed.
    pub source: String,
}

/// Direct I/O on the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectIo {
    /// Whether the page cache can be bypassed.
    pub capability: Capability,
    /// Required alignment of offsets and lengths, in bytes.
    pub offset_align_bytes: u32,
    /// Required alignment of memory, in bytes.
    pub memory_align_bytes: u32,
    /// Source of the alignment: `statx STATX_DIOALIGN` or `logical block size`.
    pub source: String,
}

/// Kind of transfers that a cap limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapKind {
    ReadIops,
    WriteIops,
    ReadBytesPerS,
    WriteBytesPerS,
}

/// A limit set by a control group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CgroupCap {
    /// `major:minor` of the limited device.
    pub device: String,
    pub kind: CapKind,
    pub limit: u64,
    /// Control file that sets the limit.
    pub source: String,
}

/// Layout of a file's bytes on its device, as reported by FIEMAP and stat(2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileMap {
    pub size_bytes: u64,
    /// Bytes allocated (`st_blocks` × 512).
    pub allocated_bytes: u64,
    pub extents: u64,
    /// Bytes with a mapped, written extent.
    pub mapped_bytes: u64,
    /// Bytes without any extent: a read is answered with zeros and no I/O.
    pub hole_bytes: u64,
    /// Bytes in extents allocated but never written: a read is answered with zeros and no I/O.
    pub unwritten_bytes: u64,
    /// Bytes in extents stored compressed, encrypted or inside the inode.
    pub encoded_bytes: u64,
    /// Bytes in extents shared with another file.
    pub shared_bytes: u64,
    /// Attributes that determine how I/O to the file is done: any of `journal-data`,
    /// `no-copy-on-write`, `compressed`, `verity` and `inline-data`; none if the file system has no
    /// attributes, and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<String>>,
    /// Whether the file system answers FIEMAP; if not, only `allocated_bytes` is evidence.
    pub fiemap: Capability,
}
