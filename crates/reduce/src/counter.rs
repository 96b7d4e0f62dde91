//! Counting: segments of files in order → the contents of every grid, the files that hold them,
//! their places, and the blocks to compress.

mod block_sizes;
mod detail;
mod masked;
mod merge;
mod rows;
mod sample;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::chunk::Chunks;
use crate::compress::Sizes;
use crate::digest::{Fingerprint, SECTOR_BYTES, UNIT_BYTES, UNIT_SECTORS, Zeros};
use crate::grid::{Grid, Tower, Units};
use crate::hash::{Hashed, Prints, SEGMENT_BYTES};
use crate::mask::MaskedUnit;
use crate::page::Rows;
use crate::plan::Plan;
use crate::sets::{EMPTY, FileId, Sets};
use crate::table::{FILES_MAX, Location, Occurrence, Table};

pub use block_sizes::BlockSizes;
pub use detail::{Run, Strip, StripBin};
pub use masked::MaskedGrid;
pub use merge::MergeError;
pub use rows::{Row, RowError};
pub use sample::Sample;

use detail::Detail;
use masked::Masked;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedFile {
    /// Bytes counted, without the padding of the last segment to a whole block.
    pub bytes: u64,
    /// Bytes of them in segments that consist only of zeros, including holes.
    pub zero_segment_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Index of its grid in the plan.
    pub grid: usize,
    pub print: Fingerprint,
    /// Offset of its first byte in the file. Any part past the end of the file is zeros.
    pub start_bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GridCount {
    pub grid: Grid,
    pub blocks: u64,
    /// Blocks that consist only of zeros.
    pub zero_blocks: u64,
    /// Contents of the other blocks.
    pub table: Table,
    /// Sizes of contents under the compressors.
    pub sample: Sample,
    /// Sizes of blocks, for models in which contents count as often as they occur.
    #[serde(default)]
    pub block_sizes: BlockSizes,
}

/// One offset: its units, and the tower of blocks built from them.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Lane {
    units: Units,
    tower: Tower,
    /// For each level: its grid, and the number of blocks of this file so far.
    grids: Vec<Option<(usize, u64)>>,
    #[serde(skip)]
    units_now: Vec<Fingerprint>,
    /// By level.
    #[serde(skip)]
    blocks_now: Vec<Vec<Fingerprint>>,
}

/// Counts segments. A serialized counter lacks its contents; see [`Counter::rows`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counter {
    plan: Plan,
    #[serde(skip)]
    zeros: Zeros,
    #[serde(skip)]
    pub(crate) sets: Sets,
    grids: Vec<GridCount>,
    lanes: Vec<Lane>,
    pub(crate) masked: Masked,
    pub(crate) chunks: Chunks,
    pub(crate) detail: Detail,
    files: Vec<CountedFile>,
    /// Rows of pages with a known format; absent in scans of earlier versions.
    #[serde(default)]
    page_rows: Rows,
    /// Consecutive segments of zeros up to the last one fed.
    zero_segments: u32,
}

/// Maximum number of bytes that a scan counts, 1 EiB: more than any file system holds.
const BYTES_MAX: u64 = 1 << 60;
/// Number of blocks that a place can distinguish, and thus the maximum that a grid counts.
pub(crate) const BLOCKS_MAX: u64 = 1 << 44;

/// Known sizes of blocks that are not zeros.
#[derive(Clone, Debug)]
pub struct CompressedBlocks {
    /// Contents, the number of times each counts, and their sizes.
    pub sizes: Vec<(Fingerprint, u32, Sizes)>,
    /// Whether blocks were drawn; otherwise contents were, and each counts as often as it occurs.
    pub are_drawn: bool,
}

