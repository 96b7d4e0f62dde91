//! Where a file's bytes are stored: FIEMAP, or `SEEK_DATA` if a file system has none.
//!
//! A read of a hole, or of an extent that was allocated but never written, is answered with zeros
//! from memory. Such a read does not measure storage, so a file is checked before its reads are
//! trusted.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use blockstone_base::capability::Capability;
use blockstone_base::identity::FileMap;
use rustix::fs::SeekFrom;

/// Extents requested at a time.
const PAGE_EXTENTS: usize = 256;
/// `_IOWR('f', 11, struct fiemap)`, the same on x86-64 and aarch64.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
/// Writes dirty pages first, so that every extent has its place.
const FIEMAP_FLAG_SYNC: u32 = 1;

/// Flags of an extent (linux/fiemap.h).
mod flag {
    pub const LAST: u32 = 0x1;
    pub const UNKNOWN: u32 = 0x2;
    /// Not yet allocated.
    pub const DELALLOC: u32 = 0x4;
    /// Compressed, or stored differently from what a read returns.
    pub const ENCODED: u32 = 0x8;
    pub const ENCRYPTED: u32 = 0x80;
    pub const INLINE: u32 = 0x200;
    /// Packed with the ends of other files.
    pub const TAIL: u32 = 0x400;
    /// Allocated, never written.
    pub const UNWRITTEN: u32 = 0x800;
    pub const SHARED: u32 = 0x2000;
}

/// One extent of `struct fiemap`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with room for one page of extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; PAGE_EXTENTS],
}

/// Returns how `file` is laid out on its device. Dirty pages are written out first; a block device
/// is one written extent. The file's cursor is moved and restored, so nothing else may seek in it
/// meanwhile. Fails when the file can be neither mapped nor searched for holes.
pub fn map(file: &File) -> io::Result<FileMap> {
    let metadata = file.metadata()?;
    if metadata.file_type().is_block_device() {
        let size = rustix::fs::seek(file, SeekFrom::End(0))?;
        rustix::fs::seek(file, SeekFrom::Start(0))?;
        let whole = Extent { length: size, flags: flag::LAST, ..Extent::default() };
        return Ok(summarise(size, size, &[whole], Capability::Full));
    }
    let (size, allocated) = (metadata.len(), metadata.blocks() * 512);
    let map = match extents(file) {
        Ok(extents) => summarise(size, allocated, &extents, Capability::Full),
        Err(error) if unsupported(&error) => {
            let why = format!(
                "FIEMAP: {error}; holes are known from SEEK_DATA only, and allocated but \
                 unwritten extents not at all"
            );
            let data = data_ranges(file)?;
            summarise(size, allocated, &data, Capability::degraded(why))
        }
        Err(error) => return Err(error),
    };
    Ok(FileMap { attributes: attributes(file), ..map })
}

/// Attributes of an inode (linux/fs.h) that affect how its I/O is done.
const ATTRIBUTES: [(u32, &str); 5] = [
    (0x4, "compressed"),
    (0x4000, "journal-data"),
    (0x0010_0000, "verity"),
    (0x0080_0000, "no-copy-on-write"),
    (0x1000_0000, "inline-data"),
];

/// Returns the attributes set on `file`; `None` if the file system has no attributes.
fn attributes(file: &File) -> Option<Vec<String>> {
    let flags = rustix::fs::ioctl_getflags(file).ok()?.bits();
    let set = ATTRIBUTES.iter().filter(|(flag, _)| flags & flag != 0);
    Some(set.map(|(_, name)| (*name).to_owned()).collect())
}

fn unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL))
}

fn extents(file: &File) -> io::Result<Vec<Extent>> {
    let mut all = Vec::new();
    let mut request = Request {
        start: 0,
        length: u64::MAX,
        flags: FIEMAP_FLAG_SYNC,
        mapped_extents: 0,
        extent_count: PAGE_EXTENTS as u32,
        reserved: 0,
        extents: [Extent::default(); PAGE_EXTENTS],
    };
    loop {
        request.length = u64::MAX - request.start;
        // SAFETY: the pointer is to a `struct fiemap` with room for `extent_count` extents, and the
        // kernel writes no more than those.
        if unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let page = &request.extents[..request.mapped_extents as usize];
        all.extend_from_slice(page);
        match page.last() {
            Some(last) if last.flags & flag::LAST == 0 => {
                request.start = last.logical + last.length;
            }
            _ => return Ok(all),
        }
        // Once is enough: the pages written meanwhile are not ours.
        request.flags = 0;
    }
}

/// Returns the ranges that `SEEK_DATA` and `SEEK_HOLE` report as data, as extents without a place.
fn data_ranges(file: &File) -> io::Result<Vec<Extent>> {
    let before = rustix::fs::seek(file, SeekFrom::Current(0))?;
    let mut ranges = Vec::new();
    let mut at = 0;
    loop {
        let logical = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        at = rustix::fs::seek(file, SeekFrom::Hole(logical))?;
        ranges.push(Extent { logical, length: at - logical, ..Extent::default() });
    }
    rustix::fs::seek(file, SeekFrom::Start(before))?;
    Ok(ranges)
}

