//! Which direct I/O the kernel serves through its page cache, on file systems for which the answer
//! is known.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::{Path, PathBuf};
use std::process::Command;

use blockstone_base::Bytes;
use blockstone_probe::page_cache::{self, WatchedFiles};
use blockstone_probe::{Cell, Row};
use blockstone_sys::buffer::Arena;
use blockstone_sys::file::{Access, BlockFile};
use blockstone_testkit::{DeviceSpec, FileSystem, LoopDevice, require};

const IOS: u64 = 32;
const BLOCK: u64 = 4096;
const BLOCKS: u64 = 64;

struct Mounted {
    // Unmounted and removed when dropped.
    _device: LoopDevice,
    dir: PathBuf,
}

impl Mounted {
    fn new(file_system: FileSystem) -> Self {
        let size = Bytes::mib(512);
        let spec = DeviceSpec { size, file_system: Some(file_system), ..DeviceSpec::default() };
        let device = LoopDevice::create(spec).unwrap();
        let dir = device.mount_point().unwrap();
        Self { _device: device, dir }
    }

    /// Creates a file that was written and evicted.
    fn file(&self, name: &str) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::write(&path, vec![7; (BLOCKS * BLOCK) as usize]).unwrap();
        evict(&path);
        path
    }
}

fn evict(path: &Path) {
    let file = BlockFile::open(path, Access::ReadWrite, false).unwrap();
    file.fsync().unwrap();
    file.drop_cached().unwrap();
}

fn tool(program: &str, arguments: &[&str], path: &Path) {
    let status = Command::new(program).args(arguments).arg(path).output().unwrap().status;
    assert!(status.success(), "{program} {arguments:?} {}", path.display());
}

#[derive(Clone, Copy)]
enum Does {
    Reads,
    Writes,
}

/// Returns the pages that direct requests of this size added, each in a block of its own.
fn added_by(path: &Path, does: Does, bytes: usize) -> u64 {
    let file = BlockFile::open(path, Access::ReadWrite, true).unwrap();
    let files = WatchedFiles::default();
    files.watch(path);
    let mut probe = page_cache::open(&files);
    let mut arena = Arena::new(1, BLOCK as usize).unwrap();
    let buffer = &mut arena.slot(0)[..bytes];
    let before = added(probe.as_mut());
    for offset_bytes in (0..IOS).map(|block| block * BLOCK) {
        let done = match does {
            Does::Reads => file.read_at(offset_bytes, buffer),
            Does::Writes => file.write_at(offset_bytes, buffer),
        };
        assert_eq!(done, Ok(bytes));
    }
    added(probe.as_mut()) - before
}

fn added(probe: &mut dyn blockstone_probe::Probe) -> u64 {
    let mut rows = Vec::new();
    probe.sample(&mut rows);
    let [Row { cells, .. }] = rows.as_slice() else { panic!("{rows:?}") };
    let Cell::Value(pages) = cells[0] else { panic!("{:?}", probe.unmeasured()) };
    u64::try_from(pages).unwrap()
}

#[test]
fn xfs_and_ext4_add_no_page_and_xfs_does_for_a_part_of_a_shared_block() {
    require!(Bpf, Loop, Xfs);
    for file_system in [FileSystem::Ext4, FileSystem::Xfs] {
        let mounted = Mounted::new(file_system);
        let file = mounted.file("plain");
        assert_eq!(added_by(&file, Does::Reads, 4096), 0, "{file_system:?}");
        assert_eq!(added_by(&file, Does::Writes, 4096), 0, "{file_system:?}");
        assert_eq!(added_by(&file, Does::Writes, 512), 0, "{file_system:?}");
        // Another program brings the file into the cache while no request is made here.
        tool("cat", &[], &file);
        assert_eq!(added_by(&file, Does::Reads, 4096), 0, "{file_system:?}");
        if file_system == FileSystem::Xfs {
            let clone = mounted.dir.join("clone");
            tool("cp", &["--reflink=always", file.to_str().unwrap()], &clone);
            evict(&clone);
            assert!(added_by(&clone, Does::Writes, 512) >= IOS);
        }
    }
}

#[test]
fn btrfs_adds_the_pages_of_writes_with_checksums_and_of_compressed_reads() {
    require!(Bpf, Loop, Btrfs);
    let mounted = Mounted::new(FileSystem::Btrfs);
    let file = mounted.file("plain");
    assert_eq!(added_by(&file, Does::Reads, 4096), 0);
    let written = added_by(&file, Does::Writes, 4096);
    if buffers_checksums() {
        assert!(written >= IOS, "{written}");
    } else {
        assert_eq!(written, 0);
    }
    let plain = mounted.dir.join("no-checksums");
    std::fs::create_dir(&plain).unwrap();
    tool("chattr", &["+C"], &plain);
    let file = mounted.file("no-checksums/file");
    assert_eq!(added_by(&file, Does::Reads, 4096), 0);
    assert_eq!(added_by(&file, Does::Writes, 4096), 0);
    let small = mounted.dir.join("compressed");
    std::fs::create_dir(&small).unwrap();
    tool("chattr", &["+c"], &small);
    let file = mounted.file("compressed/file");
    assert!(added_by(&file, Does::Reads, 4096) >= IOS);
}

/// Whether the kernel is Linux 6.14 or later.
fn buffers_checksums() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let version = (parts.next().unwrap().unwrap(), parts.next().unwrap().unwrap());
    version >= (6, 14)
}
