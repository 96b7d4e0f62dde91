//! Copying the rows of one table to another, bypassing the cache and without redo, like a direct
//! path insert without logging: large reads, whole blocks filled, large writes.

use blockstone_sys::buffer::Arena;

use super::Session;
use super::scan::SCAN_READ_MAX;
use crate::block;
use crate::error::InstanceError;
use crate::group::BatchWrite;
use crate::wait::{Direction, Event, Statistic};

/// Reads in flight; the same number of blocks is written in one batch, all in flight together.
const READS: u32 = 4;

impl Session {
    /// Copies every row of `schema`, in physical order, to place `table` of its second table, which
    /// has room for whole copies one after the other. Returns the number of rows, which is smaller
    /// only if the session was stopped. The next commit writes a record even though the copy has no
    /// redo.
    ///
    /// Rows are read as they are on the disks, and the copy is not put into the cache: no row may
    /// have changed since loading, and no session may scan the second table through the cache. Not
    /// durable before [`Session::flush_tables`]. Fails if there is no room for such a copy, a block
    /// cannot be read or written, or the instance has stopped.
    pub fn copy_rows(&mut self, schema: u32, table: u32) -> Result<u64, InstanceError> {
        self.call(|session| {
            let room = session.shared.check_scan(schema)?;
            let rows = session.shared.control.identity().spec.rows;
            let at = u64::from(table).saturating_mul(rows);
            if at.saturating_add(rows) > room {
                let what = format!("copy {table} of {rows} rows in a second table of {room}");
                return Err(InstanceError::parameter(what, "create it with a larger second table"));
            }
            let second = session.shared.scan_block(schema, 0);
            let done = session.copy_blocks(second - rows, second + at, rows)?;
            session.changed |= done > 0;
            Ok(done)
        })
    }

    /// Returns once everything that sessions have written past the cache is durable.
    pub fn flush_tables(&mut self) -> Result<(), InstanceError> {
        self.call(|session| {
            session.shared.health.check()?;
            let (ledger, histograms) = session.waits();
            let sync = || session.shared.files.data.sync();
            Ok(ledger.timed(histograms, Event::DirectPathSync, sync).0?)
        })
    }

    fn copy_blocks(&mut self, from: u64, to: u64, blocks: u64) -> Result<u64, InstanceError> {
        let block_bytes = self.shared.block_bytes;
        let multiblock = SCAN_READ_MAX.get() / block_bytes;
        let bytes = (multiblock * block_bytes) as usize;
        let mut reader = self.direct_reader(bytes, READS)?;
        let mut memory = std::mem::take(&mut self.copy_memory);
        if memory.is_empty() {
            memory = Arena::new(READS as usize, bytes)?.into_slots();
        }
        let (mut sent, mut done) = (0, 0);
        while done < blocks && !self.stopped() {
            self.shared.health.check()?;
            let scn = self.shared.log.durable().0;
            let (mut filled, first) = (Vec::with_capacity(READS as usize), done);
            for slot in &mut memory {
                while sent < blocks && reader.has_free_slot() {
                    let count = multiblock.min(blocks - sent);
                    reader.send(from + sent, count * block_bytes);
                    sent += count;
                }
                if done == blocks {
                    break;
                }
                let read = self.next_direct_read(&mut reader)?;
                let taken = read.bytes() as usize;
                for (block, copy) in read
                    .blocks(block_bytes as usize)
                    .zip(slot[..taken].chunks_exact_mut(block_bytes as usize))
                {
                    copy.copy_from_slice(block);
                    block::move_to_scan(copy, to + done, scn);
                    done += 1;
                }
                reader.give_back(read);
                filled.push(taken);
            }
            let mut offset = (to + first) * block_bytes;
            let writes: Vec<BatchWrite<'_>> = filled
                .iter()
                .zip(&memory)
                .map(|(&len, slot)| {
                    let write = BatchWrite { offset, data: &slot[..len] };
                    offset += len as u64;
                    write
                })
                .collect();
            self.write_past_cache(&writes)?;
        }
        self.ledger.add(Statistic::LogicalReads, done);
        self.copy_memory = memory;
        if done == blocks {
            self.direct = Some(reader);
        }
        Ok(done)
    }

    fn write_past_cache(&self, writes: &[BatchWrite<'_>]) -> Result<(), InstanceError> {
        let shared = &*self.shared;
        let (ledger, histograms) = self.waits();
        let work = || shared.files.data.write_batch(writes);
        let info = ledger.timed(histograms, Event::DirectPathWrite, work).0?;
        let requests = info.ios.div_ceil(shared.copies);
        let service_ns = info.service_ns / info.ios.max(1) * requests;
        let bytes: u64 = writes.iter().map(|write| write.data.len() as u64).sum();
        ledger.moved(Direction::Write, requests, bytes, service_ns);
        ledger.add(Statistic::PhysicalWrites, bytes / shared.block_bytes);
        ledger.add(Statistic::WriteRequests, requests);
        Ok(())
    }
}
