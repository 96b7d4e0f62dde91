//! The header of a disk: its identity. It stands at the beginning and at the end of the disk, and
//! is written once.

use crate::disk::{ALIGN_BYTES, Disk, DiskError};
use blockstone_sys::buffer::Slot;

use super::codec::{Decoder, Encoder, Refusal};
use super::error::GroupError;

const MAGIC: [u8; 8] = *b"BLKSTDSK";
/// The version of everything that is written on a disk outside of files.
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: u64 = ALIGN_BYTES;

/// The identity of a disk, and where its map slots are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Identity of the group, drawn at random.
    pub group_id: u64,
    /// The number of the disk in the group, from 0.
    pub disk: u32,
    pub unit_bytes: u64,
    /// Allocation units of the disk, the first ones taken by header and map.
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

    /// Bytes that a disk with this header has at least: its units and the second header.
    pub fn disk_bytes(&self) -> u64 {
        u64::from(self.units) * self.unit_bytes + HEADER_BYTES
    }

    pub fn reserved_units(slot_bytes: u64, unit_bytes: u64) -> u32 {
        (HEADER_BYTES + 2 * slot_bytes).div_ceil(unit_bytes) as u32
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
        fields().ok_or(Refusal::Damaged)
    }

    pub fn write(&self, disk: &dyn Disk) -> Result<(), GroupError> {
        let image = self.encode();
        for offset in [0, last_header(disk)] {
            write_aligned(disk, offset, &image)?;
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

/// First byte of the header at the end of the disk.
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

/// Memory that is aligned as disks ask for.
pub(super) fn memory(disk: &dyn Disk, len: u64) -> Result<Slot, DiskError> {
    // The kernel's refusal is the only one, and it is this one's errno.
    const ENOMEM: i32 = 12;
    Slot::new(len as usize).map_err(|_| DiskError::new(disk, "map memory for", 0, ENOMEM))
}
