//! Data for a disk that returns: every block of a unit, from whichever copy has it intact.
//!
//! A block is intact if the verifier of its file says so. The copies of the online disks come
//! first. A returning disk's own copy counts if it is not known to have missed the block: an older
//! copy is as intact as a newer one. A block that was never written is zeros, or the data the disk
//! was laid out with. If no copy is intact, the disk's own stays as it is, unless it is known to be
//! old: then a bad copy replaces it, because otherwise it would be served as if it were the newest.

use std::ops::Range;

use blockstone_sys::buffer::Slot as Memory;

use super::damage::{BadBlock, Verifier};
use super::error::GroupError;
use super::header;
use super::map::{FileMap, UnitAddress};
use super::member::DiskState;
use super::state::Shared;
use super::units::Age;
use crate::disk::DiskError;
use crate::planted::{Planted, planted};

/// A copy of a unit, as far as it can be read.
struct Copy {
    place: UnitAddress,
    memory: Memory,
    unreadable: Vec<bool>,
    failure: Option<DiskError>,
}

impl Copy {
    fn block(&self, index: u64, range: Range<usize>) -> Option<&[u8]> {
        (!self.unreadable[index as usize]).then(|| &self.memory[range])
    }
}

/// The copies of one unit while it is copied to the disk of `to`; each is read when first needed.
pub(super) struct Gathering<'a> {
    shared: &'a Shared,
    file: &'a FileMap,
    unit: u64,
    to: UnitAddress,
    verifier: Option<Verifier>,
    /// Places on online disks; at least one.
    sources: Vec<UnitAddress>,
    copies: Vec<Copy>,
    /// Memory of previously copied units, for reuse.
    spare: &'a mut Vec<Memory>,
    /// Data that the disks of these places were laid out with.
    laid_out: Vec<Vec<u8>>,
}

/// Source of a block.
enum Choice {
    /// The copy with this number; those at these places are bad.
    Intact {
        copy: usize,
        bad: Vec<UnitAddress>,
    },
    NeverWritten {
        copy: usize,
    },
    Bad {
        copy: usize,
    },
}

