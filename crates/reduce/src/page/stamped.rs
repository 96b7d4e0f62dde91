//! Blocks that Blockstone stamps in tests of devices and file systems. The layout is that of
//! `crates/engine/src/stamp.rs`, restated here because measuring files needs no engine.
//!
//! ```text
//! block   0 magic  8 version (u32), length (u32)  16 file  24 address  32 sequence  40 checksum
//!        −16 sequence  −8 address, complemented
//! ```
//! The payload depends on file, address and sequence, so masking makes no two blocks equal: the
//! format exists so that reports can name such files.

use super::{Field, Fields, Format, PageUse};

pub static FORMAT: Format = Format {
    name: "Blockstone stamps",
    fields: ["sequence", "checksum", "file, address", "", ""],
    recognise,
    look,
};

const MAGIC_AND_VERSION: &[u8] = b"blkstone\x01\0\0\0";
const STAMP_BYTES: usize = 64;

fn recognise(head: &[u8]) -> Option<usize> {
    if head.len() < STAMP_BYTES || !head.starts_with(MAGIC_AND_VERSION) {
        return None;
    }
    let size = u32::from_le_bytes(super::bytes_at(head, 12)) as usize;
    if !is_size(size) {
        return None;
    }
    let is_expected = |block: &[u8]| is_block(block) || super::is_zeros(block);
    head.chunks_exact(size).all(is_expected).then_some(size)
}

fn look(block: &[u8], fields: &mut Fields) -> PageUse {
    if !is_block(block) {
        return PageUse::Unknown;
    }
    fields.push(Field::Address, 16, 16);
    fields.push(Field::Lsn, 32, 8);
    fields.push(Field::Checksum, 40, 8);
    fields.push(Field::Lsn, block.len() - 16, 8);
    fields.push(Field::Address, block.len() - 8, 8);
    PageUse::Used
}

/// Returns whether it has this length, and both its ends belong to the same write.
fn is_block(block: &[u8]) -> bool {
    is_size(block.len())
        && block.starts_with(MAGIC_AND_VERSION)
        && block[12..16] == (block.len() as u32).to_le_bytes()
        && block[32..40] == block[block.len() - 16..block.len() - 8]
        && super::u64_at(block, 24) == !super::u64_at(block, block.len() - 8)
}

fn is_size(size: usize) -> bool {
    super::is_size(size, 512..=1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::{check_any, masked};
    use proptest::prelude::*;

    fn block(size: usize, address: u64, sequence: u64) -> Vec<u8> {
        let mut block = vec![3; size];
        block[..12].copy_from_slice(MAGIC_AND_VERSION);
        block[12..16].copy_from_slice(&(size as u32).to_le_bytes());
        block[24..32].copy_from_slice(&address.to_le_bytes());
        block[32..40].copy_from_slice(&sequence.to_le_bytes());
        block[size - 16..size - 8].copy_from_slice(&sequence.to_le_bytes());
        block[size - 8..].copy_from_slice(&(!address).to_le_bytes());
        block
    }

    #[test]
    fn blocks_are_recognised_and_a_torn_one_is_none() {
        for power in [9, 12, 13, 16] {
            let size = 1 << power;
            let mut file = [block(size, 0, 1), block(size, size as u64, 9)].concat();
            assert_eq!(recognise(&file), Some(size));
            assert_eq!(masked(&FORMAT, &file[..size]), masked(&FORMAT, &file[size..]));
            file[2 * size - 16] = 7;
            assert_eq!(recognise(&file), None);
        }
        let large = block(1 << 20, 0, 1);
        assert_eq!(recognise(&large[..65536]), Some(1 << 20));
    }

    proptest! {
        #[test]
        fn no_block_makes_it_fail(power in 9_u32..=15, address: u64, at: prop::sample::Index) {
            let mut block = block(1 << power, address, 3);
            block[at.index(64)] ^= 5;
            check_any(&FORMAT, &block);
        }
    }
}
