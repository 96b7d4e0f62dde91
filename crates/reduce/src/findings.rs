//! Counts → figures: what an array would store, why, and what would change it.

mod fields;
mod shared;
mod usage;

use serde::Serialize;

use blockstone_base::{Verdict, named};

use crate::chunk::Displacement;
use crate::compress::Codec;
use crate::counter::{Counter, GridCount, Run, Strip};
use crate::estimate::{self, Interval};
use crate::grid::Grid;
use crate::model::{Model, stepped};
use crate::plan::Compress;
use crate::sets::FileId;

pub use fields::{FieldCost, MaskedRatio};
pub use shared::{Matrix, Occurrences};
pub use usage::Usage;

/// Information about a file other than its blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileNote {
    pub path: String,
    /// Format of its pages, if it has any.
    pub format: Option<&'static str>,
}

/// The figures of one grid. All blocks = zero + unique + same-file + cross-file.
#[derive(Clone, Debug, PartialEq)]
pub struct GridFigures {
    pub grid: Grid,
    pub blocks: u64,
    /// Blocks that consist only of zeros; they count as one content.
    pub zero_blocks: u64,
    /// Distinct contents that are not zeros: blocks that must be stored.
    pub unique_blocks: Interval,
    /// Blocks whose content occurred in the same file before; NaN if that is unknown.
    pub same_file_duplicates: f64,
    /// Blocks that are the first in their file with a content that another file has.
    pub cross_file_duplicates: f64,
    /// Share of hash space that was kept; 1 is all of it.
    pub share: f64,
    /// Number of contents kept.
    pub contents_kept: usize,
    /// Blocks ÷ contents.
    pub dedup_ratio: Option<Interval>,
    /// Bytes of contents ÷ bytes the model stores for them.
    pub compression_ratio: Option<Interval>,
    /// Bytes of blocks ÷ bytes stored: the product of the two.
    pub reduction_ratio: Option<Interval>,
    /// Number of contents compressed.
    pub contents_compressed: usize,
    /// Number of blocks drawn and compressed, if the ratio is based on them rather than on
    /// contents: the model stores every block, and not all contents were compressed. Otherwise 0.
    pub blocks_drawn: u64,
}

/// Compression of the model's blocks by one compressor with one allocation granule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompressionFigures {
    /// Compressor and its level.
    pub codec: Codec,
    /// Allocation granule of compressed blocks, in bytes.
    pub granule_bytes: u32,
    /// Class of the contents.
    pub class: Class,
    /// Number of contents of the class that were compressed.
    pub contents: usize,
    /// Bytes of these contents ÷ bytes stored for them.
    pub ratio: f64,
    /// The same for all contents of the class.
    #[serde(skip)]
    pub interval: Interval,
}

named! {
    /// Classes of contents whose compression is reported separately.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    Class {
        /// All contents.
        All = "all",
        /// Contents that occur once.
        Once = "occurs once",
        /// Contents that occur more than once, in one file.
        SameFile = "repeats in a file",
        /// Contents that occur in several files.
        CrossFile = "repeats across files",
        /// Contents of pages that their database never used.
        NeverUsed = "never used",
    }
}

/// A copy at a position where no block of 4 KiB can match its original.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// The two files, and the shift between them.
    #[serde(flatten)]
    pub displacement: Displacement,
    /// Number of bytes that match at this shift.
    pub bytes: u64,
    /// Fraction of the copy's bytes that match.
    pub part_of_copy: f64,
}

/// Result that a sample of blocks would have given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlockSample {
    /// Number of blocks drawn.
    pub blocks: u64,
    /// Fraction of all blocks that was drawn.
    pub part: f64,
    /// Deduplication ratio of the drawn blocks alone.
    pub dedup_ratio: f64,
}

