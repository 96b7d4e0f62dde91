//! Part of a file mapped into memory, shared with all processes that map it: mmap(2).
//!
//! The kernel copies from and to it, through a pipe: a page that is unavailable, because the file
//! was truncated or its storage fails, causes an error instead of a signal.

use std::ffi::c_void;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags};

/// Amount that every pipe can hold.
const PAGE_BYTES: usize = 4096;

#[derive(Debug)]
pub struct Mapped {
    start: NonNull<c_void>,
    bytes: usize,
    pipe: (PipeReader, PipeWriter),
}

// SAFETY: the mapping belongs to this value, and an address means the same in every thread.
unsafe impl Send for Mapped {}

impl Mapped {
    /// Maps the first `bytes` of a file, without read-ahead. The error is the kernel's.
    pub fn new(file: impl AsFd, bytes: usize, writable: bool) -> io::Result<Self> {
        let pipe = io::pipe()?;
        let write = if writable { ProtFlags::WRITE } else { ProtFlags::empty() };
        let access = ProtFlags::READ | write;
        // SAFETY: the kernel chooses the address, so no other memory is replaced.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0)?
        };
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapped = Self { start, bytes, pipe };
        mapped.advise(0, bytes, Advice::Random);
        Ok(mapped)
    }

    /// Loads bytes from the mapping.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> Result<(), i32> {
        for (at, length) in self.pieces(offset, out.len())? {
            let from = self.address(at);
            // SAFETY: `length` bytes from there are in the mapping. The kernel only reads them, and
            // returns an error if there is no page.
            let moved = unsafe { libc::write(self.pipe.1.as_raw_fd(), from, length) };
            let moved = usize::try_from(moved).map_err(|_| last_errno())?;
            let out = &mut out[at - offset..at - offset + moved];
            (&self.pipe.0).read_exact(out).map_err(errno_of)?;
            if moved < length {
                return Err(libc::EFAULT);
            }
        }
        Ok(())
    }

    /// Stores bytes to the mapping.
    pub fn write(&self, offset: usize, data: &[u8]) -> Result<(), i32> {
        for (at, length) in self.pieces(offset, data.len())? {
            let data = &data[at - offset..at - offset + length];
            (&self.pipe.1).write_all(data).map_err(errno_of)?;
            let to = self.address(at);
            // SAFETY: `length` bytes from there are in the mapping, to which no reference exists.
            // The kernel returns an error if there is no page, or none that may be written to.
            let moved = unsafe { libc::read(self.pipe.0.as_raw_fd(), to, length) };
            let failed = last_errno();
            let moved = usize::try_from(moved).ok();
            let left = length - moved.unwrap_or_default();
            if left > 0 {
                let mut rest = [0; PAGE_BYTES];
                (&self.pipe.0).read_exact(&mut rest[..left]).map_err(errno_of)?;
                return Err(moved.map_or(failed, |_| libc::EFAULT));
            }
        }
        Ok(())
    }

    /// Writes out what was stored, and waits for that (msync(2)).
    pub fn sync(&self, offset: usize, bytes: usize) -> Result<(), i32> {
        let (first, length) = self.pages(offset, bytes);
        // SAFETY: the pages are in the mapping; nothing in memory changes.
        let done = unsafe { rustix::mm::msync(self.address(first), length, MsyncFlags::SYNC) };
        done.map_err(Errno::raw_os_error)
    }

    /// Drops these pages from the mapping: the next access looks them up in the page cache.
    pub fn forget(&self, offset: usize, bytes: usize) {
        let (first, length) = self.pages(offset, bytes);
        self.advise(first, length, Advice::LinuxDontNeed);
    }

    fn advise(&self, offset: usize, bytes: usize, advice: Advice) {
        // SAFETY: the range is in the mapping, to which no reference exists; the content of a
        // shared file mapping is not lost.
        let _ = unsafe { rustix::mm::madvise(self.address(offset), bytes, advice) };
    }

    /// Returns the address of a byte of the mapping, or of its end.
    fn address(&self, offset: usize) -> *mut c_void {
        self.start.as_ptr().wrapping_byte_add(offset.min(self.bytes))
    }

    /// Splits the range into parts, each within one page. Returns an error if part of it is outside
    /// the mapping.
    fn pieces(
        &self,
        offset: usize,
        bytes: usize,
    ) -> Result<impl Iterator<Item = (usize, usize)> + use<>, i32> {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.bytes);
        let end = end.ok_or(libc::EINVAL)?;
        let mut at = offset;
        Ok(std::iter::from_fn(move || {
            let next = (at + 1).next_multiple_of(PAGE_BYTES).min(end);
            let piece = (at, next - at);
            at = next;
            (piece.1 > 0).then_some(piece)
        }))
    }

    /// Returns the first byte and the length of the pages that contain this range, as far as they
    /// are mapped.
    fn pages(&self, offset: usize, bytes: usize) -> (usize, usize) {
        let first = offset.min(self.bytes) / PAGE_BYTES * PAGE_BYTES;
        let end = offset.saturating_add(bytes).min(self.bytes);
        (first, end.saturating_sub(first))
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.bytes) };
    }
}

