//! The part of a survey that only system calls on the path report, and no file contains.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use blockstone_base::identity::PathKind;
use rustix::fs::{AtFlags, CWD, OFlags, StatxFlags, major, minor};

use super::SurveyError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedPath {
    pub path: PathBuf,
    pub kind: PathKind,
    /// Major and minor number of the device itself, or of the one that its file system reports
    /// (`st_dev`, anonymous with major 0 on btrfs, overlay, tmpfs and network file systems).
    pub device: (u32, u32),
    pub mount_id: Option<u64>,
    /// Bytes free to this user in a directory, or the size of a file; zero for a device, whose size
    /// sysfs shows even to those who may not open it.
    pub free_bytes: u64,
    pub alignment: Alignment,
}

/// Direct I/O as statx(2) describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// Possible if offsets, lengths and memory have this alignment.
    Known {
        offset_bytes: u32,
        memory_bytes: u32,
    },
    Refused,
    /// The kernel (before 6.1) or file system does not report it, or nothing could be opened to
    /// ask.
    Unknown,
}

impl SurveyedPath {
    pub fn of(path: &Path) -> Result<Self, SurveyError> {
        let fail = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => SurveyError::NotFound { path: path.to_owned() },
            _ => SurveyError::Io { path: path.to_owned(), source },
        };
        let resolved = fs::canonicalize(path).map_err(fail)?;
        let metadata = fs::metadata(&resolved).map_err(fail)?;
        let kind = kind_of(path, metadata.file_type())?;
        let number = if kind == PathKind::BlockDevice { metadata.rdev() } else { metadata.dev() };
        let free_bytes = match kind {
            PathKind::Directory => {
                let space = rustix::fs::statvfs(&resolved).map_err(|errno| fail(errno.into()))?;
                space.f_bavail * space.f_frsize
            }
            PathKind::File => metadata.len(),
            PathKind::BlockDevice => 0,
        };
        let mount = rustix::fs::statx(CWD, &resolved, AtFlags::empty(), StatxFlags::MNT_ID);
        Ok(Self {
            kind,
            device: (major(number), minor(number)),
            mount_id: mount.ok().map(|statx| statx.stx_mnt_id).filter(|&id| id != 0),
            free_bytes,
            alignment: alignment(&resolved, kind),
            path: resolved,
        })
    }
}

fn kind_of(path: &Path, file_type: fs::FileType) -> Result<PathKind, SurveyError> {
    let what = if file_type.is_dir() {
        return Ok(PathKind::Directory);
    } else if file_type.is_file() {
        return Ok(PathKind::File);
    } else if file_type.is_block_device() {
        return Ok(PathKind::BlockDevice);
    } else if file_type.is_char_device() {
        "character device"
    } else if file_type.is_fifo() {
        "pipe"
    } else {
        "socket"
    };
    Err(SurveyError::NotStorage { path: path.to_owned(), what })
}

/// Queries the file, or a nameless one (`O_TMPFILE`) in the directory.
fn alignment(path: &Path, kind: PathKind) -> Alignment {
    let nameless = (kind == PathKind::Directory).then_some(OFlags::TMPFILE);
    let open = |flags: OFlags| {
        let flags = flags | nameless.unwrap_or(OFlags::empty());
        let mut options = OpenOptions::new();
        options.read(true).write(nameless.is_some()).mode(0o600);
        options.custom_flags(flags.bits() as i32).open(path)
    };
    let Ok(file) = open(OFlags::empty()) else { return Alignment::Unknown };
    match alignment_of(&file) {
        Alignment::Unknown => match open(OFlags::DIRECT) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Alignment::Refused,
            _ => Alignment::Unknown,
        },
        known => known,
    }
}

/// Returns the alignment that statx(2) reports for an open file.
pub fn alignment_of(file: &File) -> Alignment {
    let described = rustix::fs::statx(file.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
        .ok()
        .filter(|statx| statx.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    match described {
        Some(statx) if statx.stx_dio_offset_align == 0 => Alignment::Refused,
        Some(statx) => Alignment::Known {
            offset_bytes: statx.stx_dio_offset_align,
            memory_bytes: statx.stx_dio_mem_align,
        },
        None => Alignment::Unknown,
    }
}
