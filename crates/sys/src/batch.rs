//! Many writes to many files, all in flight at the same time, from memory that the caller only
//! lends: the way a database writer cleans a buffer cache. The call returns when the kernel has
//! completed every write, so nothing is copied and nothing can change under the device.

use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};

use crate::clock;
use crate::file::BlockFile;
use crate::ring::RingError;

/// Parts that one write may gather (`UIO_MAXIOV`).
pub const PARTS_MAX: usize = 1024;

/// Pause in nanoseconds before a call that the kernel refused is repeated.
const REFUSED_PAUSE_NS: u64 = 1_000_000;

/// One write of a batch: its parts are consecutive in the file, wherever they are in memory.
#[derive(Clone, Copy, Debug)]
pub struct GatherWrite<'a> {
    pub file: &'a BlockFile,
    pub offset_bytes: u64,
    /// Data to write, at most [`PARTS_MAX`] parts, each aligned as the file requires.
    pub parts: &'a [IoSlice<'a>],
    /// Whether the write completes only when durable (`RWF_DSYNC`).
    pub durable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes written, or the errno.
    pub result: Result<u32, i32>,
    /// Nanoseconds from submission to completion.
    pub elapsed_ns: u64,
}

/// An io_uring for batches. It may be passed between threads, which use it one at a time.
pub struct BatchRing {
    uring: IoUring,
    depth: usize,
}

impl BatchRing {
    /// Opens a ring that keeps up to `depth` writes in flight. Fails when the kernel provides no
    /// ring, or one that does not work.
    ///
    /// # Panics
    /// When `depth` is zero.
    pub fn open(depth: u32) -> Result<Self, RingError> {
        let setup = |source| RingError::Setup { entries: depth, source };
        let mut coop = IoUring::builder();
        coop.setup_coop_taskrun();
        let made = coop.build(depth).or_else(|_| IoUring::builder().build(depth));
        let mut uring = made.map_err(setup)?;
        // SAFETY: a no-operation touches no memory.
        let pushed = unsafe { uring.submission().push(&opcode::Nop::new().build()) };
        pushed.expect("a new queue has room");
        uring.submit_and_wait(1).map_err(setup)?;
        uring.completion().for_each(drop);
        Ok(Self { uring, depth: depth as usize })
    }

    /// Performs `writes`, as many at a time as the ring is deep, and returns when the kernel has
    /// completed all of them. Fills `done` with their results, in the order of `writes`.
    ///
    /// # Panics
    /// When a write has more than [`PARTS_MAX`] parts.
    pub fn write(&mut self, writes: &[GatherWrite<'_>], done: &mut Vec<Written>) {
        assert!(writes.iter().all(|write| write.parts.len() <= PARTS_MAX), "parts of a write");
        let unanswered = Written { result: Err(libc::EIO), elapsed_ns: 0 };
        done.clear();
        done.resize(writes.len(), unanswered);
        let (mut pushed, mut answered) = (0, 0);
        while answered < writes.len() {
            let has_sent = self.uring.submission().is_empty();
            if has_sent && (pushed == writes.len() || pushed - answered == self.depth) {
                self.enter(1);
            } else {
                if has_sent {
                    let entry = entry(&writes[pushed]).user_data(pushed as u64);
                    // SAFETY: files and memory are borrowed for this call, which does not return,
                    // and cannot unwind from here on, before the kernel has answered for each
                    // entry; `IoSlice` is an iovec by its documentation.
                    let room = unsafe { self.uring.submission().push(&entry) }.is_ok();
                    pushed += usize::from(room);
                }
                // Submitted one by one: submitting many takes as long as many writes, and that time
                // is not latency of the first.
                done[pushed - 1].elapsed_ns = clock::now_ns();
                self.enter(0);
            }
            answered += self.reap(done);
        }
    }

    /// Completes the writes that the kernel has answered, and returns how many. Until then
    /// `elapsed_ns` holds the time of submission.
    fn reap(&mut self, done: &mut [Written]) -> usize {
        let completions = self.uring.completion();
        let answered = completions.len();
        let now_ns = if answered > 0 { clock::now_ns() } else { 0 };
        for completion in completions {
            let written = &mut done[completion.user_data() as usize];
            let result = completion.result();
            written.result = u32::try_from(result).map_err(|_| -result);
            written.elapsed_ns = now_ns.saturating_sub(written.elapsed_ns);
        }
        answered
    }

    /// Submits what is queued and waits for `want` completions. A call that the kernel refuses as a
    /// whole must be repeated: the memory is the caller's, so this cannot return before all writes
    /// have completed.
    fn enter(&mut self, want: usize) {
        match self.uring.submit_and_wait(want).as_ref().map_err(io::Error::raw_os_error) {
            Ok(_) | Err(Some(libc::EINTR)) => {}
            Err(_) => clock::sleep_until_ns(clock::now_ns() + REFUSED_PAUSE_NS),
        }
    }
}

fn entry(write: &GatherWrite<'_>) -> squeue::Entry {
    let fd = types::Fd(write.file.as_raw_fd());
    let flags = if write.durable { libc::RWF_DSYNC } else { 0 };
    let parts = write.parts.as_ptr().cast::<libc::iovec>();
    opcode::Writev::new(fd, parts, write.parts.len() as u32)
        .offset(write.offset_bytes)
        .rw_flags(flags)
        .build()
}

#[cfg(test)]
mod tests {
    use blockstone_testkit::require;

