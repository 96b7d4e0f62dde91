//! Allocators: one that ends the program with one line when there is no memory, and one that
//! counts, for programs that check how much memory something takes.
//!
//! ```
//! use blockstone_sys::heap::{self, Counted};
//!
//! #[global_allocator]
//! static HEAP: Counted = Counted;
//!
//! heap::start(1 << 30);
//! drop(vec![0_u8; 1 << 20]);
//! assert!(heap::peak_bytes() >= 1 << 20);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic;
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);
static START: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(i64::MAX);

/// Whose limit [`Ending`] names when there is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Of the user or the machine.
    System,
    /// What the files that are read may take: [`crate::memory::READING`].
    Reading,
    /// What the control group had left.
    Group,
}

/// What [`Ending`] prints, by [`Limit`].
const ENDINGS: [&str; 3] = [
    "error: out of memory\n\
     hint: raise ulimit -v or the limit of the control group; read a shorter part or fewer tables\n",
    "error: read the files: they need more than 480 MiB of memory\n\
     hint: name smaller files, or fewer at once\n",
    "error: read the files: they need more memory than is left\n\
     hint: raise the limit of the control group; name smaller files, or a shorter part\n",
];
static LIMIT: AtomicUsize = AtomicUsize::new(Limit::System as usize);

/// Says whose limit it is from now on.
pub(crate) fn end_at(limit: Limit) {
    LIMIT.store(limit as usize, Relaxed);
}

/// The system's allocator. If there is no memory, the program says so and ends with exit code 2:
/// no line of Rust and no destructor runs any more.
#[derive(Debug)]
pub struct Ending;

/// `memory`, or the end of the program if there is none.
fn or_end(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end()
    }
    memory
}

fn end() -> ! {
    let ending = ENDINGS[LIMIT.load(Relaxed)];
    // SAFETY: the text is valid for its length; neither call allocates.
    unsafe {
        libc::write(libc::STDERR_FILENO, ending.as_ptr().cast(), ending.len());
        libc::_exit(2)
    }
}

/// From now on, a thread that has no memory for the stack of its signal handlers ends the program
/// as [`Ending`] does. The standard library maps that stack in the new thread and panics without.
pub fn end_threads_without_stack() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or("");
        if text.starts_with("failed to allocate an alternative stack") {
            end();
        }
        report(info);
    }));
}

// SAFETY: memory comes from and goes to the system's allocator, with the layouts of the caller.
unsafe impl GlobalAlloc for Ending {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        or_end(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        or_end(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from the system's allocator with this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `memory` came from the system's allocator with this layout.
        or_end(unsafe { System.realloc(memory, layout, size) })
    }
}

/// The system's allocator, with the bytes of all threads counted.
#[derive(Debug)]
pub struct Counted;

/// Starts to count at zero. An allocation with which more than `most_bytes` were in use fails.
pub fn start(most_bytes: u64) {
    let live = LIVE.load(Relaxed);
    START.store(live, Relaxed);
    PEAK.store(live, Relaxed);
    MOST.store(live.saturating_add_unsigned(most_bytes), Relaxed);
}

/// The most bytes that were in use at once since [`start`], beside those in use before.
pub fn peak_bytes() -> u64 {
    u64::try_from(PEAK.load(Relaxed) - START.load(Relaxed)).unwrap_or(0)
}

/// Counts `more` bytes; whether they may be had.
fn take(more: usize) -> bool {
    let live = LIVE.fetch_add(more as i64, Relaxed).saturating_add_unsigned(more as u64);
    let granted = live <= MOST.load(Relaxed);
    if granted {
        PEAK.fetch_max(live, Relaxed);
    } else {
        give(more);
    }
    granted
}

fn give(bytes: usize) {
    LIVE.fetch_sub(bytes as i64, Relaxed);
}

// SAFETY: memory comes from and goes to the system's allocator, with the layouts of the caller;
// counting does not allocate.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return ptr::null_mut();
        }
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        give(layout.size());
        // SAFETY: `memory` came from the system's allocator with this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() && !take(size - layout.size()) {
            return ptr::null_mut();
        }
        if size < layout.size() {
            give(layout.size() - size);
        }
        // SAFETY: `memory` came from the system's allocator with this layout.
        unsafe { System.realloc(memory, layout, size) }
    }
}