#[derive(Clone, Debug)]
pub struct Findings {
    /// Model that determines what is stored.
    pub model: Model,
    /// All grids, by size and then by offset.
    pub grids: Vec<GridFigures>,
    /// Index of the model's grid: its block size, at the smallest offset.
    pub primary: usize,
    /// Compression of the model's blocks by every compressor, at every granule, by class.
    pub compression: Vec<CompressionFigures>,
    /// Ratios under masks.
    pub masked: Vec<MaskedRatio>,
    /// Cost of each field at the model's block size.
    pub field_costs: Vec<FieldCost>,
    /// Contents shared between files.
    pub matrix: Matrix,
    /// Number of contents by number of occurrences.
    pub occurrences: Vec<Occurrences>,
    /// Distribution of copies over files.
    pub strips: Vec<Strip>,
    /// The longest runs of copies.
    pub runs: Vec<Run>,
    /// Copies that are not aligned with blocks.
    pub shifts: Vec<Shift>,
    /// Bytes of chunks ÷ bytes of distinct chunks.
    pub chunk_ratio: Option<f64>,
    /// Used and never-used blocks.
    pub usage: Usage,
    pub block_sample: Option<BlockSample>,
    /// Empty until the findings are judged.
    pub verdicts: Vec<Verdict>,
}

/// Allocation granules that are compared.
pub const GRANULES_BYTES: [u32; 4] = [512, 1024, 2048, 4096];
/// A displaced copy smaller than this fraction of its file is not reported as a shifted copy.
const SHIFT_PART_MIN: f64 = 0.05;
const SHIFTS_MAX: usize = 50;

impl Findings {
    /// Computes the figures of the counts, as `model` would store the data.
    ///
    /// # Panics
    /// If the plan's primary grid does not have the model's block size.
    pub fn new(counter: &Counter, files: &[FileNote], model: &Model) -> Self {
        let plan = counter.plan();
        let primary = plan.primary();
        let count = &counter.grids()[primary];
        assert_eq!(count.grid.block_bytes, model.block_bytes, "the plan counts the model's blocks");
        let grids: Vec<GridFigures> =
            counter.grids().iter().map(|count| figures(counter, count, model)).collect();
        Self {
            model: model.clone(),
            primary,
            compression: compression(counter, count),
            masked: fields::ratios(counter),
            field_costs: fields::costs(counter, files, model.block_bytes),
            matrix: shared::matrix(counter, count),
            occurrences: shared::occurrences(count),
            strips: counter.detail.strips.clone(),
            runs: counter.detail.runs(),
            shifts: shifts(counter),
            chunk_ratio: counter.chunks.ratio().filter(|_| plan.chunks),
            usage: usage::usage(counter, count, model),
            block_sample: block_sample(counter, count),
            verdicts: Vec::new(),
            grids,
        }
    }

    pub fn primary(&self) -> &GridFigures {
        &self.grids[self.primary]
    }
}

fn figures(counter: &Counter, count: &GridCount, model: &Model) -> GridFigures {
    let table = &count.table;
    let nonzero = (count.blocks - count.zero_blocks) as f64;
    let mut unique = estimate::contents(table.len(), table.share_log2());
    unique.value = unique.value.min(nonzero);
    unique.high = unique.high.min(nonzero);
    unique.low = unique.low.min(unique.value);
    let (mut same, mut cross) = (0_u64, 0_u64);
    for entry in table.entries() {
        let files = u64::from(counter.sets.len(entry.set()).max(1));
        same += u64::from(entry.count).saturating_sub(files);
        cross += files - 1;
    }
    let copies = nonzero - unique.value;
    let seen = (same + cross) as f64;
    // If no content repeats in a share, the kind of the copies outside it is unknown.
    let scale = match (seen > 0.0, copies > 0.5) {
        (true, _) => copies / seen,
        (false, true) => f64::NAN,
        (false, false) => 0.0,
    };
    let has_zeros = f64::from(u8::from(count.zero_blocks > 0));
    let contents = unique.plus(has_zeros);
    let blocks = Interval::exact(count.blocks as f64);
    let dedup_ratio = (count.blocks > 0).then(|| blocks.over(contents));
    let compression_ratio = compression_ratio(counter, count, model, unique);
    let stored_once = dedup_ratio.filter(|_| model.deduplicates);
    GridFigures {
        grid: count.grid,
        blocks: count.blocks,
        zero_blocks: count.zero_blocks,
        unique_blocks: unique,
        same_file_duplicates: same as f64 * scale,
        cross_file_duplicates: cross as f64 * scale,
        share: 0.5_f64.powi(table.share_log2() as i32),
        contents_kept: table.len(),
        dedup_ratio,
        compression_ratio,
        reduction_ratio: compression_ratio.map(|ratio| match stored_once {
            Some(dedup) => dedup.times(ratio),
            None => ratio,
        }),
        contents_compressed: count.sample.sizes().count(),
        blocks_drawn: if model.deduplicates || model.codec.is_none() {
            0
        } else {
            let blocks = Some(count.compressed_blocks()).filter(|blocks| blocks.are_drawn);
            blocks.iter().flat_map(|it| &it.sizes).map(|&(_, times, _)| u64::from(times)).sum()
        },
    }
}