impl<'a> Gathering<'a> {
    pub fn new(
        shared: &'a Shared,
        (file, unit): (&'a FileMap, u64),
        to: UnitAddress,
        spare: &'a mut Vec<Memory>,
    ) -> Result<Self, GroupError> {
        let online = |place: &UnitAddress| shared.slot(*place).state() == DiskState::Online;
        let sources: Vec<UnitAddress> =
            file.copies_of(unit).iter().copied().filter(online).collect();
        if sources.is_empty() {
            let gone = |disk: usize| shared.members[disk].state() != DiskState::Online;
            return Err(shared.copies_missing(&file.name, &gone));
        }
        let verifier = shared.verifier(file);
        let (copies, laid_out) = (Vec::new(), Vec::new());
        Ok(Self { shared, file, unit, to, verifier, sources, copies, spare, laid_out })
    }

    /// Fills `memory` with the unit. A copy that is bad while another one is intact is repaired.
    pub fn fill(mut self, memory: &mut [u8]) -> Result<(), GroupError> {
        let block_bytes = self.file.block_bytes as usize;
        for (index, block) in (0..).zip(memory.chunks_mut(block_bytes)) {
            let at = index as usize * block_bytes;
            let range = at..at + block_bytes;
            let choice = self.choose(index, &range)?;
            let (Choice::Intact { copy, .. }
            | Choice::NeverWritten { copy }
            | Choice::Bad { copy }) = choice;
            let chosen = &self.copies[copy];
            block.copy_from_slice(&chosen.memory[range]);
            let is_kept = chosen.place == self.to;
            match choice {
                Choice::Intact { bad, .. } => {
                    for place in bad {
                        self.shared.overwrite(self.file, place, at as u64, block)?;
                    }
                    if is_kept && self.age(index) == Age::Unknown {
                        self.tell(at as u64, true);
                    }
                }
                Choice::NeverWritten { .. } => {}
                Choice::Bad { .. } => self.tell(at as u64, false),
            }
        }
        self.spare.extend(self.copies.into_iter().map(|copy| copy.memory));
        Ok(())
    }

    fn choose(&mut self, index: u64, range: &Range<usize>) -> Result<Choice, GroupError> {
        let mut bad = Vec::new();
        for number in 0..self.sources.len() {
            let place = self.sources[number];
            let copy = self.copy(place)?;
            if self.is_intact(copy, index, range) {
                return Ok(Choice::Intact { copy, bad });
            }
            bad.push(place);
        }
        let own = self.copy(self.to)?;
        let is_old = self.age(index) == Age::Old;
        if !is_old && self.is_intact(own, index, range) {
            return Ok(Choice::Intact { copy: own, bad });
        }
        let mut readable = None;
        for copy in (0..self.copies.len()).filter(|copy| *copy != own) {
            if self.copies[copy].unreadable[index as usize] {
                continue;
            }
            readable.get_or_insert(copy);
            if self.was_never_written(copy, range) {
                return Ok(Choice::NeverWritten { copy });
            }
        }
        let own_is_readable = !self.copies[own].unreadable[index as usize];
        match readable {
            _ if own_is_readable && !is_old => Ok(Choice::Bad { copy: own }),
            Some(copy) => Ok(Choice::Bad { copy }),
            None => Err(self.failure()),
        }
    }

    /// Returns the number of the copy at `place`, which is read when it is first needed.
    fn copy(&mut self, place: UnitAddress) -> Result<usize, GroupError> {
        if let Some(known) = self.copies.iter().position(|copy| copy.place == place) {
            return Ok(known);
        }
        let member = self.shared.slot(place);
        let block_bytes = self.file.block_bytes as usize;
        let (unit_bytes, offset) = (self.file.unit_bytes, member.offset(place.unit));
        let blocks = unit_bytes as usize / block_bytes;
        let Some(disk) = member.disk() else {
            let gone = |disk: usize| self.shared.members[disk].disk().is_none();
            return Err(self.shared.copies_missing(&self.file.name, &gone));
        };
        let memory = match self.spare.pop() {
            Some(memory) => memory,
            None => header::memory(&*disk, unit_bytes)?,
        };
        let mut copy = Copy { place, memory, unreadable: vec![false; blocks], failure: None };
        if member.read(&*disk, offset, &mut copy.memory).is_err() {
            let each = copy.memory.chunks_mut(block_bytes).zip(&mut copy.unreadable);
            for (at, (block, unreadable)) in (offset..).step_by(block_bytes).zip(each) {
                if let Err(error) = member.read(&*disk, at, block) {
                    *unreadable = true;
                    copy.failure.get_or_insert(error);
                }
            }
        }
        self.copies.push(copy);
        Ok(self.copies.len() - 1)
    }

    fn age(&self, index: u64) -> Age {
        self.shared.slot(self.to).units().missed.age(self.to.unit, index)
    }

    fn is_intact(&self, copy: usize, index: u64, range: &Range<usize>) -> bool {
        let Some(block) = self.copies[copy].block(index, range.clone()) else { return false };
        let unverified = planted(Planted::ResyncUnverified);
        let Some(verifier) = self.verifier.as_ref().filter(|_| !unverified) else { return true };
        let offset = self.file.offset_of(self.unit, range.start as u64);
        offset >= self.file.size_bytes || verifier(offset, block)
    }

    fn was_never_written(&mut self, copy: usize, range: &Range<usize>) -> bool {
        if self.copies[copy].memory[range.clone()].iter().all(|byte| *byte == 0) {
            return true;
        }
        if self.laid_out.is_empty() {
            let layout = |place: &UnitAddress| {
                let member = self.shared.slot(*place);
                member.header.layout_of(member.offset(place.unit))
            };
            self.laid_out = self.file.copies_of(self.unit).iter().map(layout).collect();
        }
        let block = &self.copies[copy].memory[range.clone()];
        self.laid_out.iter().any(|unit| unit[range.clone()] == *block)
    }

    fn failure(&mut self) -> GroupError {
        let failure = self.copies.iter_mut().find_map(|copy| copy.failure.take());
        failure.map_or_else(
            || self.shared.copies_missing(&self.file.name, &|_| false),
            GroupError::Disk,
        )
    }

    fn tell(&self, unit_offset: u64, is_kept: bool) {
        let disk = self.shared.slot(self.to).name.clone();
        let offset = self.file.offset_of(self.unit, unit_offset);
        let file = self.file.name.clone();
        self.shared.bad_blocks.lock().insert(BadBlock { file, offset, disk, is_kept });
    }
}