    use super::*;

    #[test]
    fn a_batch_larger_than_the_ring_reaches_every_file() {
        require!(Uring);
        let dir = tempfile::tempdir().unwrap();
        let files = ["a", "b", "c"]
            .map(|name| BlockFile::create_new(&dir.path().join(name), false).unwrap());
        let blocks: Vec<Vec<u8>> = (0..40).map(|number| vec![number; 512]).collect();
        let parts: Vec<[IoSlice<'_>; 2]> =
            blocks.chunks(2).map(|pair| [IoSlice::new(&pair[0]), IoSlice::new(&pair[1])]).collect();
        let writes: Vec<GatherWrite<'_>> = files
            .iter()
            .flat_map(|file| {
                parts.iter().enumerate().map(move |(index, parts)| GatherWrite {
                    file,
                    offset_bytes: index as u64 * 1024,
                    parts,
                    durable: index % 3 == 0,
                })
            })
            .collect();
        let mut ring = BatchRing::open(8).unwrap();
        let mut done = Vec::new();
        ring.write(&writes, &mut done);
        assert!(done.iter().all(|written| written.result == Ok(1024)));
        for file in &files {
            let mut image = vec![0; 40 * 512];
            assert_eq!(file.read_at(0, &mut image), Ok(image.len()));
            for (number, block) in image.chunks(512).enumerate() {
                assert!(block.iter().all(|&byte| usize::from(byte) == number));
            }
        }
    }

    #[test]
    fn every_write_of_a_batch_is_timed_by_itself() {
        require!(Uring);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        drop(BlockFile::create_new(&path, false).unwrap());
        // The kernel completes each write to this file during its submission.
        let file = BlockFile::open(&path, crate::file::Access::Read, false).unwrap();
        let data = [7; 512];
        let parts = [IoSlice::new(&data)];
        let write = GatherWrite { file: &file, offset_bytes: 0, parts: &parts, durable: false };
        let (mut ring, mut done) = (BatchRing::open(256).unwrap(), Vec::new());
        for writes in [2, 256, 600] {
            let before_ns = clock::now_ns();
            ring.write(&vec![write; writes], &mut done);
            let whole_ns = clock::now_ns() - before_ns;
            assert!(done.iter().all(|written| written.result == Err(libc::EBADF)));
            let sum_ns: u64 = done.iter().map(|written| written.elapsed_ns).sum();
            assert!(
                sum_ns <= whole_ns,
                "{writes} writes, each ended before the next began: {sum_ns} ns in {whole_ns} ns"
            );
        }
    }

    #[test]
    fn one_write_that_fails_does_not_harm_the_others() {
        require!(Uring);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let good = BlockFile::create_new(&path, false).unwrap();
        let bad = BlockFile::open(&path, crate::file::Access::Read, false).unwrap();
        let data = [7; 512];
        let parts = [IoSlice::new(&data)];
        let write =
            |file, offset_bytes| GatherWrite { file, offset_bytes, parts: &parts, durable: false };
        let mut done = Vec::new();
        BatchRing::open(4).unwrap().write(&[write(&bad, 0), write(&good, 512)], &mut done);
        assert_eq!(done[0].result, Err(libc::EBADF));
        assert_eq!(done[1].result, Ok(512));
    }
}