impl GridCount {
    /// Returns the known sizes of blocks: those of all contents if all were compressed, otherwise
    /// those of drawn blocks; if a scan drew none, those of a share of contents.
    pub fn compressed_blocks(&self) -> CompressedBlocks {
        let is_whole = self.table.share_log2() == 0 && self.sample.share_log2() == 0;
        let are_drawn = !is_whole && !self.block_sizes.is_empty();
        let sizes = if are_drawn {
            self.block_sizes.sizes().collect()
        } else {
            let sizes = self.sample.sizes();
            sizes.filter_map(|(it, &sizes)| Some((it, self.table.get(it)?.count, sizes))).collect()
        };
        CompressedBlocks { sizes, are_drawn }
    }

    /// Number of contents of a kind, estimated from the number of those that were compressed.
    pub fn population(&self, compressed: usize) -> f64 {
        let share_log2 = self.sample.share_log2().max(self.table.share_log2());
        compressed as f64 * 2_f64.powi(share_log2 as i32)
    }

    fn is_sound(&self) -> bool {
        self.zero_blocks <= self.blocks
            && self.blocks <= BLOCKS_MAX
            && self.table.is_sound()
            && self.sample.is_sound()
    }
}

impl Counter {
    /// Returns whether it can have resulted from its plan; a deserialized one may be anything.
    fn is_sound(&self) -> bool {
        let plan = &self.plan;
        if !plan.is_sound() || !self.grids.iter().map(|count| &count.grid).eq(plan.grids()) {
            return false;
        }
        let level_max = plan.levels().last().copied().unwrap_or_default();
        let mut offsets: Vec<u32> = plan.grids().iter().map(|grid| grid.offset_bytes).collect();
        offsets.sort_unstable();
        offsets.dedup();
        let lane = |(lane, &offset): (&Lane, &u32)| {
            let here = self.places(offset, level_max);
            lane.units.is_sound(offset)
                && lane.tower.levels() == level_max
                && here.eq(lane.grids.iter().map(|grid| grid.map(|(index, _)| index)))
                && lane.grids.iter().flatten().all(|&(_, blocks)| blocks <= BLOCKS_MAX)
        };
        let files = self.files.len();
        let bytes = self.files.iter().try_fold(0_u64, |sum, file| {
            let possible = file.zero_segment_bytes <= file.bytes;
            sum.checked_add(file.bytes).filter(|sum| possible && *sum <= BYTES_MAX)
        });
        self.lanes.len() == offsets.len()
            && self.lanes.iter().zip(&offsets).all(lane)
            && self.grids.iter().all(GridCount::is_sound)
            && self.masked.is_sound(plan)
            && files <= FILES_MAX
            && bytes.is_some_and(|bytes| self.chunks.is_sound(files, bytes))
            && self.detail.is_sound(plan, files)
    }

