//! The header of a disk: its identity. It is stored at the beginning and at the end of the disk,
//! and is written once.

use std::ops::RangeInclusive;

use blockstone_base::rng;
use blockstone_sys::buffer::Slot;

use crate::disk::{ALIGN_BYTES, Disk, DiskError};

use super::codec::{Decoder, Encoder, Refusal};
use super::error::GroupError;

const MAGIC: [u8; 8] = *b"BLKSTDSK";
/// Version of everything that is written on a disk outside of files.
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: u64 = ALIGN_BYTES;
/// Size of the chunks in which a disk is laid out.
pub(super) const CHUNK_BYTES: u64 = 1 << 20;
/// Sizes of allocation units that any version creates, with room for larger ones.
const UNIT_BYTES: RangeInclusive<u64> = 1 << 20..=1 << 30;

/// Identity of a disk, and the location of its map slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Identity of the group, drawn at random.
    pub group_id: u64,
    /// Number of the disk in the group, from 0.
    pub disk: u32,
    pub unit_bytes: u64,
    /// Allocation units of the disk; the first ones hold header and map.
    pub units: u32,
    /// Bytes of each of the two map slots, which follow the header.
    pub slot_bytes: u64,
    pub failure_group: String,
    pub copies: u8,
}

impl Header {
    pub fn slot_offset(&self, slot: u64) -> u64 {
        HEADER_BYTES + slot * self.slot_bytes
    }

    /// Returns the minimum size in bytes of a disk with this header: its units and the second
    /// header.
    pub fn disk_bytes(&self) -> u64 {
        u64::from(self.units) * self.unit_bytes + HEADER_BYTES
    }

    /// Whether its map slots are within its units; a forged header may contain anything.
    fn is_sound(&self) -> bool {
        let bytes = u64::from(self.units).checked_mul(self.unit_bytes);
        let slots =
            self.slot_bytes.checked_mul(2).and_then(|slots| slots.checked_add(HEADER_BYTES));
        UNIT_BYTES.contains(&self.unit_bytes)
            && self.unit_bytes.is_power_of_two()
            && self.slot_bytes > 0
            && self.slot_bytes.is_multiple_of(ALIGN_BYTES)
            && slots.zip(bytes).is_some_and(|(slots, bytes)| slots <= bytes)
    }

    pub fn reserved_units(slot_bytes: u64, unit_bytes: u64) -> u32 {
        (HEADER_BYTES + 2 * slot_bytes).div_ceil(unit_bytes) as u32
    }

    /// Fills a chunk with the data the disk is laid out with at `offset`; it cannot be compressed.
    pub fn fill_chunk(&self, offset: u64, chunk: &mut [u8]) {
        rng::fill(self.group_id ^ rng::mix(u64::from(self.disk)) ^ offset, chunk);
    }

    /// Returns the data that the unit at `offset` was laid out with.
    pub fn layout_of(&self, offset: u64) -> Vec<u8> {
        let mut unit = vec![0; self.unit_bytes as usize];
        let offsets = (offset..).step_by(CHUNK_BYTES as usize);
        for (offset, chunk) in offsets.zip(unit.chunks_mut(CHUNK_BYTES as usize)) {
            self.fill_chunk(offset, chunk);
        }
        unit
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.u64(self.group_id);
        out.u32(self.disk);
        out.u64(self.unit_bytes);
        out.u32(self.units);
        out.u64(self.slot_bytes);
        out.text(&self.failure_group);
        out.u8(self.copies);
        out.frame(MAGIC, VERSION, HEADER_BYTES)
    }

    fn decode(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut from = Decoder::open(bytes, MAGIC, VERSION)?;
        let mut fields = || {
            Some(Self {
                group_id: from.u64()?,
                disk: from.u32()?,
                unit_bytes: from.u64()?,
                units: from.u32()?,
                slot_bytes: from.u64()?,
                failure_group: from.text()?,
                copies: from.u8()?,
            })
        };
        fields().filter(Self::is_sound).ok_or(Refusal::Damaged)
    }

    pub fn write(&self, disk: &dyn Disk) -> Result<(), GroupError> {
        let image = self.encode();
        for offset in [0, last_header(disk)] {
            write_aligned(disk, offset, &image)?;
        }
        Ok(())
    }

