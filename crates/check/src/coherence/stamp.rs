//! Content of a block: each sector records which check wrote which version of it. Pure.

use blockstone_base::rng;
use serde::{Deserialize, Serialize};

use super::history::INITIAL;

pub const BLOCK_BYTES: usize = 4096;
pub const SECTOR_BYTES: usize = 512;
const SECTORS: usize = BLOCK_BYTES / SECTOR_BYTES;
/// First bytes of every sector.
const MAGIC: [u8; 8] = *b"BSTNcohr";

/// Content of a block or sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// A single version throughout; [`INITIAL`] is zeros, or data of another check.
    Whole(u64),
    /// Sectors of different versions.
    Mixed(u64, u64),
    /// Data that no rank wrote there.
    Foreign,
}

/// Fills a block, or the sector with this number, with a version.
pub fn write(id: u64, sector: u64, version: u64, out: &mut [u8]) {
    for (number, out) in (sector..).zip(out.chunks_exact_mut(SECTOR_BYTES)) {
        write_sector(id, number, version, out);
    }
}

fn write_sector(id: u64, sector: u64, version: u64, out: &mut [u8]) {
    rng::fill(id ^ rng::mix(sector) ^ rng::mix(version).rotate_left(17), out);
    out[..8].copy_from_slice(&MAGIC);
    for (at, number) in [id, sector, version].into_iter().enumerate() {
        out[8 + at * 8..16 + at * 8].copy_from_slice(&number.to_le_bytes());
    }
}

/// Returns the content of the sectors from this number on.
pub fn read(id: u64, sector: u64, data: &[u8]) -> Content {
    let mut found: Option<u64> = None;
    for (number, data) in (sector..).zip(data.chunks_exact(SECTOR_BYTES)) {
        match (read_sector(id, number, data), found) {
            (None, _) => return Content::Foreign,
            (Some(version), Some(known)) if version != known => {
                return Content::Mixed(known, version);
            }
            (version, _) => found = version,
        }
    }
    Content::Whole(found.unwrap_or(INITIAL))
}

fn read_sector(id: u64, sector: u64, data: &[u8]) -> Option<u64> {
    if data.iter().all(|&byte| byte == 0) {
        return Some(INITIAL);
    }
    let number = |at: usize| {
        let bytes = data.get(8 + at * 8..16 + at * 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    if !is_ours(data) {
        return None;
    }
    let (by, version) = (number(0)?, number(2)?);
    let mut expected = [0; SECTOR_BYTES];
    write_sector(by, sector, version, &mut expected);
    let is_intact = expected[..] == *data;
    is_intact.then_some(if by == id { version } else { INITIAL })
}

/// Returns whether a check of coherence wrote this sector.
pub fn is_ours(sector: &[u8]) -> bool {
    sector.starts_with(&MAGIC)
}

pub const fn sectors_before(block: u64) -> u64 {
    block * SECTORS as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_where_and_by_whom_it_was_written() {
        let mut block = vec![0; BLOCK_BYTES];
        assert_eq!(read(7, 16, &block), Content::Whole(INITIAL));
        write(7, 16, 41, &mut block);
        assert_eq!(read(7, 16, &block), Content::Whole(41));
        assert_eq!(read(8, 16, &block), Content::Whole(INITIAL), "of an earlier check");
        assert_eq!(read(7, 24, &block), Content::Foreign, "of another block");
        write(7, 19, 42, &mut block[3 * SECTOR_BYTES..4 * SECTOR_BYTES]);
        assert_eq!(read(7, 16, &block), Content::Mixed(41, 42));
        assert_eq!(read(7, 19, &block[3 * SECTOR_BYTES..4 * SECTOR_BYTES]), Content::Whole(42));
        for at in [0, 9, 17, 30, 100, BLOCK_BYTES - 1] {
            let mut damaged = block.clone();
            damaged[at] ^= 1;
            assert_ne!(read(7, 16, &damaged), Content::Whole(41), "{at}");
        }
    }
}
