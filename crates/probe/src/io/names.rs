//! Names of files: the path within a file system, as reported by the kernel, below the place where
//! that file system is mounted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use blockstone_sys::bpf::{Device, Subject};
use blockstone_sys::proc::{self, text, under};
use blockstone_sys::survey::{Mount, Mounts};

use super::file_type::{FileType, family, file_type};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// A path, a device, or a word.
    pub file: String,
    pub file_type: FileType,
}

/// The set of names in use, limited in number.
#[derive(Debug)]
pub struct Shelf {
    most: usize,
    labels: BTreeSet<Label>,
}

impl Shelf {
    pub fn new(most: usize) -> Self {
        Self { most, labels: BTreeSet::new() }
    }

    /// Returns the name, or that of all others of its type if there is no room for it.
    pub fn place(&mut self, label: Label) -> Label {
        if self.labels.len() >= self.most && !self.labels.contains(&label) {
            return Label { file: "other files".into(), file_type: label.file_type };
        }
        self.labels.insert(label.clone());
        label
    }
}

#[derive(Debug)]
pub struct Names {
    root: PathBuf,
    mounts: Mounts,
}

impl Names {
    /// Reads the current mounts; they are read again when a file system is not among them.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), mounts: Mounts::read(root) }
    }

    /// Returns the name of the subject of an I/O. `path` is its path within its file system, if it
    /// has one.
    pub fn label(&mut self, subject: Subject, device: Device, path: Option<&str>) -> Label {
        let label = |file, file_type| Label { file, file_type };
        match subject {
            Subject::File { inode, .. } => {
                let file = match path {
                    Some(path) => self.full_path(device, path),
                    None => format!("{} inode {inode}", self.device_path(device)),
                };
                label(family(&file), file_type(&file))
            }
            Subject::Device => label(self.device_path(device), FileType::Data),
            Subject::Metadata => label(self.device_path(device), FileType::Metadata),
            Subject::Swap => label(self.device_path(device), FileType::Swap),
            Subject::Nothing => label("several files".into(), FileType::Other),
        }
    }

    /// Returns the path on this machine of a path within a file system.
    pub fn full_path(&mut self, device: Device, path: &str) -> String {
        if let Some(found) = below_mount(&self.mounts, device, path) {
            return found;
        }
        self.mounts = Mounts::read(&self.root);
        below_mount(&self.mounts, device, path)
            .unwrap_or_else(|| format!("{}:{path}", self.device_path(device)))
    }

    /// Returns the kernel name of the disk of a device; of a file system with a number of its own,
    /// such as btrfs, the disk that was mounted.
    pub fn disk(&self, device: Device) -> String {
        let number = format!("{}:{}", device.major, device.minor);
        let mounted = || {
            let mount = self.mounts.iter().find(|mount| mount.number == number)?;
            let name = Path::new(&mount.source).file_name()?.to_str()?;
            disk_of(&self.root, &text(&under(&self.root, format!("/sys/class/block/{name}/dev")))?)
        };
        disk_of(&self.root, &number).or_else(mounted).unwrap_or_else(|| format!("device {number}"))
    }

    pub fn device_path(&self, Device { major, minor }: Device) -> String {
        let entry = under(&self.root, format!("/sys/dev/block/{major}:{minor}"));
        if let Some(mapped) = text(&entry.join("dm/name")) {
            return format!("/dev/mapper/{mapped}");
        }
        let target = proc::link_target(&entry).ok();
        let name = target.as_ref().and_then(|target| target.file_name()?.to_str());
        name.map_or_else(|| format!("device {major}:{minor}"), |name| format!("/dev/{name}"))
    }
}

/// Returns the kernel name of the disk that a device is, or that it is a part of; `None` if the
/// device is unknown.
fn disk_of(root: &Path, number: &str) -> Option<String> {
    let entry = under(root, format!("/sys/dev/block/{number}"));
    let target = proc::link_target(&entry).ok()?;
    let is_part = text(&entry.join("partition")).is_some();
    let disk = if is_part { target.parent()? } else { &target };
    Some(disk.file_name()?.to_str()?.to_owned())
}

