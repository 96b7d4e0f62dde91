//! Log pages and the write cache of `NVMe` controllers, by ioctl. All commands sent are read-only:
//! Get Log Page, Identify and Get Features.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::proc::{entries, name_of, names, text, under};

/// A log page, of the size that both logs in [`Log`] have.
pub type Page = [u8; PAGE_BYTES];

pub const PAGE_BYTES: usize = 512;

/// Logs that may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// SMART / Health Information, which every controller has.
    Health,
    /// SMART / Health Information Extended of OCP's Datacenter `NVMe` SSD Specification. Other
    /// vendors use its number for other logs.
    OcpHealth,
}

impl Log {
    pub const fn number(self) -> u8 {
        match self {
            Self::Health => 0x02,
            Self::OcpHealth => 0xC0,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum NvmeError {
    #[error("open {path}: {source}")]
    Open { path: String, source: io::Error },
    #[error("read log page {number:02X}h of {path}: {source}")]
    Send { path: String, number: u8, source: io::Error },
    /// The controller answered with a status other than success.
    #[error("read log page {number:02X}h of {path}: the device refuses it with status {status:#x}")]
    Refused { path: String, number: u8, status: u16 },
}

/// A controller as shown in /sys/class/nvme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Kernel name, such as `nvme0`.
    pub name: String,
    pub model: Option<String>,
    /// Identifies its subsystem: controllers that share it are paths to the same storage.
    pub subsystem: Option<String>,
    /// Its block devices, or those of its subsystem if that has several controllers.
    pub disks: Vec<String>,
}

/// Returns the controllers of the machine at `root`.
pub fn controllers(root: &Path) -> Vec<Controller> {
    let disks = names(&under(root, "/sys/class/block"));
    let controller = |directory: std::path::PathBuf| {
        let name = name_of(&directory)?;
        name.strip_prefix("nvme")?.parse::<u32>().ok()?;
        let subsystem = text(&directory.join("subsysnqn"));
        let its = |disk: &&String| is_of(&directory, &name, subsystem.as_deref(), disk, root);
        let disks = disks.iter().filter(its).cloned().collect();
        Some(Controller { model: text(&directory.join("model")), name, subsystem, disks })
    };
    entries(&under(root, "/sys/class/nvme")).into_iter().filter_map(controller).collect()
}

/// Returns whether a block device is a namespace of the controller: it is in its directory, or in
/// that of a subsystem of the same name. Excludes partitions, and paths with their own counters.
fn is_of(directory: &Path, name: &str, subsystem: Option<&str>, disk: &str, root: &Path) -> bool {
    let Some((_, namespace)) = disk.strip_prefix("nvme").and_then(|rest| rest.split_once('n'))
    else {
        return false;
    };
    if namespace.contains('p') || disk[4..].contains('c') {
        return false;
    }
    let device = under(root, format!("/sys/class/block/{disk}/device"));
    let above = text(&device.join("subsysnqn"));
    match (above.as_deref(), subsystem) {
        (Some(above), Some(subsystem)) => above == subsystem,
        _ => directory.join(disk).exists() || disk.starts_with(&format!("{name}n")),
    }
}

/// `struct nvme_admin_cmd` (`linux/nvme_ioctl.h`).
#[repr(C)]
#[derive(Default)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    dwords_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    dwords_10_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// `_IOWR('N', 0x41, struct nvme_admin_cmd)`, the same on x86-64 and aarch64.
const IOCTL_ADMIN_COMMAND: libc::Ioctl = 0xC048_4E41_u32 as libc::Ioctl;
const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const GET_FEATURES: u8 = 0x0A;
/// All namespaces: selects the controller's log.
const CONTROLLER: u32 = u32::MAX;
/// Keeps the log's pending events for the processes that wait for them.
const RETAIN_EVENTS: u32 = 1 << 15;

/// Reads a log page of the controller `name` below `root`.
///
/// It waits as long as the kernel does, which is up to a minute for a device that does not answer:
/// a shorter limit would make the driver reset the controller.
pub fn read(root: &Path, name: &str, log: Log) -> Result<Page, NvmeError> {
    let path = format!("/dev/{name}");
    let number = log.number();
    let file = match File::open(under(root, &path)) {
        Ok(file) => file,
        Err(source) => return Err(NvmeError::Open { path, source }),
    };
    let mut page = [0; PAGE_BYTES];
    // Zero-based number of dwords.
    let dwords = (PAGE_BYTES / 4 - 1) as u32;
    let dword_10 = u32::from(number) | RETAIN_EVENTS | dwords << 16;
    let question = Question { opcode: GET_LOG_PAGE, namespace: CONTROLLER, dword_10 };
    match send(&file, question, &mut page) {
        Ok(Ok(_)) => Ok(page),
        Ok(Err(status)) => Err(NvmeError::Refused { path, number, status }),
        Err(source) => Err(NvmeError::Send { path, number, source }),
    }
}

/// Volatile write cache, as declared by a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    None,
    Off,
    On,
}

impl WriteCache {
    /// Returns its name in the terms of SCSI.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Off => "write through",
            Self::On => "write back",
        }
    }
}

