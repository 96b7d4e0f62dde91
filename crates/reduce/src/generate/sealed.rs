//! Blocks in Oracle's layout, as described in [`crate::page::oracle`]: header, transaction slots
//! and one row, tail and checksum.

use super::put;

/// A block in use that holds one row.
pub const TYPE_DATA: u8 = 6;

const SLOTS: usize = 2;
const SLOTS_START: usize = 44;
const SLOT_BYTES: usize = 24;
/// Offset of the row directory, after the slots.
const ROWS_START: usize = SLOTS_START + SLOTS * SLOT_BYTES;
const TAIL_BYTES: usize = 4;

pub struct Header {
    pub kind: u8,
    /// Address: file number times 2^22, plus block number.
    pub address: u32,
    pub scn: u64,
    /// 1 for a block that was never used, 4 for one with a checksum.
    pub flags: u8,
}

pub fn seal(block: &mut [u8], header: &Header) {
    // The upper three bits of the format byte hold the block size.
    let format = ((block.len().trailing_zeros() - 8) << 5 | 2) as u8;
    let scn = header.scn.to_le_bytes();
    put(block, 0, &[header.kind, format, 0, 0]);
    put(block, 4, &header.address.to_le_bytes());
    put(block, 8, &scn[..6]);
    put(block, 14, &[1, header.flags, 0, 0, 0, 0]);
    put(block, block.len() - TAIL_BYTES, &[1, header.kind, scn[0], scn[1]]);
    let words = block.chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
    let sum = words.fold(0, |sum, word| sum ^ word);
    put(block, 16, &sum.to_le_bytes());
}

/// Creates a data block with one row, and returns the bytes for its columns; `scn` made the change.
/// Columns are at the end of the block, as rows are.
pub fn data(block: &mut [u8], address: u32, scn: u64, row_bytes: usize) -> &mut [u8] {
    block.fill(0);
    let end = block.len() - TAIL_BYTES;
    let start = end - row_bytes;
    put(block, 20, &[1]);
    put(block, 24, &87_001_u32.to_le_bytes());
    put(block, 28, &scn.saturating_sub(1).to_le_bytes()[..6]);
    put(block, 36, &[SLOTS as u8, 0, 2]);
    // Transaction: segment, slot, sequence; undo address; flags; SCN.
    let slot = [(scn as u32 % 10) + 1, scn as u32 / 7, address ^ 0x00c0_0000, scn as u32 % 977];
    for (index, value) in slot.iter().enumerate() {
        put(block, SLOTS_START + index * 4, &value.to_le_bytes());
    }
    put(block, SLOTS_START + 16, &0x2001_u16.to_le_bytes());
    put(block, SLOTS_START + 18, &scn.to_le_bytes()[..6]);
    // One table, one row; offsets are relative to this position.
    let row = ((start - ROWS_START) as u16).to_le_bytes();
    put(block, ROWS_START, &[0, 1, 1, 0, 0xff, 0xff, 20, 0, row[0], row[1], row[0], row[1]]);
    put(block, ROWS_START + 16, &[1, 0, row[0], row[1]]);
    &mut block[start..end]
}
