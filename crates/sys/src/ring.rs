//! One io_uring over files, with its own slots of memory. A thin and safe wrapper: it knows which
//! slots the kernel holds, hands out none of them, and keeps their memory if it cannot be sure that
//! the kernel has released them.

use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use blockstone_base::Capability;
use blockstone_base::hint::Hint;
use io_uring::{IoUring, opcode, squeue, types};

use crate::buffer::Arena;
use crate::clock;
use crate::file::BlockFile;

/// From linux/fs.h; the C libraries that we link against may not have it yet.
pub const RWF_DONTCACHE: i32 = 0x80;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transfer {
    #[default]
    Read,
    Write,
    /// Writes from the slot; completes when durable (`RWF_DSYNC`).
    WriteDsync,
    /// fdatasync(2); the slot's memory is not touched.
    Fdatasync,
    /// fsync(2); the slot's memory is not touched.
    Fsync,
}

/// Part of a slot's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRange {
    pub within_bytes: u32,
    pub len_bytes: u32,
    /// Whether the page cache keeps none of the pages (`RWF_DONTCACHE`, Linux 6.14).
    pub uncached: bool,
}

/// Target of a request; a sync uses only the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOffset {
    /// Index into the files.
    pub file: usize,
    /// Offset in bytes from the start of that file.
    pub offset_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingFeatures {
    /// Completions are handled on the submitting thread without interrupting it (`DEFER_TASKRUN`).
    pub deferred_completions: Capability,
    /// Files are registered once instead of looked up on each request.
    pub fixed_file: Capability,
    /// Memory is pinned once instead of on each request.
    pub fixed_buffers: Capability,
}

#[derive(Debug, thiserror::Error, Hint)]
pub enum RingError {
    #[error("set up an io_uring of {entries} entries: {source}")]
    #[hint("{}", setup_hint(source))]
    Setup { entries: u32, source: io::Error },
    /// Submitting or waiting failed as a whole, not just a single request.
    #[error("enter the io_uring of {path}: {source}")]
    #[hint("see the kernel's log (dmesg) for the cause")]
    Enter { path: String, source: io::Error },
}

/// An io_uring, its files and its slots. Belongs to the thread that created it (`SINGLE_ISSUER`).
pub struct Ring {
    uring: IoUring,
    arena: ManuallyDrop<Arena>,
    files: Vec<Arc<BlockFile>>,
    /// For each file, its index among the registered files, or its descriptor.
    fds: Vec<types::Fd>,
    entry_flags: squeue::Flags,
    features: RingFeatures,
    held: Vec<bool>,
    in_flight: usize,
    thread_bound: PhantomData<*const ()>,
}

impl Transfer {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::WriteDsync => "durable write",
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
        }
    }

    /// Returns whether it moves no data of its own.
    pub const fn is_sync(self) -> bool {
        matches!(self, Self::Fdatasync | Self::Fsync)
    }
}

impl Ring {
    /// Opens a ring over `files`, at least one, that can have every slot of `arena` in flight at
    /// the same time. Fails when the kernel provides no ring at all; missing features are recorded
    /// in [`Ring::features`].
    pub fn open(files: Vec<Arc<BlockFile>>, arena: Arena) -> Result<Self, RingError> {
        let slots = arena.slots();
        let (uring, deferred_completions) = build(slots as u32)?;
        // Best effort: saves looking up the ring itself on each enter (Linux 5.18).
        let _ = uring.submitter().register_ring_fd();
        let raw: Vec<_> = files.iter().map(AsRawFd::as_raw_fd).collect();
        let fixed_file = register(
            uring.submitter().register_files(&raw),
            "the file is looked up on each request",
        );
        // SAFETY: only requests access this memory, and it stays mapped while one may be in flight:
        // `drop` leaks it then. Otherwise `drop` unmaps it before the ring is closed, which the
        // kernel permits: it holds the pages themselves, and releases them with the ring.
        let registered = unsafe { uring.submitter().register_buffers(&[arena.as_iovec()]) };
        let fixed_buffers = register(
            registered,
            "memory is pinned on each request; raise ulimit -l (RLIMIT_MEMLOCK)",
        );
        let (fds, entry_flags) = if fixed_file.is_full() {
            let places = 0..raw.len() as i32;
            (places.map(types::Fd).collect(), squeue::Flags::FIXED_FILE)
        } else {
            (raw.into_iter().map(types::Fd).collect(), squeue::Flags::empty())
        };
        Ok(Self {
            uring,
            arena: ManuallyDrop::new(arena),
            files,
            fds,
            entry_flags,
            features: RingFeatures { deferred_completions, fixed_file, fixed_buffers },
            held: vec![false; slots],
            in_flight: 0,
            thread_bound: PhantomData,
        })
    }