    /// Returns the index of the grid of each level at this offset.
    fn places(&self, offset: u32, level_max: usize) -> impl Iterator<Item = Option<usize>> + '_ {
        (0..=level_max).map(move |level| {
            let here = |count: &GridCount| {
                count.grid.offset_bytes == offset && count.grid.level() == level
            };
            self.grids.iter().position(here)
        })
    }

    pub fn new(plan: Plan) -> Self {
        let level_max = plan.levels().last().copied().unwrap_or_default();
        let memory = plan.memory();
        let grids: Vec<GridCount> = plan
            .grids()
            .iter()
            .zip(&memory.plain)
            .enumerate()
            .map(|(index, (&grid, &bytes))| GridCount {
                grid,
                blocks: 0,
                zero_blocks: 0,
                table: Table::new(bytes),
                sample: Sample::new(plan.compressed_contents(index)),
                block_sizes: BlockSizes::new(plan.compressed_blocks(index)),
            })
            .collect();
        let mut offsets: Vec<u32> = grids.iter().map(|grid| grid.grid.offset_bytes).collect();
        offsets.sort_unstable();
        offsets.dedup();
        let lane = |&offset: &u32| Lane {
            units: Units::new(offset),
            tower: Tower::new(level_max),
            grids: (0..=level_max)
                .map(|level| {
                    let here = |count: &GridCount| {
                        count.grid.offset_bytes == offset && count.grid.level() == level
                    };
                    grids.iter().position(here).map(|index| (index, 0))
                })
                .collect(),
            units_now: Vec::new(),
            blocks_now: vec![Vec::new(); level_max + 1],
        };
        Self {
            zeros: Zeros::up_to(level_max),
            sets: Sets::default(),
            lanes: offsets.iter().map(lane).collect(),
            masked: Masked::new(&plan, &memory),
            chunks: Chunks::new(memory.chunks),
            detail: Detail::new(&plan),
            files: Vec::new(),
            page_rows: Rows::default(),
            zero_segments: 0,
            grids,
            plan,
        }
    }

    /// Begins the next file; `bytes` is its size as known now.
    pub fn begin_file(&mut self, bytes: u64) -> FileId {
        let file = self.files.len() as FileId;
        self.files.push(CountedFile::default());
        for lane in &mut self.lanes {
            lane.units.reset();
            lane.tower.reset();
            lane.grids.iter_mut().flatten().for_each(|(_, blocks)| *blocks = 0);
        }
        self.masked.begin_file();
        self.detail.begin_file(file, bytes);
        self.zero_segments = 0;
        file
    }

    /// Counts the next segment of the file; appends the blocks to compress to `wanted`.
    ///
    /// # Panics
    /// Before the first file.
    pub fn feed(&mut self, hashed: &Hashed, wanted: &mut Vec<Wanted>) {
        let file = self.files.last_mut().expect("a file has started");
        let start_bytes = file.bytes;
        file.bytes += hashed.len_bytes();
        match hashed {
            Hashed::Zeros(bytes) => {
                file.zero_segment_bytes += bytes;
                if self.zero_segments > 1 && *bytes == SEGMENT_BYTES as u64 {
                    self.more_zeros();
                } else {
                    let sectors = bytes.div_ceil(SECTOR_BYTES as u64) as usize;
                    let zeros: Vec<Fingerprint> = vec![self.zeros.sector; sectors];
                    self.sectors(&zeros, &Prints::default(), wanted);
                }
                self.zero_segments += 1;
            }
            Hashed::Data(prints) => {
                self.zero_segments = 0;
                self.sectors(&prints.sectors, prints, wanted);
                self.page_rows.add(&prints.rows);
                let file = self.files.len() as FileId - 1;
                self.chunks.count(file, start_bytes, &prints.chunks);
            }
        }
        while self.sets.count() > self.plan.sets_max() && self.forget_sets() {}
    }

    /// Ends the file: blocks that it does not fill are counted as if zeros followed.
    pub fn end_file(&mut self, wanted: &mut Vec<Wanted>) {
        let bytes = self.files.last().map_or(0, |file| file.bytes);
        let padding = [self.zeros.sector; UNIT_SECTORS];
        for lane in 0..self.lanes.len() {
            // A lane with an open block is fed zeros until that block is complete; larger blocks
            // that are then open do not get more than they need either.
            let needed = |(index, blocks): (usize, u64)| {
                let grid = self.grids[index].grid;
                (grid.blocks_of(bytes) > blocks).then(|| {
                    let end =
                        u64::from(grid.offset_bytes) + (blocks + 1) * u64::from(grid.block_bytes);
                    end - bytes.next_multiple_of(SECTOR_BYTES as u64).min(end)
                })
            };
            let most = self.lanes[lane].grids.iter().flatten().copied().filter_map(needed).max();
            let mut sectors = most.unwrap_or(0) / SECTOR_BYTES as u64;
            while sectors > 0 {
                let now = sectors.min(UNIT_SECTORS as u64) as usize;
                self.lane(lane, &padding[..now], &Prints::default(), Some(bytes), wanted);
                sectors -= now as u64;
            }
        }
        self.masked.end_file(bytes, &self.zeros);
        self.detail.end_file();
    }

    pub fn compressed(&mut self, grid: usize, print: Fingerprint, sizes: Sizes) {
        self.grids[grid].sample.put(print, sizes);
        self.grids[grid].block_sizes.put(print, sizes);
    }

    /// Returns whether this content of a grid still has to be compressed: the share may have shrunk
    /// since it was wanted, and another block may have been drawn in its place.
    pub fn lacks(&self, grid: usize, print: Fingerprint) -> bool {
        let count = &self.grids[grid];
        count.sample.lacks(print) || count.block_sizes.lacks(print)
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The counts of all grids, in the plan's order.
    pub fn grids(&self) -> &[GridCount] {
        &self.grids
    }

    pub fn page_rows(&self) -> Rows {
        self.page_rows
    }

    pub fn files(&self) -> &[CountedFile] {
        &self.files
    }

    /// Blocks of the primary grid that their database never used, not counting blocks of zeros.
    pub fn never_used_blocks(&self) -> f64 {
        let table = &self.grids[self.plan.primary()].table;
        let never = table.entries().filter(|entry| entry.never_used());
        never.map(|entry| u64::from(entry.count)).sum::<u64>() as f64 * table.scale()
    }

    /// Keeps half of the contents and only their file sets. Returns false if all sets are still
    /// needed.
    fn forget_sets(&mut self) -> bool {
        let mut sets = Sets::default();
        let mut moved = HashMap::from([(EMPTY, EMPTY)]);
        let before = self.sets.count();
        for count in &mut self.grids {
            count.table.halve();
            count.sample.limit_share(count.table.share_log2());
            count.table.for_each_set(|set| {
                *moved.entry(set).or_insert_with(|| {
                    let mut files: Vec<FileId> = self.sets.files(set).collect();
                    files.reverse();
                    files.iter().fold(EMPTY, |set, &file| sets.with(set, file))
                })
            });
        }
        self.sets = sets;
        self.sets.count() < before
    }

    /// Requires that two segments of zeros have gone before: whatever is open then contains only
    /// zeros, and one more segment adds just the blocks of zeros that fit into it.
    fn more_zeros(&mut self) {
        for lane in &mut self.lanes {
            for (grid, blocks) in lane.grids.iter_mut().flatten() {
                let count = &mut self.grids[*grid];
                let more = (SEGMENT_BYTES / count.grid.block_bytes as usize) as u64;
                count.blocks += more;
                count.zero_blocks += more;
                if *grid == self.plan.primary() {
                    self.detail.zeros(*blocks, more);
                }
                *blocks += more;
            }
        }
        self.masked.more_zeros();
    }

    fn sectors(&mut self, sectors: &[Fingerprint], prints: &Prints, wanted: &mut Vec<Wanted>) {
        for lane in 0..self.lanes.len() {
            self.lane(lane, sectors, prints, None, wanted);
        }
        self.masked.push(sectors, prints, &self.zeros);
    }

    /// Feeds one lane. `end_bytes` is the size of the file once its end is reached: then only
    /// blocks that begin before it are counted.
    fn lane(
        &mut self,
        lane: usize,
        sectors: &[Fingerprint],
        prints: &Prints,
        end_bytes: Option<u64>,
        wanted: &mut Vec<Wanted>,
    ) {
        let Self { plan, zeros, sets, grids, lanes, detail, files, .. } = self;
        let Lane { units, tower, grids: levels, units_now, blocks_now } = &mut lanes[lane];
        let place = |grid: &Option<(usize, u64)>| grid.is_some_and(|(at, _)| at == plan.primary());
        let primary_level = levels.iter().position(place);
        units_now.clear();
        blocks_now.iter_mut().for_each(Vec::clear);
        units.push(sectors, |unit| units_now.push(unit));
        let masked = masked_of(prints, plan, files.last().map_or(0, |file| file.bytes));
        for (index, &unit) in units_now.iter().enumerate() {
            if primary_level.is_some() {
                detail.unit(unit, masked.get(index), zeros.level(0));
            }
            tower.push(unit, |level, print| {
                blocks_now[level].push(print);
                if Some(level) == primary_level {
                    detail.end_block();
                }
            });
        }
        let file = files.len() as FileId - 1;
        for (level, grid) in levels.iter_mut().enumerate() {
            let Some((index, next)) = grid else { continue };
            let count = &mut grids[*index];
            let last = end_bytes.map_or(u64::MAX, |end| count.grid.blocks_of(end));
            let blocks = &blocks_now[level];
            let fresh = blocks.len().min(last.saturating_sub(*next) as usize);
            let first = Location::new(file, *next);
            *next += fresh as u64;
            let mut to = To { index: *index, sets, wanted, zero: zeros.level(level), detail: None };
            if Some(level) == primary_level {
                to.detail = Some(detail);
            }
            count.blocks(&blocks[..fresh], first, &mut to);
        }
        if primary_level.is_some() {
            detail.end_blocks();
        }
    }
}

