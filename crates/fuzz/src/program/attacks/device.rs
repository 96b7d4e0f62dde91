//! The block device that must not be overwritten.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use blockstone_base::Bytes;
use blockstone_testkit::{DeviceSpec, LoopDevice};

/// Size of the device that must not be overwritten.
const DEVICE_MIB: u64 = 8;
/// Signature in the superblock of ext4.
const EXT4_MAGIC: [u8; 2] = [0x53, 0xef];
const EXT4_MAGIC_AT: u64 = 1024 + 56;

/// A block device that holds data and the signature of a file system, and a copy of its content.
#[derive(Debug)]
pub struct Device {
    device: LoopDevice,
    content: Vec<u8>,
}

impl Device {
    pub fn make() -> Self {
        let spec = DeviceSpec { size: Bytes::mib(DEVICE_MIB), ..DeviceSpec::default() };
        let device = LoopDevice::create(spec).expect("a loop device can be made");
        // It is not mounted, because the kernel would then write to it on its own.
        let file = fs::OpenOptions::new().write(true).open(device.device());
        let signed = file.and_then(|file| file.write_all_at(&EXT4_MAGIC, EXT4_MAGIC_AT));
        signed.expect("the device can be written");
        let content = read(device.device());
        Self { device, content }
    }

    pub fn path(&self) -> &Path {
        self.device.device()
    }

    /// Returns whether it was written to, and restores its content.
    pub fn was_written(&self) -> bool {
        let path = self.device.device();
        if read(path) == self.content {
            return false;
        }
        let file = fs::OpenOptions::new().write(true).open(path).expect("the device is there");
        file.write_all_at(&self.content, 0).expect("the device can be written");
        true
    }
}

fn read(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    let file = fs::File::open(path).expect("the device is there");
    file.take(DEVICE_MIB << 20).read_to_end(&mut content).expect("the device can be read");
    content
}
