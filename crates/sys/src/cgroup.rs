//! Control groups of a process, version 1, version 2 and both together: their limits and usage.
//!
//! A limit holds for a whole subtree, so the process's own group and all its ancestors count.
//! Groups above the mount's root (outside a container) and their limits cannot be seen.

mod cap;

use std::path::{Path, PathBuf};

use blockstone_base::identity::{CapKind, CgroupCap};
use procfs::{FromRead, ProcessCGroups};

use crate::mounts::Mounts;
use crate::proc::{number, numbers_after, text, under};

pub use cap::ReadCap;

/// Limits above this mean "none": version 1 prints the largest page-aligned number instead.
const UNLIMITED_BYTES: u64 = 1 << 62;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    pub limit_bytes: u64,
    /// Bytes used, without file pages, which the kernel reclaims when it needs them.
    pub used_bytes: u64,
}

/// Usage of a control group. Times, and bytes and requests of I/O to all devices, are cumulative
/// since it was created. A value that its version or controllers do not keep is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupUsage {
    pub cpu_ns: Option<u64>,
    /// Nanoseconds for which it was throttled by its quota.
    pub throttled_ns: Option<u64>,
    /// Quota periods in which it was throttled.
    pub throttled_periods: Option<u64>,
    /// Memory in use in bytes, page cache included.
    pub memory_bytes: Option<u64>,
    /// Memory limit in bytes; `None` if there is none.
    pub memory_limit_bytes: Option<u64>,
    pub read_bytes: Option<u64>,
    pub write_bytes: Option<u64>,
    pub read_ios: Option<u64>,
    pub write_ios: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    root: PathBuf,
    /// Directories of the version-2 group and its ancestors, as the kernel names them.
    unified: Vec<PathBuf>,
    /// The same for each version-1 controller that matters here.
    cpu: Vec<PathBuf>,
    cpuacct: Vec<PathBuf>,
    memory: Vec<PathBuf>,
    blkio: Vec<PathBuf>,
    pids: Vec<PathBuf>,
    /// Name of the innermost group that the kernel reported.
    name: String,
}

impl Groups {
    /// Reads the membership of this process. Returns an empty one on a machine without control
    /// groups.
    pub fn read(root: &Path) -> Self {
        Self::of(root, "self")
    }

    pub fn of_process(root: &Path, pid: u32) -> Self {
        Self::of(root, &pid.to_string())
    }

    fn of(root: &Path, process: &str) -> Self {
        let mounts = Mounts::read(root);
        let membership = ProcessCGroups::from_file(under(root, format!("/proc/{process}/cgroup")))
            .unwrap_or(ProcessCGroups(Vec::new()));
        let names = membership.0.iter().map(|group| group.pathname.as_str());
        let name = names.max_by_key(|name| name.len()).unwrap_or("/").to_owned();
        let directories = |controller: Option<&str>| {
            membership
                .0
                .iter()
                .find(|group| match controller {
                    Some(name) => group.controllers.iter().any(|c| c == name),
                    None => group.hierarchy == 0,
                })
                .map_or(Vec::new(), |group| directories(&mounts, controller, &group.pathname))
        };
        Self {
            root: root.to_owned(),
            unified: directories(None),
            cpu: directories(Some("cpu")),
            cpuacct: directories(Some("cpuacct")),
            memory: directories(Some("memory")),
            blkio: directories(Some("blkio")),
            pids: directories(Some("pids")),
            name,
        }
    }

    /// Returns the innermost group's name, as in `/system.slice/postgresql.service`; `/` for the
    /// root.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the directory of the version-1 group that limits memory.
    pub fn memory(&self) -> Option<&Path> {
        self.memory.first().map(PathBuf::as_path)
    }

    /// Returns the directory of the version-2 group.
    pub fn unified(&self) -> Option<&Path> {
        self.unified.first().map(PathBuf::as_path)
    }

