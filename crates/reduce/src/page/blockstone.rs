//! Blocks of Blockstone's own instances, 4K to 32K. The layout is that of
//! `crates/instance/src/block.rs`, restated here because measuring files needs no instance.
//!
//! ```text
//! block   0 magic  8 number  16 SCN  24 checksum  32 schema, table  38 rows
//!        40 instance  48 key  56 version  64 columns of 128 bytes, each with its version first
//! ```
//! An instance keeps its files in its own disks, in units of 1 MiB. The first unit has a map, which
//! gives, after the name of the file called `data`, its length and the length of its blocks. The
//! data of other files is not recognised as pages.

use super::{Field, Fields, Format, PageUse};

pub static FORMAT: Format = Format {
    name: "Blockstone",
    fields: ["SCN", "checksum", "number, table, instance, key", "version", ""],
    recognise,
    look,
};

const MAGIC: &[u8] = b"bstnblk1";
const DISK_MAGIC: &[u8] = b"BLKSTDSK\x01\0\0\0";
const MAP_START: usize = 8192;
const MAP_MAGIC: &[u8] = b"BLKSTMAP\x01\0\0\0";
/// The name is preceded by its length.
const DATA_NAME: &[u8] = b"\x04\0\0\0data";
const NUMBER_START: usize = 8;
const COLUMNS_START: usize = 64;
const COLUMN_BYTES: usize = 128;
const COLUMNS: usize = 19;

fn recognise(head: &[u8]) -> Option<usize> {
    if head.starts_with(DISK_MAGIC) {
        return of_disk(head);
    }
    (12..=15).map(|power| 1 << power).find(|&size| are_blocks(head, size))
}

/// Returns the block size of a disk, in bytes, from its map.
fn of_disk(head: &[u8]) -> Option<usize> {
    let map = head.get(MAP_START..)?;
    let name = map.windows(DATA_NAME.len()).position(|bytes| bytes == DATA_NAME)?;
    let sizes = map.get(name + DATA_NAME.len()..name + DATA_NAME.len() + 16)?;
    let size = usize::try_from(super::u64_at(sizes, 8)).ok()?;
    (map.starts_with(MAP_MAGIC) && is_size(size)).then_some(size)
}

/// Returns whether everything is blocks or zeros, and at least two blocks are in sequence.
fn are_blocks(head: &[u8], size: usize) -> bool {
    let (mut first, mut count) = (None, 0);
    for (index, block) in (0_u64..).zip(head.chunks_exact(size)) {
        if !is_block(block) {
            if !super::is_zeros(block) {
                return false;
            }
            continue;
        }
        let before = super::u64_at(block, NUMBER_START).wrapping_sub(index);
        if *first.get_or_insert(before) != before {
            return false;
        }
        count += 1;
    }
    count >= 2
}

fn look(block: &[u8], fields: &mut Fields) -> PageUse {
    if !is_block(block) {
        return PageUse::Unknown;
    }
    fields.push(Field::Address, NUMBER_START, 8);
    fields.push(Field::Lsn, 16, 8);
    fields.push(Field::Checksum, 24, 8);
    fields.push(Field::Address, 32, 6);
    fields.push(Field::Address, 40, 16);
    fields.push(Field::Transaction, 56, 8);
    for column in 0..COLUMNS {
        fields.push(Field::Transaction, COLUMNS_START + column * COLUMN_BYTES, 8);
    }
    let has_rows = block[38..40] != [0, 0];
    if has_rows { PageUse::Used } else { PageUse::NeverUsed }
}

fn is_block(block: &[u8]) -> bool {
    is_size(block.len()) && block.starts_with(MAGIC)
}

fn is_size(size: usize) -> bool {
    super::is_size(size, 4096..=32768)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::{check_any, masked};
    use proptest::prelude::*;

    fn block(size: usize, number: u64, scn: u64) -> Vec<u8> {
        let mut block = vec![b'X'; size];
        block[..8].copy_from_slice(MAGIC);
        let values = [number, scn, !scn, 1 << 48, scn / 7, number, 0];
        for (value, place) in values.iter().zip(block[8..].chunks_exact_mut(8)) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        for column in 0..COLUMNS {
            let at = COLUMNS_START + column * COLUMN_BYTES;
            block[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        block
    }

    #[test]
    fn blocks_of_all_sizes_are_recognised_in_sequence_and_equal_when_masked() {
        for power in 12..=15 {
            let size = 1 << power;
            let mut file = [block(size, 5, 1), block(size, 6, 9), vec![0; size]].concat();
            assert_eq!(recognise(&file), Some(size));
            file[size + 8] = 7;
            assert_eq!(recognise(&file), None);
            let (a, b) = (block(size, 5, 1), block(size, 6, 90));
            assert_eq!(masked(&FORMAT, &a), masked(&FORMAT, &b));
            let mut other = b;
            other[600] = b'q';
            assert_ne!(masked(&FORMAT, &a), masked(&FORMAT, &other));
        }
    }

    #[test]
    fn a_disk_of_an_instance_says_how_long_its_blocks_are() {
        let mut head = vec![0; 65536];
        head[..12].copy_from_slice(DISK_MAGIC);
        assert_eq!(recognise(&head), None);
        head[8192..8204].copy_from_slice(MAP_MAGIC);
        head[9000..9008].copy_from_slice(DATA_NAME);
        head[9008..9024].copy_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
        assert_eq!(recognise(&head), Some(8192));
        assert_eq!(recognise(&head[..9020]), None);
        head[9017] = 0x21;
        assert_eq!(recognise(&head), None);
    }

    proptest! {
        #[test]
        fn no_block_makes_it_fail(power in 12_u32..=15, number: u64, at: prop::sample::Index) {
            let mut block = block(1 << power, number, 3);
            block[at.index(64)] ^= 5;
            check_any(&FORMAT, &block);
        }
    }
}
