//! The files of `oracle-like` after each block has received one row, the same in every file: the
//! change that inserted it is a different one for every block.

use super::sealed::{self, Header, TYPE_DATA};
use super::{Distinct, Kind, Shape, oracle_like, put};

pub static KIND: Kind = Kind {
    name: "oracle-loaded",
    doc: "Oracle data files with the same row in the same block of each, changed at a different \
          SCN",
    block,
    distinct: Some(distinct),
    quarters: None,
};

const ROW_BYTES: usize = 64;

fn block(shape: &Shape, file: u32, block: u64, out: &mut [u8]) {
    if block < shape.head_blocks {
        return oracle_like::head(shape, file, block, out);
    }
    let address = oracle_like::address(file, block);
    let scn = 0x10_0000 + u64::from(file) * shape.blocks_per_file + block;
    let row = sealed::data(out, address, scn, ROW_BYTES);
    // Flags of a whole row, its lock byte, two columns with their lengths.
    row.fill(b'r');
    put(row, 0, &[0x2c, 1, 2, 16]);
    put(row, 4, &shape.seed.to_be_bytes());
    put(row, 12, &block.to_be_bytes());
    put(row, 20, &[ROW_BYTES as u8 - 21]);
    sealed::seal(out, &Header { kind: TYPE_DATA, address, scn, flags: 4 });
}

fn distinct(shape: &Shape) -> Distinct {
    Distinct { plain: shape.blocks(), masked: shape.distinct_by_head() }
}
