//! Grids: the same bytes cut into blocks of several sizes, beginning at several offsets, with or
//! without fields of database pages masked.
//!
//! A [`Tower`] turns a stream of sectors into the fingerprints of all blocks of all sizes at one
//! offset: each finished block is one half of a block twice its size.

use blockstone_base::hint::Hint;
use blockstone_base::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::digest::{self, Fingerprint, SECTOR_BYTES, UNIT_BYTES, UNIT_SECTORS};

/// Largest block size that is counted, in bytes.
pub const BLOCK_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, thiserror::Error, Hint)]
pub enum GridError {
    #[error("count blocks of {size}: a block is 4K times a power of two, up to 1M")]
    #[hint("for example --block-size 4K,8K,16K,32K")]
    Size { size: Bytes },
    #[error("count blocks from offset {offset_bytes}: an offset is a multiple of 512 below 1M")]
    #[hint("for example --offset 0,512B,4K")]
    Offset { offset_bytes: u64 },
    #[error("count blocks: no {what} is given")]
    #[hint("name at least one")]
    None { what: &'static str },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Grid {
    pub block_bytes: u32,
    /// Offset of the first block of a file, in bytes. Data before it belongs to no block.
    pub offset_bytes: u32,
}

impl Grid {
    #[inline]
    pub fn level(self) -> usize {
        (self.block_bytes as usize / UNIT_BYTES).trailing_zeros() as usize
    }

    /// Number of blocks of a file of this size; the last may extend past its end.
    pub fn blocks_of(self, file_bytes: u64) -> u64 {
        file_bytes.saturating_sub(self.offset_bytes.into()).div_ceil(self.block_bytes.into())
    }
}

/// Returns all grids of a scan: every size at every offset that makes a difference.
pub fn grids(sizes: &[Bytes], offsets: &[u64]) -> Result<Vec<Grid>, GridError> {
    if sizes.is_empty() || offsets.is_empty() {
        let what = if sizes.is_empty() { "block size" } else { "offset" };
        return Err(GridError::None { what });
    }
    for &size in sizes {
        let possible = (UNIT_BYTES as u64..=BLOCK_BYTES_MAX).contains(&size.0);
        if !possible || !size.0.is_power_of_two() {
            return Err(GridError::Size { size });
        }
    }
    for &offset_bytes in offsets {
        if offset_bytes % SECTOR_BYTES as u64 != 0 || offset_bytes >= BLOCK_BYTES_MAX {
            return Err(GridError::Offset { offset_bytes });
        }
    }
    let mut grids: Vec<Grid> = offsets
        .iter()
        .flat_map(|&offset| sizes.iter().map(move |&size| (size.0 as u32, offset as u32)))
        .map(|(block_bytes, offset_bytes)| Grid { block_bytes, offset_bytes })
        .collect();
    grids.sort_unstable();
    grids.dedup();
    Ok(grids)
}

/// Turns units into blocks of all sizes up to 2^`levels` units.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tower {
    #[serde(with = "crate::text")]
    halves: Vec<Option<Fingerprint>>,
}

impl Tower {
    pub fn new(level_max: usize) -> Self {
        Self { halves: vec![None; level_max] }
    }

    pub(crate) fn levels(&self) -> usize {
        self.halves.len()
    }

    /// Emits every block that this unit completes, with its level, the smallest first.
    #[inline]
    pub fn push(&mut self, unit: Fingerprint, mut emit: impl FnMut(usize, Fingerprint)) {
        let mut finished = unit;
        emit(0, finished);
        for (level, half) in self.halves.iter_mut().enumerate() {
            let Some(first) = half.take() else {
                *half = Some(finished);
                return;
            };
            finished = digest::pair(first, finished);
            emit(level + 1, finished);
        }
    }

    /// Discards incomplete blocks: the next unit is the first of a file.
    pub fn reset(&mut self) {
        self.halves.fill(None);
    }
}

