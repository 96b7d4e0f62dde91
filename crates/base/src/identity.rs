//! What was measured and where: the host, the path, the file system and the devices beneath it.
//! Collected by `sys`, kept in every recording, so that nothing later has to ask the machine.

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
    /// Processors this process may use: the least of affinity and cgroup quota, in thousandths.
    pub cpus_allowed_milli: u32,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// The hypervisor, where one shows itself.
    pub hypervisor: Option<String>,
    /// The cloud that rents the machine out, by its firmware tables; none where these name none,
    /// and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<Cloud>,
    /// Idle states, frequencies and nodes of the processors; none where sysfs does not show them,
    /// and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<Processors>,
    /// Database servers that were already running, by process name.
    pub databases_running: Vec<String>,
}

/// What sysfs says of the first processor that this process may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Processors {
    /// Driver of the idle states (`cpuidle`); none without idle states.
    pub idle_driver: Option<String>,
    /// Idle states, the lightest first.
    pub idle_states: Vec<IdleState>,
    /// Driver of the frequency (`cpufreq`); none where it cannot be set.
    pub frequency_driver: Option<String>,
    /// What chooses the frequency: `performance`, `powersave`, `schedutil`.
    pub frequency_governor: Option<String>,
    /// The lowest frequency that it may choose.
    pub frequency_hz_min: Option<u64>,
    /// The highest frequency that it may choose.
    pub frequency_hz_max: Option<u64>,
    /// The highest frequency of the processor.
    pub hardware_hz_max: Option<u64>,
    /// How many NUMA nodes have processors.
    pub numa_nodes: u32,
}

/// A state in which a processor without work saves power.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// As the driver names it: `POLL`, `C1`, `C6`.
    pub name: String,
    /// How long it takes to leave it, as the driver states it.
    pub exit_latency_ns: u64,
    /// Whether an administrator has switched it off.
    pub disabled: bool,
}

/// What processors did in a window, read just before its first and just after its last edge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessorUse {
    /// Idle states, all processors together that this process may use.
    pub idle: Vec<IdleUse>,
    /// The frequency of the fastest of them when the window closed.
    pub frequency_hz_fastest: Option<u64>,
    /// Processors that were busy for 1 % of the window or took an interrupt of a disk.
    pub cpus: Vec<CpuUse>,
}

/// How often processors entered an idle state, and how long they were in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleUse {
    pub state: String,
    pub entries: u64,
    pub time_ns: u64,
}

/// What one processor did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuUse {
    pub cpu: u32,
    /// Its NUMA node.
    pub node: Option<u32>,
    /// Time in programs, the kernel and interrupts (resolution 10 ms).
    pub busy_ns: u64,
    /// Interrupts of the target's disks that it took; none where the kernel does not say which
    /// these are.
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
    /// A directory: a test file is created in it.
    Directory,
    /// A regular file: it is only read, unless Blockstone created it.
    File,
    BlockDevice,
}

/// The storage under test, from the path down to the devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageTarget {
    /// The path as resolved.
    pub path: String,
    pub kind: PathKind,
    /// The file system that holds it; none for a block device.
    pub file_system: Option<FileSystem>,
    /// Every device from the top of the chain (a partition, a loop device) to the bottom.
    pub devices: Vec<BlockDevice>,
    /// Direct I/O as the kernel describes it for this path.
    pub direct_io: DirectIo,
    /// Limits that a control group puts on the devices.
    pub caps: Vec<CgroupCap>,
    /// Bytes free to this user (the size, for a file or a device).
    pub free_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSystem {
    /// Its type, as in /proc/self/mountinfo: `ext4`, `xfs`, `tmpfs`.
    pub kind: String,
    /// The mounted device or name.
    pub source: String,
    pub mount_point: String,
    /// Mount and superblock options, comma-separated.
    pub options: String,
    /// The type of the file system that stores the files, if it is not this one: of an overlay,
    /// that of its upper layer. None if the layer is not visible from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beneath: Option<String>,
}

named! {
    /// What a block device is.
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
    /// Kernel name, as `vda1`.
    pub name: String,
    /// `major:minor`.
    pub number: String,
    pub kind: DeviceKind,
    pub size_bytes: u64,
    /// Vendor and model of a disk; what a built device is: `LVM vg-data`, `CRYPT secret`, `raid1`.
    pub model: Option<String>,
    /// The active I/O scheduler.
    pub scheduler: Option<String>,
    /// `write back` (volatile cache, flushes needed) or `write through`.
    pub write_cache: Option<String>,
    /// Whether the kernel takes it for a rotating disk.
    pub rotational: Option<bool>,
    /// Logical block size in bytes.
    pub logical_block_bytes: u32,
    /// Physical block size in bytes.
    pub physical_block_bytes: u32,
    /// Request queue depth (`nr_requests`).
    pub queue_depth: Option<u32>,
    /// Largest request the block layer sends, in bytes.
    pub max_request_bytes: Option<u64>,
    /// Names of the devices beneath, or the backing file of a loop device.
    pub beneath: Vec<String>,
    /// Type of the file system that holds the backing file of a loop device.
    #[serde(default)]
    pub backing_file_system: Option<String>,
    /// The link to the device, where the kernel knows its speed.
    pub link: Option<Link>,
    /// State of a disk or of a path to one, as the kernel names it: `running` and `offline` of a
    /// SCSI disk, `live` and `connecting` of `NVMe`. None where it has none and in recordings of
    /// older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The NUMA node that it is attached to; none where the firmware does not say, and in
    /// recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// How complete a RAID of Linux is; none of other devices, and in older recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid: Option<RaidState>,
}

/// The state of a RAID of Linux (md) when the measurement began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RaidState {
    /// Disks that it should have.
    pub disks: u64,
    /// Disks that are missing; none for levels without redundancy.
    pub disks_missing: Option<u64>,
    /// What it does beside I/O: `idle`, `resync`, `recover`, `check`, `repair`, `reshape`.
    pub sync_action: Option<String>,
}

/// A link that no transfer can outrun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// As an engineer writes it: `PCIe 8.0 GT/s x4`, `SATA 6.0 Gb/s`.
    pub description: String,
    /// Payload bytes a second at most.
    pub bytes_per_s: f64,
    /// What both of its ends could carry; none where only one speed is known, and in recordings of
    /// older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s_max: Option<f64>,
    /// That, as an engineer writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description_max: Option<String>,
    /// Where that was read.
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
    /// Where that was read: `statx STATX_DIOALIGN` or `logical block size`.
    pub source: String,
}

/// Which transfers a cap limits.
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
    /// The control file.
    pub source: String,
}

/// How a file's bytes lie on its device: what FIEMAP and stat(2) say.
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
    /// Attributes that decide how I/O to the file is done, of `journal-data`, `no-copy-on-write`,
    /// `compressed`, `verity` and `inline-data`; none where the file system has no attributes, and
    /// in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<String>>,
    /// Whether the file system answers FIEMAP; if not, only `allocated_bytes` is evidence.
    pub fiemap: Capability,
}
