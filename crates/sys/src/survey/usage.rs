//! Finds what uses a block device, because overwriting it would destroy something. The check comes
//! before a device is overwritten, which is refused if the kernel's files do not show it.
//!
//! The members of a mapped or RAID device need no check of their own: that device holds them
//! exclusively. A loop device does not, so the file or device below it is examined too.

mod processes;

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use blockstone_base::identity::PathKind;
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};

use super::SurveyError;
use super::devices::{chain_of_mount, directory, name_of_number, name_of_path};
use super::place::SurveyedPath;
use crate::mounts::{Mount, Mounts};
use crate::proc::{entries, name_of, names, text, under};

/// Maximum number of levels of loop devices over loop devices that are followed.
const DEPTH: u32 = 8;
/// udev opens a device after each change to it, and closes it again.
const PATIENCE: Duration = Duration::from_secs(3);
pub(super) const NO_SYSFS: &str = "mount /sys and /proc as the kernel shows them";

/// Returns what uses the block device `device` (`/dev/sdb`): a mount in any visible namespace,
/// swap, a device built over it, partitions, or a process that has it open; `None` if nothing does.
/// Fails when that cannot be determined.
pub fn user_of(root: &Path, device: &Path) -> Result<Option<String>, SurveyError> {
    user_of_beside(root, device, &[])
}

/// Like [`user_of`], but the loop devices with these names (`loop1`) may be backed by the same
/// file: they are used together with it.
pub fn user_of_beside(
    root: &Path,
    device: &Path,
    twins: &[String],
) -> Result<Option<String>, SurveyError> {
    let place = SurveyedPath::of(device)?;
    if place.kind != PathKind::BlockDevice {
        let what = "file or directory, not a block device";
        return Err(SurveyError::NotStorage { path: device.to_owned(), what });
    }
    user_of_number_beside(root, place.device, twins).map_err(|unknown| unknown.of(device))
}

/// Reason why it cannot be determined whether a device is in use.
#[derive(Debug)]
pub(super) struct Unknown {
    pub why: String,
    pub hint: &'static str,
}

impl Unknown {
    fn of(self, path: &Path) -> SurveyError {
        SurveyError::CannotTell { path: path.to_owned(), why: self.why, hint: self.hint }
    }
}

#[cfg(test)]
pub(super) fn user_of_number(root: &Path, number: (u32, u32)) -> Result<Option<String>, Unknown> {
    user_of_number_beside(root, number, &[])
}

fn user_of_number_beside(
    root: &Path,
    (major, minor): (u32, u32),
    twins: &[String],
) -> Result<Option<String>, Unknown> {
    let number = format!("{major}:{minor}");
    let mounts = Mounts::of_process(root, "self").ok_or_else(|| Unknown {
        why: "/proc/self/mountinfo cannot be read".to_owned(),
        hint: NO_SYSFS,
    })?;
    let machine = Machine { root, mounts, twins };
    if let Some(user) = machine.user(&number, None, DEPTH)? {
        return Ok(Some(user));
    }
    let patience = Instant::now() + PATIENCE;
    let related = machine.related(&number)?;
    loop {
        let found =
            processes::user(root, &related.numbers(), &|mounts| machine.mount(mounts, &related))?;
        match found {
            Some(processes::User::Open(_)) if Instant::now() < patience => {
                sleep(Duration::from_millis(100));
            }
            Some(processes::User::Open(user) | processes::User::Mounted(user)) => {
                return Ok(Some(user));
            }
            None => return Ok(None),
        }
    }
}

struct Machine<'a> {
    root: &'a Path,
    mounts: Mounts,
    twins: &'a [String],
}

/// A device, its partitions, and the disk that it is a partition of.
pub(super) struct Related {
    name: String,
    partitions: Vec<String>,
    disk: Option<String>,
    directories: Vec<PathBuf>,
}

impl Related {
    fn names(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.name).chain(&self.partitions).chain(&self.disk)
    }

    fn numbers(&self) -> Vec<String> {
        self.directories.iter().filter_map(|directory| text(&directory.join("dev"))).collect()
    }
}

