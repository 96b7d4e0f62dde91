//! Caps on a block device, enforced by a control group.
//!
//! Source: Documentation/admin-guide/cgroup-v1/blkio-controller.rst and cgroup-v2.rst (`io.max`).
//! The kernel enforces such a cap exactly on average and dispatches in bursts of about 100 ms; an
//! IOPS cap counts requests after splitting, so a 1 MiB read counts several times.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::TestkitError;
use crate::tool::control;

/// Limits on a device; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caps {
    pub read_iops: Option<u64>,
    pub write_iops: Option<u64>,
    pub read_bytes_per_s: Option<u64>,
    pub write_bytes_per_s: Option<u64>,
}

/// The cgroup hierarchy that controls block I/O on this machine, by its mount point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    /// Control groups version 1, controller `blkio`.
    V1(PathBuf),
    /// Control groups version 2, controller `io`.
    V2(PathBuf),
}

impl Controller {
    /// Finds the controller among the mounts.
    pub(crate) fn detect() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        Self::among(&mounts, |mount_point| {
            let controllers = fs::read_to_string(mount_point.join("cgroup.controllers"));
            controllers.is_ok_and(|text| text.split_whitespace().any(|name| name == "io"))
        })
    }

    /// If `blkio` of version 1 is mounted, it owns the block devices; otherwise version 2 may have
    /// `io`.
    fn among(mounts: &str, has_io: impl Fn(&Path) -> bool) -> Option<Self> {
        let mut unified = None;
        for line in mounts.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [_, mount_point, kind, options, ..] = fields[..] else { continue };
            let mount_point = PathBuf::from(mount_point);
            match kind {
                "cgroup" if options.split(',').any(|option| option == "blkio") => {
                    return Some(Self::V1(mount_point));
                }
                "cgroup2" if has_io(&mount_point) => unified = Some(Self::V2(mount_point)),
                _ => {}
            }
        }
        unified
    }

    fn mount_point(&self) -> &Path {
        match self {
            Self::V1(path) | Self::V2(path) => path,
        }
    }
}

/// A control group that caps devices for the processes in it.
#[derive(Clone, Debug)]
pub(crate) struct Throttle {
    controller: Controller,
    dir: PathBuf,
}

impl Throttle {
    /// Returns the group that belongs to `name`, whether or not it exists.
    pub(crate) fn find(controller: &Controller, name: &str) -> Self {
        let dir = controller.mount_point().join(format!("blockstone-{name}"));
        Self { controller: controller.clone(), dir }
    }

    pub(crate) fn create(controller: &Controller, name: &str) -> Result<Self, TestkitError> {
        if let Controller::V2(root) = controller {
            control(&root.join("cgroup.subtree_control"), "+io")?;
        }
        let throttle = Self::find(controller, name);
        fs::create_dir(&throttle.dir).map_err(TestkitError::file("create", &throttle.dir))?;
        Ok(throttle)
    }

    /// Sets all limits of the device `number` (`major:minor`).
    pub(crate) fn set(&self, number: &str, caps: &Caps) -> Result<(), TestkitError> {
        for (file, line) in lines(&self.controller, number, caps) {
            control(&self.dir.join(file), &line)?;
        }
        Ok(())
    }

    /// Lifts all limits of the device `number`; does nothing if the group does not exist.
    pub(crate) fn lift(&self, number: &str) -> Result<(), TestkitError> {
        if self.dir.exists() { self.set(number, &Caps::default()) } else { Ok(()) }
    }

    /// Returns the file that takes the id of a process to add to the group.
    pub(crate) fn members(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// Moves the remaining processes to the root group and removes the group together with its
    /// caps.
    pub(crate) fn remove(&self) -> Result<(), TestkitError> {
        let Ok(members) = fs::read_to_string(self.members()) else { return Ok(()) };
        for member in members.lines() {
            // The process may have exited since it was listed.
            control(&self.controller.mount_point().join("cgroup.procs"), member).ok();
        }
        match fs::remove_dir(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(TestkitError::file("remove", &self.dir)(error))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the lines to write and their files. Version 1 has a file per limit and lifts it with 0;
/// version 2 has one line.
fn lines(controller: &Controller, number: &str, caps: &Caps) -> Vec<(&'static str, String)> {
    let Caps { read_iops, write_iops, read_bytes_per_s, write_bytes_per_s } = *caps;
    match controller {
        Controller::V1(_) => [
            ("blkio.throttle.read_iops_device", read_iops),
            ("blkio.throttle.write_iops_device", write_iops),
            ("blkio.throttle.read_bps_device", read_bytes_per_s),
            ("blkio.throttle.write_bps_device", write_bytes_per_s),
        ]
        .map(|(file, limit)| (file, format!("{number} {}", limit.unwrap_or(0))))
        .to_vec(),
        Controller::V2(_) => {
            let limit = |limit: Option<u64>| limit.map_or("max".to_owned(), |n| n.to_string());
            let line = format!(
                "{number} rbps={} wbps={} riops={} wiops={}",
                limit(read_bytes_per_s),
                limit(write_bytes_per_s),
                limit(read_iops),
                limit(write_iops),
            );
            vec![("io.max", line)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
        cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
        cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n";

    #[test]
    fn version_1_owns_the_devices_where_its_blkio_is_mounted() {
        let found = Controller::among(HYBRID, |_| true);
        assert_eq!(found, Some(Controller::V1("/sys/fs/cgroup/blkio".into())));
    }

    #[test]
    fn version_2_counts_only_with_its_io_controller() {
        let mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        assert_eq!(Controller::among(mounts, |_| false), None);
        let found = Controller::among(mounts, |_| true);
        assert_eq!(found, Some(Controller::V2("/sys/fs/cgroup".into())));
    }

    #[test]
    fn caps_are_written_as_each_version_reads_them() {
        let caps = Caps { read_iops: Some(437), write_bytes_per_s: Some(1), ..Caps::default() };
        let v2 = lines(&Controller::V2(PathBuf::new()), "7:3", &caps);
        assert_eq!(v2, [("io.max", "7:3 rbps=max wbps=1 riops=437 wiops=max".to_owned())]);
        let v1 = lines(&Controller::V1(PathBuf::new()), "7:3", &caps);
        assert!(v1.contains(&("blkio.throttle.read_iops_device", "7:3 437".to_owned())));
        assert!(v1.contains(&("blkio.throttle.write_iops_device", "7:3 0".to_owned())));
    }
}
