//! Files and devices as the programs identify them, and the names of files.

use super::load::Loaded;
use super::table::{Plain, Table};
use super::{BpfError, on, open};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The generation changes when the inode number is reused for another file.
    File { inode: u64, generation: u32 },
    /// A block device, or a file on it that could not be determined.
    Device,
    /// Data that the file system stores on the device in addition to its files.
    Metadata,
    /// Memory that was swapped out to the device.
    Swap,
    /// Not a file: a submission of several requests.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    pub major: u32,
    pub minor: u32,
}

impl Device {
    /// Converts from the kernel's own form, which differs from that of stat(2): `linux/kdev_t.h`.
    pub(super) fn of(number: u32) -> Self {
        Self { major: number >> 20, minor: number & 0xf_ffff }
    }

    pub(super) fn number(self) -> u32 {
        self.major << 20 | self.minor
    }

    /// Converts from the form of stat(2).
    pub(super) fn of_stat(number: u64) -> Self {
        Self { major: rustix::fs::major(number), minor: rustix::fs::minor(number) }
    }

    /// Returns the block device at this path, or the one that holds the file system of the file
    /// there; `None` if the file system hides its devices.
    pub fn at(path: &std::path::Path) -> std::io::Result<Option<Self>> {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let found = std::fs::metadata(path)?;
        let number = if found.file_type().is_block_device() { found.rdev() } else { found.dev() };
        let device = Self::of_stat(number);
        Ok((device.major != 0).then_some(device))
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileKey {
    inode: u64,
    device: u32,
    generation: u32,
}

impl FileKey {
    pub(super) const NONE: Self = Self { inode: 0, device: 0, generation: 0 };
}

// SAFETY: its fields fill 16 bytes without padding, and any bytes are valid numbers.
unsafe impl Plain for FileKey {}

impl FileKey {
    pub(super) fn subject(&self, kind: u8) -> Subject {
        match kind {
            0 => Subject::File { inode: self.inode, generation: self.generation },
            1 => Subject::Device,
            2 => Subject::Metadata,
            3 => Subject::Swap,
            _ => Subject::Nothing,
        }
    }

    /// Returns the device, or the one that holds the file.
    pub(super) fn device(&self) -> Device {
        Device::of(self.device)
    }
}

const NAMES: usize = 12;
const NAME_BYTES: usize = 64;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct FileNames([[u8; NAME_BYTES]; NAMES]);

// SAFETY: bytes throughout.
unsafe impl Plain for FileNames {}

/// Names of files when they were first seen.
#[derive(Debug)]
pub(super) struct Files(Table<FileKey, FileNames>);

impl Files {
    pub(super) fn open(loaded: &Loaded) -> Result<Self, BpfError> {
        open(loaded, "files").map(Self)
    }

    /// Returns the path of a file within its file system; `None` if it has no name or is not a
    /// file.
    pub(super) fn path_of(&self, file: &FileKey, kind: u8) -> Result<Option<String>, BpfError> {
        let Subject::File { .. } = file.subject(kind) else { return Ok(None) };
        let found = self.0.get(file).map_err(on("read", "files"))?;
        Ok(found.and_then(|names| path(&names.0)))
    }
}

/// Joins the names of a file and the directories above it, the root of its file system last.
fn path(names: &[[u8; NAME_BYTES]]) -> Option<String> {
    let names: Vec<String> =
        names.iter().map(|name| text(name)).take_while(|name| !name.is_empty()).collect();
    let from_root: Vec<&str> = names.iter().rev().map(String::as_str).collect();
    // The upper end of a deeper path is unknown.
    let start = if names.len() == NAMES { "…/" } else { "/" };
    (!names.is_empty()).then(|| format!("{start}{}", from_root.join("/")))
}

pub(super) fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_a_path() {
        let name = |text: &str| {
            let mut bytes = [0; NAME_BYTES];
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            bytes
        };
        let mut names = [[0; NAME_BYTES]; NAMES];
        assert_eq!(path(&names), None);
        names[0] = name("16384");
        names[1] = name("base");
        assert_eq!(path(&names).as_deref(), Some("/base/16384"));
        assert!(path(&[name("d"); NAMES]).unwrap().starts_with("…/d/d"));
    }
}
