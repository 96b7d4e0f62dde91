//! The plan of a scan.

use std::collections::BTreeSet;

use blockstone_base::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::chunk::CHUNK_BYTES_MEAN;
use crate::compress::{CODECS_MAX, Codec};
use crate::grid::{Grid, GridError, grids};
use crate::hash::Depth;
use crate::mask::{Mask, masks};
use crate::sets::Sets;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compress {
    /// No contents.
    Not,
    /// All contents up to this number in the primary grid, and a sixteenth of it in every other
    /// grid; beyond that, a share of hash space.
    Sample(usize),
    Every,
}

/// Set of counts that a scan makes, and its memory limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    grids: Vec<Grid>,
    primary: usize,
    /// Compressors. The first one is applied to every block that is compressed, the others only to
    /// those of the primary grid.
    pub codecs: Vec<Codec>,
    pub compress: Compress,
    /// Whether the array stores a content once. If it stores every block, as many blocks are drawn
    /// as contents are compressed; otherwise few are, for those who later ask about such an array.
    #[serde(default = "yes")]
    pub deduplicates: bool,
    pub masks: Vec<Mask>,
    /// Whether chunks are cut and counted.
    pub chunks: bool,
    /// Memory for all tables, in bytes.
    pub memory_bytes: usize,
}

/// Contents of the primary grid that are compressed before a share is taken: enough for an interval
/// of one percent where contents are alike and of four where they are not, few enough to take a
/// quarter of a second.
pub const COMPRESSED_CONTENTS: usize = 4 << 10;
/// Contents of the primary grid for each one of another grid.
const PRIMARY_PART: usize = 16;
/// Contents for each block that is drawn, if the array stores a content once.
const DRAWN_PART: usize = 8;

/// Scans of earlier versions did not record the kind of array; all built-in models deduplicate.
fn yes() -> bool {
    true
}

impl Plan {
    /// Plans every size at every offset; details (which file holds which content, where and how
    /// often) are kept for blocks of `primary` at the smallest offset.
    pub fn new(sizes: &[Bytes], offsets: &[u64], primary: Bytes) -> Result<Self, GridError> {
        let mut sizes = sizes.to_vec();
        if !sizes.is_empty() && !sizes.contains(&primary) {
            sizes.push(primary);
        }
        let grids = grids(&sizes, offsets)?;
        let primary = grids.iter().position(|g| u64::from(g.block_bytes) == primary.0);
        Ok(Self {
            primary: primary.unwrap_or_default(),
            grids,
            codecs: vec![Codec::Lz4],
            compress: Compress::Sample(COMPRESSED_CONTENTS),
            deduplicates: true,
            masks: Vec::new(),
            chunks: true,
            memory_bytes: 256 << 20,
        })
    }

    /// Returns whether [`Plan::new`] can create it; a deserialized one may be anything.
    pub(crate) fn is_sound(&self) -> bool {
        let sizes: BTreeSet<u64> = self.grids.iter().map(|grid| grid.block_bytes.into()).collect();
        let offsets: BTreeSet<u64> =
            self.grids.iter().map(|grid| grid.offset_bytes.into()).collect();
        let sizes: Vec<Bytes> = sizes.into_iter().map(Bytes).collect();
        let offsets: Vec<u64> = offsets.into_iter().collect();
        grids(&sizes, &offsets).is_ok_and(|all| all == self.grids)
            && self.primary < self.grids.len()
            && self.codecs.len() <= CODECS_MAX
    }

    /// Also counts the usual masks, for scans with pages of a known format.
    #[must_use]
    pub fn with_masks(mut self) -> Self {
        self.masks = masks();
        self
    }

    /// Number of distinct contents of a grid that are all compressed; of more, only a share is.
    pub fn compressed_contents(&self, grid: usize) -> usize {
        match self.compress {
            Compress::Not => 0,
            Compress::Sample(contents) if grid == self.primary => contents.max(1),
            Compress::Sample(contents) => (contents / PRIMARY_PART).max(1),
            Compress::Every => usize::MAX,
        }
    }