    /// Returns whether io_uring is fully available here: opens a ring of one entry and closes it.
    pub fn capability() -> Capability {
        match build(1) {
            Ok((_, capability)) => capability,
            Err(error) => Capability::degraded(error.in_a_line()),
        }
    }

    /// Replaces its files with the same number of other files, while nothing is in flight.
    ///
    /// # Panics
    /// When requests are in flight, or the number of files differs.
    pub fn replace_files(&mut self, files: Vec<Arc<BlockFile>>) -> Result<(), RingError> {
        assert!(self.in_flight == 0 && files.len() == self.files.len(), "files of a ring");
        let raw: Vec<_> = files.iter().map(AsRawFd::as_raw_fd).collect();
        if self.features.fixed_file.is_full() {
            let updated = self.uring.submitter().register_files_update(0, &raw);
            updated.map_err(|source| RingError::Enter {
                path: files[0].path().display().to_string(),
                source,
            })?;
        } else {
            self.fds = raw.into_iter().map(types::Fd).collect();
        }
        self.files = files;
        Ok(())
    }

    pub fn slots(&self) -> usize {
        self.arena.slots()
    }

    pub fn features(&self) -> &RingFeatures {
        &self.features
    }

    /// Returns the memory of a slot that is not in flight.
    ///
    /// # Panics
    /// When the slot is in flight: its memory belongs to the kernel.
    #[inline]
    pub fn buffer(&mut self, slot: usize) -> &mut [u8] {
        assert!(!self.held[slot], "slot {slot} is in flight");
        self.arena.slot(slot)
    }

    /// Queues a request on `slot`; [`Ring::enter`] sends it.
    ///
    /// # Panics
    /// When the slot is already in flight, `len_bytes` is longer than a slot, or there is no such
    /// file.
    #[inline]
    pub fn push(&mut self, transfer: Transfer, slot: usize, at: FileOffset, len_bytes: u32) {
        let part = SlotRange { within_bytes: 0, len_bytes, uncached: false };
        self.push_part(transfer, slot, part, at);
    }

    /// Like [`Ring::push`], for a part of the slot's memory.
    ///
    /// # Panics
    /// When the slot is already in flight, the part extends beyond it, or there is no such file.
    #[inline]
    pub fn push_part(&mut self, transfer: Transfer, slot: usize, part: SlotRange, at: FileOffset) {
        assert!(!self.held[slot], "slot {slot} is in flight");
        let end_bytes = part.within_bytes as usize + part.len_bytes as usize;
        assert!(end_bytes <= self.arena.slot_bytes(), "{end_bytes} bytes in a slot");
        let entry =
            self.entry(transfer, slot, part, at).flags(self.entry_flags).user_data(slot as u64);
        // SAFETY: the entry points into the slot, which `held` reserves until its completion is
        // reaped, and at a file, which `self.files` keeps open.
        let pushed = unsafe { self.uring.submission().push(&entry) };
        pushed.expect("the queue has an entry for every slot");
        self.held[slot] = true;
        self.in_flight += 1;
    }

    fn entry(
        &self,
        transfer: Transfer,
        slot: usize,
        part: SlotRange,
        at: FileOffset,
    ) -> squeue::Entry {
        let (fd, offset, len) = (self.fds[at.file], at.offset_bytes, part.len_bytes);
        let buffer = self.arena.slot_ptr(slot).wrapping_add(part.within_bytes as usize);
        let fixed = self.features.fixed_buffers.is_full();
        let flags = if transfer == Transfer::WriteDsync { libc::RWF_DSYNC } else { 0 }
            | if part.uncached { RWF_DONTCACHE } else { 0 };
        match transfer {
            Transfer::Read if fixed => {
                let read = opcode::ReadFixed::new(fd, buffer, len, 0);
                read.offset(offset).rw_flags(flags).build()
            }
            Transfer::Read => {
                opcode::Read::new(fd, buffer, len).offset(offset).rw_flags(flags).build()
            }
            Transfer::Write | Transfer::WriteDsync if fixed => {
                let write = opcode::WriteFixed::new(fd, buffer, len, 0);
                write.offset(offset).rw_flags(flags).build()
            }
            Transfer::Write | Transfer::WriteDsync => {
                opcode::Write::new(fd, buffer, len).offset(offset).rw_flags(flags).build()
            }
            Transfer::Fdatasync => {
                opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build()
            }
            Transfer::Fsync => opcode::Fsync::new(fd).build(),
        }
    }

