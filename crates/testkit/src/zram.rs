//! A block device in compressed memory, which never waits for hardware: an I/O on it costs only the
//! time of the load generator and the kernel.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use blockstone_base::Bytes;

use crate::error::TestkitError;
use crate::file::copy;
use crate::lease::{self, DISK_ROOT, Lease};
use crate::tool::{control, control_text};

/// A zram device; removed when it goes out of scope.
#[derive(Debug)]
pub struct ZramDevice {
    device: PathBuf,
    _lease: Lease,
}

impl ZramDevice {
    /// Adds a device of `size` and fills it with incompressible data. Zram answers pages that were
    /// never written, or hold one repeated word, without looking them up, and stores incompressible
    /// ones unchanged, so that a read is one copy. The device takes `size` bytes of memory.
    pub fn create(size: Bytes) -> Result<Self, TestkitError> {
        let lease = Lease::acquire(Path::new(DISK_ROOT))?;
        let number = control_text(Path::new("/sys/class/zram-control/hot_add"))?;
        let note = lease.dir().join(lease::ZRAM);
        fs::write(&note, &number).map_err(TestkitError::file("write", &note))?;
        let disksize = format!("/sys/block/zram{number}/disksize");
        control(Path::new(&disksize), &size.get().to_string())?;
        let device = PathBuf::from(format!("/dev/zram{number}"));
        fill(&device, size.get()).map_err(TestkitError::file("write", &device))?;
        Ok(Self { device, _lease: lease })
    }

    /// Returns the path of the device, such as `/dev/zram1`.
    pub fn device(&self) -> &Path {
        &self.device
    }
}

fn fill(device: &Path, size: u64) -> io::Result<()> {
    let mut target = OpenOptions::new().write(true).open(device)?;
    copy(&mut File::open("/dev/urandom")?, &mut target, size)?;
    target.sync_all()
}
