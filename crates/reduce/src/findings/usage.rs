//! Used and never-used blocks, and the effect on the ratio of filling the unused ones.

use crate::counter::{Counter, GridCount};
use crate::estimate::{self, Interval};
use crate::model::Model;
use crate::page::Rows;

/// The model's blocks, split by whether their database ever used them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Blocks in use.
    pub used_blocks: f64,
    pub zero_blocks: f64,
    /// Blocks of pages that are formatted but empty.
    pub formatted_blocks: f64,
    /// Deduplication ratio of the used blocks alone.
    pub used_dedup_ratio: Option<f64>,
    /// Compression ratio of the contents of the used blocks alone.
    pub used_compression_ratio: Option<Interval>,
    /// Bytes that would be stored if every block were used like those in use.
    pub bytes_when_full: Option<f64>,
    /// Rows of pages, for formats that show them.
    pub rows: Rows,
}

impl Usage {
    /// Fraction of blocks that was never used.
    pub fn never_used_part(&self) -> f64 {
        let never = self.zero_blocks + self.formatted_blocks;
        let all = never + self.used_blocks;
        if all > 0.0 { never / all } else { 0.0 }
    }

    /// Reduction ratio of the used blocks alone.
    pub fn used_reduction_ratio(&self) -> Option<f64> {
        Some(self.used_dedup_ratio? * self.used_compression_ratio?.value)
    }
}

pub(super) fn usage(counter: &Counter, count: &GridCount, model: &Model) -> Usage {
    let zero = count.zero_blocks as f64;
    let formatted = counter.never_used_blocks().min(count.blocks as f64 - zero);
    let used = count.blocks as f64 - zero - formatted;
    let used_contents = count.table.entries().filter(|entry| !entry.never_used()).count() as f64;
    let used_contents = (used_contents * count.table.scale()).min(used);
    let codec =
        model.codec.and_then(|codec| counter.plan().codecs.iter().position(|&c| c == codec));
    let is_used = |print| count.table.get(print).is_some_and(|entry| !entry.never_used());
    let block_bytes = count.grid.block_bytes;
    let stored = |bytes: u32| model.stored_bytes(block_bytes, bytes);
    let bounds = (stored(1), block_bytes);
    let mean = codec.and_then(|place| {
        if model.deduplicates {
            let sizes = count.sample.sizes().filter(|&(print, _)| is_used(print));
            let sizes: Vec<u32> = sizes.map(|(_, sizes)| stored(sizes[place])).collect();
            let population = count.population(sizes.len());
            return estimate::mean(sizes.into_iter(), population, bounds);
        }
        let blocks = count.compressed_blocks();
        let of_used = blocks.sizes.iter().filter(|&&(print, _, _)| is_used(print));
        let mut sizes: Vec<(u32, u32)> =
            of_used.map(|(_, times, sizes)| (*times, stored(sizes[place]))).collect();
        sizes.sort_unstable();
        let population = if blocks.are_drawn { used } else { count.population(sizes.len()) };
        estimate::weighted_mean(&sizes, population, bounds)
    });
    let used_compression_ratio = if model.codec.is_none() {
        Some(Interval::exact(1.0))
    } else {
        mean.map(|mean| Interval::exact(block_bytes.into()).over(mean))
    };
    let dedup = (used_contents > 0.0).then(|| used / used_contents);
    let used_dedup_ratio = if model.deduplicates { dedup } else { dedup.map(|_| 1.0) };
    let mut usage = Usage {
        used_blocks: used,
        zero_blocks: zero,
        formatted_blocks: formatted,
        used_dedup_ratio,
        used_compression_ratio,
        bytes_when_full: None,
        rows: counter.page_rows(),
    };
    let all_bytes = count.blocks as f64 * f64::from(block_bytes);
    usage.bytes_when_full = usage.used_reduction_ratio().map(|ratio| all_bytes / ratio);
    usage
}
