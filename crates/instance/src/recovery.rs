//! Recovery: brings the blocks to the state that the redo describes, from the last checkpoint on.
//!
//! 1. **Torn blocks** are restored from the double-write area, in place, and so are those that may
//!    only look whole because a flush of them failed. The area is not written before all of them
//!    are durable, and a copy counts only if the redo from the checkpoint on makes it current: its
//!    SCN is after the checkpoint.
//! 2. **The redo is replayed.** A change applies to a block that has seen it already, or to exactly
//!    the version before, with the old values that the redo holds. Any other block has lost a
//!    write; another mirror may still have it.
//! 3. **Every block that the redo names is written again**, even if the copy that was read is up to
//!    date: its mirror may not be, and a write that an earlier process was told is durable may only
//!    be in a cache. These writes go through the double-write area, unless blocks are not
//!    protected.
//! 4. **The end** is where no chunk follows. A chunk in flight at the crash may be torn; one that
//!    is damaged while later redo is intact had been acknowledged, and so had those after it. The
//!    last chunk may be on some mirrors only: it is restored on all of them before blocks are
//!    written that depend on it.
//!
//! Recovery can be repeated as often as it is interrupted, because a record changes only a block
//! that has not seen it, and positions are never used twice. Damage that has lost commits aborts it
//! before the checkpoint moves, unless the caller accepts the loss.

mod reader;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use blockstone_sys::buffer::{Arena, Slot};
use blockstone_sys::clock;

use crate::block;
use crate::control::Control;
use crate::error::InstanceError;
use crate::files::{BATCH_BLOCKS, Files};
use crate::group::{BatchWrite, GroupError, GroupFile};
use crate::planted::{Planted, planted};
use crate::redo::buffer::{Logs, Mark, RedoAddress};
use crate::redo::{Change, Lsn, Record, records};
use crate::spec::TornProtection;
use reader::Reader;

const MEMORY_BYTES: u64 = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    pub from: Lsn,
    pub to: Lsn,
    /// Number of records after the checkpoint.
    pub records: u64,
    /// Number of commits among them.
    pub commits: u64,
    pub blocks_written: u64,
    /// Number of torn blocks restored from the double-write area.
    pub blocks_restored: u64,
    /// Blocks that the redo changes and of which no whole copy is left. They stay as they are, and
    /// every read of them fails.
    pub damaged: Vec<u64>,
    /// Blocks that have lost a durable write, so that the redo does not fit them. They stay as they
    /// are. Only if the loss was accepted.
    pub stale: Vec<u64>,
    /// Redo after a damaged part; it was not replayed. Present only if the loss was accepted.
    pub lost: Option<LostRedo>,
    /// Number of the last commit that was found for each session.
    pub last_commits: BTreeMap<u64, u64>,
    pub elapsed_ns: u64,
}

/// Redo that is out of reach because the redo before it is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostRedo {
    /// End of the last intact redo before the damage.
    pub from: Lsn,
    /// End of the last intact redo after it.
    pub to: Lsn,
    /// Commits in the intact parts of it; the damaged parts contained more.
    pub commits: u64,
}

/// Recovers, and returns where the redo continues: after everything that was ever written. Damage
/// that has lost commits is an error unless `accept_loss`.
pub(crate) fn recover(
    files: &Files,
    control: &Control,
    accept_loss: bool,
) -> Result<(Recovery, Mark), InstanceError> {
    let start_ns = clock::now_ns();
    let (identity, state) = (*control.identity(), control.state());
    // Data that survived in a cache of the device must survive the next power loss as well.
    files.data.sync()?;
    let mut replay = Replay::new(files, identity.id, state.protection, accept_loss)?;
    if state.protection != TornProtection::None && !planted(Planted::TornNotRestored) {
        replay.restore_torn(u64::from(state.writers.max(1)), state.checkpoint)?;
    }
    let logs = Logs { count: u64::from(identity.spec.redo_logs), bytes: identity.spec.redo.get() };
    let mut reader = Reader::new(files, identity.id, logs, state.mark);
    while let Some((first, bytes)) = reader.next()? {
        if replay.may_write_out(records(bytes, first).count()) {
            reader.restore_last()?;
        }
        for record in records(reader.payload(), first) {
            let (end, record) = record.map_err(|_| InstanceError::Redo { at: first })?;
            if end > state.checkpoint {
                replay.apply(end, record)?;
            }
        }
    }
    reader.restore_last()?;
    let to = reader.end();
    let unreadable = reader.unreadable();
    let lost = redo_behind_damage(&mut reader)?;
    if !accept_loss && !planted(Planted::DamageIsEnd) {
        match (lost, unreadable) {
            (Some(LostRedo { from, to, commits }), _) => {
                return Err(InstanceError::RedoDamaged { at: from, to, commits });
            }
            (None, Some(source)) => return Err(InstanceError::RedoUnreadable { at: to, source }),
            (None, None) => replay.check_stale()?,
        }
    }
    replay.write_out()?;
    if !planted(Planted::RecoveryNotSynced) {
        files.data.sync()?;
    }
    // An earlier recovery may have seen a log write that was not acknowledged and that this one
    // does not see: both its positions and its log are skipped.
    let end = reader.end().max(state.checkpoint);
    let place = RedoAddress { sequence: reader.sequence() + 2, offset: 0 };
    let recovery = Recovery {
        from: state.checkpoint,
        to,
        damaged: replay.damaged.into_iter().collect(),
        stale: replay.stale.into_keys().collect(),
        lost,
        elapsed_ns: clock::now_ns() - start_ns,
        ..replay.done
    };
    Ok((recovery, Mark { first: Lsn(end.0 + logs.bytes), place }))
}

