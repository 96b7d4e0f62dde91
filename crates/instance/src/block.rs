//! Blocks of one row each, stamped with their type, their place and the change that made them, and
//! protected by a checksum over the whole block.
//!
//! ```text
//! byte  0  magic "bstnblk1"             32  schema (u32), table (u16), rows (u16)
//!       8  number of the block          40  id of the instance it belongs to
//!      16  SCN: redo position of the    48  key of its row
//!          change that made it          56  version of its row: updates so far
//!      24  XXH3-64 of all else          64  19 columns of 128 bytes, then free space
//! ```
//! All numbers are little-endian. A column begins with the version of the row that wrote it, so a
//! reader can tell which update it sees and whether the column is whole.

use blockstone_base::rng;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub const HEADER_BYTES: usize = 64;
/// Columns of a row, in addition to its key.
pub const COLUMNS: usize = 19;
pub const COLUMN_BYTES: usize = 128;
/// The smallest block, which must hold the header and a row.
pub const BLOCK_BYTES_MIN: u64 = 4096;
pub const BLOCK_BYTES_MAX: u64 = 32768;

const MAGIC: u64 = u64::from_le_bytes(*b"bstnblk1");
const AT_NUMBER: usize = 8;
const AT_SCN: usize = 16;
const AT_CHECKSUM: usize = 24;
const AT_TABLE: usize = 32;
const AT_INSTANCE: usize = 40;
const AT_KEY: usize = 48;
const AT_VERSION: usize = 56;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// The table whose rows are visited by key.
    Rows,
    /// The table used for full scans.
    Scan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub instance: u64,
    /// Number of the block in the data file.
    pub number: u64,
    pub schema: u32,
    pub table: Table,
    pub key: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nothing was ever written there.
    #[error("it is all zeros")]
    Zeros,
    #[error("it is not a block of an instance")]
    NoBlock,
    #[error("it belongs to instance {found:#x}")]
    Instance { found: u64 },
    #[error("it claims to be block {found}")]
    Number { found: u64 },
    /// Torn, or altered after it was written.
    #[error("its checksum does not match its content")]
    Checksum,
}

/// Content of columns: the version that wrote them, then incompressible bytes in the requested part
/// and `X` in the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    seed: u64,
    random_bytes: usize,
}

impl Fill {
    /// Creates a fill of which `percent` (0 to 100) is incompressible.
    pub fn new(seed: u64, percent: u8) -> Self {
        Self { seed, random_bytes: COLUMN_BYTES * usize::from(percent) / 100 }
    }

    /// Fills in column `index` of block `number` as update `version` writes it.
    pub fn column(&self, number: u64, index: usize, version: u64, out: &mut [u8]) {
        let key = rng::mix(self.seed ^ rng::mix(number ^ rng::mix(version ^ (index as u64) << 48)));
        let (random, rest) = out.split_at_mut(self.random_bytes);
        rng::fill(key, random);
        rest.fill(b'X');
        put(out, 0, version);
    }

    /// Whether `column` is whole: exactly what its version wrote.
    pub fn is_whole(&self, number: u64, index: usize, column: &[u8]) -> bool {
        let mut expected = [0; COLUMN_BYTES];
        self.column(number, index, get(column, 0), &mut expected);
        expected == column
    }
}

/// Fills `block` as the newly loaded block `identity`, with change `scn`, and seals it.
pub fn format(block: &mut [u8], identity: &Identity, fill: &Fill, scn: u64) {
    let table = match identity.table {
        Table::Rows => 0,
        Table::Scan => 1_u64,
    };
    put(block, 0, MAGIC);
    put(block, AT_NUMBER, identity.number);
    put(block, AT_SCN, scn);
    put(block, AT_TABLE, u64::from(identity.schema) | table << 32 | 1 << 48);
    put(block, AT_INSTANCE, identity.instance);
    put(block, AT_KEY, identity.key);
    put(block, AT_VERSION, 0);
    for (index, column) in block[HEADER_BYTES..].chunks_mut(COLUMN_BYTES).enumerate() {
        // The free space is filled like the columns, so that it compresses equally well.
        if column.len() == COLUMN_BYTES {
            fill.column(identity.number, index, 0, column);
        } else {
            column.fill(b'X');
        }
    }
    seal(block);
}

/// Turns a copy of a block into the block of its row at `number`, in the second table of the same
/// schema, with change `scn`, and seals it.
pub fn move_to_scan(block: &mut [u8], number: u64, scn: u64) {
    let table = get(block, AT_TABLE) | 1 << 32;
    put(block, AT_NUMBER, number);
    put(block, AT_SCN, scn);
    put(block, AT_TABLE, table);
    seal(block);
}

/// Sets the checksum: the last step before a block is written.
pub fn seal(block: &mut [u8]) {
    let sum = checksum(block);
    put(block, AT_CHECKSUM, sum);
}

/// Checks that `block` is block `number` of `instance`, and whole.
pub fn check(block: &[u8], instance: u64, number: u64) -> Result<(), Fault> {
    if get(block, 0) != MAGIC {
        let zeros = block.iter().all(|&byte| byte == 0);
        return Err(if zeros { Fault::Zeros } else { Fault::NoBlock });
    }
    let (found_instance, found_number) = (get(block, AT_INSTANCE), get(block, AT_NUMBER));
    if get(block, AT_CHECKSUM) != checksum(block) {
        Err(Fault::Checksum)
    } else if found_instance != instance {
        Err(Fault::Instance { found: found_instance })
    } else if found_number != number {
        Err(Fault::Number { found: found_number })
    } else {
        Ok(())
    }
}