/// Turns a file's sectors into units, starting at one offset.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Units {
    skip: usize,
    left: usize,
    #[serde(serialize_with = "crate::text::serialize", deserialize_with = "crate::text::all")]
    pending: Vec<Fingerprint>,
}

impl Units {
    pub fn new(offset_bytes: u32) -> Self {
        let skip = offset_bytes as usize / SECTOR_BYTES;
        Self { skip, left: skip, pending: Vec::with_capacity(UNIT_SECTORS) }
    }

    /// Returns whether it can have resulted from units at this offset.
    pub(crate) fn is_sound(&self, offset_bytes: u32) -> bool {
        let Self { skip, left, pending } = self;
        *skip == offset_bytes as usize / SECTOR_BYTES
            && left <= skip
            && pending.len() < UNIT_SECTORS
    }

    /// Takes the next sectors; every unit that they complete is passed to `emit`.
    #[inline]
    pub fn push(&mut self, mut sectors: &[Fingerprint], mut emit: impl FnMut(Fingerprint)) {
        let skipped = self.left.min(sectors.len());
        self.left -= skipped;
        sectors = &sectors[skipped..];
        if !self.pending.is_empty() {
            let taken = sectors.len().min(UNIT_SECTORS - self.pending.len());
            self.pending.extend_from_slice(&sectors[..taken]);
            sectors = &sectors[taken..];
            if self.pending.len() < UNIT_SECTORS {
                return;
            }
            emit(digest::unit(&self.pending));
            self.pending.clear();
        }
        let whole = sectors.chunks_exact(UNIT_SECTORS);
        self.pending.extend_from_slice(whole.remainder());
        for sectors in whole {
            emit(digest::unit(sectors));
        }
    }

    /// Starts a new file: the next sector is its first.
    pub fn reset(&mut self) {
        self.left = self.skip;
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        blockstone_base::rng::fill(7, &mut bytes);
        bytes
    }

    #[test]
    fn every_block_of_every_size_and_offset_is_what_hashing_it_alone_gives() {
        let data = bytes(200 << 10);
        let mut sectors = Vec::new();
        digest::sectors(&data, &mut sectors);
        for offset in [0, 512, 1536, 4096, 5120, 12288] {
            for step in [1, 7, 8, 400] {
                let (mut units, mut tower) = (Units::new(offset), Tower::new(3));
                let mut found: [Vec<Fingerprint>; 4] = Default::default();
                for part in sectors.chunks(step) {
                    units.push(part, |unit| {
                        tower.push(unit, |level, print| found[level].push(print));
                    });
                }
                for (level, found) in found.iter().enumerate() {
                    let blocks = data[offset as usize..].chunks_exact(UNIT_BYTES << level);
                    let expected: Vec<Fingerprint> = blocks.map(digest::block).collect();
                    assert_eq!(found, &expected, "offset {offset}, level {level}, step {step}");
                }
            }
        }
    }

    #[test]
    fn grids_are_sizes_times_offsets_and_nonsense_is_refused() {
        let all = grids(&[Bytes(8192), Bytes(4096), Bytes(4096)], &[0, 512]).unwrap();
        let cells: Vec<(u32, u32)> = all.iter().map(|g| (g.block_bytes, g.offset_bytes)).collect();
        assert_eq!(cells, [(4096, 0), (4096, 512), (8192, 0), (8192, 512)]);
        assert_eq!(all[2].blocks_of(8193), 2);
        assert_eq!(all[3].blocks_of(100), 0);
        for (sizes, offsets) in [
            (vec![Bytes(6000)], vec![0]),
            (vec![Bytes(2048)], vec![0]),
            (vec![Bytes(2 << 20)], vec![0]),
            (vec![Bytes(8192)], vec![100]),
            (vec![], vec![0]),
            (vec![Bytes(8192)], vec![]),
        ] {
            let error = grids(&sizes, &offsets).unwrap_err().told();
            assert!(error.contains("\nhint: "), "{error}");
        }
    }
}