    /// Number of blocks of a grid that are drawn and compressed in addition to those contents.
    pub fn compressed_blocks(&self, grid: usize) -> usize {
        let contents = match self.compress {
            Compress::Every if grid == self.primary => COMPRESSED_CONTENTS,
            Compress::Every => COMPRESSED_CONTENTS / PRIMARY_PART,
            Compress::Not => return 0,
            Compress::Sample(_) => self.compressed_contents(grid),
        };
        if self.deduplicates { (contents / DRAWN_PART).max(1) } else { contents }
    }

    /// Bytes of the blocks that are compressed if not every content is, with room for some that no
    /// longer have to be.
    pub fn sampled_bytes(&self) -> usize {
        let blocks = |grid| self.compressed_contents(grid) + self.compressed_blocks(grid);
        let bytes = self.grids.iter().enumerate();
        let bytes = bytes.map(|(grid, it)| blocks(grid).saturating_mul(it.block_bytes as usize));
        match self.compress {
            Compress::Sample(_) => bytes.fold(0_usize, usize::saturating_add).saturating_mul(5) / 4,
            Compress::Not | Compress::Every => 0,
        }
    }

    /// Number of compressors, the first ones, that are applied to the blocks of a grid.
    pub fn compressors(&self, grid: usize) -> usize {
        if grid == self.primary { self.codecs.len() } else { self.codecs.len().min(1) }
    }

    pub fn grids(&self) -> &[Grid] {
        &self.grids
    }

    /// Index of the grid for which details are kept.
    pub fn primary(&self) -> usize {
        self.primary
    }

    /// Block sizes as powers of two of units, ascending.
    pub fn levels(&self) -> Vec<usize> {
        let mut levels: Vec<usize> = self.grids.iter().map(|grid| grid.level()).collect();
        levels.sort_unstable();
        levels.dedup();
        levels
    }

    pub fn depth(&self) -> Depth {
        Depth { masks: !self.masks.is_empty(), chunks: self.chunks }
    }

    /// Number of file sets kept before contents are dropped: they may use an eighth of the memory.
    pub fn sets_max(&self) -> usize {
        (self.memory_bytes / 8 / Sets::NODE_BYTES).max(1024)
    }

    /// Memory of each table, so that they fill at about the same time; masked grids get a tenth of
    /// that, because a share of their contents is just as good an answer.
    pub fn memory(&self) -> Memory {
        let plain: Vec<f64> =
            self.grids.iter().map(|grid| 1.0 / f64::from(grid.block_bytes)).collect();
        let levels = self.levels().into_iter();
        let masked: Vec<f64> = levels.map(|level| 1.0 / f64::from(4096 << level) / 10.0).collect();
        let masked = masked.repeat(self.masks.len());
        let chunks = if self.chunks { 1.0 / CHUNK_BYTES_MEAN as f64 } else { 0.0 };
        let all = || plain.iter().chain(&masked).chain([&chunks]);
        // A growing table exists one and a half times, one table at a time; sets have an eighth.
        let growing = all().copied().fold(0.0, f64::max) / 2.0;
        let bytes = self.memory_bytes as f64 * 0.85 / (all().sum::<f64>() + growing);
        let scaled = |weights: Vec<f64>, part: f64| {
            weights.iter().map(|weight| (weight * bytes * part) as usize).collect()
        };
        // If every content is compressed, its sizes take twice the memory of the content itself.
        let plain_part = if self.compress == Compress::Every { 1.0 / 3.0 } else { 1.0 };
        Memory {
            plain: scaled(plain, plain_part),
            masked: scaled(masked, 1.0),
            chunks: (chunks * bytes) as usize,
        }
    }
}

/// Bytes for each table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub plain: Vec<usize>,
    /// Memory for the masked grids: by mask, then by level.
    pub masked: Vec<usize>,
    pub chunks: usize,
}
