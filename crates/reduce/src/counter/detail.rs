//! Details of the primary grid in addition to counts: where copies are, their longest runs, blocks
//! that were never used, and what a sample of blocks would have shown.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use blockstone_base::rng;
use serde::{Deserialize, Serialize};

use super::{BLOCKS_MAX, Copied};
use crate::digest::Fingerprint;
use crate::mask::MaskedUnit;
use crate::plan::Plan;
use crate::sets::FileId;
use crate::table::{Location, Table};

pub const STRIP_BINS: usize = 240;
const STRIPS_MAX: usize = 1024;
/// Number of runs kept, the longest ones.
const RUNS_MAX: usize = 32;
const RUN_BLOCKS_MIN: u64 = 16;
/// One block in this many is drawn for the sample of blocks.
pub const DRAWN_ONE_IN: u64 = 100;
const DRAWN_BYTES: usize = 4 << 20;

/// A part of a file: its blocks by what an array would do with them. In a share of contents, only
/// the blocks of the share are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StripBin {
    /// Blocks that are the first with their content.
    pub stored: u32,
    /// Blocks with a content that occurred in the file before.
    pub same_file: u32,
    /// Blocks with a content that occurred in another file.
    pub cross_file: u32,
    /// Blocks that consist only of zeros.
    pub zero: u32,
}

/// Distribution of copies over a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strip {
    pub file: FileId,
    /// Number of blocks, as known when the file began.
    pub blocks: u64,
    /// Parts of equal size except for rounding, from the beginning of the file to its end.
    pub bins: Vec<StripBin>,
}

/// Consecutive blocks that are also consecutive elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Run {
    /// Number of blocks; in a share, from the first to the last one that is in it.
    pub blocks: u64,
    /// File with the copy.
    pub file: FileId,
    /// Number of the first block of the copy.
    pub start: u64,
    /// File with the original.
    pub original: FileId,
    /// Number of the first block of the original.
    pub original_start: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Detail {
    block_bytes: u64,
    offset_bytes: u64,
    /// Strips of the files that have one.
    pub(crate) strips: Vec<Strip>,
    strip_is_open: bool,
    file: FileId,
    runs: BinaryHeap<Reverse<Run>>,
    run: Option<Run>,
    /// Whether any unit of the open block was used.
    used: bool,
    /// For each completed block that is about to be counted.
    #[serde(skip)]
    used_blocks: Vec<bool>,
    pub(super) drawn: Table,
    drawn_blocks: u64,
    drawn_zero: bool,
}

impl Detail {
    pub fn new(plan: &Plan) -> Self {
        let grid = plan.grids()[plan.primary()];
        Self {
            block_bytes: grid.block_bytes.into(),
            offset_bytes: grid.offset_bytes.into(),
            strips: Vec::new(),
            strip_is_open: false,
            file: 0,
            runs: BinaryHeap::new(),
            run: None,
            used: false,
            used_blocks: Vec::new(),
            drawn: Table::new(DRAWN_BYTES),
            drawn_blocks: 0,
            drawn_zero: false,
        }
    }

    /// Returns whether it can have resulted from this plan, in a scan of this many files.
    pub fn is_sound(&self, plan: &Plan, files: usize) -> bool {
        let grid = plan.grids()[plan.primary()];
        let known = |file: FileId| (file as usize) < files;
        let strip = |strip: &Strip| {
            let bins = STRIP_BINS.min(strip.blocks as usize);
            known(strip.file) && strip.blocks <= BLOCKS_MAX && bins > 0 && strip.bins.len() == bins
        };
        let run = |run: &Run| {
            let numbers = [run.blocks, run.start, run.original_start];
            known(run.file)
                && known(run.original)
                && run.blocks > 0
                && numbers.iter().all(|&number| number <= BLOCKS_MAX)
        };
        self.block_bytes == u64::from(grid.block_bytes)
            && self.offset_bytes == u64::from(grid.offset_bytes)
            && (self.file == 0 || known(self.file))
            && !(self.strip_is_open && self.strips.is_empty())
            && self.strips.iter().all(strip)
            && self.runs.iter().map(|kept| &kept.0).chain(&self.run).all(run)
            && self.drawn.is_sound()
            && self.drawn_blocks <= BLOCKS_MAX
    }

    pub fn begin_file(&mut self, file: FileId, bytes: u64) {
        self.used = false;
        self.file = file;
        let blocks = bytes.saturating_sub(self.offset_bytes).div_ceil(self.block_bytes);
        self.strip_is_open = blocks > 0 && self.has_room(blocks);
        if self.strip_is_open {
            let bins = vec![StripBin::default(); STRIP_BINS.min(blocks as usize)];
            self.strips.push(Strip { file, blocks, bins });
        }
    }

