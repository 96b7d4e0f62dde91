//! The threads of a scan: they read and hash segments in any order, and compress blocks on request
//! of the counter. Segments use memory from one pool, which is returned with their last reference.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use blockstone_engine::stream::{Claim, ClaimKind, Open, Stream};
use blockstone_reduce::compress::{Compressors, Sizes};
use blockstone_reduce::counter::Wanted;
use blockstone_reduce::digest::Fingerprint;
use blockstone_reduce::grid::Grid;
use blockstone_reduce::hash::{Depth, Hashed, Hasher, SEGMENT_BYTES};
use blockstone_reduce::page::{self, Recognised};
use blockstone_sys::buffer::Slot;

use crate::error::first_line;
use crate::pending::Copied;
use crate::survey::HEAD_BYTES;

pub struct Piece {
    pub number: u64,
    /// Index of its file in the sources.
    pub source: usize,
    pub start_bytes: u64,
    /// Number of bytes expected there.
    pub expected_bytes: u64,
    pub is_last: bool,
    pub found: Result<Segment, String>,
    /// Memory that nothing was read into. It returns to the pool with this piece, so that holes and
    /// failures get no further ahead of the counter than data.
    #[expect(dead_code, reason = "it is kept only to be given back")]
    held: Option<Bytes>,
}

pub struct Segment {
    pub open: Arc<Open>,
    /// Set for a file that is read as a whole.
    pub format: Option<Recognised>,
    pub hashed: Hashed,
    /// Its bytes; `None` for a hole.
    pub bytes: Option<Arc<Bytes>>,
    pub is_hole: bool,
}

/// Bytes in memory of the pool.
pub struct Bytes {
    slot: Option<Slot>,
    len: usize,
    pool: Arc<Pool>,
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.slot.as_ref().map_or(&[], |slot| &slot[..self.len])
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.pool.lock().free.push(slot);
            self.pool.changed.notify_one();
        }
    }
}

/// Blocks to compress.
pub enum Job {
    /// Blocks within a segment, or started in the one before it.
    InPlace { wanted: Vec<Wanted>, around: Around },
    /// Blocks of segments that are no longer in memory.
    Copied(Vec<Copied>),
}

/// A segment and the one before it.
pub struct Around {
    pub before: Option<Arc<Bytes>>,
    pub start_bytes: u64,
    /// Bytes of the segment; zeros follow after its end.
    pub bytes: Option<Arc<Bytes>>,
}

pub enum Message {
    Piece(Box<Piece>),
    Compressed(Vec<Compressed>),
}

/// A compressed block: its grid, its fingerprint, and its size under each compressor.
pub type Compressed = (usize, Fingerprint, Sizes);

pub struct Pool {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    free: Vec<Slot>,
    jobs: VecDeque<Job>,
    read_all: bool,
    ended: bool,
}