    /// Submits what was pushed and waits until `want` completions have arrived, or until the clock
    /// shows `deadline_ns`. May return early when a signal arrives.
    pub fn enter(&mut self, want: usize, deadline_ns: Option<u64>) -> Result<(), RingError> {
        let result = match deadline_ns {
            Some(deadline_ns) if want > 0 => self.enter_until(want, deadline_ns),
            _ => self.uring.submit_and_wait(want).map(drop),
        };
        match result.as_ref().map_err(io::Error::raw_os_error) {
            // Timed out, interrupted, or the kernel wants completions reaped first: the caller
            // reaps and enters again, and what was not submitted is still queued.
            Ok(()) | Err(Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY)) => Ok(()),
            Err(_) => result.map_err(|source| RingError::Enter {
                path: self.files[0].path().display().to_string(),
                source,
            }),
        }
    }

    fn enter_until(&mut self, want: usize, deadline_ns: u64) -> io::Result<()> {
        let left = || Duration::from_nanos(deadline_ns.saturating_sub(clock::now_ns()));
        if self.uring.params().is_feature_ext_arg() {
            let timeout = types::Timespec::from(left());
            let args = types::SubmitArgs::new().timespec(&timeout);
            return self.uring.submitter().submit_with_args(want, &args).map(drop);
        }
        // Linux 5.10 cannot wait with a deadline: look again every 50 µs.
        self.uring.submit()?;
        while self.uring.completion().len() < want && !left().is_zero() {
            clock::sleep_until_ns(deadline_ns.min(clock::now_ns() + 50_000));
        }
        Ok(())
    }

    /// Takes every available completion: its slot, and the bytes moved or the errno.
    #[inline]
    pub fn reap(&mut self, mut each: impl FnMut(usize, Result<u32, i32>)) {
        for completion in self.uring.completion() {
            let slot = completion.user_data() as usize;
            self.held[slot] = false;
            self.in_flight -= 1;
            let result = completion.result();
            each(slot, u32::try_from(result).map_err(|_| -result));
        }
    }

    #[inline]
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.in_flight == 0 {
            // SAFETY: dropped once, here, and no request can touch the memory any more. The ring,
            // which is closed after this, releases pages and uses no address.
            unsafe { ManuallyDrop::drop(&mut self.arena) };
        }
        // Otherwise the kernel may still write into the arena: it is leaked on purpose, because a
        // request that is stuck now could write to whatever is mapped there next.
    }
}

/// Builds the best ring that this kernel supports: first with all features, then without the
/// newest.
fn build(entries: u32) -> Result<(IoUring, Capability), RingError> {
    type Setup = fn(&mut io_uring::Builder) -> &mut io_uring::Builder;
    const CHAIN: [Setup; 4] = [
        // Linux 6.6, 6.1, 5.19, any.
        |b| b.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun().setup_no_sqarray(),
        |b| b.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun(),
        |b| b.setup_coop_taskrun(),
        |b| b,
    ];
    let mut refusal = io::Error::from_raw_os_error(libc::ENOSYS);
    for (step, setup) in CHAIN.into_iter().enumerate() {
        match setup(&mut IoUring::builder()).build(entries) {
            Ok(ring) if step < 2 => return Ok((ring, Capability::Full)),
            Ok(ring) => {
                let why =
                    "completions interrupt the submitting thread; Linux 6.1 or newer defers them";
                return Ok((ring, Capability::degraded(why)));
            }
            Err(source) => refusal = source,
        }
    }
    Err(RingError::Setup { entries, source: refusal })
}

fn register(result: io::Result<()>, consequence: &str) -> Capability {
    match result {
        Ok(()) => Capability::Full,
        Err(error) => Capability::degraded(format!("{error}: {consequence}")),
    }
}