impl Machine<'_> {
    fn related(&self, number: &str) -> Result<Related, Unknown> {
        let unknown =
            || Unknown { why: format!("/sys/dev/block/{number} cannot be read"), hint: NO_SYSFS };
        let name = name_of_number(self.root, number).ok_or_else(unknown)?;
        let own = directory(self.root, &name).ok_or_else(unknown)?;
        let is_partition = |directory: &Path| directory.join("partition").exists();
        let inner = fs::read_dir(&own).map_err(|_| unknown())?.flatten();
        let mut below: Vec<PathBuf> =
            inner.map(|entry| entry.path()).filter(|path| is_partition(path)).collect();
        below.sort();
        let above = is_partition(&own).then(|| own.parent().map(Path::to_owned)).flatten();
        Ok(Related {
            name,
            partitions: below.iter().filter_map(|path| name_of(path)).collect(),
            disk: above.as_deref().and_then(name_of),
            directories: std::iter::once(own).chain(below).chain(above).collect(),
        })
    }

    /// Returns what uses the device with that number, apart from the loop device `except`.
    fn user(
        &self,
        number: &str,
        except: Option<&str>,
        depth: u32,
    ) -> Result<Option<String>, Unknown> {
        let related = self.related(number)?;
        if let Some(user) = self.mount(&self.mounts, &related) {
            return Ok(Some(user));
        }
        if let Some(user) = self.swap(&related)? {
            return Ok(Some(user));
        }
        if let Some(user) = Self::holder(&related)? {
            return Ok(Some(user));
        }
        if !related.partitions.is_empty() {
            return Ok(Some(format!(
                "divided into partitions ({})",
                related.partitions.join(", ")
            )));
        }
        if let Some(user) = self.loop_over(&related, except)? {
            return Ok(Some(user));
        }
        let Some(beneath) = self.backing(&related.name) else { return Ok(None) };
        match name_of_path(self.root, &beneath).filter(|_| beneath.starts_with("/dev/")) {
            Some(below) if depth > 0 && directory(self.root, &below).is_some() => {
                let below = directory(self.root, &below).and_then(|at| text(&at.join("dev")));
                let below = below.unwrap_or_default();
                let user = self.user(&below, Some(&related.name), depth - 1)?;
                Ok(user.map(|user| format!("{beneath} beneath it is: {user}")))
            }
            _ => Ok(None),
        }
    }

    /// Returns a mount among `mounts` of one of these devices, or of something built over them.
    fn mount(&self, mounts: &Mounts, related: &Related) -> Option<String> {
        let disk = related.disk.as_ref().and_then(|disk| directory(self.root, disk));
        let disk = disk.and_then(|directory| text(&directory.join("dev")));
        let mounted = |mount: &&Mount| {
            let (held, _) = chain_of_mount(self.root, mounts, mount);
            // Every partition's chain ends at the disk, but a mount of another partition does not
            // use this one.
            held.iter().any(|device| device.name == related.name)
                || disk.as_ref() == Some(&mount.number)
        };
        let mut seen = HashSet::new();
        let mut distinct =
            mounts.iter().filter(|mount| seen.insert((&mount.number, &mount.source)));
        let found = distinct.find(mounted)?;
        Some(format!("mounted at {}", found.mount_point.display()))
    }

    fn swap(&self, related: &Related) -> Result<Option<String>, Unknown> {
        let swaps = match fs::read_to_string(under(self.root, "/proc/swaps")) {
            Ok(swaps) => swaps,
            // A kernel without swap.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let why = format!("/proc/swaps cannot be read: {error}");
                return Err(Unknown { why, hint: NO_SYSFS });
            }
        };
        let used = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        let used: Vec<String> = used.filter_map(|path| name_of_path(self.root, path)).collect();
        let found = related.names().any(|name| used.contains(name));
        Ok(found.then(|| "used as swap".to_owned()))
    }

    fn holder(related: &Related) -> Result<Option<String>, Unknown> {
        for directory in &related.directories {
            let holders = directory.join("holders");
            let mut held = fs::read_dir(&holders).map_err(|error| Unknown {
                why: format!("{} cannot be read: {error}", holders.display()),
                hint: NO_SYSFS,
            })?;
            if held.next().is_some() {
                let holder = names(&holders).into_iter().next().unwrap_or_default();
                return Ok(Some(format!("part of {holder}")));
            }
        }
        Ok(None)
    }

    /// Returns a loop device over one of these, or over the file that backs one of these.
    fn loop_over(
        &self,
        related: &Related,
        except: Option<&str>,
    ) -> Result<Option<String>, Unknown> {
        let block = under(self.root, "/sys/block");
        if fs::read_dir(&block).is_err() {
            return Err(Unknown { why: "/sys/block cannot be read".to_owned(), hint: NO_SYSFS });
        }
        let numbers = related.numbers();
        let own = self.backing(&related.name);
        for other in entries(&block).iter().filter_map(|path| name_of(path)) {
            if Some(other.as_str()) == except || other == related.name {
                continue;
            }
            let Some(backing) = self.backing(&other) else { continue };
            let named = name_of_path(self.root, &backing).filter(|_| backing.starts_with("/dev/"));
            let over = named.is_some_and(|name| related.names().any(|own| *own == name))
                || block_number(&under(self.root, &backing)).is_some_and(|n| numbers.contains(&n));
            if over {
                return Ok(Some(format!("the loop device {other} stands on it")));
            }
            if own.as_ref() == Some(&backing) && !self.twins.contains(&other) {
                return Ok(Some(format!("the loop device {other} stands on the same {backing}")));
            }
        }
        Ok(None)
    }

    fn backing(&self, name: &str) -> Option<String> {
        text(&directory(self.root, name)?.join("loop/backing_file"))
    }
}

/// Returns the number of the block device that a path or descriptor leads to. This does not wait
/// for a server: a network file system answers from what it has cached.
pub(super) fn block_number(path: &Path) -> Option<String> {
    let flags = AtFlags::STATX_DONT_SYNC;
    let found = rustix::fs::statx(CWD, path, flags, StatxFlags::TYPE).ok()?;
    let is_block = FileType::from_raw_mode(u32::from(found.stx_mode)) == FileType::BlockDevice;
    is_block.then(|| format!("{}:{}", found.stx_rdev_major, found.stx_rdev_minor))
}
