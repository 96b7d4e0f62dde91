//! A limit that this process puts on its own reads of a device: a control group that it creates,
//! enters, and leaves and removes again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::Groups;
use crate::path::names;
use crate::proc::text;

const PREFIX: &str = "blockstone-cap-";
const MEMBERS: &str = "cgroup.procs";
/// How long the group may stay in use after this process has left it: threads that have just ended
/// count until the kernel has torn them down.
const PATIENCE: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(20);

/// The group of this process, and the limit that it has as long as this lives.
#[derive(Debug)]
pub struct ReadCap {
    dir: PathBuf,
    /// The group to which this process returns.
    home: PathBuf,
}

/// A group in which one with a limit can be created.
#[derive(Debug, PartialEq, Eq)]
struct CapGroup {
    home: PathBuf,
    parent: PathBuf,
    /// The file that takes the limit, and what is written to it.
    file: &'static str,
    line: String,
}

impl ReadCap {
    /// Limits this process to `reads_per_s` requests a second to `device` (`major:minor`, a whole
    /// disk). Fails with the reason if this user may not do that; nothing has changed then.
    pub fn enter(device: &str, reads_per_s: u64) -> Result<Self, String> {
        let groups = Groups::read(Path::new("/"));
        let none = "no control group here limits the I/O of its processes";
        let place = groups.place(device, reads_per_s).ok_or(none)?;
        remove_left(&place.parent);
        let dir = place.parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&dir).map_err(|error| format!("create {}: {error}", dir.display()))?;
        // From here on, dropping it undoes everything.
        let cap = Self { dir, home: place.home };
        set(&cap.dir.join(place.file), &place.line)?;
        set(&cap.dir.join(MEMBERS), &std::process::id().to_string())?;
        Ok(cap)
    }

    /// Returns the directory of the group.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for ReadCap {
    fn drop(&mut self) {
        let _ = set(&self.home.join(MEMBERS), &std::process::id().to_string());
        let patience = Instant::now() + PATIENCE;
        while let Err(error) = fs::remove_dir(&self.dir) {
            if error.kind() != io::ErrorKind::ResourceBusy || Instant::now() > patience {
                break;
            }
            thread::sleep(AGAIN);
        }
    }
}

impl Groups {
    /// Finds the place for a limit. Where `blkio` of version 1 is mounted, it limits the devices.
    /// In version 2, a group that has processes may not limit those below it, so that the new one
    /// stands beside that of this process.
    fn place(&self, device: &str, reads_per_s: u64) -> Option<CapGroup> {
        if let Some(home) = self.blkio.first() {
            let file = "blkio.throttle.read_iops_device";
            let (home, parent) = (home.clone(), home.clone());
            return Some(CapGroup { home, parent, file, line: format!("{device} {reads_per_s}") });
        }
        let limits = |dir: &&PathBuf| {
            let controllers = text(&dir.join("cgroup.subtree_control"));
            controllers.is_some_and(|names| names.split_whitespace().any(|name| name == "io"))
        };
        let home = self.unified.first()?.clone();
        let parent = self.unified.iter().take(2).find(limits)?.clone();
        Some(CapGroup {
            home,
            parent,
            file: "io.max",
            line: format!("{device} riops={reads_per_s}"),
        })
    }
}

/// Removes the groups of killed processes. The kernel removes none that is in use.
fn remove_left(parent: &Path) {
    for name in names(parent).unwrap_or_default() {
        if name.to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            let _ = fs::remove_dir(parent.join(name));
        }
    }
}

fn set(file: &Path, value: &str) -> Result<(), String> {
    fs::write(file, value).map_err(|error| format!("write {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn version_1_owns_the_devices_where_it_has_them() {
        let (unified, blkio) = (vec!["/u/a".into()], vec!["/b/a".into(), "/b".into()]);
        let groups = Groups { unified, blkio, ..Groups::default() };
        let place = groups.place("8:0", 70).unwrap();
        assert_eq!((place.home, place.parent), ("/b/a".into(), "/b/a".into()));
        assert_eq!(place.line, "8:0 70");
    }

    #[test]
    fn version_2_limits_beside_the_own_group_where_the_parent_has_the_controller() {
        let root = tempfile::tempdir().unwrap();
        let (parent, home) = (root.path().join("user"), root.path().join("user/own"));
        put(&home.join("cgroup.subtree_control"), "");
        put(&parent.join("cgroup.subtree_control"), "cpu memory\n");
        let unified = vec![home.clone(), parent.clone(), root.path().to_owned()];
        let groups = Groups { unified, ..Groups::default() };
        assert_eq!(groups.place("8:0", 70), None, "the controller is not there");
        put(&parent.join("cgroup.subtree_control"), "cpu io memory\n");
        let place = groups.place("8:0", 70).unwrap();
        let line = "8:0 riops=70".to_owned();
        assert_eq!(place, CapGroup { home, parent, file: "io.max", line });
    }

    #[test]
    fn groups_of_killed_processes_are_removed_and_others_stay() {
        let root = tempfile::tempdir().unwrap();
        for name in ["blockstone-cap-1", "other", "blockstone-cap-2/in-use"] {
            fs::create_dir_all(root.path().join(name)).unwrap();
        }
        remove_left(root.path());
        let mut left = names(root.path()).unwrap();
        left.sort();
        assert_eq!(left, ["blockstone-cap-2", "other"]);
    }
}