    pub fn usage(&self) -> GroupUsage {
        let unified = |file: &str| self.own(&self.unified, file);
        let of = |text: &Option<String>, key: &str| {
            numbers_after(text.as_deref()?.as_bytes(), key)?.next()
        };
        let micro = |value: Option<u64>| value.map(|us| us.saturating_mul(1000));
        let stat = unified("cpu.stat");
        let v1 = self.own(&self.cpu, "cpu.stat");
        let number = |directories, file| self.own(directories, file)?.parse().ok();
        let io = self.io_usage();
        let limit = number(&self.unified, "memory.max")
            .or_else(|| number(&self.memory, "memory.limit_in_bytes"));
        GroupUsage {
            cpu_ns: micro(of(&stat, "usage_usec"))
                .or_else(|| number(&self.cpuacct, "cpuacct.usage")),
            throttled_ns: micro(of(&stat, "throttled_usec")).or_else(|| of(&v1, "throttled_time")),
            throttled_periods: of(&stat, "nr_throttled").or_else(|| of(&v1, "nr_throttled")),
            memory_bytes: number(&self.unified, "memory.current")
                .or_else(|| number(&self.memory, "memory.usage_in_bytes")),
            memory_limit_bytes: limit.filter(|bytes| *bytes < UNLIMITED_BYTES),
            read_bytes: io.map(|io| io[0]),
            write_bytes: io.map(|io| io[1]),
            read_ios: io.map(|io| io[2]),
            write_ios: io.map(|io| io[3]),
        }
    }

    /// Returns bytes read and written, reads and writes, summed over all devices.
    fn io_usage(&self) -> Option<[u64; 4]> {
        if let Some(text) = self.own(&self.unified, "io.stat") {
            let sum = |key: &str| {
                let values = text.split_whitespace().filter_map(|pair| pair.strip_prefix(key));
                values.filter_map(|value| value.parse().ok()).fold(0, u64::saturating_add)
            };
            return Some(["rbytes=", "wbytes=", "rios=", "wios="].map(sum));
        }
        let sum = |file: &str, key: &str| {
            let text = self.own(&self.blkio, file)?;
            let lines = text.lines().filter_map(|line| line.split_once(key));
            let values = lines.filter_map(|(_, value)| value.trim().parse().ok());
            Some(values.fold(0, u64::saturating_add))
        };
        let (bytes, ios) = ("blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced");
        Some([sum(bytes, "Read")?, sum(bytes, "Write")?, sum(ios, "Read")?, sum(ios, "Write")?])
    }

    fn own(&self, directories: &[PathBuf], file: &str) -> Option<String> {
        text(&under(&self.root, directories.first()?.join(file)))
    }

    /// Returns the tightest processor quota, in thousandths of a processor.
    pub fn cpu_quota_milli(&self) -> Option<u32> {
        let unified = self.files(&self.unified, "cpu.max").filter_map(|(_, text)| {
            let (quota, period) = text.split_once(' ')?;
            quota_milli(quota.parse().ok()?, period.parse().ok()?)
        });
        let v1 = self.cpu.iter().filter_map(|directory| {
            let file = |name| number(&under(&self.root, directory.join(name)));
            quota_milli(file("cpu.cfs_quota_us")?, file("cpu.cfs_period_us")?)
        });
        unified.chain(v1).min()
    }