/// A part of a file, mapped to be written elsewhere.
#[derive(Debug)]
pub struct Window {
    start: NonNull<c_void>,
    bytes: usize,
    /// Bytes of its first page before the part.
    before: usize,
}

impl Window {
    /// Maps a part of a file that is read in order.
    pub fn of(file: impl AsFd, offset: u64, bytes: usize) -> io::Result<Self> {
        let before = (offset % PAGE_BYTES as u64) as usize;
        let bytes = before + bytes;
        let (access, shared) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: the kernel chooses the address, so no other memory is replaced.
        let start = unsafe {
            let offset = offset - before as u64;
            rustix::mm::mmap(std::ptr::null_mut(), bytes, access, shared, file, offset)?
        };
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        let window = Self { start, bytes, before };
        // SAFETY: these bytes were mapped above; what is advised changes none of them.
        let _ = unsafe { rustix::mm::madvise(start.as_ptr(), bytes, Advice::Sequential) };
        Ok(window)
    }

    /// Writes the part to a place in another file, and returns how much was written. Fails with
    /// `EFAULT` if the file that is mapped has become shorter.
    pub fn send(&self, to: impl AsFd, offset: u64) -> io::Result<usize> {
        let offset = i64::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: the first page is mapped.
        let from = unsafe { self.start.as_ptr().byte_add(self.before) };
        let length = self.bytes - self.before;
        // SAFETY: `length` bytes from there are in the mapping. The kernel only reads them, and
        // returns an error if there is no page.
        let sent = unsafe { libc::pwrite(to.as_fd().as_raw_fd(), from, length, offset) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.bytes) };
    }
}

fn last_errno() -> i32 {
    errno_of(io::Error::last_os_error())
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn errno_of(error: io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_written_and_a_file_that_became_shorter_is_an_error() {
        use std::os::unix::fs::FileExt as _;
        let (file, copy) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let data: Vec<u8> = (0..20_000).map(|at| (at % 251) as u8).collect();
        file.write_all_at(&data, 0).unwrap();
        let window = Window::of(&file, 5_000, 15_000).unwrap();
        assert_eq!(window.send(&copy, 100).unwrap(), 15_000);
        let mut found = vec![0; 15_000];
        copy.read_exact_at(&mut found, 100).unwrap();
        assert!(found == data[5_000..]);
        file.set_len(4_096).unwrap();
        let error = window.send(&copy, 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    }

    #[test]
    fn what_is_stored_is_in_the_file_and_what_is_cut_off_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(16_384).unwrap();
        let mapped = Mapped::new(&file, 16_384, true).unwrap();
        let data: Vec<u8> = (0..6_000).map(|at| (at % 251) as u8).collect();
        mapped.write(3_000, &data).unwrap();
        mapped.sync(3_000, data.len()).unwrap();
        let mut found = vec![0; data.len()];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut found, 3_000).unwrap();
        assert!(found == data, "in the file");
        found.fill(0);
        mapped.forget(3_000, 6_000);
        mapped.read(3_000, &mut found).unwrap();
        assert!(found == data, "in memory");
        assert_eq!(mapped.read(16_384, &mut [0]), Err(libc::EINVAL), "behind it");

        file.set_len(4_096).unwrap();
        assert_eq!(mapped.read(4_000, &mut found), Err(libc::EFAULT));
        assert_eq!(mapped.write(4_096, &data), Err(libc::EFAULT));
        file.set_len(16_384).unwrap();
        mapped.read(4_096, &mut found).unwrap();
        assert!(found.iter().all(|&byte| byte == 0), "nothing of it comes back");
        let only_read = Mapped::new(&file, 4_096, false).unwrap();
        assert_eq!(only_read.write(0, &data[..512]), Err(libc::EFAULT));
        only_read.read(0, &mut found[..512]).unwrap();
    }
}
