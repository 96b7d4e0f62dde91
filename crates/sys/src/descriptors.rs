//! Files that a process holds open, as far as its descriptors show without querying any file
//! system: one that does not answer would block the caller.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use blockstone_base::identity::keeps_in_memory;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::path::link_target;
use crate::proc::under;

/// File systems on block devices that have a device number of their own.
const WITHOUT_DEVICE: [&str; 4] = ["btrfs", "overlay", "zfs", "bcachefs"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Path that leads to the file even if it was removed: `/proc/PID/fd/N`.
    pub path: PathBuf,
    pub mount: Option<u64>,
    pub flags: Flags,
}

/// Flags of open(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// Returns whether it bypasses the page cache.
    pub fn is_direct(self) -> bool {
        self.0 & libc::O_DIRECT as u32 != 0
    }

    /// Returns whether each write is durable together with the metadata needed to read it; also
    /// true if [`Self::is_sync`] is.
    pub fn is_dsync(self) -> bool {
        self.0 & libc::O_DSYNC as u32 != 0
    }

    /// Returns whether each write is durable together with all metadata.
    pub fn is_sync(self) -> bool {
        self.0 & libc::O_SYNC as u32 == libc::O_SYNC as u32
    }
}

/// Returns the descriptors of a process. Fails when it has ended, or when this user may not see
/// them.
pub fn of(root: &Path, pid: u32) -> io::Result<Vec<Descriptor>> {
    let entries = std::fs::read_dir(under(root, format!("/proc/{pid}/fd")))?;
    let infos = under(root, format!("/proc/{pid}/fdinfo"));
    let descriptor = |path: PathBuf| {
        let info = infos.join(path.file_name().unwrap_or_default());
        let text = std::fs::read_to_string(info).unwrap_or_default();
        let after = |key| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let flags = after("flags:").and_then(|flags| u32::from_str_radix(flags, 8).ok());
        let mount = after("mnt_id:").and_then(|mount| mount.parse().ok());
        Descriptor { path, mount, flags: Flags(flags.unwrap_or_default()) }
    };
    Ok(entries.flatten().map(|entry| descriptor(entry.path())).collect())
}

/// Means to request I/O without waiting for it that a process has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncMeans {
    /// Descriptors of `io_uring` instances.
    pub rings: u64,
    /// AIO contexts (`io_setup`): each has its ring of events mapped. `None` if this user may not
    /// see the mappings.
    pub aio_contexts: Option<u64>,
}

/// Returns the means of a process. Fails when it has ended, or when this user may not see its
/// descriptors.
pub fn async_means(root: &Path, pid: u32) -> io::Result<AsyncMeans> {
    let entries = std::fs::read_dir(under(root, format!("/proc/{pid}/fd")))?;
    let is_ring = |entry: &std::fs::DirEntry| {
        link_target(&entry.path()).is_ok_and(|target| target == Path::new("anon_inode:[io_uring]"))
    };
    let rings = entries.flatten().filter(is_ring).count() as u64;
    let maps = std::fs::read(under(root, format!("/proc/{pid}/maps"))).ok();
    let is_context = |line: &&[u8]| {
        let line = line.trim_ascii_end();
        let line = line.strip_suffix(b" (deleted)").unwrap_or(line);
        line.ends_with(b" /[aio]")
    };
    let contexts = |maps: Vec<u8>| maps.split(|it| *it == b'\n').filter(is_context).count() as u64;
    Ok(AsyncMeans { rings, aio_contexts: maps.map(contexts) })
}

/// Raises the limit on open files of this process, as far as it may, so that it can open this
/// number of them in addition to a few others. Fails with the limit that it has.
pub fn make_room(files: u64) -> Result<(), u64> {
    const OTHERS: u64 = 64;
    let needed = files + OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|limit| limit >= needed) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), maximum };
    match maximum {
        Some(most) if most < needed => Err(most),
        _ => setrlimit(Resource::Nofile, raised).map_err(|_| current.unwrap_or(0)),
    }
}