/// Looks for intact redo after the end that the reader has reached. A chunk is written only when
/// the one before it is durable, so any redo found there proves that the end is damage.
fn redo_behind_damage(reader: &mut Reader<'_>) -> Result<Option<LostRedo>, InstanceError> {
    let from = reader.end();
    let mut lost = None;
    while reader.skip_damage()? {
        let seen = lost.get_or_insert(LostRedo { from, to: from, commits: 0 });
        while let Some((first, bytes)) = reader.next()? {
            let of_commit = |record: &Record<'_>| matches!(record, Record::Commit { .. });
            let intact = records(bytes, first).filter_map(Result::ok);
            seen.commits += intact.filter(|(_, record)| of_commit(record)).count() as u64;
        }
        seen.to = reader.end();
    }
    Ok(lost)
}

/// Result of reading the copies of some blocks.
enum Found {
    /// All blocks were accepted.
    Accepted,
    /// Some blocks have no acceptable copy.
    Refused,
    /// Some blocks have no readable copy.
    Unreadable(GroupError),
}

fn look(
    file: &GroupFile,
    offset: u64,
    out: &mut [u8],
    accepted: &dyn Fn(u64, &[u8]) -> bool,
) -> Result<Found, GroupError> {
    match file.read(offset, out, accepted) {
        Ok(_) => Ok(Found::Accepted),
        Err(GroupError::Corrupt { .. }) => Ok(Found::Refused),
        Err(error @ GroupError::Disk(_)) => Ok(Found::Unreadable(error)),
        Err(other) => Err(other),
    }
}

struct Replay<'a> {
    files: &'a Files,
    instance: u64,
    protection: TornProtection,
    slots: Vec<Slot>,
    held: HashMap<u64, usize>,
    accept_loss: bool,
    damaged: BTreeSet<u64>,
    /// Blocks that a change does not fit: the version that they have, and that of the change.
    stale: BTreeMap<u64, (u64, u64)>,
    done: Recovery,
}

impl<'a> Replay<'a> {
    fn new(
        files: &'a Files,
        instance: u64,
        protection: TornProtection,
        accept_loss: bool,
    ) -> Result<Self, InstanceError> {
        let block_bytes = files.data.block_bytes();
        let slots = (MEMORY_BYTES / block_bytes).min(files.data.size() / block_bytes);
        Ok(Self {
            files,
            instance,
            protection,
            slots: Arena::new(slots as usize, block_bytes as usize)?.into_slots(),
            held: HashMap::new(),
            accept_loss,
            damaged: BTreeSet::new(),
            stale: BTreeMap::new(),
            done: Recovery::default(),
        })
    }

    /// Repairs torn blocks of which one of `areas` parts of the double-write area has a copy that
    /// is newer than `checkpoint`: earlier writes are durable in place, and a torn one cannot be
    /// the reason that the block is damaged now. A block that is equal to its copy is written
    /// again: if a flush failed, it may be whole in a cache and torn on the disk. A block that is
    /// older than its copy stays, because the copy may be the one that is only in a cache: the copy
    /// is made durable before the block is written in place.
    fn restore_torn(&mut self, areas: u64, checkpoint: Lsn) -> Result<(), InstanceError> {
        let area = &self.files.double_write;
        let block_bytes = area.block_bytes();
        let blocks = self.files.data.size() / block_bytes;
        let mut copy = Arena::new(1, block_bytes as usize)?;
        for offset in (0..areas * BATCH_BLOCKS as u64).map(|at| at * block_bytes) {
            let copy = copy.slot(0);
            let instance = self.instance;
            let is_whole =
                |_, bytes: &[u8]| block::check(bytes, instance, block::number(bytes)).is_ok();
            if !matches!(look(area, offset, copy, &is_whole)?, Found::Accepted) {
                continue;
            }
            let number = block::number(copy);
            let stale = block::scn(copy) <= checkpoint.0 && !planted(Planted::StaleCopiesAccepted);
            if stale || number >= blocks {
                continue;
            }
            match self.held.get(&number) {
                Some(&slot) if block::scn(&self.slots[slot]) >= block::scn(copy) => {}
                Some(&slot) => self.slots[slot].copy_from_slice(copy),
                None => {
                    let slot = self.held.len();
                    let same = |bytes: &[u8]| block::scn(bytes) == block::scn(copy);
                    let rewrites = !planted(Planted::WholeNotRewritten);
                    if !(rewrites && matches!(self.look(number, slot, &same)?, Found::Accepted)) {
                        if matches!(self.look(number, slot, &|_| true)?, Found::Accepted) {
                            continue;
                        }
                        self.done.blocks_restored += 1;
                    }
                    self.slots[slot].copy_from_slice(copy);
                    self.held.insert(number, slot);
                }
            }
            if self.held.len() == self.slots.len() {
                self.write_in_place()?;
            }
        }
        self.write_in_place()?;
        Ok(self.files.data.sync()?)
    }

