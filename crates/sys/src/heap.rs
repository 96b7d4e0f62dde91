//! Allocators: one that ends the program with a one-line message when there is no memory left, and
//! one that counts, for programs that check how much memory something takes.
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
use std::cell::Cell;
use std::panic;
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

use blockstone_base::units::Bytes;

static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);
static START: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(i64::MAX);

/// The limit that [`Ending`] names when memory runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Limit of the user or the machine.
    System,
    /// Limit for reading files: [`crate::memory::READING`].
    Reading,
    /// Memory that the control group had left.
    Group,
}

/// Messages of [`Ending`], by [`Limit`].
const ENDINGS: [&str; 3] = [
    "error: out of memory\n\
     hint: raise ulimit -v or the limit of the control group; read a shorter part or fewer \
     tables\n",
    "error: read the files: they need more than 480 MiB of memory\n\
     hint: name smaller files, or fewer at once\n",
    "error: read the files: they need more memory than is left\n\
     hint: raise the limit of the control group; name smaller files, or a shorter part\n",
];
static LIMIT: AtomicUsize = AtomicUsize::new(Limit::System as usize);

/// Sets the limit that is named from now on.
pub(crate) fn end_at(limit: Limit) {
    LIMIT.store(limit as usize, Relaxed);
}

/// Message of [`Ending`] when a call of [`bounded`] had asked for more than its bound.
const ENDING_BOUNDED: &str = "error: out of memory: what was read asks for more than there is\n\
    hint: check that what answers there is what it is taken for\n";

const UNBOUNDED: i64 = i64::MAX;

thread_local! {
    /// Bytes that this thread may still allocate.
    static LEFT: Cell<i64> = const { Cell::new(UNBOUNDED) };
    /// Called when the thread allocates more.
    static EXCESS: Cell<Option<*const dyn Fn()>> = const { Cell::new(None) };
    static EXCEEDED: Cell<bool> = const { Cell::new(false) };
}

