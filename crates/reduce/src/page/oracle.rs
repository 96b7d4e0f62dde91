//! Blocks of Oracle data files, 2K to 32K, in the layout since release 10, in either byte order.
//! The layout is not documented by its maker; this is what block dumps and the published maps of
//! the block editor show.
//!
//! ```text
//! block   0 type  1 format  4 address (RDBA)  8 SCN: base (u32), wrap (u16)  14 sequence
//!        15 flags  16 checksum: all 16-bit words of the block XORed give 0
//!        −4 tail: low half of the SCN base, type, sequence
//! data   24 object  28 SCN of the last cleanout  36 count of transaction slots (u16)
//!        44 transaction slots (ITL) of 24 bytes each
//! ```
//! The format byte gives the block size: 0x62 is 2K, 0x82 4K, 0xA2 8K, 0xC2 16K and 0xE2 32K.
//!
//! Not masked, although they may make tables with the same rows differ: the lock byte of each row,
//! which refers to a slot, and the address of the block that manages the free space of this one.

use super::{Field, Fields, Format, PageUse};

pub static FORMAT: Format = Format {
    name: "Oracle",
    fields: ["SCN, tail", "checksum", "RDBA, object", "ITL, cleanout SCN", "flags"],
    recognise,
    look,
};

const TYPE_UNUSED: u8 = 0;
const TYPE_DATA: u8 = 6;
/// Highest known type, with room for those added by later releases.
const TYPE_MAX: u8 = 0x80;
const HEADER_BYTES: usize = 20;
const TAIL_BYTES: usize = 4;
const SLOTS_START: usize = 44;
const SLOT_BYTES: usize = 24;
const SLOTS_MAX: usize = 255;
/// Bits of an address for the block number within its file, if files are numbered too.
const NUMBER_MASK: u32 = (1 << 22) - 1;

/// Byte order of the machine that wrote a block.
#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

const ORDERS: [Order; 2] = [Order::Little, Order::Big];

impl Order {
    fn u16_at(self, block: &[u8], at: usize) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(super::bytes_at(block, at)),
            Self::Big => u16::from_be_bytes(super::bytes_at(block, at)),
        }
    }

    fn u32_at(self, block: &[u8], at: usize) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(super::bytes_at(block, at)),
            Self::Big => u32::from_be_bytes(super::bytes_at(block, at)),
        }
    }
}

fn recognise(head: &[u8]) -> Option<usize> {
    let mut sizes = (11..=15).map(|power| 1 << power);
    sizes.find(|&size| ORDERS.into_iter().any(|order| are_blocks(head, size, order)))
}

/// Returns whether everything is blocks or zeros, and at least two used blocks are at their
/// address.
fn are_blocks(head: &[u8], size: usize, order: Order) -> bool {
    let (mut first, mut placed) = (None, 0);
    for (index, block) in (0_u32..).zip(head.chunks_exact(size)) {
        if !is_block(block, order) {
            if !super::is_zeros(block) {
                return false;
            }
            continue;
        }
        let before = order.u32_at(block, 4).wrapping_sub(index) & NUMBER_MASK;
        let is_placed = *first.get_or_insert(before) == before;
        placed += u32::from(is_placed);
        if !is_placed && block[0] != TYPE_UNUSED {
            return false;
        }
    }
    placed >= 2
}

fn look(block: &[u8], fields: &mut Fields) -> PageUse {
    let Some(order) = ORDERS.into_iter().find(|&order| is_block(block, order)) else {
        return PageUse::Unknown;
    };
    let tail = block.len() - TAIL_BYTES;
    fields.push(Field::Address, 4, 4);
    fields.push(Field::Lsn, 8, 7);
    fields.push(Field::Flags, 15, 1);
    fields.push(Field::Checksum, 16, 2);
    fields.push(Field::Lsn, tail, TAIL_BYTES);
    match block[0] {
        TYPE_UNUSED if super::is_zeros(&block[HEADER_BYTES..tail]) => PageUse::NeverUsed,
        TYPE_DATA => {
            transactions(block, order, fields);
            PageUse::Used
        }
        _ => PageUse::Used,
    }
}

/// Returns whether header and tail match, and the block has the size given by its format.
fn is_block(block: &[u8], order: Order) -> bool {
    let format = match block.len() {
        2048 => 0x62,
        4096 => 0x82,
        8192 => 0xa2,
        16384 => 0xc2,
        32768 => 0xe2,
        _ => return false,
    };
    let (kind, sequence, low) = (block[0], block[14], order.u32_at(block, 8) as u16);
    let tail = u32::from(low) << 16 | u32::from(kind) << 8 | u32::from(sequence);
    kind <= TYPE_MAX
        && block[1] == format
        && block[2..4] == [0, 0]
        && block[18..20] == [0, 0]
        && order.u32_at(block, block.len() - TAIL_BYTES) == tail
}