fn setup_hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "io_uring is switched off (sysctl kernel.io_uring_disabled, or a container's seccomp \
             profile)"
        }
        Some(libc::ENOMEM) => "raise ulimit -l (RLIMIT_MEMLOCK)",
        Some(libc::ENOSYS) => "this kernel has no io_uring; use the psync engine",
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit on open files (ulimit -n)",
        _ => "use the psync engine, which does not need io_uring",
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;

    use blockstone_testkit::require;

    use super::*;

    fn ring(slots: usize) -> (tempfile::TempDir, Ring) {
        let dir = tempfile::tempdir().unwrap();
        let file = BlockFile::create_new(&dir.path().join("data"), false).unwrap();
        let ring = Ring::open(vec![Arc::new(file)], Arena::new(slots, 4096).unwrap()).unwrap();
        (dir, ring)
    }

    fn run(
        ring: &mut Ring,
        transfer: Transfer,
        slot: usize,
        offset_bytes: u64,
    ) -> Result<u32, i32> {
        ring.push(transfer, slot, FileOffset { file: 0, offset_bytes }, 4096);
        let mut out = None;
        while out.is_none() {
            ring.enter(1, None).unwrap();
            ring.reap(|done, result| {
                assert_eq!(done, slot);
                out = Some(result);
            });
        }
        out.unwrap()
    }

    #[test]
    fn every_transfer_does_what_it_says() {
        require!(Uring);
        let (_dir, mut ring) = ring(2);
        ring.buffer(0).fill(5);
        assert_eq!(run(&mut ring, Transfer::Write, 0, 4096), Ok(4096));
        assert_eq!(run(&mut ring, Transfer::WriteDsync, 0, 0), Ok(4096));
        assert_eq!(run(&mut ring, Transfer::Fdatasync, 0, 0), Ok(0));
        assert_eq!(run(&mut ring, Transfer::Fsync, 0, 0), Ok(0));
        assert_eq!(run(&mut ring, Transfer::Read, 1, 4096), Ok(4096));
        assert!(ring.buffer(1).iter().all(|&b| b == 5));
        assert_eq!(run(&mut ring, Transfer::Read, 1, 8192), Ok(0), "the end is a short read");
        assert_eq!(ring.in_flight(), 0);
    }

    #[test]
    fn parts_of_slots_go_to_files_that_replaced_others() {
        require!(Uring);
        let (dir, mut ring) = ring(2);
        let other = Arc::new(BlockFile::create_new(&dir.path().join("other"), false).unwrap());
        ring.replace_files(vec![Arc::clone(&other)]).unwrap();
        ring.buffer(0)[..3].copy_from_slice(b"abc");
        let wait = |ring: &mut Ring| {
            let mut answer = None;
            while answer.is_none() {
                ring.enter(1, None).unwrap();
                ring.reap(|_, result| answer = Some(result));
            }
            answer.unwrap()
        };
        let part = |within_bytes, len_bytes| SlotRange { within_bytes, len_bytes, uncached: false };
        ring.push_part(Transfer::Write, 0, part(1, 2), FileOffset { file: 0, offset_bytes: 7 });
        assert_eq!(wait(&mut ring), Ok(2));
        assert_eq!(std::fs::read(dir.path().join("other")).unwrap(), b"\0\0\0\0\0\0\0bc");
        ring.push_part(Transfer::Read, 1, part(4, 9), FileOffset { file: 0, offset_bytes: 6 });
        assert_eq!(wait(&mut ring), Ok(3));
        assert_eq!(ring.buffer(1)[4..7], *b"\0bc");
    }

    #[test]
    fn a_deadline_ends_the_wait() {
        require!(Uring);
        let (_dir, mut ring) = ring(1);
        let deadline_ns = clock::now_ns() + 3_000_000;
        ring.enter(1, Some(deadline_ns)).unwrap();
        assert!(clock::now_ns() >= deadline_ns);
    }

    #[test]
    fn memory_in_flight_is_out_of_reach() {
        require!(Uring);
        let (_dir, mut ring) = ring(1);
        ring.push(Transfer::Read, 0, FileOffset::default(), 4096);
        let reached = std::panic::catch_unwind(AssertUnwindSafe(|| ring.buffer(0)[0]));
        assert!(reached.is_err(), "the kernel may be writing there");
        while ring.in_flight() > 0 {
            ring.enter(1, None).unwrap();
            ring.reap(|_, _| {});
        }
        assert_eq!(ring.buffer(0)[0], 0);
    }
}