/// Adds up the extents. Mapped, unwritten and hole bytes make up the file; encoded and shared bytes
/// are a part of the mapped ones. Space allocated beyond the end does not count.
fn summarise(size: u64, allocated: u64, extents: &[Extent], fiemap: Capability) -> FileMap {
    const NO_DATA_ON_DEVICE: u32 = flag::UNWRITTEN | flag::DELALLOC | flag::UNKNOWN;
    const ENCODED: u32 = flag::ENCODED | flag::ENCRYPTED | flag::INLINE | flag::TAIL;
    let mut map = FileMap {
        size_bytes: size,
        allocated_bytes: allocated,
        extents: extents.len() as u64,
        mapped_bytes: 0,
        hole_bytes: 0,
        unwritten_bytes: 0,
        encoded_bytes: 0,
        shared_bytes: 0,
        attributes: None,
        fiemap,
    };
    for extent in extents {
        let end = (extent.logical + extent.length).min(size);
        let bytes = end.saturating_sub(extent.logical);
        let has = |flags: u32| extent.flags & flags != 0;
        // A delayed extent has no place on the device yet, and encrypted or inline data may have an
        // unknown one; only the first is not on the device.
        if has(NO_DATA_ON_DEVICE) && !has(ENCODED) {
            map.unwritten_bytes += bytes;
            continue;
        }
        map.mapped_bytes += bytes;
        map.encoded_bytes += if has(ENCODED) { bytes } else { 0 };
        map.shared_bytes += if has(flag::SHARED) { bytes } else { 0 };
    }
    map.hole_bytes = size.saturating_sub(map.mapped_bytes + map.unwritten_bytes);
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    use blockstone_base::Bytes;
    use blockstone_testkit::{DeviceSpec, FileKind, FileSystem, LoopDevice, ScratchDir, require};
    use rustix::fs::FallocateFlags;

    fn map_of(path: &Path) -> FileMap {
        map(&File::open(path).unwrap()).unwrap()
    }

    /// Mounts an ext4, so that the file system's behaviour is known.
    fn ext4() -> LoopDevice {
        let file_system = Some(FileSystem::Ext4);
        let caps = blockstone_testkit::Caps::default();
        LoopDevice::create(DeviceSpec { size: Bytes::mib(64), file_system, caps }).unwrap()
    }

    #[test]
    fn each_kind_of_file_shows_what_it_is() {
        require!(Root, Loop);
        let device = ext4();
        let size = 4 << 20;
        for (kind, mapped, hole, unwritten) in [
            (FileKind::Real, size, 0, 0),
            (FileKind::Zero, size, 0, 0),
            (FileKind::Hole, 0, size, 0),
            (FileKind::Fallocated, 0, 0, size),
        ] {
            let path = device.mount_point().unwrap().join(format!("{kind:?}"));
            kind.create(&path, Bytes(size)).unwrap();
            let map = map_of(&path);
            assert_eq!(map.fiemap, Capability::Full);
            let found = (map.mapped_bytes, map.hole_bytes, map.unwritten_bytes);
            assert_eq!(found, (mapped, hole, unwritten), "{kind:?}");
            assert_eq!(map.allocated_bytes, size - hole, "{kind:?}");
        }
    }

    #[test]
    fn hundreds_of_extents_and_one_beyond_the_end_are_added_up() {
        require!(Root, Loop);
        let device = ext4();
        let path = device.mount_point().unwrap().join("comb");
        let file = File::create_new(&path).unwrap();
        // Every second block of 4 KiB, more than two pages of extents, and a ragged end.
        for block in 0..700 {
            file.write_all_at(&[7; 4096], block * 8192).unwrap();
        }
        let size = 700 * 8192 + 100;
        file.write_all_at(&[7; 100], size - 100).unwrap();
        rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, size, 1 << 20).unwrap();
        // Nothing was synced: delayed allocation must not look like missing data.
        let map = map_of(&path);
        assert!(map.extents > 700, "{map:?}");
        assert_eq!(map.mapped_bytes, 700 * 4096 + 100);
        assert_eq!(map.hole_bytes, 700 * 4096);
        assert_eq!(map.unwritten_bytes, 0);
        assert_eq!(map.size_bytes, size);
    }

    #[test]
    fn a_file_in_memory_shows_its_holes_by_seeking() {
        require!(Tmpfs);
        let scratch = ScratchDir::in_memory().unwrap();
        let path = scratch.path().join("half");
        fs::write(&path, vec![1; 1 << 20]).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(3 << 20).unwrap();
        let map = map_of(&path);
        assert!(!map.fiemap.is_full());
        assert_eq!((map.mapped_bytes, map.hole_bytes), (1 << 20, 2 << 20));
        assert_eq!((map.allocated_bytes, map.size_bytes), (1 << 20, 3 << 20));
    }

    #[test]
    fn a_block_device_is_one_written_extent() {
        require!(Root, Loop);
        let caps = blockstone_testkit::Caps::default();
        let spec = DeviceSpec { size: Bytes::mib(8), file_system: None, caps };
        let device = LoopDevice::create(spec).unwrap();
        let map = map_of(device.device());
        assert_eq!((map.size_bytes, map.mapped_bytes, map.extents), (8 << 20, 8 << 20, 1));
        assert_eq!(map.hole_bytes, 0);
    }

    #[test]
    fn flags_decide_where_the_bytes_count() {
        let extent = |logical, flags| Extent { logical, length: 10, flags, ..Extent::default() };
        let extents = [
            extent(0, 0),
            extent(10, flag::SHARED),
            extent(20, flag::ENCODED | flag::SHARED),
            extent(30, flag::UNWRITTEN),
            extent(40, flag::DELALLOC | flag::UNKNOWN),
            extent(50, flag::INLINE | flag::UNKNOWN),
            extent(70, flag::LAST),
        ];
        let map = summarise(75, 512, &extents, Capability::Full);
        assert_eq!((map.mapped_bytes, map.unwritten_bytes, map.hole_bytes), (45, 20, 10));
        assert_eq!((map.shared_bytes, map.encoded_bytes, map.extents), (20, 20, 7));
    }
}
