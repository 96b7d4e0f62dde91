//! Recovery: makes the blocks what the redo says they are, from the last checkpoint on.
//!
//! Every block that the redo names is written again, also when the copy that was read is up to
//! date: its mirror may not be. Recovery can be repeated as often as it is interrupted, because a
//! record changes only a block that has not seen it, and positions are never used twice.

mod reader;

use std::collections::{BTreeSet, HashMap};

use blockstone_sys::buffer::{Arena, Slot};
use blockstone_sys::clock;

use crate::block;
use crate::control::Control;
use crate::error::InstanceError;
use crate::files::{BATCH_BLOCKS, Files};
use crate::group::BatchWrite;
use crate::redo::buffer::{Logs, Mark, Place};
use crate::redo::{Lsn, Record, records};
use crate::spec::TornProtection;
use reader::Reader;

const MEMORY_BYTES: u64 = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    pub from: Lsn,
    pub to: Lsn,
    /// Records behind the checkpoint.
    pub records: u64,
    /// Commits among them.
    pub commits: u64,
    pub blocks_written: u64,
    /// Torn blocks restored from the double-write area.
    pub blocks_restored: u64,
    /// Blocks that the redo changes and of which no whole copy is left. They stay as they are and
    /// every read of them fails.
    pub damaged: Vec<u64>,
    pub elapsed_ns: u64,
}

/// Recovers, and says where the redo continues: behind everything that was ever written.
pub(crate) fn recover(files: &Files, control: &Control) -> Result<(Recovery, Mark), InstanceError> {
    let start_ns = clock::now_ns();
    let (identity, state) = (*control.identity(), control.state());
    // What survived in a cache of the device must survive the next power loss as well.
    files.data.sync()?;
    let mut replay = Replay::new(files, identity.id, state.protection)?;
    if state.protection == TornProtection::DoubleWrite {
        replay.restore_torn(u64::from(state.writers.max(1)))?;
    }
    let logs = Logs { count: u64::from(identity.spec.redo_logs), bytes: identity.spec.redo.get() };
    let mut reader = Reader::new(files, identity.id, logs, state.mark);
    while let Some((first, bytes)) = reader.next()? {
        for record in records(bytes, first) {
            let (end, record) = record.map_err(|_| InstanceError::Redo { at: first })?;
            if end > state.checkpoint {
                replay.apply(end, record)?;
            }
        }
    }
    replay.write_out()?;
    files.data.sync()?;
    let to = reader.end();
    // A log write that was not acknowledged may have been seen by an earlier recovery and not by
    // this one: both its positions and its log are passed over.
    let first = Lsn(to.0.max(state.checkpoint.0) + logs.bytes);
    let place = Place { sequence: reader.sequence() + 2, offset: 0 };
    let recovery = Recovery {
        from: state.checkpoint,
        to,
        damaged: replay.damaged.into_iter().collect(),
        elapsed_ns: clock::now_ns() - start_ns,
        ..replay.done
    };
    Ok((recovery, Mark { first, place }))
}

struct Replay<'a> {
    files: &'a Files,
    instance: u64,
    protection: TornProtection,
    slots: Vec<Slot>,
    held: HashMap<u64, usize>,
    damaged: BTreeSet<u64>,
    done: Recovery,
}

impl<'a> Replay<'a> {
    fn new(
        files: &'a Files,
        instance: u64,
        protection: TornProtection,
    ) -> Result<Self, InstanceError> {
        let block_bytes = files.data.block_bytes();
        let slots = (MEMORY_BYTES / block_bytes).min(files.data.size() / block_bytes);
        Ok(Self {
            files,
            instance,
            protection,
            slots: Arena::new(slots as usize, block_bytes as usize)?.into_slots(),
            held: HashMap::new(),
            damaged: BTreeSet::new(),
            done: Recovery::default(),
        })
    }