/// Does `work`. As soon as it has allocated more than `most` bytes on this thread, net of what it
/// freed, `excess` is called once; `excess` must make `work` fail. Within another such call, no
/// more can be allocated than that one has left. Counts only under [`Ending`].
pub fn bounded<T>(most: Bytes, excess: &dyn Fn(), work: impl FnOnce() -> T) -> T {
    struct Restored(i64, Option<*const dyn Fn()>, bool);
    impl Drop for Restored {
        fn drop(&mut self) {
            LEFT.set(self.0);
            EXCESS.set(self.1);
            EXCEEDED.set(self.2);
        }
    }
    let most = i64::try_from(most.get()).unwrap_or(UNBOUNDED - 1).min(LEFT.get().max(0));
    #[expect(clippy::transmute_ptr_to_ptr, reason = "a cast cannot change the lifetime")]
    // SAFETY: only the lifetime changes. The pointer is removed when this function ends, however it
    // ends, and no other thread sees it.
    let excess = unsafe { std::mem::transmute::<*const (dyn Fn() + '_), *const dyn Fn()>(excess) };
    let before =
        Restored(LEFT.replace(most), EXCESS.replace(Some(excess)), EXCEEDED.replace(false));
    let done = work();
    drop(before);
    done
}

fn charge(bytes: usize) {
    let left = LEFT.get();
    if left == UNBOUNDED {
        return;
    }
    let left = left.saturating_sub_unsigned(bytes as u64);
    LEFT.set(left);
    if left < 0 {
        exceed();
    }
}

fn refund(bytes: usize) {
    let left = LEFT.get();
    if left != UNBOUNDED {
        LEFT.set(left.saturating_add_unsigned(bytes as u64).min(UNBOUNDED - 1));
    }
}

#[cold]
fn exceed() {
    // The callback may allocate.
    LEFT.set(UNBOUNDED);
    EXCEEDED.set(true);
    if let Some(excess) = EXCESS.take() {
        // SAFETY: the call of `bounded` that holds it has not ended, or it would have removed it.
        unsafe { (*excess)() };
    }
}

/// The system's allocator. If there is no memory, the program prints a message and ends with exit
/// code 2, without running any more Rust code or destructors.
#[derive(Debug)]
pub struct Ending;

/// Returns `memory`, or ends the program if it is null.
fn or_end(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end()
    }
    memory
}

fn end() -> ! {
    let ending = if EXCEEDED.get() { ENDING_BOUNDED } else { ENDINGS[LIMIT.load(Relaxed)] };
    // SAFETY: the text is valid for its length; neither call allocates.
    unsafe {
        libc::write(libc::STDERR_FILENO, ending.as_ptr().cast(), ending.len());
        libc::_exit(2)
    }
}

/// Makes threads that start from now on end the program as [`Ending`] does if they have no memory
/// for the stack of their signal handlers. The standard library maps that stack in the new thread
/// and panics if it cannot.
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

// SAFETY: memory is allocated and freed by the system's allocator, with the caller's layouts.
unsafe impl GlobalAlloc for Ending {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        charge(layout.size());
        // SAFETY: the caller's guarantees are those that the system's allocator requires.
        or_end(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        charge(layout.size());
        // SAFETY: as in `alloc`.
        or_end(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        refund(layout.size());
        // SAFETY: `memory` was returned by the system's allocator for this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        refund(layout.size());
        charge(size);
        // SAFETY: `memory` was returned by the system's allocator for this layout.
        or_end(unsafe { System.realloc(memory, layout, size) })
    }
}

/// The system's allocator, counting the bytes of all threads.
#[derive(Debug)]
pub struct Counted;

/// Starts counting at zero. An allocation fails if it would bring the bytes in use above
/// `most_bytes`.
pub fn start(most_bytes: u64) {
    let live = LIVE.load(Relaxed);
    START.store(live, Relaxed);
    PEAK.store(live, Relaxed);
    MOST.store(live.saturating_add_unsigned(most_bytes), Relaxed);
}

/// Returns the peak number of bytes in use since [`start`], not counting those in use before.
pub fn peak_bytes() -> u64 {
    u64::try_from(PEAK.load(Relaxed) - START.load(Relaxed)).unwrap_or(0)
}

/// Counts `more` bytes, and returns whether they may be allocated.
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

// SAFETY: memory is allocated and freed by the system's allocator, with the caller's layouts;
// counting does not allocate.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's guarantees are those that the system's allocator requires.
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
        // SAFETY: `memory` was returned by the system's allocator for this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() && !take(size - layout.size()) {
            return ptr::null_mut();
        }
        if size < layout.size() {
            give(layout.size() - size);
        }
        // SAFETY: `memory` was returned by the system's allocator for this layout.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocates and frees through [`Ending`], which is not the allocator of this program.
    fn takes(sizes: &[usize]) {
        let layout = |size| Layout::from_size_align(size, 1).unwrap();
        let taken = sizes.iter().map(|&size| {
            // SAFETY: the size is not zero.
            (unsafe { Ending.alloc(layout(size)) }, size)
        });
        for (memory, size) in taken.collect::<Vec<_>>() {
            // SAFETY: it was returned by this allocator, for this layout.
            unsafe { Ending.dealloc(memory, layout(size)) };
        }
    }

    #[test]
    fn more_than_the_bound_is_told_once_and_what_was_given_back_does_not_count() {
        let told = Cell::new(0);
        let tell = || told.set(told.get() + 1);
        let most = Bytes(10_000);
        bounded(most, &tell, || (0..10).for_each(|_| takes(&[4_000, 5_000])));
        assert_eq!(told.get(), 0);
        bounded(most, &tell, || {
            bounded(Bytes(100), &tell, || takes(&[101, 101]));
            assert_eq!(told.get(), 1);
            takes(&[4_000, 6_001, 100]);
        });
        assert_eq!(told.get(), 2);
        takes(&[1 << 20]);
        let panicked = panic::catch_unwind(|| bounded(most, &|| {}, || panic!("{}", "so")));
        assert!(panicked.is_err() && LEFT.get() == UNBOUNDED && EXCESS.take().is_none());
    }
}
