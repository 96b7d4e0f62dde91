//! The space that a mounted file system calls free, and whether its devices take discards.
//!
//! Only the file system knows which blocks are free: ext4 and XFS list them (`FS_IOC_GETFSMAP`).
//! What these blocks still hold, the device knows. Nothing is written or discarded here.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use blockstone_base::hint::Hint;
use rustix::fs::{Mode, OFlags};

use crate::mounts::{Mount, Mounts};
use crate::path;
use crate::proc::{number, under};
use crate::survey::devices;

/// A file system and its free extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeExtents {
    pub mount_point: PathBuf,
    /// Type of the file system.
    pub kind: String,
    pub device: PathBuf,
    pub block_bytes: u64,
    /// Positions on the device in bytes, ascending: multiples of a block, without overlaps.
    pub extents: Vec<Range<u64>>,
    /// Whether the file system discards blocks as soon as they are freed.
    pub mounted_with_discard: bool,
    /// The devices from the top down.
    pub discards: Vec<Discards>,
    /// File of a loop device: its size, and the space that it takes, in bytes.
    pub backing_bytes: Option<(u64, u64)>,
}

/// Discards as a device describes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discards {
    pub name: String,
    /// Zero if the device takes none.
    pub max_bytes: u64,
    pub granularity_bytes: u64,
}

#[derive(Debug, thiserror::Error, Hint)]
pub enum FreeSpaceError {
    #[error("list free space of {path}: {source}")]
    #[hint("check the path and its permissions")]
    Path { path: PathBuf, source: io::Error },
    #[error("list free space of {path}: the device is not mounted")]
    #[hint("mount it: only the file system knows which of its blocks are free")]
    NotMounted { path: PathBuf },
    #[error("list free space of {path}: {kind} is not on one block device of its own")]
    #[hint("name a directory of an ext4 or XFS file system")]
    NoDevice { path: PathBuf, kind: String },
    #[error("list free space of {path}: {kind} refuses FS_IOC_GETFSMAP: {source}")]
    #[hint("ext4 since Linux 4.12 and XFS list their free extents")]
    Unlisted { path: PathBuf, kind: String, source: io::Error },
    #[error("list free space of {path}: it is in more than {EXTENTS_MAX} pieces")]
    #[hint("defragment the file system, or look at a smaller one")]
    TooMany { path: PathBuf },
}

/// Number of pieces of free space that are kept, 64 MiB of them.
const EXTENTS_MAX: usize = 1 << 22;

