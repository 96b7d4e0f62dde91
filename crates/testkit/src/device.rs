//! A disk of known limits: a loop device with direct I/O over a fully written file, with an
//! optional file system and optional caps.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use blockstone_base::{Bytes, named};
use serde::{Deserialize, Serialize};

use crate::error::TestkitError;
use crate::file::FileKind;
use crate::lease::{self, DISK_ROOT, Lease, MEMORY_ROOT};
use crate::throttle::{Caps, Controller, Throttle};
use crate::tool::{control_text, tool};

const SPEC: &str = "spec.json";
const CHUNK_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSpec {
    pub size: Bytes,
    /// The file system mounted on it; `None` for a bare device.
    pub file_system: Option<FileSystem>,
    /// Limits for the commands that [`LoopDevice::command`] starts.
    pub caps: Caps,
}

impl Default for DeviceSpec {
    /// 1 GiB, bare, without limits.
    fn default() -> Self {
        Self { size: Bytes::gib(1), file_system: None, caps: Caps::default() }
    }
}

named! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    FileSystem {
        /// ext4, for devices of at least a few MiB.
        Ext4 = "ext4",
        /// ext4 that writes data to its journal first, for devices of at least a few MiB. It has no
        /// direct I/O.
        Ext4DataJournal = "ext4-data-journal",
        /// XFS, for devices of at least 300 MiB.
        Xfs = "xfs",
        /// btrfs, for devices of at least 128 MiB. It serves direct writes of files with checksums
        /// from its cache.
        Btrfs = "btrfs",
    }
}

impl FileSystem {
    /// Creates the file system without a discard, which would punch holes into the backing file:
    /// reads of holes would test memory. ext4 writes its tables now rather than in the background
    /// later, and reserves no blocks for root, so that full means full.
    fn make(self, device: &Path) -> Result<(), TestkitError> {
        let arguments: &[&str] = match self {
            Self::Ext4 | Self::Ext4DataJournal => {
                &["-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]
            }
            Self::Xfs | Self::Btrfs => &["-q", "-f", "-K"],
        };
        let mut words: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        words.push(device.as_os_str());
        tool(&format!("mkfs.{}", self.kernel_name()), &words).map(drop)
    }

    const fn kernel_name(self) -> &'static str {
        match self {
            Self::Ext4DataJournal => "ext4",
            other => other.name(),
        }
    }

    fn mount(self, device: &Path, at: &Path) -> Result<(), TestkitError> {
        let mut words = vec!["-t", self.kernel_name()];
        if self == Self::Ext4DataJournal {
            words.extend(["-o", "data=journal"]);
        }
        let mut words: Vec<&OsStr> = words.into_iter().map(OsStr::new).collect();
        words.extend([device.as_os_str(), at.as_os_str()]);
        tool("mount", &words).map(drop)
    }
}

/// Storage below a loop device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A file on a disk, bypassing the page cache.
    Disk,
    /// A file on a disk, through the page cache, as hosts cache the disks of their guests.
    PageCache,
    /// A file on a tmpfs.
    Memory,
}

/// A loop device that is removed together with everything it uses when it goes out of scope, unless
/// it was created by [`LoopDevice::create_kept`].
#[derive(Debug)]
pub struct LoopDevice {
    device: PathBuf,
    spec: DeviceSpec,
    throttle: Option<Throttle>,
    lease: Lease,
}

impl LoopDevice {
    /// Creates a device that exists as long as the value.
    pub fn create(spec: DeviceSpec) -> Result<Self, TestkitError> {
        Self::create_on(Backing::Disk, spec)
    }

    /// Creates a device on other storage than a disk.
    pub fn create_on(backing: Backing, spec: DeviceSpec) -> Result<Self, TestkitError> {
        let root = if backing == Backing::Memory { MEMORY_ROOT } else { DISK_ROOT };
        Self::build(Lease::acquire(Path::new(root))?, backing, spec)
    }

    /// Creates a device with a name. It remains until [`LoopDevice::remove_kept`].
    pub fn create_kept(name: &str, spec: DeviceSpec) -> Result<Self, TestkitError> {
        let made = Self::build(Lease::keep(Path::new(DISK_ROOT), name)?, Backing::Disk, spec);
        if made.is_err() {
            Self::remove_kept(name)?;
        }
        made
    }

    pub fn kept() -> Result<Vec<String>, TestkitError> {
        Lease::kept(Path::new(DISK_ROOT))
    }

    pub fn find_kept(name: &str) -> Result<Self, TestkitError> {
        let lease = Lease::find(Path::new(DISK_ROOT), name)?;
        let path = lease.dir().join(SPEC);
        let text = fs::read_to_string(&path).map_err(TestkitError::file("read", &path))?;
        let spec: DeviceSpec = serde_json::from_str(&text)
            .map_err(io::Error::from)
            .map_err(TestkitError::file("parse", &path))?;
        let device = lease::loops_over(&lease.dir().join(lease::BACKING))?.pop();
        let device = device.ok_or_else(|| TestkitError::Name {
            what: "the machine was rebooted since; remove the device and create it again",
            name: name.to_owned(),
        })?;
        let throttle = Controller::detect().map(|found| Throttle::find(&found, name));
        Ok(Self { device, spec, throttle, lease })
    }

