//! How much of a file is in the page cache: cachestat(2), Linux 6.5.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// System call number, the same on every architecture.
const CACHESTAT: libc::c_long = 451;
/// tmpfs, ramfs and hugetlbfs, linux/magic.h.
const IN_MEMORY: [i64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
const PAGE_BYTES: u64 = 4096;
/// Size of one request to the kernel, so that the look at a large file can be abandoned in between.
const PIECE_BYTES: u64 = 1 << 30;

#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

#[repr(C)]
#[derive(Default)]
struct Pages {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Bytes of a file in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    pub cached_bytes: u64,
    /// Cached bytes that are dirty or under writeback.
    pub dirty_bytes: u64,
}

/// Result of a look at a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Cached(Cached),
    /// The file system keeps the file in memory, which is not a cache.
    InMemory,
    /// There was not enough time.
    Unfinished,
}

/// Determines how much of the first `size_bytes` of a file is in the page cache. The kernel looks
/// at every cached page, so this gives up at `until`.
pub fn look(path: &Path, size_bytes: u64, until: Instant) -> io::Result<Look> {
    // A path that was a file a moment ago could be a pipe now, which must not block us.
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    look_at(&file, size_bytes, until)
}

/// Like [`look`], for a file that this process holds open under this number, without opening it
/// once more: a process loses its locks on a file when it closes any descriptor of it. The caller
/// must ensure that the number still means the same file afterwards.
pub fn look_at_own(number: RawFd, size_bytes: u64, until: Instant) -> io::Result<Look> {
    if number < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number is only passed to fstatfs and cachestat, which read what they are asked
    // for; if another thread has closed it meanwhile, they fail or answer for another file.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    look_at(file, size_bytes, until)
}

/// Like [`look`], for an open file.
pub fn look_at(file: impl AsFd, size_bytes: u64, until: Instant) -> io::Result<Look> {
    let file = file.as_fd();
    if keeps_in_memory(file)? {
        return Ok(Look::InMemory);
    }
    let mut sum = Cached::default();
    for offset in (0..size_bytes).step_by(PIECE_BYTES as usize) {
        if offset > 0 && Instant::now() > until {
            return Ok(Look::Unfinished);
        }
        let pages = pages(file.as_raw_fd(), &Range { offset, length: PIECE_BYTES })?;
        sum.cached_bytes += pages.cached * PAGE_BYTES;
        sum.dirty_bytes += (pages.dirty + pages.writeback) * PAGE_BYTES;
    }
    Ok(Look::Cached(sum))
}

/// Returns the number of cached bytes in this part of a file.
pub fn of_part(file: impl AsFd, offset_bytes: u64, len_bytes: u64) -> io::Result<u64> {
    let range = Range { offset: offset_bytes, length: len_bytes };
    Ok(pages(file.as_fd().as_raw_fd(), &range)?.cached * PAGE_BYTES)
}

/// Like [`of_part`], for a file that is open for reading and writing, and also before Linux 6.5:
/// for other files, the kernel may report that everything is in memory. `offset_bytes` is a
/// multiple of the page size.
pub fn of_own_part(file: impl AsFd, offset_bytes: u64, len_bytes: u64) -> io::Result<u64> {
    match of_part(&file, offset_bytes, len_bytes) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            mapped_part(file, offset_bytes, len_bytes)
        }
        found => found,
    }
}

fn mapped_part(file: impl AsFd, offset_bytes: u64, len_bytes: u64) -> io::Result<u64> {
    let bytes = usize::try_from(len_bytes).map_err(io::Error::other)?;
    let mut pages = vec![0_u8; len_bytes.div_ceil(PAGE_BYTES) as usize];
    let (access, shared) = (ProtFlags::READ, MapFlags::SHARED);
    // SAFETY: the kernel chooses the address, so no other memory is replaced.
    let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, shared, file, offset_bytes)? };
    // SAFETY: the kernel writes one byte for each page of the mapping, and nothing reads from it.
    let answer = unsafe { libc::mincore(start, bytes, pages.as_mut_ptr()) };
    let found = if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: these bytes were mapped above, and no reference to them exists.
    unsafe { munmap(start, bytes)? };
    found.map(|()| pages.iter().filter(|&page| page & 1 == 1).count() as u64 * PAGE_BYTES)
}

/// Returns whether the file's file system keeps files in memory.
pub fn is_in_memory(file: &File) -> io::Result<bool> {
    keeps_in_memory(file)
}

fn keeps_in_memory(file: impl AsFd) -> io::Result<bool> {
    Ok(IN_MEMORY.contains(&rustix::fs::fstatfs(file)?.f_type))
}

fn pages(file: RawFd, range: &Range) -> io::Result<Pages> {
    let mut pages = Pages::default();
    let (from, to) = (&raw const *range, &raw mut pages);
    // SAFETY: the kernel reads `range` and writes `pages`, which have its layout and live during
    // the call; the descriptor is open.
    let answer = unsafe { libc::syscall(CACHESTAT, file, from, to.cast::<c_void>(), 0_u32) };
    if answer == 0 { Ok(pages) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use blockstone_testkit::{ScratchDir, require};

    use super::*;
    use crate::file::{Access, BlockFile};

    #[test]
    fn pages_come_and_go() {
        require!(Cachestat);
        let scratch = ScratchDir::on_disk().unwrap();
        let path = scratch.path().join("cached");
        let size_bytes = 1 << 20;
        std::fs::write(&path, vec![7; size_bytes as usize]).unwrap();
        let until = Instant::now() + Duration::from_mins(1);
        let cached = || look(&path, size_bytes, until);
        let Look::Cached(written) = cached().unwrap() else { panic!("it is on a disk") };
        assert_eq!(written.cached_bytes, size_bytes);
        let file = BlockFile::open(&path, Access::ReadWrite, false).unwrap();
        file.fsync().unwrap();
        file.drop_cached().unwrap();
        assert_eq!(cached().unwrap(), Look::Cached(Cached::default()));
        file.read_at(8192, &mut [0; 4096]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let parts = [(0, 8192), (8192, 4096), (4096, size_bytes - 4096)];
        for (offset, len) in parts {
            let found = of_part(&file, offset, len).unwrap();
            assert_eq!(mapped_part(&file, offset, len).unwrap(), found, "{offset}");
            assert_eq!(found > 0, offset > 0, "{offset}");
        }
        let look = look(&path, 1 << 40, Instant::now()).unwrap();
        assert_eq!(look, Look::Unfinished, "there is no time for a terabyte");
        let shared = Path::new("/dev/shm");
        if let Ok(file) = tempfile::NamedTempFile::new_in(shared) {
            std::fs::write(&file, "x").unwrap();
            assert_eq!(super::look(file.path(), 1, until).unwrap(), Look::InMemory);
        }
    }
}