/// Lists the free extents of the file system that holds `path`, or of the one that is mounted from
/// it if it is a block device.
pub fn of(root: &Path, path: &Path) -> Result<FreeExtents, FreeSpaceError> {
    let fail = |source| FreeSpaceError::Path { path: path.to_owned(), source };
    let whole = path::whole(path).map_err(fail)?;
    let found = path::look(&whole).map_err(fail)?;
    let mounts = Mounts::read(root);
    let is_device = found.file_type().is_block_device();
    let device = if is_device { found.rdev() } else { found.dev() };
    let device = (rustix::fs::major(device), rustix::fs::minor(device));
    let on = format!("{}:{}", device.0, device.1);
    let mount = if is_device {
        mounts.iter().find(|mount| mount.number == on)
    } else {
        mounts.holding(None, device, &whole)
    };
    let mount = mount.ok_or_else(|| FreeSpaceError::NotMounted { path: path.to_owned() })?;
    let chain = devices::chain_of_number(root, &mounts, device);
    let Some(top) = chain.first().filter(|_| mount.number == on) else {
        let kind = mount.kind.clone();
        return Err(FreeSpaceError::NoDevice { path: path.to_owned(), kind });
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let file = rustix::fs::open(&mount.mount_point, flags, Mode::empty());
    let file = File::from(file.map_err(|errno| fail(errno.into()))?);
    let space = rustix::fs::fstatvfs(&file).map_err(|errno| fail(errno.into()))?;
    let extents = free_extents(&file, &mut of_number(device)).map_err(|error| match error {
        Listing::TooMany => FreeSpaceError::TooMany { path: path.to_owned() },
        Listing::Refused(source) => {
            let kind = mount.kind.clone();
            FreeSpaceError::Unlisted { path: path.to_owned(), kind, source }
        }
    })?;
    let backing = chain.iter().find_map(|device| backing_bytes(root, &device.name));
    Ok(FreeExtents {
        mount_point: mount.mount_point.clone(),
        kind: mount.kind.clone(),
        device: Path::new("/dev").join(top.name.replace('!', "/")),
        block_bytes: space.f_frsize.max(512),
        extents: tidied(extents, space.f_frsize.max(512), top.size_bytes),
        mounted_with_discard: Mount::has_option(mount, "discard"),
        discards: chain.iter().filter_map(|device| discards(root, &device.name)).collect(),
        backing_bytes: backing,
    })
}

fn discards(root: &Path, name: &str) -> Option<Discards> {
    let directory = devices::directory(root, name)?;
    // A partition has the queue of its disk.
    let queues = [directory.join("queue"), directory.parent()?.join("queue")];
    let queue = queues.iter().find(|queue| number(&queue.join("discard_max_bytes")).is_some())?;
    Some(Discards {
        name: name.to_owned(),
        max_bytes: number(&queue.join("discard_max_bytes"))?,
        granularity_bytes: number(&queue.join("discard_granularity")).unwrap_or_default(),
    })
}

fn backing_bytes(root: &Path, name: &str) -> Option<(u64, u64)> {
    let file = devices::directory(root, name)?.join("loop/backing_file");
    let file = path::look(&under(root, crate::proc::text(&file)?)).ok()?;
    file.is_file().then(|| (file.len(), file.blocks() * 512))
}

/// Sorts extents, removes what overlaps or lies beyond the device, and cuts them to whole blocks.
fn tidied(mut extents: Vec<Range<u64>>, block_bytes: u64, size_bytes: u64) -> Vec<Range<u64>> {
    extents.sort_unstable_by_key(|extent| (extent.start, extent.end));
    let mut before = 0;
    extents.retain_mut(|extent| {
        extent.start = extent.start.max(before).next_multiple_of(block_bytes);
        extent.end = extent.end.min(size_bytes) / block_bytes * block_bytes;
        before = before.max(extent.end);
        extent.start < extent.end
    });
    extents
}

/// `struct fsmap` (linux/fsmap.h).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

const PAGE_RECORDS: usize = 256;

/// `struct fsmap_head` with room for one page of records.
#[repr(C)]
struct Request {
    iflags: u32,
    oflags: u32,
    count: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [Record; 2],
    records: [Record; PAGE_RECORDS],
}

/// `_IOWR('X', 59, struct fsmap_head)`, the same on x86-64 and aarch64.
const FS_IOC_GETFSMAP: libc::Ioctl = 0xC0C0_583B_u32 as libc::Ioctl;
/// The owner is one of the special ones, not an inode.
const SPECIAL_OWNER: u32 = 0x10;
const LAST: u32 = 0x20;
const OWNER_FREE: u64 = 1;

enum Listing {
    Refused(io::Error),
    TooMany,
}

/// Tells the device of the data from that of a log: the number is encoded as stat(2) does, or as
/// the kernel does inside.
fn of_number((major, minor): (u32, u32)) -> impl FnMut(u32) -> bool {
    let new = (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12);
    let inside = (major << 20) | minor;
    move |device| device == new || device == inside
}

fn free_extents(
    file: &File,
    is_data: &mut dyn FnMut(u32) -> bool,
) -> Result<Vec<Range<u64>>, Listing> {
    let last_key = Record {
        device: u32::MAX,
        flags: u32::MAX,
        physical: u64::MAX,
        owner: u64::MAX,
        offset: u64::MAX,
        ..Record::default()
    };
    let mut request = Box::new(Request {
        iflags: 0,
        oflags: 0,
        count: PAGE_RECORDS as u32,
        entries: 0,
        reserved: [0; 6],
        keys: [Record::default(), last_key],
        records: [Record::default(); PAGE_RECORDS],
    });
    let mut extents = Vec::new();
    loop {
        request.entries = 0;
        // SAFETY: the pointer is to a `struct fsmap_head` with room for `count` records, and the
        // kernel writes no more than those.
        if unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETFSMAP, &raw mut *request) } < 0 {
            return Err(Listing::Refused(io::Error::last_os_error()));
        }
        let page = &request.records[..(request.entries as usize).min(PAGE_RECORDS)];
        for record in page {
            let is_free = record.flags & SPECIAL_OWNER != 0 && record.owner == OWNER_FREE;
            if is_free && is_data(record.device) {
                let end = record.physical.saturating_add(record.length);
                extents.push(record.physical..end);
            }
        }
        if extents.len() > EXTENTS_MAX {
            return Err(Listing::TooMany);
        }
        let key = |record: &Record| (record.device, record.physical, record.owner, record.offset);
        match page.last() {
            // The next request begins after the last record; one that does not come after the key
            // before would never end.
            Some(last) if last.flags & LAST == 0 && key(last) >= key(&request.keys[0]) => {
                request.keys[0] = *last;
            }
            _ => return Ok(extents),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use blockstone_base::Bytes;
    use blockstone_testkit::{Caps, DeviceSpec, FileSystem, LoopDevice, require};

    use super::*;

    #[test]
    fn extents_are_cut_to_blocks_of_the_device_and_do_not_overlap() {
        let extents = vec![8192..12_288, 0..100, 4096..9000, 1 << 40..1 << 41, 60_000..u64::MAX];
        assert_eq!(tidied(extents, 4096, 70_000), [4096..8192, 8192..12_288, 61_440..69_632]);
        assert!(tidied(vec![0..0, 7..7], 4096, 1 << 30).is_empty());
    }

    #[test]
    fn a_file_system_lists_what_it_says_is_free() {
        require!(Root, Loop);
        for (file_system, size) in [(FileSystem::Ext4, 64), (FileSystem::Xfs, 320)] {
            let (size, caps) = (Bytes::mib(size), Caps::default());
            let spec = DeviceSpec { size, file_system: Some(file_system), caps };
            let device = LoopDevice::create(spec).unwrap();
            let mount_point = device.mount_point().unwrap();
            fs::write(mount_point.join("file"), vec![7; 8 << 20]).unwrap();
            File::open(mount_point.join("file")).unwrap().sync_all().unwrap();
            for path in [mount_point.as_path(), device.device()] {
                let free = of(Path::new("/"), path).unwrap();
                assert_eq!(
                    (&free.mount_point, free.device.as_path()),
                    (&mount_point, device.device())
                );
                let listed: u64 = free.extents.iter().map(|extent| extent.end - extent.start).sum();
                let space = rustix::fs::statvfs(&mount_point).unwrap();
                let said = space.f_bfree * space.f_frsize;
                // A file system keeps some free blocks for itself, and says less.
                let apart = listed.abs_diff(said) as f64 / said as f64;
                assert!(apart < 0.1, "{file_system:?}: {listed}, {said}");
                assert_eq!(
                    free.discards[0].name,
                    free.device.file_name().unwrap().to_str().unwrap()
                );
                let (bytes, allocated) = free.backing_bytes.unwrap();
                assert!(bytes == size.0 && allocated >= 8 << 20, "{allocated}");
            }
        }
        let refused = of(Path::new("/"), Path::new("/proc")).unwrap_err();
        assert!(matches!(refused, FreeSpaceError::NoDevice { .. }), "{refused}");
    }
}
