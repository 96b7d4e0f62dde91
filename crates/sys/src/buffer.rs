//! I/O memory: one aligned arena per worker, cut into slots of equal size. Its pages are present
//! before the first I/O, and huge if the machine provides huge pages, so that neither a page fault
//! nor a TLB miss is measured as storage latency.

use std::alloc::Layout;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use blockstone_base::hint::Hint;
use blockstone_base::units::Bytes;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::memory::{self, Short};

/// Alignment of every slot: the strictest that direct I/O requires.
pub const SLOT_ALIGN_BYTES: usize = 4096;

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Held from the check for free memory until all of it is present: of two threads that ask, the
/// second must see what the first took.
static ASKING: Mutex<()> = Mutex::new(());

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Reserved huge pages (`vm.nr_hugepages`).
    Huge,
    /// Ordinary memory that the kernel was asked to back with transparent huge pages.
    Transparent,
    /// Ordinary pages, from the heap: the arena is smaller than a huge page.
    Ordinary,
}

/// Slots of I/O memory in one mapping or allocation, zeroed.
#[derive(Debug)]
pub struct Arena {
    mapping: NonNull<u8>,
    mapping_bytes: usize,
    base: NonNull<u8>,
    stride_bytes: usize,
    slot_bytes: usize,
    slots: usize,
    pages: Pages,
}

// SAFETY: an arena owns its mapping exclusively, as a `Vec<u8>` owns its allocation.
unsafe impl Send for Arena {}

// SAFETY: a shared reference to an arena exposes only addresses and lengths; its memory is reached
// through `&mut`, or through the slots it was cut into, each of which has one owner.
unsafe impl Sync for Arena {}

/// One slot of an arena that was cut up. It owns its memory as a `Box<[u8]>` would, is aligned for
/// direct I/O, and shares huge pages with its neighbours. The arena is freed with its last slot.
#[derive(Debug)]
pub struct Slot {
    arena: Arc<Arena>,
    index: usize,
}

impl Slot {
    /// Allocates a single slot of `bytes` bytes.
    ///
    /// # Panics
    /// When `bytes` is zero.
    pub fn new(bytes: usize) -> Result<Self, ArenaError> {
        Ok(Self { arena: Arc::new(Arena::new(1, bytes)?), index: 0 })
    }
}

impl Deref for Slot {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let start = self.arena.slot_ptr(self.index);
        // SAFETY: the slot is inside the mapping, which lives as long as `arena`; its bytes are
        // initialised, and only this `Slot` has this index, so nothing else writes to them.
        unsafe { std::slice::from_raw_parts(start, self.arena.slot_bytes) }
    }
}

impl DerefMut for Slot {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let start = self.arena.slot_ptr(self.index);
        // SAFETY: as in `deref`, and `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(start, self.arena.slot_bytes) }
    }
}

#[derive(Debug, thiserror::Error, Hint)]
pub enum ArenaError {
    #[error("map {bytes} bytes of I/O memory: {source}")]
    #[hint("use fewer workers, a lower depth or a smaller block")]
    Map { bytes: usize, source: std::io::Error },
    #[error("allocate I/O memory: {0}")]
    #[hint("ask for smaller requests or fewer at once, or raise the limit of the control group")]
    Short(#[from] Short),
}

impl Arena {
    /// Allocates an arena of `slots` slots of `slot_bytes` bytes. Fails if the control group or the
    /// machine has less memory left.
    ///
    /// # Panics
    /// When `slots` or `slot_bytes` is zero.
    pub fn new(slots: usize, slot_bytes: usize) -> Result<Self, ArenaError> {
        assert!(slots > 0 && slot_bytes > 0, "an arena has at least one slot of one byte");
        let stride_bytes = slot_bytes.next_multiple_of(SLOT_ALIGN_BYTES);
        let bytes = slots * stride_bytes;
        let rounded = bytes.next_multiple_of(HUGE_PAGE_BYTES);
        let asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
        let (mapping, mapping_bytes, pages) = if bytes < HUGE_PAGE_BYTES {
            (allocate(bytes)?, bytes, Pages::Ordinary)
        } else if let Ok(mapping) = map(rounded, MapFlags::HUGETLB | MapFlags::POPULATE) {
            (mapping, rounded, Pages::Huge)
        } else {
            // One page more than needed, so that the slots can start on a huge page.
            let padded = rounded + HUGE_PAGE_BYTES;
            memory::ask(Bytes(padded as u64))?;
            (map(padded, MapFlags::empty())?, padded, Pages::Transparent)
        };
        let base = if pages == Pages::Transparent {
            let padding = mapping.as_ptr().align_offset(HUGE_PAGE_BYTES);
            // SAFETY: the mapping is one huge page longer than the slots, so an offset below one
            // huge page stays inside it.
            unsafe { mapping.add(padding) }
        } else {
            mapping
        };
        let mut arena =
            Self { mapping, mapping_bytes, base, stride_bytes, slot_bytes, slots, pages };
        if pages == Pages::Transparent {
            arena.populate();
        }
        drop(asking);
        Ok(arena)
    }