/// Identify Controller; the byte of its data that declares the cache follows.
const IDENTIFY_CONTROLLER: u32 = 1;
const IDENTIFY_BYTES: usize = 4096;
const VOLATILE_WRITE_CACHE: usize = 525;
/// Feature that enables the cache.
const FEATURE_WRITE_CACHE: u32 = 6;

/// Queries the write cache of the controller `name` below `root`.
pub fn write_cache(root: &Path, name: &str) -> io::Result<WriteCache> {
    let file = File::open(under(root, format!("/dev/{name}")))?;
    if identity(&file)?[VOLATILE_WRITE_CACHE] & 1 == 0 {
        return Ok(WriteCache::None);
    }
    let current = ask(&file, GET_FEATURES, FEATURE_WRITE_CACHE, &mut [])?;
    Ok(if current & 1 == 0 { WriteCache::Off } else { WriteCache::On })
}

/// Power state of a controller, with what its identity says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerState {
    /// 0 is the state of most power.
    pub number: u8,
    /// Whether it serves no I/O in this state: one that it takes and leaves by itself while idle.
    pub is_idle: bool,
    /// Most power that it may take in this state; `None` if its identity does not say.
    pub most_mw: Option<u64>,
}

const FEATURE_POWER: u32 = 2;
/// Where the descriptors of power states are in the identity, and the size of each.
const POWER_STATES: usize = 2048;
const POWER_STATE_BYTES: usize = 32;
const POWER_STATE_MASK: u32 = 31;

/// Queries the power state of the controller `name` below `root`.
pub fn power_state(root: &Path, name: &str) -> io::Result<PowerState> {
    let file = File::open(under(root, format!("/dev/{name}")))?;
    let identity = identity(&file)?;
    let current = ask(&file, GET_FEATURES, FEATURE_POWER, &mut [])? & POWER_STATE_MASK;
    Ok(power_state_of(&identity, current as u8))
}

fn power_state_of(identity: &[u8; IDENTIFY_BYTES], number: u8) -> PowerState {
    let at = POWER_STATES + usize::from(number) * POWER_STATE_BYTES;
    let most = u64::from(u16::from_le_bytes([identity[at], identity[at + 1]]));
    let flags = identity[at + 3];
    // In units of 10 mW, or of a tenth of a milliwatt.
    let most_mw = if flags & 1 == 0 { most * 10 } else { most / 10 };
    PowerState { number, is_idle: flags & 2 != 0, most_mw: (most > 0).then_some(most_mw) }
}

fn identity(file: &File) -> io::Result<[u8; IDENTIFY_BYTES]> {
    let mut identity = [0; IDENTIFY_BYTES];
    ask(file, IDENTIFY, IDENTIFY_CONTROLLER, &mut identity)?;
    Ok(identity)
}

fn ask(file: &File, opcode: u8, dword_10: u32, data: &mut [u8]) -> io::Result<u32> {
    let refused = |status: u16| io::Error::other(format!("refused with status {status:#x}"));
    send(file, Question { opcode, namespace: 0, dword_10 }, data)?.map_err(refused)
}

