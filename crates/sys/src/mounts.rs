//! The mount table of this process.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use blockstone_base::identity::FileSystem;
use procfs::FromRead;
use procfs::process::{MountInfo, MountInfos};

use crate::proc::under;

/// Mounts visible to this process, in the order in which the kernel lists them.
#[derive(Clone, Debug, Default)]
pub struct Mounts(Vec<Mount>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Mount ID, as in statx(2).
    pub id: u64,
    /// `major:minor` of the file system (`st_dev` of its files, except on btrfs).
    pub number: String,
    /// Directory of the file system that is mounted.
    pub root: PathBuf,
    pub mount_point: PathBuf,
    pub kind: String,
    /// The mounted device or name.
    pub source: String,
    /// Mount and superblock options without duplicates, `rw` or `ro` first.
    options: Vec<(String, Option<String>)>,
}

impl Mounts {
    /// Reads `/proc/self/mountinfo`; empty if that cannot be read.
    pub fn read(root: &Path) -> Self {
        Self::of_process(root, "self").unwrap_or_default()
    }

    /// Reads the mounts visible to a process; `None` if they cannot be read.
    pub fn of_process(root: &Path, process: &str) -> Option<Self> {
        let path = under(root, "/proc").join(process).join("mountinfo");
        let infos = MountInfos::from_file(path).ok()?;
        Some(Self(infos.into_iter().map(Mount::from).collect()))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.0.iter()
    }

    /// Returns the mount that holds a path: the one it was reached through, if known; otherwise the
    /// deepest mount point above it, preferring one of its own device (a device can be mounted
    /// several times, and btrfs files have a number that no mount has).
    pub fn holding(
        &self,
        mount_id: Option<u64>,
        device: (u32, u32),
        path: &Path,
    ) -> Option<&Mount> {
        let number = format!("{}:{}", device.0, device.1);
        let by_id = mount_id.and_then(|id| self.iter().find(|mount| mount.id == id));
        let above = || self.iter().filter(|mount| path.starts_with(&mount.mount_point));
        // Of several mounts at one point, the last covers the others.
        let deepest = |mount: &&Mount| mount.mount_point.components().count();
        by_id
            .or_else(|| above().filter(|mount| mount.number == number).max_by_key(deepest))
            .or_else(|| above().max_by_key(deepest))
    }

    /// Returns the mount that holds a path of which only the name is known.
    pub fn above(&self, path: &Path) -> Option<&Mount> {
        // No device has the number 0:0, so only the name decides.
        self.holding(None, (0, 0), path)
    }
}

impl Mount {
    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|(key, _)| key == name)
    }

    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(key, _)| key == name)?.1.as_deref()
    }

    pub fn file_system(&self) -> FileSystem {
        let option = |(key, value): &(String, Option<String>)| match value {
            Some(value) => format!("{key}={value}"),
            None => key.clone(),
        };
        FileSystem {
            kind: self.kind.clone(),
            source: self.source.clone(),
            mount_point: self.mount_point.display().to_string(),
            options: self.options.iter().map(option).collect::<Vec<_>>().join(","),
            beneath: None,
        }
    }
}

impl From<MountInfo> for Mount {
    fn from(info: MountInfo) -> Self {
        let text = |escaped: &str| unescape(escaped.as_bytes()).to_string_lossy().into_owned();
        let all: HashMap<_, _> = info.super_options.into_iter().chain(info.mount_options).collect();
        let mut options: Vec<(String, Option<String>)> = all
            .into_iter()
            .map(|(key, value)| (text(&key), value.map(|value| text(&value))))
            .collect();
        options
            .sort_by_key(|(key, value)| (key != "ro" && key != "rw", key.clone(), value.clone()));
        // A read-only superblock makes a writable mount read-only too.
        if options.iter().any(|(key, _)| key == "ro") {
            options.retain(|(key, _)| key != "rw");
        }
        Self {
            id: info.mnt_id as u64,
            number: info.majmin,
            root: unescape(info.root.as_bytes()).into(),
            mount_point: unescape(info.mount_point.as_os_str().as_bytes()).into(),
            kind: info.fs_type,
            source: info.mount_source.as_deref().map_or_else(String::new, text),
            options,
        }
    }
}

/// Undoes the kernel's escaping of white space and backslashes (`\040`), which `procfs` keeps.
fn unescape(bytes: &[u8]) -> OsString {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .filter(|digits| byte == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        if let Some(digits) = octal {
            out.push(digits.iter().fold(0_u8, |value, d| value.wrapping_mul(8) + (d - b'0')));
            rest = &tail[3..];
        } else {
            out.push(byte);
            rest = tail;
        }
    }
    OsString::from_vec(out)
}