/// Returns the units with fields for the primary grid's lane, from a segment that ends at
/// `end_bytes`: those from the grid's offset on. If that is between units, nothing is known.
fn masked_of<'a>(prints: &'a Prints, plan: &Plan, end_bytes: u64) -> &'a [MaskedUnit] {
    let offset = plan.grids()[plan.primary()].offset_bytes as usize;
    if !offset.is_multiple_of(UNIT_BYTES) {
        return &[];
    }
    let is_first = end_bytes == prints.len_bytes;
    let skipped = if is_first { offset / UNIT_BYTES } else { 0 };
    prints.masked.get(skipped..).unwrap_or_default()
}

/// How an array that has seen all blocks before this one would treat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// The first block with its content.
    Not,
    /// A repeat of content that occurred in this file before.
    SameFile(Location),
    /// Content that occurred in another file, but not in this one before.
    CrossFile(Location),
}

struct To<'a> {
    index: usize,
    sets: &'a mut Sets,
    wanted: &'a mut Vec<Wanted>,
    zero: Fingerprint,
    /// Set for the primary grid only.
    detail: Option<&'a mut Detail>,
}

/// Number of blocks whose table slots are fetched together before any of them is counted.
const FETCHED: usize = 32;

impl GridCount {
    fn blocks(&mut self, prints: &[Fingerprint], first: Location, to: &mut To<'_>) {
        self.blocks += prints.len() as u64;
        for (group, some) in prints.chunks(FETCHED).enumerate() {
            self.table.fetch(some);
            for (offset, &print) in some.iter().enumerate() {
                let index = group * FETCHED + offset;
                let place = Location::new(first.file(), first.at() + index as u64);
                if print == to.zero {
                    self.zero_blocks += 1;
                    if let Some(detail) = &mut to.detail {
                        detail.zeros(place.at(), 1);
                    }
                    continue;
                }
                let copied = self.see(print, place, to.sets);
                if let Some(detail) = &mut to.detail {
                    detail.block(place, index, (print, copied), &mut self.table);
                }
                let is_new = copied == Some(Copied::Not) && self.sample.wants(print);
                if self.block_sizes.wants(print, place) | is_new {
                    let start_bytes = u64::from(self.grid.offset_bytes)
                        + place.at() * u64::from(self.grid.block_bytes);
                    to.wanted.push(Wanted { grid: to.index, print, start_bytes });
                }
            }
        }
    }

