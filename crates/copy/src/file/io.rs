//! Requests of one copy and their answers: through an io_uring, or by threads if there is none.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use blockstone_sys::account;
use blockstone_sys::buffer::{Arena, Slot};
use blockstone_sys::file::BlockFile;
use blockstone_sys::ring::{FileOffset, RWF_DONTCACHE, Ring, SlotRange, Transfer};
use blockstone_sys::thread::spawn;
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};

use crate::CopyError;

/// Index of the files of [`Io`].
pub(super) const SOURCE: usize = 0;
pub(super) const TARGET: usize = 1;

/// One of the two files, as opened for reading or writing.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub file: Arc<BlockFile>,
    /// Offsets and lengths of its requests are multiples of this.
    pub align: u64,
    pub uncached: bool,
    /// Whether pages that its reads bring into the page cache are dropped.
    pub drops: bool,
}

/// A read or a write of a part of a slot's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub slot: usize,
    pub write: bool,
    pub part: SlotRange,
    pub at: FileOffset,
}

/// The slot, and the bytes moved or the errno.
pub(super) type Answer = (usize, Result<u32, i32>);

/// Slots of memory, and requests in flight on two files.
pub(super) trait Io {
    fn slots(&self) -> usize;
    /// Returns the memory of a slot that is not in flight.
    fn buffer(&mut self, slot: usize) -> &mut [u8];
    /// Replaces the files while nothing is in flight.
    fn replace_files(&mut self, files: [Arc<BlockFile>; 2]) -> Result<(), CopyError>;
    fn push(&mut self, request: &Request);
    /// Takes the available answers, and waits for at least one if `wait`.
    fn answers(&mut self, wait: bool, into: &mut Vec<Answer>) -> Result<(), CopyError>;
    /// Returns the bytes that the kernel has read from devices for these requests; `None` if it
    /// does not say.
    fn medium_bytes(&self) -> Option<u64>;
}

impl Io for Ring {
    fn slots(&self) -> usize {
        Ring::slots(self)
    }

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.buffer(slot)
    }

    fn replace_files(&mut self, files: [Arc<BlockFile>; 2]) -> Result<(), CopyError> {
        Ok(self.replace_files(files.into())?)
    }

    fn push(&mut self, request: &Request) {
        let transfer = if request.write { Transfer::Write } else { Transfer::Read };
        self.push_part(transfer, request.slot, request.part, request.at);
    }

    fn answers(&mut self, wait: bool, into: &mut Vec<Answer>) -> Result<(), CopyError> {
        loop {
            self.enter(usize::from(wait), None)?;
            self.reap(|slot, result| into.push((slot, result)));
            if !wait || !into.is_empty() {
                return Ok(());
            }
        }
    }

    fn medium_bytes(&self) -> Option<u64> {
        let this = account::current_thread();
        // Requests that cannot be submitted without waiting are handed to kernel threads.
        let worker = format!("iou-wrk-{this}");
        let root = std::path::Path::new("/");
        let threads = account::threads(root, std::process::id());
        let workers = threads.into_iter().filter(|(_, name)| *name == worker).map(|(id, _)| id);
        sum_of(workers.chain([this]))
    }
}

fn sum_of(threads: impl Iterator<Item = u32>) -> Option<u64> {
    let root = std::path::Path::new("/");
    let of = |thread| account::account(root, std::process::id(), Some(thread))?.io;
    threads.map(|thread| Some(of(thread)?.read_bytes)).sum()
}

#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<(Slot, Request, Arc<BlockFile>)>,
    ended: bool,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    there: Condvar,
}

/// One thread per slot, each of which waits for its request.
#[derive(Debug)]
pub(super) struct Threads {
    slots: Vec<Option<Slot>>,
    files: [Arc<BlockFile>; 2],
    queue: Arc<Queue>,
    answers: Receiver<(Slot, Answer)>,
    running: Vec<(JoinHandle<()>, u32)>,
    in_flight: usize,
}

impl Threads {
    pub(super) fn start(files: [Arc<BlockFile>; 2], arena: Arena) -> Result<Self, CopyError> {
        let slots: Vec<_> = arena.into_slots().into_iter().map(Some).collect();
        let queue = Arc::new(Queue::default());
        let (answer, answers) = channel();
        let (tell, told) = channel();
        let mut this = Self { slots, files, queue, answers, running: Vec::new(), in_flight: 0 };
        for _ in 0..this.slots.len() {
            let (queue, answer, tell) = (Arc::clone(&this.queue), answer.clone(), tell.clone());
            let work = move || {
                let _ = tell.send(account::current_thread());
                serve(&queue, &answer);
            };
            let thread = spawn("copy", work).map_err(|error| CopyError::Usage {
                what: format!("no thread: {error}"),
                hint: "ask for less with --in-flight",
            })?;
            let id = told.recv().unwrap_or_default();
            this.running.push((thread, id));
        }
        Ok(this)
    }
}

fn serve(queue: &Queue, answer: &Sender<(Slot, Answer)>) {
    loop {
        let mut held = queue.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut slot, request, file) = loop {
            if let Some(next) = held.requests.pop_front() {
                break next;
            }
            if held.ended {
                return;
            }
            held = queue.there.wait(held).unwrap_or_else(PoisonError::into_inner);
        };
        drop(held);
        let result = serve_one(&mut slot, &request, &file);
        if answer.send((slot, (request.slot, result))).is_err() {
            return;
        }
    }
}

fn serve_one(slot: &mut Slot, request: &Request, file: &BlockFile) -> Result<u32, i32> {
    let SlotRange { within_bytes, len_bytes, uncached } = request.part;
    let flags = if uncached { RWF_DONTCACHE as u32 } else { 0 };
    let flags = ReadWriteFlags::from_bits_retain(flags);
    let memory = &mut slot[within_bytes as usize..][..len_bytes as usize];
    let moved = if request.write {
        pwritev2(file, &[IoSlice::new(memory)], request.at.offset_bytes, flags)
    } else {
        preadv2(file, &mut [IoSliceMut::new(memory)], request.at.offset_bytes, flags)
    };
    moved.map(|bytes| bytes as u32).map_err(Errno::raw_os_error)
}

impl Io for Threads {
    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.slots[slot].as_mut().expect("a slot that is not in flight")
    }

    fn replace_files(&mut self, files: [Arc<BlockFile>; 2]) -> Result<(), CopyError> {
        self.files = files;
        Ok(())
    }

    fn push(&mut self, request: &Request) {
        let slot = self.slots[request.slot].take().expect("a slot that is not in flight");
        let file = Arc::clone(&self.files[request.at.file]);
        let mut held = self.queue.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        held.requests.push_back((slot, *request, file));
        self.in_flight += 1;
        drop(held);
        self.queue.there.notify_one();
    }

    fn answers(&mut self, wait: bool, into: &mut Vec<Answer>) -> Result<(), CopyError> {
        while self.in_flight > 0 {
            let next = if wait && into.is_empty() {
                self.answers.recv().ok()
            } else {
                self.answers.try_recv().ok()
            };
            let Some((slot, answer)) = next else { break };
            self.slots[answer.0] = Some(slot);
            self.in_flight -= 1;
            into.push(answer);
        }
        Ok(())
    }

    fn medium_bytes(&self) -> Option<u64> {
        sum_of(self.running.iter().map(|(_, id)| *id))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.queue.waiting.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.queue.there.notify_all();
        for (thread, _) in self.running.drain(..) {
            let _ = thread.join();
        }
    }
}
