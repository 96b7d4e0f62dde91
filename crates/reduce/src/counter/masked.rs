//! Counts contents as without masks, but with the masked fields of each page set to zero.

use serde::{Deserialize, Serialize};

use crate::digest::{Fingerprint, SECTOR_BYTES, UNIT_BYTES, Zeros};
use crate::grid::{Grid, Tower, Units};
use crate::hash::{Prints, SEGMENT_BYTES};
use crate::mask::Mask;
use crate::plan::{Memory, Plan};
use crate::table::{Location, Table};

use super::BLOCKS_MAX;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MaskedGrid {
    /// The grid; its offset is zero.
    pub grid: Grid,
    pub mask: Mask,
    pub blocks: u64,
    /// Blocks that consist only of zeros without any mask.
    pub zero_blocks: u64,
    /// Contents of the other blocks.
    pub table: Table,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Masked {
    units: Units,
    lanes: Vec<Lane>,
    levels: Vec<usize>,
    #[serde(skip)]
    buffer: Vec<Fingerprint>,
    /// Number of units of this file so far.
    file_units: u64,
}

/// One mask: a grid for each level.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Lane {
    mask: Mask,
    tower: Tower,
    grids: Vec<MaskedGrid>,
}

impl Masked {
    pub fn new(plan: &Plan, memory: &Memory) -> Self {
        let levels = plan.levels();
        let level_max = levels.last().copied().unwrap_or_default();
        let grid = |mask, level, bytes| MaskedGrid {
            grid: Grid { block_bytes: (UNIT_BYTES << level) as u32, offset_bytes: 0 },
            mask,
            blocks: 0,
            zero_blocks: 0,
            table: Table::new(bytes),
        };
        let lane = |(&mask, memory): (&Mask, &[usize])| Lane {
            mask,
            tower: Tower::new(level_max),
            grids: levels.iter().zip(memory).map(|(&l, &bytes)| grid(mask, l, bytes)).collect(),
        };
        let memory = memory.masked.chunks(levels.len().max(1));
        Self {
            units: Units::new(0),
            lanes: plan.masks.iter().zip(memory).map(lane).collect(),
            buffer: Vec::new(),
            file_units: 0,
            levels,
        }
    }

    /// Returns whether it can have resulted from this plan.
    pub fn is_sound(&self, plan: &Plan) -> bool {
        let level_max = plan.levels().last().copied().unwrap_or_default();
        let lane = |(lane, &mask): (&Lane, &Mask)| {
            let sizes = lane.grids.iter().map(|masked| masked.grid.block_bytes);
            lane.mask == mask
                && lane.tower.levels() == level_max
                && sizes.eq(self.levels.iter().map(|level| (UNIT_BYTES << level) as u32))
                && lane.grids.iter().all(|masked| masked.mask == mask && masked.is_sound())
        };
        self.levels == plan.levels()
            && self.units.is_sound(0)
            && self.file_units <= BLOCKS_MAX
            && self.lanes.len() == plan.masks.len()
            && self.lanes.iter().zip(&plan.masks).all(lane)
    }

    pub fn grids(&self) -> impl Iterator<Item = &MaskedGrid> {
        self.lanes.iter().flat_map(|lane| &lane.grids)
    }

    pub fn grids_mut(&mut self) -> impl Iterator<Item = &mut MaskedGrid> {
        self.lanes.iter_mut().flat_map(|lane| &mut lane.grids)
    }

    pub fn begin_file(&mut self) {
        self.units.reset();
        self.lanes.iter_mut().for_each(|lane| lane.tower.reset());
        self.file_units = 0;
    }

    /// Feeds the sectors of a segment; units with fields are taken from `prints`.
    pub fn push(&mut self, sectors: &[Fingerprint], prints: &Prints, zeros: &Zeros) {
        if self.lanes.is_empty() {
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        self.units.push(sectors, |unit| buffer.push(unit));
        for Lane { mask, tower, grids } in &mut self.lanes {
            for (index, &unit) in buffer.iter().enumerate() {
                let parts = prints.masked.get(index).and_then(|unit| unit.parts);
                let print = parts.map_or(unit, |parts| parts.masked(*mask));
                tower.push(print, |level, print| {
                    if let Ok(place) = self.levels.binary_search(&level) {
                        grids[place].see(print, zeros.level(level));
                    }
                });
            }
        }
        self.file_units += buffer.len() as u64;
        self.buffer = buffer;
    }

    pub fn more_zeros(&mut self) {
        for grid in self.grids_mut() {
            let more = SEGMENT_BYTES as u64 / u64::from(grid.grid.block_bytes);
            grid.blocks += more;
            grid.zero_blocks += more;
        }
        self.file_units += (SEGMENT_BYTES / UNIT_BYTES) as u64;
    }

    /// Fills open blocks with zeros, and subtracts blocks that this adds past the end of the file.
    pub fn end_file(&mut self, bytes: u64, zeros: &Zeros) {
        let largest = self.levels.last().map_or(UNIT_BYTES, |&level| UNIT_BYTES << level) as u64;
        let missing = bytes.next_multiple_of(largest) - bytes.next_multiple_of(SECTOR_BYTES as u64);
        let padding = vec![zeros.sector; (missing / SECTOR_BYTES as u64) as usize];
        self.push(&padding, &Prints::default(), zeros);
        let counted_bytes = self.file_units * UNIT_BYTES as u64;
        for grid in self.grids_mut() {
            let block_bytes = u64::from(grid.grid.block_bytes);
            let surplus = counted_bytes / block_bytes - bytes.div_ceil(block_bytes);
            grid.blocks -= surplus;
            grid.zero_blocks -= surplus;
        }
    }
}

impl MaskedGrid {
    fn is_sound(&self) -> bool {
        self.grid.offset_bytes == 0
            && self.zero_blocks <= self.blocks
            && self.blocks <= BLOCKS_MAX
            && self.table.is_sound()
    }

    #[inline]
    fn see(&mut self, print: Fingerprint, zero: Fingerprint) {
        self.blocks += 1;
        if print == zero {
            self.zero_blocks += 1;
        } else {
            self.table.see(print, Location::new(0, 0));
        }
    }
}