    /// Repairs torn blocks of which one of `areas` parts of the double-write area has a copy.
    fn restore_torn(&mut self, areas: u64) -> Result<(), InstanceError> {
        let area = &self.files.double_write;
        let block_bytes = area.block_bytes();
        let mut copy = Arena::new(1, block_bytes as usize)?;
        for offset in (0..areas * BATCH_BLOCKS as u64).map(|at| at * block_bytes) {
            let copy = copy.slot(0);
            let instance = self.instance;
            let is_whole =
                |_, bytes: &[u8]| block::check(bytes, instance, block::number(bytes)).is_ok();
            if !area.read_if_whole(offset, copy, &is_whole)? {
                continue;
            }
            let number = block::number(copy);
            match self.held.get(&number) {
                Some(&slot) if block::scn(&self.slots[slot]) >= block::scn(copy) => {}
                Some(&slot) => self.slots[slot].copy_from_slice(copy),
                None => {
                    let slot = self.free_slot()?;
                    if self.read(number, slot)? {
                        continue;
                    }
                    self.slots[slot].copy_from_slice(copy);
                    self.held.insert(number, slot);
                    self.done.blocks_restored += 1;
                }
            }
        }
        self.write_out()
    }

    fn apply(&mut self, end: Lsn, record: Record<'_>) -> Result<(), InstanceError> {
        self.done.records += 1;
        match record {
            Record::Commit { .. } => self.done.commits += 1,
            Record::Image { block, data } => {
                if data.len() as u64 != self.files.data.block_bytes() {
                    return Err(InstanceError::Redo { at: end });
                }
                let slot = match self.held.get(&block) {
                    Some(&slot) => slot,
                    None => self.free_slot()?,
                };
                self.slots[slot].copy_from_slice(data);
                self.held.insert(block, slot);
                self.damaged.remove(&block);
            }
            Record::Change(change) if !self.damaged.contains(&change.block) => {
                if let Some(slot) = self.block(change.block)?
                    && block::scn(&self.slots[slot]) < end.0
                {
                    change.apply(&mut self.slots[slot], end);
                }
            }
            Record::Change(_) => {}
        }
        Ok(())
    }

    /// The slot of a block; none when the block is damaged.
    fn block(&mut self, number: u64) -> Result<Option<usize>, InstanceError> {
        if let Some(&slot) = self.held.get(&number) {
            return Ok(Some(slot));
        }
        let slot = self.free_slot()?;
        if !self.read(number, slot)? {
            self.damaged.insert(number);
            return Ok(None);
        }
        self.held.insert(number, slot);
        Ok(Some(slot))
    }

    /// Reads a block from its place; false when no copy is whole.
    fn read(&mut self, number: u64, slot: usize) -> Result<bool, InstanceError> {
        let instance = self.instance;
        let is_whole = |_, bytes: &[u8]| block::check(bytes, instance, number).is_ok();
        let offset = number * self.files.data.block_bytes();
        Ok(self.files.data.read_if_whole(offset, &mut self.slots[slot], &is_whole)?)
    }

    fn free_slot(&mut self) -> Result<usize, InstanceError> {
        if self.held.len() == self.slots.len() {
            self.write_out()?;
        }
        Ok(self.held.len())
    }

    /// Writes all blocks under recovery, in their order on disk.
    fn write_out(&mut self) -> Result<(), InstanceError> {
        let block_bytes = self.files.data.block_bytes();
        let mut order: Vec<(u64, usize)> = self.held.drain().collect();
        order.sort_unstable();
        for batch in order.chunks(BATCH_BLOCKS) {
            for (_, slot) in batch {
                block::seal(&mut self.slots[*slot]);
            }
            let writes: Vec<BatchWrite<'_>> = batch
                .iter()
                .map(|(number, slot)| BatchWrite {
                    offset: number * block_bytes,
                    data: &self.slots[*slot],
                })
                .collect();
            self.files.write_blocks(self.protection, 0, &writes)?;
            self.done.blocks_written += writes.len() as u64;
        }
        Ok(())
    }
}