/// Bytes of contents ÷ bytes stored for them. The block of zeros is one of the contents.
fn compression_ratio(
    counter: &Counter,
    count: &GridCount,
    model: &Model,
    unique: Interval,
) -> Option<Interval> {
    if count.blocks == 0 {
        return None;
    }
    let block_bytes = count.grid.block_bytes;
    let Some(codec) = model.codec else { return Some(Interval::exact(1.0)) };
    let plan = counter.plan();
    let place = plan.codecs.iter().position(|&known| known == codec)?;
    let index = plan.grids().iter().position(|&grid| grid == count.grid)?;
    if place >= plan.compressors(index) {
        return None;
    }
    let stored = |bytes: u32| model.stored_bytes(block_bytes, bytes);
    let zero_bytes = if count.zero_blocks == 0 || model.zeros_are_free {
        0.0
    } else {
        // A block of zeros takes a few bytes under any compressor.
        f64::from(stored(1))
    };
    let zero_contents = f64::from(u8::from(count.zero_blocks > 0));
    if count.table.is_empty() {
        // Only zeros: if they are free, there is nothing to divide by.
        return (zero_bytes > 0.0).then(|| Interval::exact(f64::from(block_bytes) / zero_bytes));
    }
    if !model.deduplicates {
        // Every block is stored, so a content counts as often as it occurs.
        let (zeros, blocks) = (count.zero_blocks as f64, count.blocks as f64);
        let compressed = count.compressed_blocks();
        let population = if compressed.are_drawn { blocks - zeros } else { unique.value };
        let sizes = compressed.sizes.iter().map(|(_, times, sizes)| (*times, stored(sizes[place])));
        let mut sizes: Vec<(u32, u32)> = sizes.collect();
        // In a fixed order, so that the last digit does not depend on the order of a map.
        sizes.sort_unstable();
        let mean = estimate::weighted_mean(&sizes, population, (stored(1), block_bytes))?;
        let bytes = mean.scaled(blocks - zeros).plus(zeros * zero_bytes);
        return Some(Interval::exact(blocks * f64::from(block_bytes)).over(bytes));
    }
    let sizes = count.sample.sizes().map(|(_, sizes)| stored(sizes[place]));
    let mean = estimate::mean(sizes, unique.value, (stored(1), block_bytes))?;
    let contents_bytes = (unique.value + zero_contents) * f64::from(block_bytes);
    Some(Interval::exact(contents_bytes).over(mean.scaled(unique.value).plus(zero_bytes)))
}

fn compression(counter: &Counter, count: &GridCount) -> Vec<CompressionFigures> {
    let plan = counter.plan();
    if plan.compress == Compress::Not {
        return Vec::new();
    }
    let block_bytes = count.grid.block_bytes;
    let classes = |print| {
        let entry = count.table.get(print)?;
        let class = match (entry.count, counter.sets.len(entry.set())) {
            (1, _) => Class::Once,
            (_, 0 | 1) => Class::SameFile,
            _ => Class::CrossFile,
        };
        Some((class, entry.never_used()))
    };
    let mut figures = Vec::new();
    for (place, &codec) in plan.codecs.iter().enumerate() {
        for granule_bytes in GRANULES_BYTES.into_iter().filter(|&g| g <= block_bytes) {
            let stored = |bytes: u32| stepped(bytes, granule_bytes).min(block_bytes);
            figures.extend(Class::ALL.iter().copied().filter_map(|class| {
                let of_class = count.sample.sizes().filter_map(|(print, sizes)| {
                    let (own, never_used) = classes(print)?;
                    let is_in = match class {
                        Class::All => true,
                        Class::NeverUsed => never_used,
                        other => own == other,
                    };
                    is_in.then(|| stored(sizes[place]))
                });
                let sizes: Vec<u32> = of_class.collect();
                let contents = sizes.len();
                let bounds = (stored(1), block_bytes);
                let mean = estimate::mean(sizes.into_iter(), count.population(contents), bounds)?;
                let interval = Interval::exact(block_bytes.into()).over(mean);
                let ratio = interval.value;
                Some(CompressionFigures { codec, granule_bytes, class, contents, ratio, interval })
            }));
        }
    }
    figures
}