    /// Counts a block that is not zeros; returns `None` if its content is outside the share.
    #[inline]
    fn see(&mut self, print: Fingerprint, place: Location, sets: &mut Sets) -> Option<Copied> {
        let share = self.table.share_log2();
        let copied = match self.table.see(print, place) {
            Occurrence::Outside => None,
            Occurrence::New(entry) => {
                entry.set_set(sets.with(EMPTY, place.file()));
                Some(Copied::Not)
            }
            Occurrence::Again(entry) => {
                let set = entry.set();
                if sets.ends_with(set, place.file()) {
                    Some(Copied::SameFile(entry.first))
                } else {
                    entry.set_set(sets.with(set, place.file()));
                    Some(Copied::CrossFile(entry.first))
                }
            }
        };
        if self.table.share_log2() != share {
            self.sample.limit_share(self.table.share_log2());
        }
        copied
    }
}

const _: () = assert!(SEGMENT_BYTES.is_multiple_of(UNIT_BYTES));

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use blockstone_base::rng::{self, Rng};
    use blockstone_base::units::Bytes;

    use super::*;
    use crate::digest;
    use crate::hash::Hasher;

    pub fn plan() -> Plan {
        let sizes = [4096, 8192, 16384, 32768].map(Bytes);
        Plan::new(&sizes, &[0, 512, 4096], Bytes(8192)).expect("a plan")
    }

    /// Creates files made of few contents of 512 bytes and of longer stretches.
    pub fn files(seed: u64) -> Vec<Vec<u8>> {
        let mut rng = Rng::new(seed, 0);
        let stretch = |rng: &mut Rng| {
            let mut bytes = vec![0; [512, 4096, 8192, 32768, 3 << 20][rng.below(5) as usize]];
            let content = rng.below(6);
            if content > 0 {
                rng::fill(content, &mut bytes);
            }
            bytes
        };
        let file = |rng: &mut Rng| {
            let mut bytes: Vec<u8> = (0..rng.below(12)).flat_map(|_| stretch(rng)).collect();
            bytes.truncate(bytes.len() - rng.below(700).min(bytes.len() as u64) as usize);
            bytes
        };
        (0..4).map(|_| file(&mut rng)).collect()
    }

    pub fn count(plan: Plan, files: &[Vec<u8>]) -> Counter {
        let mut counter = Counter::new(plan);
        feed(&mut counter, files);
        counter
    }

    pub fn feed(counter: &mut Counter, files: &[Vec<u8>]) {
        let mut hasher = Hasher::default();
        let depth = counter.plan().depth();
        for file in files {
            counter.begin_file(file.len() as u64);
            for segment in file.chunks(SEGMENT_BYTES) {
                counter.feed(&hasher.hash(segment, None, depth), &mut Vec::new());
            }
            counter.end_file(&mut Vec::new());
        }
    }

    #[test]
    fn every_grid_agrees_with_a_count_by_hand() {
        for seed in 0..12 {
            let files = files(seed);
            let counter = count(plan(), &files);
            for count in counter.grids() {
                let Grid { block_bytes, offset_bytes } = count.grid;
                let mut held: HashMap<Vec<u8>, (u32, HashSet<usize>)> = HashMap::new();
                let (mut blocks, mut zero_blocks) = (0, 0);
                for (index, file) in files.iter().enumerate() {
                    let from = file.get(offset_bytes as usize..).unwrap_or_default();
                    for block in from.chunks(block_bytes as usize) {
                        let mut block = block.to_vec();
                        block.resize(block_bytes as usize, 0);
                        blocks += 1;
                        if block.iter().all(|&byte| byte == 0) {
                            zero_blocks += 1;
                            continue;
                        }
                        let entry = held.entry(block).or_default();
                        entry.0 += 1;
                        entry.1.insert(index);
                    }
                }
                let about = format!("seed {seed}, {:?}", count.grid);
                assert_eq!((count.blocks, count.zero_blocks), (blocks, zero_blocks), "{about}");
                assert_eq!(count.table.len(), held.len(), "{about}");
                for (block, (times, holders)) in held {
                    let entry = count.table.get(digest::block(&block)).expect("it is known");
                    assert_eq!(entry.count, times, "{about}");
                    let found: HashSet<usize> =
                        counter.sets.files(entry.set()).map(|file| file as usize).collect();
                    assert_eq!(found, holders, "{about}");
                }
            }
        }
    }

    #[test]
    fn masks_that_mask_nothing_change_nothing() {
        for seed in 20..24 {
            let counter = count(plan().with_masks(), &files(seed));
            let mut masked = 0;
            for grid in counter.masked.grids() {
                let plain = counter.grids().iter().find(|plain| plain.grid == grid.grid);
                let plain = plain.expect("the same grid without a mask");
                assert_eq!((grid.blocks, grid.zero_blocks), (plain.blocks, plain.zero_blocks));
                assert_eq!(grid.table.len(), plain.table.len());
                masked += 1;
            }
            assert_eq!(masked, 9 * 4);
        }
    }

    #[test]
    fn strips_add_up_to_the_counts_and_a_long_copy_is_a_run() {
        let mut original = vec![0; 2 << 20];
        rng::fill(9, &mut original);
        let mut copy = vec![0; 5 * 8192];
        rng::fill(10, &mut copy);
        copy.extend_from_slice(&original);
        copy.extend_from_slice(&[0; 16384]);
        let counter = count(plan(), &[original, copy]);
        let run = counter.detail.runs()[0];
        let expected = Run { blocks: 256, file: 1, start: 5, original: 0, original_start: 0 };
        assert_eq!(run, expected);
        let bins = || counter.detail.strips[1].bins.iter();
        assert_eq!(bins().map(|bin| bin.stored).sum::<u32>(), 5);
        assert_eq!(bins().map(|bin| bin.cross_file).sum::<u32>(), 256);
        assert_eq!(bins().map(|bin| bin.zero).sum::<u32>(), 2);
        assert_eq!(bins().map(|bin| bin.same_file).sum::<u32>(), 0);
    }

    #[test]
    fn sets_without_end_cost_contents_not_memory() {
        let mut plan = Plan::new(&[Bytes(4096)], &[0], Bytes(4096)).expect("a plan");
        plan.memory_bytes = 512 << 10;
        let most = plan.sets_max();
        // Each file holds some of 4,000 contents, so that hardly any two are held by the same
        // files.
        let mut rng = Rng::new(5, 0);
        let file = |rng: &mut Rng| {
            let mut bytes = Vec::new();
            for content in (0..4000_u64).filter(|_| rng.below(3) == 0) {
                let start = bytes.len();
                bytes.resize(start + 4096, 0);
                rng::fill(content + 1, &mut bytes[start..]);
            }
            bytes
        };
        let files: Vec<Vec<u8>> = (0..12).map(|_| file(&mut rng)).collect();
        let counter = count(plan, &files);
        assert!(counter.sets.count() <= most, "{}", counter.sets.count());
        let table = &counter.grids()[0].table;
        assert!(table.share_log2() > 0 && !table.is_empty());
        for entry in table.entries() {
            assert_eq!(counter.sets.len(entry.set()), entry.count, "once in each file");
        }
        let contents = (table.len() << table.share_log2()) as f64;
        assert!((contents / 4000.0 - 1.0).abs() < 0.3, "{contents}");
    }

    #[test]
    fn little_memory_keeps_a_share_that_still_tells_the_ratio() {
        let mut one = vec![0; 32 << 20];
        rng::fill(3, &mut one);
        let mut plan = plan();
        plan.memory_bytes = 256 << 10;
        let counter = count(plan, &[one.clone(), one]);
        for count in counter.grids() {
            assert!(count.table.entries().all(|entry| entry.count == 2));
        }
        let smallest = &counter.grids()[0].table;
        assert!(smallest.share_log2() > 0);
        let contents = (smallest.len() << smallest.share_log2()) as f64;
        assert!((contents / 8192.0 - 1.0).abs() < 0.2, "{contents}");
    }
}
