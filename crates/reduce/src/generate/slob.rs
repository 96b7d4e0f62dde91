//! The table of a well-known load generator for Oracle: one row per block, columns of repeated
//! characters, a unique key.

use super::sealed::{self, Header, TYPE_DATA};
use super::{Distinct, Kind, Shape, oracle_like, put};

pub static KIND: Kind = Kind {
    name: "slob",
    doc: "Oracle blocks of one row each: columns of repeated characters and a unique key",
    block,
    distinct: Some(distinct),
    quarters: None,
};

const COLUMN_BYTES: usize = 129;
const COLUMNS_MAX: usize = 19;
const KEY_BYTES: usize = 20;
/// Header, slots and row directory, with room to spare.
const OVERHEAD_BYTES: usize = 160;

fn block(shape: &Shape, file: u32, block: u64, out: &mut [u8]) {
    let columns = ((out.len() - OVERHEAD_BYTES - KEY_BYTES) / COLUMN_BYTES).min(COLUMNS_MAX);
    let number = u64::from(file) * shape.blocks_per_file + block;
    let address = oracle_like::address(file, block);
    let scn = 0x10_0000 + number;
    let row = sealed::data(out, address, scn, KEY_BYTES + columns * COLUMN_BYTES);
    put(row, 0, &[0x2c, 1, columns as u8 + 1, 16]);
    put(row, 4, &shape.seed.to_be_bytes());
    put(row, 12, &number.to_be_bytes());
    for column in row[KEY_BYTES..].chunks_exact_mut(COLUMN_BYTES) {
        column.fill(b'X');
        column[0] = COLUMN_BYTES as u8 - 1;
    }
    sealed::seal(out, &Header { kind: TYPE_DATA, address, scn, flags: 4 });
}

fn distinct(shape: &Shape) -> Distinct {
    Distinct::unmasked(shape.blocks())
}