/// Returns the path below the mount that shows the largest part of the file system.
fn below_mount(mounts: &Mounts, device: Device, path: &str) -> Option<String> {
    let number = format!("{}:{}", device.major, device.minor);
    // The upper end of a deep path is not known: the result then only shows on which mount it is.
    let is_cut = !path.starts_with('/');
    let shown = |mount: &Mount| {
        let rest = if is_cut {
            Path::new(path)
        } else {
            Path::new(path).strip_prefix(&mount.root).ok()?
        };
        Some(mount.mount_point.join(rest).to_string_lossy().into_owned())
    };
    let depth =
        |mount: &&Mount| (mount.root.components().count(), mount.mount_point.components().count());
    let on_it = mounts.iter().filter(|mount| mount.number == number && shown(mount).is_some());
    on_it.min_by_key(depth).and_then(shown)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const DISK: Device = Device { major: 8, minor: 1 };
    const FILE: Subject = Subject::File { inode: 12, generation: 1 };

    fn names(root: &Path) -> Names {
        fs::create_dir_all(root.join("proc/self")).unwrap();
        let table = "20 1 8:1 /sub /bound rw - ext4 /dev/sda1 rw\n\
                     21 1 8:1 / /data/pg rw - ext4 /dev/sda1 rw\n\
                     22 1 0:30 /only/this /shown rw - btrfs /dev/sdb rw\n";
        fs::write(root.join("proc/self/mountinfo"), table).unwrap();
        fs::create_dir_all(root.join("sys/dev/block")).unwrap();
        let link = root.join("sys/dev/block/8:1");
        std::os::unix::fs::symlink("../../devices/x/block/sda/sda1", link).unwrap();
        Names::new(root)
    }

    #[test]
    fn a_path_stands_below_its_mount() {
        let root = tempfile::tempdir().unwrap();
        let mut names = names(root.path());
        let mut file = |device, path| names.label(FILE, device, path).file;
        assert_eq!(file(DISK, Some("/base/5/16384")), "/data/pg/base/5/16384");
        assert_eq!(file(DISK, Some("…/a/b")), "/data/pg/…/a/b");
        let subvolume = Device { major: 0, minor: 30 };
        assert_eq!(file(subvolume, Some("/only/this/file")), "/shown/file");
        assert_eq!(file(subvolume, Some("/else")), "device 0:30:/else");
        assert_eq!(file(DISK, None), "/dev/sda1 inode 12");
    }

    #[test]
    fn what_exceeds_the_shelf_counts_as_others_of_its_type() {
        let mut shelf = Shelf::new(2);
        let mut place =
            |file: &str, file_type| shelf.place(Label { file: file.into(), file_type }).file;
        assert_eq!(place("a", FileType::Data), "a");
        assert_eq!(place("b", FileType::Redo), "b");
        assert_eq!(place("c", FileType::Redo), "other files");
        assert_eq!(place("a", FileType::Data), "a");
    }

    #[test]
    fn a_partition_belongs_to_its_disk() {
        let root = tempfile::tempdir().unwrap();
        let names = names(root.path());
        assert_eq!(names.disk(DISK), "sda1", "not a partition as far as is known");
        let partition = root.path().join("sys/devices/x/block/sda/sda1");
        fs::create_dir_all(&partition).unwrap();
        fs::write(partition.join("partition"), "1\n").unwrap();
        assert_eq!(names.disk(DISK), "sda");
        assert_eq!(names.disk(Device { major: 9, minor: 9 }), "device 9:9");
    }

    #[test]
    fn what_is_no_file_is_named_by_its_device() {
        let root = tempfile::tempdir().unwrap();
        let mut names = names(root.path());
        let mut label = |subject| {
            let Label { file, file_type } = names.label(subject, DISK, None);
            (file, file_type.name())
        };
        assert_eq!(label(Subject::Metadata), ("/dev/sda1".into(), "file system metadata"));
        assert_eq!(label(Subject::Device), ("/dev/sda1".into(), "data"));
        assert_eq!(label(Subject::Swap), ("/dev/sda1".into(), "swap"));
        assert_eq!(label(Subject::Nothing), ("several files".into(), "other"));
    }
}
