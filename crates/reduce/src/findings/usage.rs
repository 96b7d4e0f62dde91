//! Used and never-used blocks, and the effect on the ratio of filling the unused ones.

use crate::compress::Sizes;
use crate::counter::{Counter, GridCount};
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
    pub used_compression_ratio: Option<f64>,
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
        Some(self.used_dedup_ratio? * self.used_compression_ratio?)
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
    let (mut compressed, mut bytes) = (0_u64, 0_u64);
    if let Some(place) = codec {
        let mut add = |print, times: u32, sizes: &Sizes| {
            if count.table.get(print).is_some_and(|entry| !entry.never_used()) {
                let stored = model.stored_bytes(count.grid.block_bytes, sizes[place]);
                compressed += u64::from(times);
                bytes += u64::from(times) * u64::from(stored);
            }
        };
        if model.deduplicates {
            count.sample.sizes().for_each(|(print, sizes)| add(print, 1, sizes));
        } else {
            let blocks = count.compressed_blocks();
            blocks.sizes.iter().for_each(|(print, times, sizes)| add(*print, *times, sizes));
        }
    }
    let block_bytes = f64::from(count.grid.block_bytes);
    let used_compression_ratio = if model.codec.is_none() {
        Some(1.0)
    } else {
        (bytes > 0).then(|| compressed as f64 * block_bytes / bytes as f64)
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
    let all_bytes = count.blocks as f64 * block_bytes;
    usage.bytes_when_full = usage.used_reduction_ratio().map(|ratio| all_bytes / ratio);
    usage
}
