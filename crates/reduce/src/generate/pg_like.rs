//! Tables of `PostgreSQL` with the same rows, each loaded by its own transaction.

use super::{Distinct, Kind, Shape, put, text};

pub static KIND: Kind = Kind {
    name: "pg-like",
    doc: "PostgreSQL tables of the same rows: xmin, LSN and checksum differ in each",
    block,
    distinct: Some(distinct),
    quarters: None,
};

const HEADER_BYTES: usize = 24;
const POINTER_BYTES: usize = 4;
const TUPLE_HEADER_BYTES: usize = 24;
/// Key and text; a multiple of eight, as tuples are aligned to that.
const ROW_BYTES: usize = 128;
const TUPLE_BYTES: usize = TUPLE_HEADER_BYTES + ROW_BYTES;

fn block(shape: &Shape, file: u32, block: u64, out: &mut [u8]) {
    out.fill(0);
    let rows = (out.len() - HEADER_BYTES) / (TUPLE_BYTES + POINTER_BYTES);
    let mut upper = out.len();
    for index in 0..rows {
        upper -= TUPLE_BYTES;
        let pointer = upper as u32 | 1 << 15 | (TUPLE_BYTES as u32) << 17;
        put(out, HEADER_BYTES + index * POINTER_BYTES, &pointer.to_le_bytes());
        put(out, upper, &(700 + file).to_le_bytes());
        // Block (upper half first) and position of the tuple itself.
        let number = block as u32;
        put(out, upper + 12, &((number >> 16) as u16).to_le_bytes());
        put(out, upper + 14, &(number as u16).to_le_bytes());
        put(out, upper + 16, &(index as u16 + 1).to_le_bytes());
        // Two columns, one of variable length, committed, never deleted.
        put(out, upper + 18, &[2, 0, 0x02, 0x09, TUPLE_HEADER_BYTES as u8]);
        let row = upper + TUPLE_HEADER_BYTES;
        put(out, row, &(block * rows as u64 + index as u64).to_le_bytes());
        let column = &mut out[row + 8..row + ROW_BYTES];
        text::rows(shape.seed ^ (block * rows as u64 + index as u64), column);
    }
    let lower = HEADER_BYTES + rows * POINTER_BYTES;
    let lsn = 0x0100_0000 + (u64::from(file) * shape.blocks_per_file + block) * 8200;
    // The upper half of an LSN comes first.
    put(out, 0, &lsn.rotate_left(32).to_le_bytes());
    put(out, 8, &(shape.key(file, block) as u16).to_le_bytes());
    for (at, value) in [(12, lower), (14, upper), (16, out.len()), (18, out.len() | 4)] {
        put(out, at, &(value as u16).to_le_bytes());
    }
}

fn distinct(shape: &Shape) -> Distinct {
    let masked = if shape.files == 0 { 0 } else { shape.blocks_per_file };
    Distinct { plain: shape.blocks(), masked }
}