/// Collects the fields of transaction slots; nothing if the number of slots is impossible.
fn transactions(block: &[u8], order: Order, fields: &mut Fields) {
    let slots = usize::from(order.u16_at(block, 36));
    let slots_bytes = slots * SLOT_BYTES;
    if slots > SLOTS_MAX || SLOTS_START + slots_bytes > block.len() - TAIL_BYTES {
        return;
    }
    fields.push(Field::Address, 24, 4);
    fields.push(Field::Transaction, 28, 8);
    if slots > 0 {
        fields.push(Field::Transaction, SLOTS_START, slots_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::{check_any, masked};
    use proptest::prelude::*;

    /// Creates a data block with two slots.
    fn data(size: usize, number: u32, scn: u32) -> Vec<u8> {
        let mut block = vec![0; size];
        let format = ((size.trailing_zeros() - 8) << 5 | 2) as u8;
        block[..2].copy_from_slice(&[TYPE_DATA, format]);
        block[4..8].copy_from_slice(&(0x0040_0000 | number).to_le_bytes());
        block[8..12].copy_from_slice(&scn.to_le_bytes());
        block[14..18].copy_from_slice(&[1, 4, scn as u8, 9]);
        block[24..28].copy_from_slice(&scn.rotate_left(9).to_le_bytes());
        block[28..32].copy_from_slice(&(scn - 1).to_le_bytes());
        block[36] = 2;
        block[44..92].fill(scn as u8);
        block[size - 100..size - 4].fill(b'r');
        block[size - 4..].copy_from_slice(&(scn << 16 | 0x601).to_le_bytes());
        block
    }

    #[test]
    fn blocks_of_every_size_are_recognised_and_equal_when_masked() {
        for power in 11..=15 {
            let size = 1 << power;
            let file: Vec<u8> =
                (0..65536 / size as u32).flat_map(|n| data(size, n, 77 + n)).collect();
            assert_eq!(recognise(&file), Some(size));
            let (a, b) = (data(size, 1, 500), data(size, 9, 0x1_2345));
            assert_eq!(masked(&FORMAT, &a), masked(&FORMAT, &b));
            let mut other = b;
            other[size - 50] = b'q';
            assert_ne!(masked(&FORMAT, &a), masked(&FORMAT, &other));
        }
    }

    #[test]
    fn a_file_may_begin_with_zeros_and_must_be_in_sequence() {
        let mut file = vec![0; 65536];
        for number in [3, 4, 6] {
            let at = number as usize * 8192;
            file[at..at + 8192].copy_from_slice(&data(8192, number, 5));
        }
        assert_eq!(recognise(&file), Some(8192));
        file[6 * 8192 + 4] = 7;
        assert_eq!(recognise(&file), None, "a block that belongs elsewhere");
    }

    #[test]
    fn the_first_blocks_of_a_published_file_are_known_in_either_byte_order() {
        let mut first = vec![0; 8192];
        first[..8].copy_from_slice(&[0, 0xa2, 0, 0, 0, 0, 0xc0, 0xff]);
        let mut second = vec![0; 8192];
        second[..8].copy_from_slice(&[0x0b, 0xa2, 0, 0, 1, 0, 0, 1]);
        second[14..18].copy_from_slice(&[1, 4, 0x12, 0x84]);
        second[8188..].copy_from_slice(&[1, 0x0b, 0, 0]);
        let file = [first.clone(), second.clone()].concat();
        assert_eq!(recognise(&file), Some(8192));
        first[4..8].reverse();
        second[4..8].reverse();
        second[8188..].reverse();
        assert_eq!(recognise(&[first, second.clone()].concat()), Some(8192));
        assert_eq!(look(&second, &mut Fields::default()), PageUse::Used);
    }

    #[test]
    fn a_block_of_type_zero_was_never_used_and_a_torn_one_is_none() {
        let mut empty = vec![0; 8192];
        empty[..8].copy_from_slice(&[0, 0xa2, 0, 0, 9, 0, 0, 0]);
        empty[14..16].copy_from_slice(&[1, 5]);
        empty[8188] = 1;
        let mut fields = Fields::default();
        assert_eq!(look(&empty, &mut fields), PageUse::NeverUsed);
        fields.clear();
        empty[8188] = 2;
        assert_eq!(look(&empty, &mut fields), PageUse::Unknown);
        assert!(fields.ranges().is_empty());
    }

    proptest! {
        #[test]
        fn no_block_makes_it_fail(
            power in 11_u32..=15,
            scn in 1_u32..,
            damage: Vec<(prop::sample::Index, u8)>,
        ) {
            let mut block = data(1 << power, 1, scn);
            for (at, byte) in damage {
                block[at.index(60)] = byte;
            }
            check_any(&FORMAT, &block);
        }
    }
}