    /// Adds the next unit to the open block.
    #[inline]
    pub fn unit(&mut self, unit: Fingerprint, masked: Option<&MaskedUnit>, zero: Fingerprint) {
        self.used |= masked.map_or(unit != zero, |unit| unit.used);
    }

    /// Completes the open block.
    #[inline]
    pub fn end_block(&mut self) {
        self.used_blocks.push(std::mem::take(&mut self.used));
    }

    /// Forgets the completed blocks, after all of them were counted.
    pub fn end_blocks(&mut self) {
        self.used_blocks.clear();
    }

    /// Counts `count` blocks of zeros from `block` on. They neither end a run nor belong to one.
    pub fn zeros(&mut self, block: u64, count: u64) {
        for block in block..block + count {
            if let Some(bin) = self.bin(block) {
                bin.zero += 1;
            }
            if is_drawn(self.file.into(), block) {
                self.drawn_blocks += 1;
                self.drawn_zero = true;
            }
        }
    }

    /// Counts a block that is not zeros, at `index` among those completed.
    pub fn block(
        &mut self,
        place: Location,
        index: usize,
        (print, copied): (Fingerprint, Option<Copied>),
        table: &mut Table,
    ) {
        let used = self.used_blocks.get(index).copied().unwrap_or(true);
        if is_drawn(place.file().into(), place.at()) {
            self.drawn_blocks += 1;
            self.drawn.see(print, place);
        }
        let Some(copied) = copied else { return };
        if !used {
            table.mark_never_used(print);
        }
        if let Some(bin) = self.bin(place.at()) {
            *match copied {
                Copied::Not => &mut bin.stored,
                Copied::SameFile(_) => &mut bin.same_file,
                Copied::CrossFile(_) => &mut bin.cross_file,
            } += 1;
        }
        match copied {
            Copied::Not => self.end_run(),
            Copied::SameFile(first) | Copied::CrossFile(first) => self.extend_run(place, first),
        }
    }

    pub fn end_file(&mut self) {
        self.end_run();
        self.strip_is_open = false;
    }

    /// Returns the runs, the longest first.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = self.runs.iter().map(|run| run.0).collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        runs
    }

    /// Result of a sample of blocks: number of blocks drawn, and of distinct contents among them.
    pub fn drawn(&self) -> (u64, f64) {
        let contents = self.drawn.len() as f64 * self.drawn.scale();
        (self.drawn_blocks, contents + f64::from(u8::from(self.drawn_zero)))
    }

    /// Adds the counts of another scan. Strips and runs describe what one array saw in one order;
    /// those of two scans cannot be combined.
    pub fn merge(&mut self, other: &Self) {
        self.strips.clear();
        self.runs.clear();
        self.drawn_blocks += other.drawn_blocks;
        self.drawn_zero |= other.drawn_zero;
        self.drawn.shrink_share(other.drawn.share_log2());
        for entry in other.drawn.entries() {
            self.drawn.add(*entry);
        }
    }

    /// Returns whether a file of `blocks` blocks gets a strip; a smaller file may lose its strip to
    /// it.
    fn has_room(&mut self, blocks: u64) -> bool {
        if self.strips.len() < STRIPS_MAX {
            return true;
        }
        let strips = self.strips.iter().enumerate();
        match strips.min_by_key(|(_, strip)| strip.blocks) {
            Some((smallest, strip)) if strip.blocks < blocks => {
                self.strips.remove(smallest);
                true
            }
            _ => false,
        }
    }

    fn bin(&mut self, block: u64) -> Option<&mut StripBin> {
        let strip = self.strips.last_mut().filter(|_| self.strip_is_open)?;
        // If a file has grown, its later blocks belong to the last part.
        let block = block.min(strip.blocks - 1);
        let bins = strip.bins.len() as u64;
        strip.bins.get_mut((block * bins / strip.blocks) as usize)
    }

    fn extend_run(&mut self, place: Location, first: Location) {
        if let Some(run) = &mut self.run
            && run.original == first.file()
            && place.at() - run.start == first.at().wrapping_sub(run.original_start)
        {
            run.blocks = place.at() - run.start + 1;
            return;
        }
        self.end_run();
        self.run = Some(Run {
            blocks: 1,
            file: place.file(),
            start: place.at(),
            original: first.file(),
            original_start: first.at(),
        });
    }

    fn end_run(&mut self) {
        if let Some(run) = self.run.take().filter(|run| run.blocks >= RUN_BLOCKS_MIN) {
            self.runs.push(Reverse(run));
            if self.runs.len() > RUNS_MAX {
                self.runs.pop();
            }
        }
    }
}

fn is_drawn(file: u64, block: u64) -> bool {
    rng::mix(block ^ rng::mix(file)).is_multiple_of(DRAWN_ONE_IN)
}
