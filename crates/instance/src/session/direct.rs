//! Reads past the cache, several in flight: one thread per slot, each blocked in its read, like the
//! kernel's own asynchronous I/O for files that do not support it. Results arrive in the order of
//! submission.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};

use blockstone_sys::buffer::{Arena, Slot};
use blockstone_sys::clock;

use crate::error::InstanceError;
use crate::health::LOOK_AGAIN;
use crate::shared::Shared;

const STACK_BYTES: usize = 128 << 10;

#[derive(Debug)]
pub(super) struct DirectReader {
    slots: Vec<ReadSlot>,
    free: Vec<usize>,
    sent: VecDeque<usize>,
    bytes: usize,
}

#[derive(Debug)]
struct ReadSlot {
    orders: Option<SyncSender<Order>>,
    reads: Receiver<Done>,
    memory: Option<Slot>,
    thread: Option<JoinHandle<()>>,
}

struct Order {
    number: u64,
    bytes: u64,
    memory: Slot,
}

struct Done {
    read: DirectRead,
    result: Result<(), InstanceError>,
}

pub(super) struct DirectRead {
    slot: usize,
    bytes: u64,
    memory: Slot,
    /// Duration of the read including its check, whether or not the session waited for it.
    pub elapsed_ns: u64,
}

impl DirectReader {
    pub fn start(shared: &Arc<Shared>, bytes: usize, slots: u32) -> Result<Self, InstanceError> {
        let memory = Arena::new(slots as usize, bytes)?.into_slots();
        let mut reader = Self { slots: Vec::new(), free: Vec::new(), sent: VecDeque::new(), bytes };
        for (index, memory) in memory.into_iter().enumerate() {
            let (orders, ordered) = sync_channel::<Order>(1);
            let (done, reads) = sync_channel(1);
            let shared = Arc::clone(shared);
            let name = format!("direct-{index}");
            let work = move || serve(&shared, index, &ordered, &done);
            let thread = thread::Builder::new().name(name.clone()).stack_size(STACK_BYTES);
            let thread =
                thread.spawn(work).map_err(|source| InstanceError::Thread { name, source })?;
            reader.slots.push(ReadSlot {
                orders: Some(orders),
                reads,
                memory: Some(memory),
                thread: Some(thread),
            });
            reader.free.push(index);
        }
        Ok(reader)
    }

    /// Whether it was created for exactly these parameters.
    pub fn serves(&self, bytes: usize, slots: u32) -> bool {
        self.bytes == bytes && self.free.len() == slots as usize
    }

    pub fn has_free_slot(&self) -> bool {
        !self.free.is_empty()
    }

    /// Sends a read of `bytes` bytes from block `number` on, into a free slot.
    pub fn send(&mut self, number: u64, bytes: u64) {
        let index = self.free.pop().expect("the caller saw a free slot");
        let slot = &mut self.slots[index];
        let memory = slot.memory.take().expect("a free slot has its memory");
        let orders = slot.orders.as_ref().expect("orders are open until the end");
        // A reader thread that has ended is noticed when the result of its read is collected.
        let _ = orders.send(Order { number, bytes, memory });
        self.sent.push_back(index);
    }

    /// Returns the oldest outstanding read, if it has completed; does not wait.
    pub fn returned(&mut self) -> Result<Option<DirectRead>, InstanceError> {
        let index = *self.sent.front().expect("a read is outstanding");
        match self.slots[index].reads.try_recv() {
            Ok(done) => self.take(done).map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(InstanceError::Stopped),
        }
    }

    pub fn wait(&mut self, shared: &Shared) -> Result<DirectRead, InstanceError> {
        let index = *self.sent.front().expect("a read is outstanding");
        loop {
            match self.slots[index].reads.recv_timeout(LOOK_AGAIN) {
                Ok(done) => return self.take(done),
                Err(RecvTimeoutError::Timeout) => shared.health.check()?,
                Err(RecvTimeoutError::Disconnected) => return Err(InstanceError::Stopped),
            }
        }
    }

    fn take(&mut self, Done { read, result }: Done) -> Result<DirectRead, InstanceError> {
        self.sent.pop_front();
        result.map(|()| read)
    }

    pub fn give_back(&mut self, read: DirectRead) {
        self.slots[read.slot].memory = Some(read.memory);
        self.free.push(read.slot);
    }
}

impl DirectRead {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn blocks(&self, block_bytes: usize) -> impl Iterator<Item = &[u8]> {
        self.memory[..self.bytes as usize].chunks_exact(block_bytes)
    }
}

impl Drop for DirectReader {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            drop(slot.orders.take());
        }
        for slot in &mut self.slots {
            // Outstanding reads are completed and discarded: their memory must outlive them.
            if let Some(thread) = slot.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

fn serve(shared: &Shared, slot: usize, orders: &Receiver<Order>, done: &SyncSender<Done>) {
    while let Ok(Order { number, bytes, mut memory }) = orders.recv() {
        let start_ns = clock::now_ns();
        let result = shared.read_data(number, &mut memory[..bytes as usize]).map(drop);
        let elapsed_ns = clock::now_ns() - start_ns;
        let read = DirectRead { slot, bytes, memory, elapsed_ns };
        if done.send(Done { read, result }).is_err() {
            return;
        }
    }
}
