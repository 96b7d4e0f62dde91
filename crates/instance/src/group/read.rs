//! Reading: the primary copy, then the mirrors; a bad copy is overwritten with a good one.

use std::sync::atomic::Ordering;

use super::error::GroupError;
use super::map::{FileMap, Piece, UnitAddress};
use super::member::{DiskState, Slot};
use super::state::Shared;
use super::{Bytes, ReadInfo, header};
use crate::disk::DiskError;
use crate::planted::{Planted, planted};

type Verify<'a> = &'a dyn Fn(u64, &[u8]) -> bool;

impl Shared {
    #[inline]
    pub(super) fn read(
        &self,
        file: &FileMap,
        offset: u64,
        out: &mut [u8],
        verify: Verify<'_>,
    ) -> Result<ReadInfo, GroupError> {
        check_range("read", file, offset, out.len())?;
        let mut info = ReadInfo::default();
        for piece in file.pieces(offset, out.len()) {
            let part = &mut out[piece.at..piece.at + piece.len];
            self.read_piece(file, offset, piece, part, (verify, &mut info))?;
        }
        Ok(info)
    }

    #[inline]
    fn read_piece(
        &self,
        file: &FileMap,
        offset: u64,
        piece: Piece,
        part: &mut [u8],
        (verify, info): (Verify<'_>, &mut ReadInfo),
    ) -> Result<(), GroupError> {
        let first = offset + piece.at as u64;
        let copies = file.copies_of(piece.unit);
        let online = |place: &&UnitAddress| self.slot(**place).state() == DiskState::Online;
        if let Some(place) = copies.iter().find(online) {
            let member = self.slot(*place);
            info.ios += 1;
            note_degraded(member, *place != copies[0], info);
            if let Some(disk) = member.disk() {
                let at = member.offset(place.unit) + piece.unit_offset;
                if let Ok(now_ns) = member.read(&*disk, at, part) {
                    if member.has_vanished(&*disk, now_ns) {
                        self.take_offline(usize::from(place.disk))?;
                    }
                    let mut blocks = blocks(file, first, part);
                    if blocks.all(|(offset, block)| verify(offset, block)) {
                        return Ok(());
                    }
                }
            }
        }
        self.mend_piece(file, (first, piece), part, verify, info)
    }

    /// Reads a piece block by block from whichever copy is good, and repairs the bad ones. Runs
    /// exclusively, so that a block that is being written is not taken for a bad one, and no old
    /// copy overwrites a new one.
    #[cold]
    fn mend_piece(
        &self,
        file: &FileMap,
        (first, piece): (u64, Piece),
        part: &mut [u8],
        verify: Verify<'_>,
        info: &mut ReadInfo,
    ) -> Result<(), GroupError> {
        let _alone = self.alone();
        let block_bytes = file.block_bytes;
        for (index, block) in part.chunks_mut(block_bytes as usize).enumerate() {
            let within = index as u64 * block_bytes;
            let unit_offset = piece.unit_offset + within;
            let copies = file.copies_of(piece.unit);
            let good = |block: &[u8]| verify(first + within, block);
            let bad = self.first_good(copies, unit_offset, block, &good, info);
            let bad = bad.map_err(|failure| match failure {
                (Some(error), 0) => GroupError::Disk(error),
                (_, readable) => GroupError::Corrupt {
                    file: file.name.clone(),
                    offset: first + within,
                    copies: readable,
                },
            })?;
            for place in bad {
                info.ios += 1;
                info.repaired_blocks +=
                    u32::from(self.overwrite(file, place, unit_offset, block)?);
            }
        }
        Ok(())
    }

    /// Reads the first good copy into `block`. Returns the online copies before it, which are bad;
    /// or, if none is good, the first failure and how many copies could be read.
    fn first_good(
        &self,
        copies: &[UnitAddress],
        unit_offset: u64,
        block: &mut [u8],
        good: &dyn Fn(&[u8]) -> bool,
        info: &mut ReadInfo,
    ) -> Result<Vec<UnitAddress>, (Option<DiskError>, usize)> {
        let (mut bad, mut failure, mut readable) = (Vec::new(), None, 0);
        for place in copies {
            let member = self.slot(*place);
            let Some(disk) = member.disk().filter(|_| member.state() == DiskState::Online) else {
                continue;
            };
            info.ios += 1;
            match member.read(&*disk, member.offset(place.unit) + unit_offset, block) {
                Ok(_) if good(block) => {
                    note_degraded(member, *place != copies[0], info);
                    return Ok(bad);
                }
                Ok(_) => readable += 1,
                Err(error) => failure = failure.or(Some(error)),
            }
            bad.push(*place);
        }
        Err((failure, readable))
    }

    /// Overwrites a bad copy with a good block. A disk that does not take it goes offline.
    pub(super) fn overwrite(
        &self,
        file: &FileMap,
        place: UnitAddress,
        unit_offset: u64,
        block: &[u8],
    ) -> Result<bool, GroupError> {
        let member = self.slot(place);
        let disk = member.disk().filter(|_| member.state() == DiskState::Online);
        let at = member.offset(place.unit) + unit_offset;
        let end = disk.map(|disk| member.write(&*disk, at, block, false));
        let is_repaired = matches!(end, Some(Ok(_)));
        let first = unit_offset / file.block_bytes;
        member.note_write(place.unit, first..first + 1, is_repaired, false);
        if is_repaired {
            member.counters.repaired_blocks.fetch_add(1, Ordering::Relaxed);
        } else if end.is_some() {
            self.take_offline(usize::from(place.disk))?;
        }
        Ok(is_repaired)
    }

    /// Reads every readable copy of a block, the primary first, and passes it to `seen`.
    pub(super) fn read_copies(
        &self,
        file: &FileMap,
        offset: u64,
        out: &mut [u8],
        seen: &mut dyn FnMut(&[u8]),
    ) -> Result<(), GroupError> {
        check_range("read", file, offset, out.len())?;
        let _alone = self.alone();
        let (mut failure, mut has_read) = (None, false);
        for piece in file.pieces(offset, out.len()) {
            for place in file.copies_of(piece.unit) {
                let member = self.slot(*place);
                let online = member.disk().filter(|_| member.state() == DiskState::Online);
                let Some(disk) = online else { continue };
                match member.read(&*disk, member.offset(place.unit) + piece.unit_offset, out) {
                    Ok(_) => {
                        has_read = true;
                        seen(out);
                    }
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
        }
        failure.filter(|_| !has_read).map_or(Ok(()), |error| Err(error.into()))
    }

    /// Makes every copy of a block equal to `block`, durably, one after the other. A copy that is
    /// already equal is not written: the result of a torn write could be worse.
    pub(super) fn restore(
        &self,
        file: &FileMap,
        offset: u64,
        block: &[u8],
    ) -> Result<(), GroupError> {
        check_range("write", file, offset, block.len())?;
        // A copy that is already equal may still be in a cache.
        if !planted(Planted::RecoveryNotSynced) {
            self.sync()?;
        }
        let _alone = self.alone();
        self.check_usable()?;
        for piece in file.pieces(offset, block.len()) {
            let blocks = || file.blocks(piece.unit_offset, piece.len as u64);
            for place in file.copies_of(piece.unit) {
                let member = self.slot(*place);
                let present = member.disk().filter(|_| member.state() != DiskState::Offline);
                let Some(disk) = present else {
                    member.note_write(place.unit, blocks(), false, true);
                    continue;
                };
                let at = member.offset(place.unit) + piece.unit_offset;
                let mut found = header::memory(&*disk, piece.len as u64)?;
                if member.read(&*disk, at, &mut found).is_ok() && found[..] == *block {
                    continue;
                }
                let is_taken = member.write(&*disk, at, block, true).is_ok();
                member.note_write(place.unit, blocks(), is_taken, true);
                if !is_taken {
                    self.take_offline(usize::from(place.disk))?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn slot(&self, place: UnitAddress) -> &Slot {
        &self.members[usize::from(place.disk)]
    }
}

#[inline]
fn note_degraded(member: &Slot, is_degraded: bool, info: &mut ReadInfo) {
    if is_degraded {
        info.degraded = true;
        member.counters.degraded_reads.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the blocks of a part that begins at `first`, with their offsets.
fn blocks<'a>(file: &FileMap, first: u64, part: &'a [u8]) -> impl Iterator<Item = (u64, &'a [u8])> {
    let block_bytes = file.block_bytes;
    let offsets = (0..).map(move |index| first + index * block_bytes);
    offsets.zip(part.chunks(block_bytes as usize))
}

/// Refuses ranges that are not whole blocks inside the file.
#[inline]
pub(super) fn check_range(
    operation: &'static str,
    file: &FileMap,
    offset: u64,
    len: usize,
) -> Result<(), GroupError> {
    let block = file.block_bytes;
    let inside = offset.checked_add(len as u64).is_some_and(|end| end <= file.size_bytes);
    if inside && offset.is_multiple_of(block) && (len as u64).is_multiple_of(block) {
        return Ok(());
    }
    let name = file.name.clone();
    Err(GroupError::Range { operation, file: name, offset, len, block: Bytes(block) })
}