    /// Asks for huge pages (a kernel without them ignores it) and touches every page once.
    fn populate(&mut self) {
        let bytes = self.total_bytes();
        // SAFETY: the range is inside this arena's own private mapping, and the advice changes only
        // which pages back it, never its content.
        let _ =
            unsafe { rustix::mm::madvise(self.base.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        for offset in (0..bytes).step_by(SLOT_ALIGN_BYTES) {
            // SAFETY: `offset` is inside the mapping, which no other thread has seen yet; a
            // volatile write is not removed although the memory already reads as zero.
            unsafe { self.base.as_ptr().add(offset).write_volatile(0) };
        }
    }

    pub fn slots(&self) -> usize {
        self.slots
    }

    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// Returns the memory of a slot.
    ///
    /// # Panics
    /// When there is no such slot.
    #[inline]
    pub fn slot(&mut self, slot: usize) -> &mut [u8] {
        let start = self.slot_ptr(slot);
        // SAFETY: the slot is inside the mapping, its bytes are initialised, and `&mut self` makes
        // this the only reference. `Ring` hands out no slot that the kernel may touch.
        unsafe { std::slice::from_raw_parts_mut(start, self.slot_bytes) }
    }

    /// Cuts the arena into its slots, in order, each with its own owner.
    pub fn into_slots(self) -> Vec<Slot> {
        let arena = Arc::new(self);
        (0..arena.slots).map(|index| Slot { arena: Arc::clone(&arena), index }).collect()
    }

    #[inline]
    pub(crate) fn slot_ptr(&self, slot: usize) -> *mut u8 {
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        // SAFETY: `slot` was checked, so the offset is inside the mapping.
        unsafe { self.base.as_ptr().add(slot * self.stride_bytes) }
    }

    pub(crate) fn as_iovec(&self) -> libc::iovec {
        libc::iovec { iov_base: self.base.as_ptr().cast(), iov_len: self.total_bytes() }
    }

    fn total_bytes(&self) -> usize {
        self.slots * self.stride_bytes
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let (memory, bytes) = (self.mapping.as_ptr(), self.mapping_bytes);
        if self.pages == Pages::Ordinary {
            // SAFETY: what `allocate` returned, and no reference into it outlives the arena.
            unsafe { std::alloc::dealloc(memory, layout(bytes)) };
        } else {
            // SAFETY: exactly what `map` returned, and no reference into it outlives the arena.
            let _ = unsafe { rustix::mm::munmap(memory.cast(), bytes) };
        }
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, SLOT_ALIGN_BYTES).expect("smaller than a huge page")
}

/// Allocates memory from the heap. Writing the zeros makes its pages present.
fn allocate(bytes: usize) -> Result<NonNull<u8>, ArenaError> {
    // SAFETY: the layout's size is not zero: an arena has a slot of at least one byte.
    let memory = unsafe { std::alloc::alloc_zeroed(layout(bytes)) };
    let source = std::io::ErrorKind::OutOfMemory;
    NonNull::new(memory).ok_or_else(|| ArenaError::Map { bytes, source: source.into() })
}

fn map(bytes: usize, flags: MapFlags) -> Result<NonNull<u8>, ArenaError> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private anonymous mapping at an address the kernel chooses overlaps nothing.
    let mapped = unsafe {
        rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            bytes,
            protection,
            MapFlags::PRIVATE | flags,
        )
    };
    let address = mapped.map_err(|e| ArenaError::Map { bytes, source: e.into() })?;
    Ok(NonNull::new(address.cast()).expect("the kernel never maps at address zero"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_aligned_zeroed_and_do_not_overlap() {
        for (slots, bytes) in [(1, 512), (3, 8192), (4, 1 << 20), (5, 5000)] {
            let mut arena = Arena::new(slots, bytes).unwrap();
            for slot in 0..slots {
                let memory = arena.slot(slot);
                assert_eq!(memory.len(), bytes);
                assert_eq!(memory.as_ptr() as usize % SLOT_ALIGN_BYTES, 0);
                assert!(memory.iter().all(|&b| b == 0), "slot {slot} was touched by another");
                memory.fill(u8::try_from(slot + 1).unwrap());
            }
            assert_eq!(arena.slot(0)[0], 1);
        }
    }

    #[test]
    fn slots_that_were_cut_out_have_owners_of_their_own() {
        let mut slots = Arena::new(3, 8192).unwrap().into_slots();
        let last = slots.pop().unwrap();
        std::thread::scope(|scope| {
            for (number, slot) in (1..).zip(&mut slots) {
                scope.spawn(move || slot.fill(number));
            }
        });
        assert!(slots[0].iter().all(|&b| b == 1) && slots[1].iter().all(|&b| b == 2));
        drop(slots);
        assert!(last.len() == 8192 && last.iter().all(|&b| b == 0), "it outlives its neighbours");
    }

    #[test]
    fn a_large_arena_asks_for_huge_pages() {
        let arena = Arena::new(8, 1 << 20).unwrap();
        assert_ne!(arena.pages(), Pages::Ordinary);
        assert_eq!(arena.slot_ptr(0) as usize % HUGE_PAGE_BYTES, 0);
        assert_eq!(Arena::new(1, 8192).unwrap().pages(), Pages::Ordinary);
    }

    #[test]
    #[should_panic(expected = "slot 2 of 2")]
    fn a_slot_beyond_the_arena_is_refused() {
        Arena::new(2, 512).unwrap().slot(2);
    }
}
