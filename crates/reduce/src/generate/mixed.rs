//! A bit of everything, in runs of eight blocks: zeros, unique bytes, repeats within the file and
//! across files, copies shifted by a sector, text. It has no closed form: it is counted twice.

use blockstone_base::rng;

use super::{Kind, Shape, shifted, text};

pub static KIND: Kind = Kind {
    name: "mixed",
    doc: "runs of zeros, random bytes, repeats within and across files, shifted copies, text",
    block,
    distinct: None,
    quarters: None,
};

const RUN_BLOCKS: u64 = 8;
const SECTOR_BYTES: u64 = 512;
/// Number of distinct blocks that repeat within a file.
const OWN: u64 = 16;
/// Number of distinct runs that repeat across files.
const SHARED_RUNS: u64 = 32;

fn block(shape: &Shape, file: u32, block: u64, out: &mut [u8]) {
    let run = shape.key(file, block / RUN_BLOCKS);
    let choice = rng::mix(run);
    // Runs come from the same stream that `shifted` uses, as long as they are.
    let shared = (choice % SHARED_RUNS * RUN_BLOCKS + block % RUN_BLOCKS) * out.len() as u64;
    match choice >> 32 & 7 {
        0 => out.fill(0),
        1 | 2 => rng::fill(rng::mix(shape.key(file, block)), out),
        3 => rng::fill(rng::mix(!shape.key(file, shape.key(file, block) % OWN)), out),
        4 | 5 => shifted::stream(shape, shared, out),
        6 => shifted::stream(shape, shared + SECTOR_BYTES, out),
        _ => text::rows(shape.key(file, block), out),
    }
}
