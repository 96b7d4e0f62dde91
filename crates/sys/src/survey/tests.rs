//! Surveys of other machines: trees of `/proc` and `/sys` files as those machines show them, and of
//! the machine the tests run on.

mod chains;
mod groups;
mod hosts;
mod links;
mod real;
mod uses;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::*;
use crate::tree::Tree;

impl Tree {
    /// Adds a device in its directory below /sys/devices, with the links by name and by number.
    fn device(&self, directory: &str, number: &str, sectors: u64) -> &Self {
        let name = directory.rsplit('/').next().unwrap();
        let holders = proc::under(self.root(), format!("{directory}/holders"));
        fs::create_dir_all(holders).unwrap();
        self.file(&format!("{directory}/dev"), number)
            .file(&format!("{directory}/size"), &sectors.to_string())
            .link(&format!("/sys/class/block/{name}"), directory)
            .link(&format!("/sys/block/{name}"), directory)
            .link(&format!("/sys/dev/block/{number}"), directory)
    }

    /// Adds a device with the queue of the virtio disk on which these tests were written.
    fn disk(&self, directory: &str, number: &str, sectors: u64) -> &Self {
        let queue = |file: &str, content: &str| {
            self.file(&format!("{directory}/queue/{file}"), content);
        };
        queue("scheduler", "none [mq-deadline] kyber bfq ");
        queue("write_cache", "write back");
        queue("rotational", "1");
        queue("logical_block_size", "512");
        queue("physical_block_size", "4096");
        queue("nr_requests", "256");
        queue("max_sectors_kb", "4096");
        self.device(directory, number, sectors)
    }

    fn partition(&self, directory: &str, number: &str, sectors: u64) -> &Self {
        self.device(directory, number, sectors).file(&format!("{directory}/partition"), "1")
    }

    /// Builds `upper` on top of `lower`, both given by their directories.
    fn stacked(&self, upper: &str, lower: &str) -> &Self {
        let name = |directory: &str| directory.rsplit('/').next().unwrap().to_owned();
        self.link(&format!("{upper}/slaves/{}", name(lower)), lower)
            .link(&format!("{lower}/holders/{}", name(upper)), upper)
    }

    /// Adds the kernel's files of processes: the first one, and a sign that this is the whole
    /// machine.
    fn processes(&self) -> &Self {
        fs::create_dir_all(proc::under(self.root(), "/proc/1/fd")).unwrap();
        fs::create_dir_all(proc::under(self.root(), "/proc/self/ns")).unwrap();
        symlink("pid:[4026531836]", proc::under(self.root(), "/proc/self/ns/pid")).unwrap();
        self
    }

    fn mounts(&self, lines: &[&str]) -> &Self {
        self.file("/proc/self/mountinfo", &lines.join("\n"))
    }
}

/// Returns a directory on the file system with this `st_dev`, reached through this mount.
fn directory(path: &str, device: (u32, u32), mount_id: u64) -> SurveyedPath {
    SurveyedPath {
        path: PathBuf::from(path),
        kind: PathKind::Directory,
        device,
        mount_id: Some(mount_id),
        free_bytes: 1 << 30,
        alignment: Alignment::Known { offset_bytes: 512, memory_bytes: 512 },
    }
}

fn names(target: &StorageTarget) -> Vec<&str> {
    target.devices.iter().map(|device| device.name.as_str()).collect()
}

const VDA: &str = "/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda";
const ROOT_ON_VDA: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,resuid=65534";
