//! Full scans of a schema's second table, through the cache or past it.

use std::hint::black_box;

use blockstone_base::{Bytes, Nanos};
use blockstone_sys::buffer::Slot;
use blockstone_sys::usage;

use super::Session;
use super::direct::{DirectRead, DirectReader};
use crate::block;
use crate::cache::{Claim, Claimed, Found};
use crate::error::InstanceError;
use crate::wait::{Direction, Event, Statistic};

pub const SCAN_READ_MAX: Bytes = Bytes::mib(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// Through the cache, reading up to `multiblock` uncached blocks at a time.
    Cached { multiblock: u32 },
    /// Past the cache, with `slots` reads of `multiblock` blocks outstanding. A database first
    /// writes the changed blocks of the table; the scanned table here is never changed. Evaluating
    /// a row takes `row_cost` of processor time, during which reads continue.
    Direct { multiblock: u32, slots: u32, row_cost: Nanos },
}

impl Session {
    /// Visits every row of the second table of `schema`, in physical order. Returns the number of
    /// rows, which is smaller only if the session was stopped. Fails if there is no such table, a
    /// read would be longer than [`SCAN_READ_MAX`], a block cannot be read, or the instance has
    /// stopped.
    pub fn scan(&mut self, schema: u32, scan: Scan) -> Result<u64, InstanceError> {
        self.call(|session| {
            let blocks = session.shared.check_scan(schema)?;
            let first = session.shared.scan_block(schema, 0);
            let multiblock = match scan {
                Scan::Cached { multiblock } | Scan::Direct { multiblock, .. } => multiblock,
            };
            let bytes = u64::from(multiblock) * session.shared.block_bytes;
            if bytes == 0 || bytes > SCAN_READ_MAX.get() {
                let (what, bytes) = ("scan table", Bytes(bytes));
                return Err(InstanceError::Length { what, bytes, most: SCAN_READ_MAX });
            }
            match scan {
                Scan::Cached { .. } => session.scan_cached(first, blocks, multiblock),
                Scan::Direct { slots, row_cost, .. } => {
                    let size = (multiblock, slots.max(1));
                    session.scan_direct(first, blocks, size, row_cost)
                }
            }
        })
    }

    fn scan_cached(
        &mut self,
        first: u64,
        blocks: u64,
        multiblock: u32,
    ) -> Result<u64, InstanceError> {
        let bytes = multiblock as usize * self.shared.block_bytes as usize;
        let mut memory = match self.scan_memory.take() {
            Some(memory) if memory.len() >= bytes => memory,
            _ => Slot::new(bytes)?,
        };
        let (mut at, end) = (first, first + blocks);
        while at < end && !self.stopped() {
            self.shared.health.check()?;
            if let Found::Here(body) = self.shared.cache.read(at, self.waits()) {
                black_box(block::key(&body));
                self.ledger.add(Statistic::CacheHits, 1);
                at += 1;
            } else {
                at += self.read_run(at, u64::from(multiblock).min(end - at), &mut memory)?;
            }
        }
        self.ledger.add(Statistic::LogicalReads, at - first);
        self.scan_memory = Some(memory);
        Ok(at - first)
    }

    /// Reads up to `most` adjacent blocks that are not in the cache with one read; returns how
    /// many. Their frames are latched first, so that no older image can replace a newer one. The
    /// run ends at a frame that is not immediately available, so it never waits while holding
    /// latches.
    fn read_run(&self, first: u64, most: u64, memory: &mut [u8]) -> Result<u64, InstanceError> {
        let block_bytes = self.shared.block_bytes as usize;
        let mut run: Vec<Claimed<'_>> = Vec::with_capacity(most as usize);
        let mut wait = None;
        for number in first..first + most {
            match self.shared.cache.claim(number, false, self.waits()) {
                Claim::Frame(claimed) => run.push(claimed),
                Claim::Present => break,
                Claim::NoFrame(since) => {
                    wait = Some(since);
                    break;
                }
            }
        }
        if run.is_empty() {
            if let Some(since) = wait {
                self.wait_for_frame(since);
            }
            return Ok(0);
        }
        let memory = &mut memory[..run.len() * block_bytes];
        self.read_blocks(first, memory, Event::DbFileScatteredRead)?;
        self.ledger.add(Statistic::MultiblockReads, 1);
        let blocks = run.len() as u64;
        for (mut claimed, bytes) in run.into_iter().zip(memory.chunks_exact(block_bytes)) {
            black_box(block::key(bytes));
            claimed.memory().copy_from_slice(bytes);
            drop(claimed.filled());
        }
        Ok(blocks)
    }

    fn scan_direct(
        &mut self,
        first: u64,
        blocks: u64,
        (multiblock, slots): (u32, u32),
        row_cost: Nanos,
    ) -> Result<u64, InstanceError> {
        let bytes = multiblock as usize * self.shared.block_bytes as usize;
        let mut reader = self.direct_reader(bytes, slots)?;
        let (mut sent, mut done) = (0, 0);
        while done < blocks && !self.stopped() {
            self.shared.health.check()?;
            while sent < blocks && reader.has_free_slot() {
                let count = u64::from(multiblock).min(blocks - sent);
                reader.send(first + sent, count * self.shared.block_bytes);
                sent += count;
            }
            let read = self.next_direct_read(&mut reader)?;
            for bytes in read.blocks(self.shared.block_bytes as usize) {
                black_box(block::key(bytes));
                done += 1;
            }
            let count = read.bytes() / self.shared.block_bytes;
            reader.give_back(read);
            evaluate(count, row_cost);
        }
        self.ledger.add(Statistic::LogicalReads, done);
        if done == blocks {
            self.direct = Some(reader);
        }
        Ok(done)
    }

    /// Returns the session's reader for this size and number of reads.
    pub(super) fn direct_reader(
        &mut self,
        bytes: usize,
        slots: u32,
    ) -> Result<DirectReader, InstanceError> {
        match self.direct.take() {
            Some(reader) if reader.serves(bytes, slots) => Ok(reader),
            _ => DirectReader::start(&self.shared, bytes, slots),
        }
    }

    /// Returns the oldest outstanding read past the cache, and counts it.
    pub(super) fn next_direct_read(
        &self,
        reader: &mut DirectReader,
    ) -> Result<DirectRead, InstanceError> {
        let (ledger, histograms) = self.waits();
        // A database times only the wait: a read that returned while the session was busy costs it
        // nothing and is not a wait.
        let read = if let Some(read) = reader.returned()? {
            read
        } else {
            let wait = || reader.wait(&self.shared);
            ledger.timed(histograms, Event::DirectPathRead, wait).0?
        };
        ledger.moved(Direction::Read, 1, read.bytes(), read.elapsed_ns);
        ledger.read_past_cache(histograms, read.elapsed_ns);
        let blocks = read.bytes() / self.shared.block_bytes;
        ledger.add(Statistic::PhysicalReads, blocks);
        ledger.add(Statistic::DirectBlocks, blocks);
        Ok(read)
    }
}

/// Uses the processor as evaluating these rows would. Time during which the thread has no processor
/// does not count, so that sessions in excess of the processors wait for each other.
fn evaluate(rows: u64, row_cost: Nanos) {
    let cost_ns = rows.saturating_mul(row_cost.get());
    if cost_ns > 0 {
        let until_ns = usage::thread_cpu_ns() + cost_ns;
        while usage::thread_cpu_ns() < until_ns {}
    }
}