    /// Writes the restored blocks. Until they are durable in place, the area holds the only good
    /// copies.
    fn write_in_place(&mut self) -> Result<(), InstanceError> {
        let through = planted(Planted::RestoredThroughArea);
        self.write_with(if through { self.protection } else { TornProtection::None })
    }

    fn apply(&mut self, end: Lsn, record: Record<'_>) -> Result<(), InstanceError> {
        self.done.records += 1;
        match record {
            Record::Commit { session, number } => {
                self.done.commits += 1;
                self.done.last_commits.insert(session, number);
            }
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
                self.stale.remove(&block);
            }
            Record::Change(change) => self.change(end, &change)?,
        }
        Ok(())
    }

    fn change(&mut self, end: Lsn, change: &Change<'_>) -> Result<(), InstanceError> {
        let number = change.block;
        if self.damaged.contains(&number) || self.stale.contains_key(&number) {
            return Ok(());
        }
        let fits = |block: &[u8]| block::scn(block) >= end.0 || change.follows(block);
        let held = self.held.get(&number).copied();
        let slot = held.map_or_else(|| self.free_slot(), Ok)?;
        // A mirror that lost a write has a whole block, but an older one than the redo needs.
        if held.is_none()
            && !self.read(number, slot, &fits)?
            && !self.read(number, slot, &|_| true)?
        {
            self.damaged.insert(number);
            return Ok(());
        }
        let block = &mut self.slots[slot];
        if !fits(block) {
            self.stale.insert(number, (block::version(block), change.version));
            return Ok(());
        }
        if block::scn(block) < end.0 || planted(Planted::ScnIgnored) {
            change.apply(block, end);
        } else if held.is_none() && planted(Planted::ChangedBlocksOnly) {
            return Ok(());
        }
        self.held.insert(number, slot);
        Ok(())
    }

    /// Refuses blocks that have lost a write.
    fn check_stale(&self) -> Result<(), InstanceError> {
        match self.stale.first_key_value() {
            None => Ok(()),
            Some((&number, &(found, needed))) => {
                Err(InstanceError::Stale { blocks: self.stale.len(), number, found, needed })
            }
        }
    }

    /// Reads a block from its place; returns false if no copy is whole and accepted. A block that
    /// cannot be read at all may be readable again later, so it counts as damaged only if loss is
    /// accepted.
    fn read(
        &mut self,
        number: u64,
        slot: usize,
        accepted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<bool, InstanceError> {
        match self.look(number, slot, accepted)? {
            Found::Accepted => Ok(true),
            Found::Unreadable(error) if !self.accept_loss => Err(error.into()),
            Found::Refused | Found::Unreadable(_) => Ok(false),
        }
    }

    fn look(
        &mut self,
        number: u64,
        slot: usize,
        accepted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Found, InstanceError> {
        let instance = self.instance;
        let is_whole =
            |_, bytes: &[u8]| block::check(bytes, instance, number).is_ok() && accepted(bytes);
        let offset = number * self.files.data.block_bytes();
        Ok(look(&self.files.data, offset, &mut self.slots[slot], &is_whole)?)
    }

    /// Whether memory may run out while this many changes are applied, so that blocks must be
    /// written first.
    fn may_write_out(&self, changes: usize) -> bool {
        self.held.len() + changes > self.slots.len()
    }

    fn free_slot(&mut self) -> Result<usize, InstanceError> {
        if self.held.len() == self.slots.len() {
            self.write_out()?;
        }
        Ok(self.held.len())
    }

    /// Writes all blocks under recovery so that a torn write of them can be repaired: the redo may
    /// have no image of a block whose write an earlier process had only just completed.
    fn write_out(&mut self) -> Result<(), InstanceError> {
        self.write_with(match self.protection {
            TornProtection::None => TornProtection::None,
            TornProtection::FullPage | TornProtection::DoubleWrite => TornProtection::DoubleWrite,
        })
    }

    /// Writes all blocks under recovery, in their order on disk.
    fn write_with(&mut self, protection: TornProtection) -> Result<(), InstanceError> {
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
            self.files.write_blocks(protection, 0, &writes)?;
            self.done.blocks_written += writes.len() as u64;
        }
        Ok(())
    }
}
