//! The memory through which the kernel hands over records: one control page, then a ring of bytes
//! that the kernel fills from `tail` to `head` and this side releases by moving `tail`.

use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

/// Bytes of the ring, a power of two: enough for a second at 5,000 samples a second.
const RING_BYTES: usize = 128 << 10;
/// Offsets of `data_head` and `data_tail` in the control page, `linux/perf_event.h`.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;

#[derive(Debug)]
pub struct SharedBuffer {
    mapping: NonNull<u8>,
    page_bytes: usize,
}

// SAFETY: this value alone owns the mapping, and reaches it through `&mut` only.
unsafe impl Send for SharedBuffer {}

impl SharedBuffer {
    pub fn map(event: &File) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size();
        // SAFETY: a new mapping at an address that the kernel chooses touches no memory of ours.
        let mapping = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                page_bytes + RING_BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                event,
                0,
            )
        }?;
        let mapping = NonNull::new(mapping.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { mapping, page_bytes })
    }

    /// Appends what the kernel has written since the last call to `to`, and releases its space.
    /// Returns false when head and tail are impossible: nothing is taken then, and the data is
    /// lost.
    pub fn take(&mut self, to: &mut Vec<u8>) -> bool {
        // Acquire: makes the records visible that the kernel wrote before it moved `head`.
        let head = self.position(HEAD_AT).load(Ordering::Acquire);
        // Only this side moves `tail`.
        let tail = self.position(TAIL_AT).load(Ordering::Relaxed);
        let len = head.wrapping_sub(tail);
        let fits = len <= RING_BYTES as u64;
        if fits {
            let start = tail as usize % RING_BYTES;
            let first = (len as usize).min(RING_BYTES - start);
            to.extend_from_slice(self.bytes(start, first));
            to.extend_from_slice(self.bytes(0, len as usize - first));
        }
        // Release: the kernel must not overwrite the records before they are copied.
        self.position(TAIL_AT).store(head, Ordering::Release);
        fits
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `at` is in the control page and aligned to eight bytes, as the page is; the
        // mapping lives as long as `self`, and both sides access it only atomically.
        unsafe { AtomicU64::from_ptr(self.mapping.as_ptr().add(at).cast()) }
    }

    fn bytes(&self, start: usize, len: usize) -> &[u8] {
        assert!(start + len <= RING_BYTES, "{len} bytes from {start} on");
        // SAFETY: the range is inside the mapping, after the control page. The kernel writes
        // nothing between `tail` and `head` until `tail` moves, which `take` does afterwards.
        unsafe {
            let ring = self.mapping.as_ptr().add(self.page_bytes);
            std::slice::from_raw_parts(ring.add(start), len)
        }
    }
}

impl Drop for SharedBuffer {
    fn drop(&mut self) {
        let bytes = self.page_bytes + RING_BYTES;
        // SAFETY: the mapping is this value's own, of that size, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.mapping.as_ptr().cast(), bytes) };
    }
}