    /// Removes the kept device `name`, even if it is incomplete.
    pub fn remove_kept(name: &str) -> Result<(), TestkitError> {
        Lease::find(Path::new(DISK_ROOT), name)?.remove()
    }

    fn build(lease: Lease, on: Backing, spec: DeviceSpec) -> Result<Self, TestkitError> {
        let backing = lease.dir().join(lease::BACKING);
        FileKind::Real.create(&backing, spec.size)?;
        let device = attach(&backing, on == Backing::Disk)?;
        if let Some(file_system) = spec.file_system {
            file_system.make(&device)?;
            let mount = lease.dir().join(lease::MOUNT);
            fs::create_dir(&mount).map_err(TestkitError::file("create", &mount))?;
            file_system.mount(&device, &mount)?;
        }
        let throttle = match Controller::detect() {
            Some(controller) => Some(Throttle::create(&controller, &lease.name())?),
            None if spec.caps == Caps::default() => None,
            None => return Err(TestkitError::NoThrottle),
        };
        let mut made = Self { device, spec, throttle, lease };
        made.set_caps(spec.caps)?;
        Ok(made)
    }

    /// Returns the path of the device, such as `/dev/loop0`.
    pub fn device(&self) -> &Path {
        &self.device
    }

    pub fn backing_file(&self) -> PathBuf {
        self.lease.dir().join(lease::BACKING)
    }

    /// Returns the mount point of its file system.
    pub fn mount_point(&self) -> Option<PathBuf> {
        self.spec.file_system.map(|_| self.lease.dir().join(lease::MOUNT))
    }

    /// Returns the device's specification with the caps in force.
    pub fn spec(&self) -> &DeviceSpec {
        &self.spec
    }

    /// Changes the caps, even while a command runs under them.
    pub fn set_caps(&mut self, caps: Caps) -> Result<(), TestkitError> {
        if let Some(throttle) = &self.throttle {
            throttle.set(&lease::device_number(&self.device)?, &caps)?;
        }
        self.spec.caps = caps;
        let path = self.lease.dir().join(SPEC);
        let text = serde_json::to_string(&self.spec).map_err(io::Error::from);
        text.and_then(|text| fs::write(&path, text)).map_err(TestkitError::file("write", &path))
    }

    /// Returns a command that runs under the caps, with the processes it starts. A shell joins the
    /// control group and then executes the program, so that no I/O of the program escapes the caps.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let Some(throttle) = &self.throttle else { return Command::new(program) };
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(throttle.members())
            .arg(program);
        command
    }

    /// Applies the caps of `other` to the commands of this device too.
    pub(crate) fn add_caps_of(&self, other: &Self) -> Result<(), TestkitError> {
        let Some(throttle) = &self.throttle else { return Ok(()) };
        throttle.set(&lease::device_number(&other.device)?, &other.spec.caps)
    }

    /// Writes zeros over the whole device, so that it counts as empty. Written zeros occupy space
    /// in the backing file; a hole would test memory.
    pub fn blank(&self) -> Result<(), TestkitError> {
        let zeros = vec![0; CHUNK_BYTES];
        let size = self.spec.size.get();
        let blanked = OpenOptions::new().write(true).open(&self.device).and_then(|file| {
            for offset in (0..size).step_by(CHUNK_BYTES) {
                let len = (size - offset).min(CHUNK_BYTES as u64) as usize;
                file.write_all_at(&zeros[..len], offset)?;
            }
            file.sync_all()
        });
        blanked.map_err(TestkitError::file("write", &self.device))
    }

    /// Fills the file system with a file `filler` until `left` bytes are free.
    ///
    /// # Panics
    /// If the device was created without a file system.
    pub fn fill(&self, left: Bytes) -> Result<(), TestkitError> {
        let mount = self.mount_point().expect("only a file system can be filled");
        let found = rustix::fs::statvfs(&mount).map_err(io::Error::from);
        let found = found.map_err(TestkitError::file("examine", &mount))?;
        let free = Bytes(found.f_bavail * found.f_frsize);
        let filler = Bytes(free.get().saturating_sub(left.get()));
        FileKind::Fallocated.create(&mount.join("filler"), filler)
    }

    /// Makes reads and writes beyond `offset` fail with EIO, by truncating the backing file.
    pub fn fail_beyond(&self, offset: Bytes) -> Result<(), TestkitError> {
        let path = self.backing_file();
        let file = OpenOptions::new().write(true).open(&path);
        file.and_then(|file| file.set_len(offset.get()))
            .map_err(TestkitError::file("shorten", &path))
    }
}

/// Attaches the file to a free loop device, bypassing the page cache of the file if `direct`.
fn attach(backing: &Path, direct: bool) -> Result<PathBuf, TestkitError> {
    let direct_io = if direct { "--direct-io=on" } else { "--direct-io=off" };
    let words = ["--find", "--show", direct_io].map(OsStr::new);
    let device = tool("losetup", &[&words[..], &[backing.as_os_str()]].concat())?;
    let name = device.trim_start_matches("/dev/");
    let is_direct = control_text(Path::new(&format!("/sys/block/{name}/loop/dio")))? == "1";
    let device = PathBuf::from(device);
    if direct && !is_direct {
        return Err(TestkitError::Buffered { device, backing: backing.to_owned() });
    }
    Ok(device)
}