fn shifts(counter: &Counter) -> Vec<Shift> {
    let files = counter.files();
    let all = counter.chunks.displacements().into_iter().map(|(displacement, bytes)| {
        let of = files[displacement.copy as usize].bytes.max(1);
        Shift { displacement, bytes, part_of_copy: bytes as f64 / of as f64 }
    });
    all.filter(|shift| shift.part_of_copy >= SHIFT_PART_MIN).take(SHIFTS_MAX).collect()
}

fn block_sample(counter: &Counter, count: &GridCount) -> Option<BlockSample> {
    let (blocks, contents) = counter.detail.drawn();
    (contents > 0.0).then(|| BlockSample {
        blocks,
        part: blocks as f64 / count.blocks.max(1) as f64,
        dedup_ratio: blocks as f64 / contents,
    })
}

pub fn file_name(files: &[FileNote], file: FileId) -> &str {
    files.get(file as usize).map_or("?", |file| file.path.as_str())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use blockstone_base::Bytes;
    use blockstone_base::rng;

    use super::*;
    use crate::compress::Compressors;
    use crate::digest::{self, Fingerprint};
    use crate::generate::{self, Shape};
    use crate::hash::{Hashed, Hasher, Prints, SEGMENT_BYTES};
    use crate::page;
    use crate::plan::Plan;

    fn find(plan: Plan, files: &[Vec<u8>], model: &Model) -> Findings {
        let mut compressors = Compressors::new(&plan.codecs).unwrap();
        let (mut counter, mut hasher) = (Counter::new(plan), Hasher::default());
        let depth = counter.plan().depth();
        let mut notes = Vec::new();
        for data in files {
            let format = page::recognise(&data[..data.len().min(65536)]);
            notes.push(FileNote { path: String::new(), format: format.map(|f| f.format.name) });
            counter.begin_file(data.len() as u64);
            let mut wanted = Vec::new();
            for segment in data.chunks(SEGMENT_BYTES) {
                counter.feed(&hasher.hash(segment, format, depth), &mut wanted);
            }
            counter.end_file(&mut wanted);
            for want in wanted {
                let bytes = counter.grids()[want.grid].grid.block_bytes as usize;
                let from = (want.start_bytes as usize).min(data.len());
                let mut block = data[from..(from + bytes).min(data.len())].to_vec();
                block.resize(bytes, 0);
                let sizes = compressors.sizes(&block, counter.plan().compressors(want.grid));
                counter.compressed(want.grid, want.print, sizes);
            }
        }
        Findings::new(&counter, &notes, model)
    }

    fn plan(offset: u64) -> Plan {
        Plan::new(&[Bytes(8192)], &[offset], Bytes(8192)).unwrap()
    }

    /// Creates random blocks that occur once, one block that occurs often, and zeros.
    fn data(random: usize, copies: usize, zeros: usize) -> Vec<u8> {
        let mut bytes = vec![0; random * 8192];
        rng::fill(1, &mut bytes);
        bytes.extend(std::iter::repeat_n(b'x', copies * 8192));
        bytes.resize((random + copies + zeros) * 8192, 0);
        bytes
    }

    #[test]
    fn a_model_that_does_not_deduplicate_stores_every_block() {
        let model = Model::parse("mine", STORES_ALL).unwrap();
        let found = find(plan(0), &[data(100, 300, 600)], &model);
        let stored = 100.0 * 8192.0 + 300.0 * 512.0;
        let ratio = found.primary().reduction_ratio.unwrap();
        assert!((ratio.value - 1000.0 * 8192.0 / stored).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.high - ratio.low).abs() < 1e-9, "all were compressed");
    }

    const STORES_ALL: &str = "about = 'a'\nblock_size = '8K'\ncodec = 'lz4'\ngranule = '512B'\n\
                              deduplicates = false\nzeros = 'free'";

    /// Scans blocks with these contents, of which `size` gives the compressed bytes; also returns
    /// their mean size as stored.
    fn scanned(
        plan: Plan,
        seed: u64,
        contents: &[u64],
        size: impl Fn(u64) -> u32,
    ) -> (Counter, f64) {
        let print = |content: u64| {
            let sector = digest::of([seed.to_le_bytes(), content.to_le_bytes()].as_flattened());
            let unit = digest::unit(&[sector; 8]);
            (sector, digest::pair(unit, unit))
        };
        let sizes: HashMap<Fingerprint, u32> =
            contents.iter().map(|&content| (print(content).1, size(content))).collect();
        let mut counter = Counter::new(plan);
        counter.begin_file(contents.len() as u64 * 8192);
        let mut wanted = Vec::new();
        for contents in contents.chunks(128) {
            let sectors = contents.iter().flat_map(|&content| [print(content).0; 16]).collect();
            let len_bytes = contents.len() as u64 * 8192;
            let prints = Prints { len_bytes, sectors, ..Prints::default() };
            counter.feed(&Hashed::Data(prints), &mut wanted);
            for want in wanted.drain(..) {
                counter.compressed(want.grid, want.print, [sizes[&want.print]; 4]);
            }
        }
        counter.end_file(&mut wanted);
        let all: u32 = contents.iter().map(|&it| size(it).next_multiple_of(512)).sum();
        (counter, f64::from(all) / contents.len() as f64)
    }

    const BLOCKS: u64 = 3000;

    /// Scans blocks, every twentieth of them the same filler.
    fn with_filler(seed: u64, plan: Plan) -> (Counter, f64) {
        let contents: Vec<u64> = (0..BLOCKS).map(|at| if at % 20 == 7 { 7 } else { at }).collect();
        let size = |it| if it == 7 { 400 } else { 2000 + (rng::mix(it) % 3000) as u32 };
        scanned(plan, seed, &contents, size)
    }

    /// Counts in how many of 200 scans the true ratio is in the 99 % interval, and in that of 95 %.
    fn held(text: &str, scan: impl Fn(u64) -> (Counter, f64)) -> (u32, u32) {
        let model = Model::parse("mine", text).unwrap();
        let (mut wide, mut narrow) = (0, 0);
        for seed in 0..200 {
            let (counter, mean) = scan(seed);
            let found = Findings::new(&counter, &[FileNote::default()], &model);
            let Interval { value, low, high, .. } = found.primary().reduction_ratio.unwrap();
            let (apart, part) = (8192.0 / mean - value, 1.96 / estimate::Z_99);
            wide += u32::from((low - value..=high - value).contains(&apart));
            narrow += u32::from(((low - value) * part..=(high - value) * part).contains(&apart));
        }
        (wide, narrow)
    }

    #[test]
    fn the_ratio_of_files_that_shrink_in_few_places_only_lies_in_the_interval() {
        let stores_once = STORES_ALL.replace("= false", "= true");
        let mut plan = plan(0);
        plan.compress = Compress::Sample(200);
        let contents: Vec<u64> = (0..BLOCKS).collect();
        let (wide, _) = held(&stores_once, |seed| {
            // All in one place, few or many; what shrinks among what does not, and the reverse.
            let rare = [1, 3, 12, 60, 400][seed as usize % 5];
            let (at, sizes) = (rng::mix(seed) % (BLOCKS - rare), [8192, 100]);
            let is_rare = |it: u64| (at..at + rare).contains(&it);
            let size = |it| sizes[usize::from(is_rare(it)) ^ (seed as usize / 5 % 2)];
            scanned(plan.clone(), seed, &contents, size)
        });
        assert!(wide >= 196, "{wide} of 200");
    }

    #[test]
    fn a_frequent_content_does_not_escape_the_interval_of_blocks_that_are_all_stored() {
        for memory_bytes in [256 << 20, 64 << 10] {
            let mut plan = plan(0);
            (plan.compress, plan.memory_bytes) = (Compress::Sample(200), memory_bytes);
            plan.deduplicates = false;
            let (counter, _) = with_filler(1, plan.clone());
            assert_eq!(counter.grids()[0].table.share_log2() > 0, memory_bytes < 1 << 20);
            let (wide, narrow) = held(STORES_ALL, |seed| with_filler(seed, plan.clone()));
            assert!(wide >= 194 && narrow >= 184, "{wide}, {narrow} of 200 in {memory_bytes}");
        }
        // A scan for an array that deduplicates draws fewer, and is as honest about it.
        let mut plan = plan(0);
        plan.compress = Compress::Sample(200);
        assert_eq!(plan.compressed_blocks(0), 25);
        let (wide, _) = held(STORES_ALL, |seed| with_filler(seed, plan.clone()));
        assert!(wide >= 194, "{wide} of 200");
    }

    #[test]
    fn intervals_of_merged_scans_hold_too_and_scans_of_earlier_versions_are_still_read() {
        let mut plan = plan(0);
        (plan.compress, plan.deduplicates) = (Compress::Sample(200), false);
        let merged = |seed| {
            let (mut counter, mean) = with_filler(seed, plan.clone());
            let (other, other_mean) = with_filler(seed + 1000, plan.clone());
            counter.merge(&other).unwrap();
            (counter, f64::midpoint(mean, other_mean))
        };
        let (wide, narrow) = held(STORES_ALL, merged);
        assert!(wide >= 194 && narrow >= 184, "{wide}, {narrow} of 200");
        let old = |seed| {
            let (counter, mean) = with_filler(seed, plan.clone());
            let mut document = serde_json::to_value(&counter).unwrap();
            for grid in document["grids"].as_array_mut().unwrap() {
                grid.as_object_mut().unwrap().remove("block_sizes").unwrap();
            }
            let mut old: Counter = serde_json::from_value(document).unwrap();
            old.awake().unwrap();
            let rows = counter.rows().filter(|row| row.table < counter.grids().len());
            counter.set_rows().for_each(|(parent, file)| old.put_set(parent, file).unwrap());
            rows.for_each(|row| old.put(row).unwrap());
            (old, mean)
        };
        let (wide, _) = held(STORES_ALL, old);
        assert!(wide < 194, "{wide} of 200: only contents were drawn");
    }

    #[test]
    fn what_is_used_does_not_depend_on_where_the_grid_begins() {
        let kind = generate::find("oracle-like").unwrap();
        let shape = Shape { files: 2, blocks_per_file: 512, head_blocks: 40, ..Shape::default() };
        let file = |number| {
            let mut bytes = vec![0; shape.file_bytes() as usize];
            generate::fill(&shape, kind, number, 0, &mut bytes);
            bytes
        };
        let files = [file(0), file(1)];
        let model = Model::built_in("generic").unwrap();
        let used = |offset, files: &[Vec<u8>]| {
            find(plan(offset).with_masks(), files, &model).usage.used_blocks.round() as i64
        };
        let all = used(0, &files);
        assert!((80..=84).contains(&all), "{all}");
        // The heads of both files lose the blocks before the offset.
        assert_eq!(used(16 * 8192, &files), all - 2 * 16);
        // A copy in an unknown format has the same empty blocks.
        let mut copy = vec![7; 8192];
        copy.extend_from_slice(&files[0]);
        let with_copy = used(0, &[files[0].clone(), copy]);
        assert!((80..=90).contains(&with_copy), "{with_copy}");
    }

    #[test]
    fn kinds_of_blocks_add_up_to_all_of_them() {
        let found =
            find(plan(0), &[data(50, 20, 5), data(50, 1, 0)], &Model::built_in("generic").unwrap());
        let figures = found.primary();
        let sum = figures.zero_blocks as f64
            + figures.unique_blocks.value
            + figures.same_file_duplicates
            + figures.cross_file_duplicates;
        assert!((sum - figures.blocks as f64).abs() < 1e-9);
        assert_eq!(figures.cross_file_duplicates.round() as u64, 51);
        assert_eq!(figures.same_file_duplicates.round() as u64, 19);
    }
}