/// A command that only reads.
#[derive(Clone, Copy)]
struct Question {
    opcode: u8,
    namespace: u32,
    dword_10: u32,
}

/// Sends a command, and returns its result, or the status with which the device refused it.
fn send(file: &File, question: Question, data: &mut [u8]) -> io::Result<Result<u32, u16>> {
    let Question { opcode, namespace, dword_10 } = question;
    let mut command = AdminCommand {
        opcode,
        namespace,
        address: data.as_mut_ptr() as u64,
        data_bytes: data.len() as u32,
        dwords_10_15: [dword_10, 0, 0, 0, 0, 0],
        ..AdminCommand::default()
    };
    // SAFETY: `command` is what the call takes and lives during it. It asks the device to write
    // `data_bytes` bytes at `address`, which `data` has and which nothing else uses meanwhile; the
    // kernel checks the number of bytes against the command. A file that is not a controller
    // refuses the call.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), IOCTL_ADMIN_COMMAND, &raw mut command) };
    match status {
        0 => Ok(Ok(command.result)),
        ..0 => Err(io::Error::last_os_error()),
        status => Ok(Err(status as u16)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_power_state_is_read_with_its_scale_from_its_descriptor() {
        let mut identity = [0; IDENTIFY_BYTES];
        identity[2048..2052].copy_from_slice(&[0xC4, 0x09, 0, 0]);
        identity[2048 + 32..2048 + 36].copy_from_slice(&[0x2C, 0x01, 0, 3]);
        let of = |number| power_state_of(&identity, number);
        let expected = |number, is_idle, most_mw| PowerState { number, is_idle, most_mw };
        assert_eq!(of(0), expected(0, false, Some(25_000)));
        assert_eq!(of(1), expected(1, true, Some(30)));
        assert_eq!(of(31), expected(31, false, None));
    }

    use std::fs;

    use super::*;

    #[test]
    fn a_command_has_the_size_that_the_call_names() {
        assert_eq!(size_of::<AdminCommand>(), 0x48);
    }

    #[test]
    fn controllers_are_named_with_their_disks() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (controller, subsystem) in [("nvme0", "a"), ("nvme1", "b"), ("nvme2", "b")] {
            write(&format!("sys/class/nvme/{controller}/model"), "Disk 9  \n");
            write(&format!("sys/class/nvme/{controller}/subsysnqn"), &format!("nqn.{subsystem}\n"));
        }
        write("sys/class/nvme/nvme-subsys0/model", "no controller\n");
        for (disk, subsystem) in [("nvme0n1", "a"), ("nvme0n1p1", "a"), ("nvme1n1", "b")] {
            write(&format!("sys/class/block/{disk}/device/subsysnqn"), &format!("nqn.{subsystem}"));
        }
        write("sys/class/block/nvme1c2n1/size", "8");
        write("sys/class/block/vda/size", "8");
        let found = controllers(root.path());
        let disks: Vec<(&str, String)> =
            found.iter().map(|it| (it.name.as_str(), it.disks.join(" "))).collect();
        let expected = [("nvme0", "nvme0n1"), ("nvme1", "nvme1n1"), ("nvme2", "nvme1n1")];
        assert_eq!(disks, expected.map(|(name, disks)| (name, disks.to_owned())));
        assert_eq!(found[0].model.as_deref(), Some("Disk 9"));
        assert_eq!(controllers(Path::new("/nowhere")), []);
    }

    #[test]
    fn a_file_that_is_no_controller_refuses_the_command() {
        let root = tempfile::tempdir().unwrap();
        let missing = read(root.path(), "nvme0", Log::Health).unwrap_err();
        assert!(matches!(missing, NvmeError::Open { .. }), "{missing}");
        fs::create_dir(root.path().join("dev")).unwrap();
        fs::write(root.path().join("dev/nvme0"), "").unwrap();
        let refused = read(root.path(), "nvme0", Log::OcpHealth).unwrap_err();
        assert!(refused.to_string().starts_with("read log page C0h of /dev/nvme0: "), "{refused}");
        assert!(write_cache(root.path(), "nvme0").is_err());
    }
}