impl Pool {
    pub fn new(free: Vec<Slot>) -> Arc<Self> {
        let state = State { free, jobs: VecDeque::new(), read_all: false, ended: false };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    pub fn compress(&self, job: Job) {
        self.lock().jobs.push_back(job);
        self.changed.notify_one();
    }

    /// Ends all work: workers stop after their current task.
    pub fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Work {
    pub stream: Stream,
    pub formats: Vec<Option<Recognised>>,
    pub depth: Depth,
    pub pool: Arc<Pool>,
    /// The plan's grids, and the number of compressors for the blocks of each.
    pub grids: Vec<(Grid, usize)>,
}

enum Next {
    Compress(Job),
    Read(Slot),
}

/// Works until nothing is left to do, or the receiver is gone.
pub fn work(work: &Work, mut compressors: Compressors, messages: &Sender<Message>) {
    let mut hasher = Hasher::default();
    let mut block = Vec::new();
    while let Some(next) = next(&work.pool) {
        let tell = match next {
            Next::Compress(job) => {
                Message::Compressed(compress(job, &work.grids, &mut compressors, &mut block))
            }
            Next::Read(slot) => {
                let Some(claim) = work.stream.claim() else {
                    let mut state = work.pool.lock();
                    state.free.push(slot);
                    state.read_all = true;
                    drop(state);
                    work.pool.changed.notify_all();
                    continue;
                };
                Message::Piece(Box::new(read(work, claim, slot, &mut hasher)))
            }
        };
        if messages.send(tell).is_err() {
            return;
        }
    }
}

/// Takes the next task; compression goes first because it frees memory.
fn next(pool: &Pool) -> Option<Next> {
    let mut state = pool.lock();
    loop {
        if let Some(job) = state.jobs.pop_front() {
            return Some(Next::Compress(job));
        }
        if state.ended {
            return None;
        }
        if !state.read_all
            && let Some(slot) = state.free.pop()
        {
            return Some(Next::Read(slot));
        }
        state = pool.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

fn read(work: &Work, claim: Claim, mut slot: Slot, hash: &mut Hasher) -> Piece {
    let Claim { number, source, start_bytes, len_bytes: expected_bytes, kind, is_last } = claim;
    let memory = |slot, len| Bytes { slot: Some(slot), len, pool: Arc::clone(&work.pool) };
    let (found, held) = match kind {
        ClaimKind::Failed(error) => (Err(first_line(&error)), Some(memory(slot, 0))),
        ClaimKind::Hole(open) => {
            let zeros = Hashed::Zeros(expected_bytes);
            let segment = Segment { open, format: None, hashed: zeros, bytes: None, is_hole: true };
            (Ok(segment), Some(memory(slot, 0)))
        }
        ClaimKind::Data(open) => {
            // A direct read covers whole sectors, even if the file ends between them.
            let room = (expected_bytes as usize).next_multiple_of(4096).min(SEGMENT_BYTES);
            match open.read(start_bytes, &mut slot[..room]) {
                Ok(read) => {
                    let len = read.min(expected_bytes as usize);
                    let mut format = work.formats[source];
                    if start_bytes == 0 && is_last {
                        format = page::recognise(&slot[..len.min(HEAD_BYTES)]);
                    }
                    let hashed = hash.hash(&slot[..len], format, work.depth);
                    let bytes = Some(Arc::new(memory(slot, len)));
                    (Ok(Segment { open, format, hashed, bytes, is_hole: false }), None)
                }
                Err(error) => (Err(first_line(&error)), Some(memory(slot, 0))),
            }
        }
    };
    Piece { number, source, start_bytes, expected_bytes, is_last, found, held }
}

impl Around {
    /// Returns the `len` bytes of the file from `start_bytes` on; `block` has room for those that
    /// are not all in one segment.
    pub fn block<'a>(&'a self, start_bytes: u64, len: usize, block: &'a mut Vec<u8>) -> &'a [u8] {
        let bytes = self.bytes.as_ref().map_or(&[][..], |bytes| bytes);
        let before = self.before.as_ref().map_or(&[][..], |bytes| bytes);
        if let Some(from) = start_bytes.checked_sub(self.start_bytes)
            && let Some(whole) = bytes.get(from as usize..from as usize + len)
        {
            return whole;
        }
        block.clear();
        let missing = self.start_bytes.saturating_sub(start_bytes) as usize;
        // A hole before the segment has no bytes; it counts as zeros.
        let tail = before.len().saturating_sub(missing);
        block.resize(missing.saturating_sub(before.len()).min(len), 0);
        block.extend_from_slice(&before[tail..]);
        let from = start_bytes.saturating_sub(self.start_bytes) as usize;
        let rest = bytes.get(from..).unwrap_or_default();
        block.extend_from_slice(&rest[..rest.len().min(len.saturating_sub(block.len()))]);
        block.resize(len, 0);
        block
    }
}

fn compress(
    job: Job,
    grids: &[(Grid, usize)],
    compressors: &mut Compressors,
    block: &mut Vec<u8>,
) -> Vec<Compressed> {
    match job {
        Job::InPlace { wanted, around } => {
            let sizes = |wanted: &Wanted| {
                let (grid, count) = grids[wanted.grid];
                let bytes = around.block(wanted.start_bytes, grid.block_bytes as usize, block);
                (wanted.grid, wanted.print, compressors.sizes(bytes, count))
            };
            wanted.iter().map(sizes).collect()
        }
        Job::Copied(blocks) => {
            let sizes = |(grid, print, bytes): Copied| {
                (grid, print, compressors.sizes(&bytes, grids[grid].1))
            };
            blocks.into_iter().map(sizes).collect()
        }
    }
}