    /// Returns the memory limit with the least room left.
    pub fn memory_limit(&self) -> Option<MemoryLimit> {
        let limits = |directories: &[PathBuf], [limit, used, files]: [&str; 3]| {
            let read = |directory: &PathBuf| {
                let path = |name| under(&self.root, directory.join(name));
                let stat = text(&path("memory.stat")).unwrap_or_default();
                let of_files = ["inactive", "active"].map(|kind| {
                    let key = format!("{files}{kind}_file");
                    numbers_after(stat.as_bytes(), &key).and_then(|mut it| it.next()).unwrap_or(0)
                });
                let used_bytes = number(&path(used))?;
                let used_bytes = used_bytes.saturating_sub(of_files[0].saturating_add(of_files[1]));
                Some(MemoryLimit { limit_bytes: number(&path(limit))?, used_bytes })
            };
            directories.iter().filter_map(read).collect::<Vec<_>>()
        };
        // Version 1 counts pages of child groups under separate names.
        let unified = limits(&self.unified, ["memory.max", "memory.current", ""]);
        let v1 = limits(&self.memory, ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_"]);
        unified
            .into_iter()
            .chain(v1)
            .filter(|limit| limit.limit_bytes < UNLIMITED_BYTES)
            .min_by_key(|limit| limit.limit_bytes.saturating_sub(limit.used_bytes))
    }

    /// Returns the limit on threads with the least room left: its file, the limit and the number of
    /// threads that count.
    pub fn thread_limit(&self) -> Option<(PathBuf, u64, u64)> {
        let limits = self.unified.iter().chain(&self.pids).filter_map(|directory| {
            let read = |file| number(&under(&self.root, directory.join(file)));
            Some((directory.join("pids.max"), read("pids.max")?, read("pids.current")?))
        });
        limits.min_by_key(|(_, limit, used)| limit.saturating_sub(*used))
    }

    /// Returns the I/O limits on `devices` (`major:minor`), each with its control file.
    pub fn io_caps(&self, devices: &[&str]) -> Vec<CgroupCap> {
        /// The key in `io.max`, and the file of version 1.
        const KINDS: [(&str, &str, CapKind); 4] = [
            ("riops", "blkio.throttle.read_iops_device", CapKind::ReadIops),
            ("wiops", "blkio.throttle.write_iops_device", CapKind::WriteIops),
            ("rbps", "blkio.throttle.read_bps_device", CapKind::ReadBytesPerS),
            ("wbps", "blkio.throttle.write_bps_device", CapKind::WriteBytesPerS),
        ];
        let mut caps = Vec::new();
        let mut add = |source: &Path, device: &str, kind, limit: Option<u64>| {
            if let Some(limit) = limit.filter(|_| devices.contains(&device)) {
                let source = source.display().to_string();
                caps.push(CgroupCap { device: device.to_owned(), kind, limit, source });
            }
        };
        for (source, text) in self.files(&self.unified, "io.max") {
            for (device, limits) in text.lines().filter_map(|line| line.split_once(' ')) {
                for (key, limit) in limits.split(' ').filter_map(|pair| pair.split_once('=')) {
                    let known = KINDS.iter().find(|(known, ..)| *known == key);
                    let Some(&(.., kind)) = known else { continue };
                    // `max` is not a number, and not a limit.
                    add(&source, device, kind, limit.parse().ok());
                }
            }
        }
        for (_, file, kind) in KINDS {
            for (source, text) in self.files(&self.blkio, file) {
                for (device, limit) in text.lines().filter_map(|line| line.split_once(' ')) {
                    add(&source, device, kind, limit.trim().parse().ok());
                }
            }
        }
        caps
    }

    fn files<'a>(
        &'a self,
        directories: &'a [PathBuf],
        name: &'a str,
    ) -> impl Iterator<Item = (PathBuf, String)> + 'a {
        directories.iter().filter_map(move |directory| {
            let path = directory.join(name);
            Some((path.clone(), text(&under(&self.root, path))?))
        })
    }
}

/// Returns the group's directory and those of its ancestors, up to the mount that shows them.
fn directories(mounts: &Mounts, controller: Option<&str>, group: &str) -> Vec<PathBuf> {
    let mount = mounts.iter().find(|mount| match controller {
        Some(name) => mount.kind == "cgroup" && mount.has_option(name),
        None => mount.kind == "cgroup2",
    });
    let Some(mount) = mount else { return Vec::new() };
    // In a container without its own namespace the mount shows a subtree; a group that is not below
    // it is outside, and only the mount itself is visible.
    let below = Path::new(group).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let below = if below.starts_with("..") { Path::new("") } else { below };
    let depth = below.components().count() + 1;
    mount.mount_point.join(below).ancestors().take(depth).map(Path::to_owned).collect()
}

fn quota_milli(quota_us: u64, period_us: u64) -> Option<u32> {
    u32::try_from(quota_us.saturating_mul(1000).checked_div(period_us)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_our_units_stay_as_large_as_can_be() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let mount = "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        put("proc/self/mountinfo", mount);
        put("proc/7/cgroup", "0::/a\n");
        let most = u64::MAX;
        put("sys/fs/cgroup/a/cpu.stat", &format!("usage_usec {most}\nthrottled_usec {most}\n"));
        put("sys/fs/cgroup/a/io.stat", &format!("8:0 rbytes={most}\n8:1 rbytes={most}\n"));
        put("sys/fs/cgroup/a/cpu.max", &format!("{most} 1\n"));
        let groups = Groups::of_process(root.path(), 7);
        let usage = groups.usage();
        assert_eq!((usage.cpu_ns, usage.throttled_ns), (Some(most), Some(most)));
        assert_eq!(usage.read_bytes, Some(most));
        assert_eq!(groups.cpu_quota_milli(), None);
    }
}