/// Returns the id of the instance that the block belongs to.
pub fn instance(block: &[u8]) -> u64 {
    get(block, AT_INSTANCE)
}

pub fn number(block: &[u8]) -> u64 {
    get(block, AT_NUMBER)
}

/// Returns the redo position of its last change.
pub fn scn(block: &[u8]) -> u64 {
    get(block, AT_SCN)
}

pub fn set_scn(block: &mut [u8], scn: u64) {
    put(block, AT_SCN, scn);
}

#[inline]
pub fn key(block: &[u8]) -> u64 {
    get(block, AT_KEY)
}

/// Returns how often its row was updated.
#[inline]
pub fn version(block: &[u8]) -> u64 {
    get(block, AT_VERSION)
}

pub fn set_version(block: &mut [u8], version: u64) {
    put(block, AT_VERSION, version);
}

#[inline]
pub fn column(block: &[u8], index: usize) -> &[u8] {
    let start = HEADER_BYTES + index * COLUMN_BYTES;
    &block[start..start + COLUMN_BYTES]
}

pub fn column_mut(block: &mut [u8], index: usize) -> &mut [u8] {
    let start = HEADER_BYTES + index * COLUMN_BYTES;
    &mut block[start..start + COLUMN_BYTES]
}

/// Computes the checksum over everything but the checksum itself.
fn checksum(block: &[u8]) -> u64 {
    xxh3_64_with_seed(&block[AT_CHECKSUM + 8..], xxh3_64(&block[..AT_CHECKSUM]))
}

#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[inline]
pub(crate) fn get(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a range of eight has eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IDENTITY: Identity =
        Identity { instance: 0x1d, number: 7, schema: 3, table: Table::Rows, key: 11 };

    fn formatted(len: usize) -> Vec<u8> {
        let mut block = vec![0; len];
        format(&mut block, &IDENTITY, &Fill::new(5, 100), 99);
        block
    }

    proptest! {
        #[test]
        fn any_flipped_bit_shows(
            len in prop::sample::select(vec![4096_usize, 8192, 16384, 32768]),
            at: prop::sample::Index,
            bit in 0_u32..8,
        ) {
            let mut block = formatted(len);
            block[at.index(len)] ^= 1_u8 << bit;
            prop_assert!(check(&block, 0x1d, 7).is_err());
        }

        #[test]
        fn any_mix_of_two_versions_shows(kept in 1_u32..0xffff) {
            let (old, mut block) = (formatted(8192), formatted(8192));
            set_version(&mut block, 1);
            for index in 0..COLUMNS {
                Fill::new(5, 100).column(7, index, 1, column_mut(&mut block, index));
            }
            set_scn(&mut block, 100);
            seal(&mut block);
            let new = block.clone();
            for sector in (0..16).filter(|sector| kept >> sector & 1 == 1) {
                let range = sector * 512..(sector + 1) * 512;
                block[range.clone()].copy_from_slice(&old[range]);
            }
            // Beyond the row the two versions are equal, so either one survives a tear there.
            prop_assert!(block == new || block == old || check(&block, 0x1d, 7).is_err());
        }

        #[test]
        fn a_column_knows_whether_it_is_whole(
            percent in 0_u8..=100, version: u64, at in 8..COLUMN_BYTES,
        ) {
            let fill = Fill::new(1, percent);
            let mut column = [0; COLUMN_BYTES];
            fill.column(9, 3, version, &mut column);
            prop_assert!(fill.is_whole(9, 3, &column));
            column[at] ^= 1;
            prop_assert!(!fill.is_whole(9, 3, &column));
        }
    }

    #[test]
    fn a_row_that_moved_is_whole_in_its_new_block_alone() {
        let mut block = formatted(8192);
        let row = block[HEADER_BYTES..].to_vec();
        move_to_scan(&mut block, 12, 100);
        assert_eq!(check(&block, 0x1d, 12), Ok(()));
        assert_eq!(check(&block, 0x1d, 7), Err(Fault::Number { found: 12 }));
        assert_eq!((scn(&block), key(&block)), (100, 11));
        assert_eq!(get(&block, AT_TABLE) & 0xffff_ffff, 3, "its schema is the same");
        assert!(block[HEADER_BYTES..] == row);
    }

    #[test]
    fn a_block_is_what_it_was_formatted_as_and_each_fault_has_its_name() {
        let block = formatted(8192);
        assert_eq!(check(&block, 0x1d, 7), Ok(()));
        assert_eq!((number(&block), scn(&block), key(&block), version(&block)), (7, 99, 11, 0));
        assert_eq!(check(&[0; 8192], 0x1d, 7), Err(Fault::Zeros));
        assert_eq!(check(&[1; 8192], 0x1d, 7), Err(Fault::NoBlock));
        assert_eq!(check(&block, 1, 7), Err(Fault::Instance { found: 0x1d }));
        assert_eq!(check(&block, 0x1d, 8), Err(Fault::Number { found: 7 }));
    }
}