/// Returns the IDs of the mounts visible to a process whose file system is on this machine's
/// devices.
pub fn local_mounts(root: &Path, pid: u32) -> HashSet<u64> {
    mounts(root, pid, |device, kind| !device.starts_with("0:") || WITHOUT_DEVICE.contains(&kind))
}

/// Returns the IDs of the mounts whose file system is in this machine's memory.
pub fn memory_mounts(root: &Path, pid: u32) -> HashSet<u64> {
    mounts(root, pid, |_, kind| keeps_in_memory(kind))
}

fn mounts(root: &Path, pid: u32, is_wanted: impl Fn(&str, &str) -> bool) -> HashSet<u64> {
    let table = under(root, format!("/proc/{pid}/mountinfo"));
    let text = std::fs::read_to_string(table).unwrap_or_default();
    let wanted = |line: &str| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut words = mount.split(' ');
        let (id, _, device) = (words.next()?, words.next()?, words.next()?);
        let kind = file_system.split(' ').next()?;
        is_wanted(device, kind).then(|| id.parse().ok())?
    };
    text.lines().filter_map(wanted).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn means_of_asynchronous_io_are_counted() {
        let root = tempfile::tempdir().unwrap();
        let fds = root.path().join("proc/7/fd");
        fs::create_dir_all(&fds).unwrap();
        for (fd, target) in [(3, "anon_inode:[io_uring]"), (4, "/data/[io_uring]"), (5, "/x")] {
            std::os::unix::fs::symlink(target, fds.join(fd.to_string())).unwrap();
        }
        let means = |aio_contexts| AsyncMeans { rings: 1, aio_contexts };
        assert_eq!(async_means(root.path(), 7).unwrap(), means(None));
        let maps = "7f00-7f01 rw-s 00000000 00:12 1   /[aio] (deleted)\n\
                    7f02-7f03 rw-s 00000000 00:12 2   /[aio]\n\
                    7f04-7f05 r--p 00000000 08:01 3   /data/[aio]x\n";
        fs::write(root.path().join("proc/7/maps"), maps).unwrap();
        assert_eq!(async_means(root.path(), 7).unwrap(), means(Some(2)));
        assert!(async_means(root.path(), 8).is_err());
    }

    #[test]
    fn flags_and_mounts_of_descriptors_are_read() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        // O_RDWR with O_DIRECT and O_DSYNC, with O_SYNC, and a line that no kernel writes.
        for (fd, info) in [
            (3, "pos:\t0\nflags:\t02150002\nmnt_id:\t21\n"),
            (4, "flags:\t06110002\nmnt_id:\t22\n"),
            (5, "flags:\tq\nmnt_id:\t\n"),
        ] {
            put(&format!("proc/7/fd/{fd}"), "");
            put(&format!("proc/7/fdinfo/{fd}"), info);
        }
        let table = "21 1 8:1 / /data rw - ext4 /dev/sda1 rw\n22 1 0:30 / /b rw - btrfs x rw\n\
                     23 1 0:31 / /shm rw - tmpfs tmpfs rw\n24 1 0:32 / /n rw - nfs4 s:/ rw\nbroken";
        put("proc/7/mountinfo", table);
        let mut found = of(root.path(), 7).unwrap();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        let flags = |it: &Descriptor| {
            (it.flags.is_direct(), it.flags.is_dsync(), it.flags.is_sync(), it.mount)
        };
        let all: Vec<_> = found.iter().map(flags).collect();
        assert_eq!(all[0], (true, true, false, Some(21)));
        assert_eq!(all[1], (false, true, true, Some(22)));
        assert_eq!(all[2], (false, false, false, None));
        assert_eq!(local_mounts(root.path(), 7), HashSet::from([21, 22]));
        assert_eq!(memory_mounts(root.path(), 7), HashSet::from([23]));
        assert!(of(root.path(), 8).is_err() && local_mounts(root.path(), 8).is_empty());
    }
}