    /// Rewrites a copy that is damaged or cannot be read: the other one may be damaged next.
    pub fn repair(&self, disk: &dyn Disk) -> Result<(), GroupError> {
        let image = self.encode();
        for offset in [0, last_header(disk)] {
            if read_aligned(disk, offset, HEADER_BYTES).ok().as_ref() != Some(&image) {
                write_aligned(disk, offset, &image)?;
            }
        }
        Ok(())
    }

    /// Reads the header from the beginning of the disk, or from its end.
    pub fn read(disk: &dyn Disk) -> Result<Self, GroupError> {
        let name = || disk.name().to_owned();
        let mut worst = Refusal::Foreign;
        let mut failure = None;
        for offset in [0, last_header(disk)] {
            match read_aligned(disk, offset, HEADER_BYTES) {
                Ok(bytes) => match Self::decode(&bytes) {
                    // Memory is allocated for its slots and units before they are read.
                    Ok(header) if header.disk_bytes() > disk.size_bytes() => {
                        worst = Refusal::Damaged;
                    }
                    Ok(header) => return Ok(header),
                    Err(Refusal::Foreign) => {}
                    Err(refusal) => worst = refusal,
                },
                Err(error) => failure = Some(error),
            }
        }
        Err(match (worst, failure) {
            (Refusal::Version(found), _) => {
                GroupError::OtherVersion { disk: name(), found, known: VERSION }
            }
            (Refusal::Damaged, _) => GroupError::DamagedHeader { disk: name() },
            (Refusal::Foreign, Some(error)) => error,
            (Refusal::Foreign, None) => GroupError::NotADisk { disk: name() },
        })
    }
}

/// Returns the offset of the header at the end of the disk.
fn last_header(disk: &dyn Disk) -> u64 {
    (disk.size_bytes() / HEADER_BYTES).saturating_sub(1) * HEADER_BYTES
}

pub(super) fn read_aligned(disk: &dyn Disk, offset: u64, len: u64) -> Result<Vec<u8>, GroupError> {
    let mut memory = memory(disk, len)?;
    disk.read_at(offset, &mut memory)?;
    Ok(memory.to_vec())
}

pub(super) fn write_aligned(disk: &dyn Disk, offset: u64, data: &[u8]) -> Result<(), GroupError> {
    let mut memory = memory(disk, data.len() as u64)?;
    memory.copy_from_slice(data);
    Ok(disk.write_dsync_at(offset, &memory)?)
}

/// Allocates memory with the alignment that disks require.
pub(super) fn memory(disk: &dyn Disk, len: u64) -> Result<Slot, DiskError> {
    // The only possible failure is a refusal by the kernel, with this errno.
    const ENOMEM: i32 = 12;
    Slot::new(len as usize).map_err(|_| DiskError::new(disk, "map memory for", 0, ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Machine;

    #[test]
    fn a_header_whose_slots_do_not_fit_its_units_is_damaged() {
        let header = Header {
            group_id: 9,
            disk: 0,
            unit_bytes: 1 << 20,
            units: 100,
            slot_bytes: 4096,
            failure_group: "a".to_owned(),
            copies: 2,
        };
        assert_eq!(Header::decode(&header.encode()), Ok(header.clone()));
        for forged in [
            Header { slot_bytes: u64::MAX - 4095, ..header.clone() },
            Header { slot_bytes: 50 << 20, ..header.clone() },
            Header { slot_bytes: 4000, ..header.clone() },
            Header { slot_bytes: 0, ..header.clone() },
            Header { unit_bytes: 0, ..header.clone() },
            Header { unit_bytes: 1 << 63, ..header.clone() },
            Header { units: 0, ..header },
        ] {
            assert_eq!(Header::decode(&forged.encode()), Err(Refusal::Damaged), "{forged:?}");
        }
    }

    #[test]
    fn a_header_that_speaks_of_more_than_its_disk_is_damaged() {
        let disk = &*Machine::new(1, 8 << 20, 1).disks()[0];
        let header = Header {
            group_id: 9,
            disk: 0,
            unit_bytes: 1 << 20,
            units: 7,
            slot_bytes: 4096,
            failure_group: "a".to_owned(),
            copies: 2,
        };
        header.write(disk).unwrap();
        assert_eq!(Header::read(disk).unwrap(), header);
        Header { units: 1 << 31, ..header }.write(disk).unwrap();
        assert!(matches!(Header::read(disk), Err(GroupError::DamagedHeader { .. })));
    }
}
