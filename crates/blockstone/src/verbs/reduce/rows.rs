//! Figures and tables of a scan. All media are made from these declarations. Intervals contain the
//! true value in 99 of 100 cases; figures that were counted exactly have none.

use blockstone_base::rows;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{
    Heading, Measure, Merge, Missing, Value, bytes, column, count, flag, happened, share, text,
    time, total,
};
use blockstone_reduce::counter::{Run, Strip};
use blockstone_reduce::estimate::Interval;
use blockstone_reduce::findings::{
    FieldCost, Findings, GridFigures, MaskedRatio, Occurrences, Shift,
};
use blockstone_reduce::page::Field;
use blockstone_reduce::scanned::{FileState, FreeSpace, Scanned, ScannedFile, Skipped};

use super::report::words;

const SECOND_NS: f64 = 1e9;

/// A column of reduction ratios: original amount ÷ remaining amount.
const fn to_one(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    column(key, heading, Measure::ToOne, Merge::Never, doc)
}

rows! {
    /// Single figures of a scan.
    pub struct Summary {
        /// Blocks ÷ different contents, in the grid of the model: its block size at the smallest
        /// offset. Its interval, like all of a scan, contains the true value in 99 of 100 cases.
        dedup_ratio: Value = to_one("deduplication"),
        /// Bytes of contents ÷ bytes that the model stores for them.
        compression_ratio: Value = to_one("compression"),
        /// Bytes of blocks ÷ bytes stored.
        reduction_ratio: Value = to_one("reduction"),
        /// Bytes of the blocks of the model's grid.
        bytes: u64 = total("bytes", Measure::Bytes),
        /// Bytes that the model stores for these blocks.
        stored_bytes: Value = total("stored", Measure::Bytes),
        /// Whether the figures cover every file from beginning to end.
        whole: bool = flag("whole"),
        /// Reason why the scan ended early.
        ended_by: Value = text("ended by"),
        /// Directory that all files have in common; names of files are relative to it.
        directory: Value = text("directory"),
        /// Model of an array, which determines what is stored.
        model: String = text("model"),
        /// Description of the model.
        model_about: String = text("about the model"),
        /// Block size of the model.
        block_bytes: u32 = bytes("block"),
        /// Offset of the first block in each file, in the grid of the model.
        offset_bytes: u32 = bytes("offset"),
        /// Compressor of the model, if it compresses.
        codec: Value = text("compressor"),
        /// Compressed blocks are stored in steps of this size.
        granule_bytes: u32 = bytes("step"),
        /// Least size of a compressed block.
        smallest_bytes: u32 = bytes("smallest"),
        /// A block that does not shrink below this share of its size is stored uncompressed.
        counted_below_share: f64 = share("counted below"),
        /// Whether the model stores a content only once.
        deduplicates: bool = flag("deduplicates"),
        /// Whether blocks of zeros take no space.
        zeros_are_free: bool = flag("zeros are free"),
        /// Blocks of the model's grid that are neither zeros nor formatted and empty.
        used_blocks: f64 = count("used"),
        /// Blocks of pages that are formatted but empty.
        formatted_blocks: f64 = count("formatted"),
        /// Share of blocks that their database never used: zeros, or formatted and empty.
        never_used_share: f64 = share("never used"),
        /// Deduplication of the used blocks alone.
        used_dedup_ratio: Value = to_one("deduplication of used blocks"),
        /// Compression of the contents of the used blocks alone.
        used_compression_ratio: Value = to_one("compression of used blocks"),
        /// Reduction of the used blocks alone: the product of the two.
        used_reduction_ratio: Value = to_one("reduction of used blocks"),
        /// Bytes that would be stored if every block were used as the used ones are.
        stored_bytes_when_full: Value = bytes("stored when full"),
        /// Rows of pages that are not marked deleted, in formats that show rows.
        live_rows: Value = count("live rows"),
        /// Rows that a DELETE or an UPDATE marked deleted and that are still in their pages.
        deleted_rows: Value = count("deleted rows"),
        /// Pages with rows.
        row_pages: Value = count("pages with rows"),
        /// Pages with rows, all of which are marked deleted.
        deleted_pages: Value = count("pages of deleted rows"),
        /// Blocks of a sample, drawn with equal probability.
        sampled_blocks: Value = count("sampled blocks"),
        /// Share of all blocks that was drawn.
        sampled_share: Value = share("sampled"),
        /// Deduplication that the sample alone would have shown.
        sampled_dedup_ratio: Value = to_one("deduplication of the sample"),
        /// Bytes of chunks ÷ bytes of different chunks.
        chunk_ratio: Value = to_one("chunks"),
        /// Time from the first read to the last count.
        time_ns: f64 = time("time"),
        /// Processor time of this process.
        cpu_ns: f64 = time("CPU"),
        /// Bytes read from storage; holes are not among them.
        read_bytes: u64 = total("read", Measure::Bytes),
        /// Peak memory of this process.
        memory_bytes: u64 = bytes("memory"),
        /// Whether reads bypassed the page cache.
        direct: bool = flag("direct"),
    }
}

rows! {
    /// Grids of blocks. All blocks = zero + unique + same-file + cross-file.
    pub struct GridRow {
        /// Size of a block, and offset of the first one in each file if it is not 0.
        grid: String = text("grid").answer(),
        /// Size of a block.
        block_bytes: u32 = bytes("block"),
        /// Offset of the first block in each file.
        offset_bytes: u32 = bytes("offset"),
        /// Blocks of the grid.
        blocks: u64 = count("blocks"),
        /// Blocks of zeros; they count as one content.
        zero_blocks: u64 = count("zero"),
        /// Different contents that are not zeros: blocks that must be stored.
        unique_blocks: Value = count("unique").plain(),
        /// Blocks whose content occurs earlier in the same file.
        same_file_duplicates: Value = count("same-file duplicates"),
        /// First blocks in a file with a content that another file has.
        cross_file_duplicates: Value = count("cross-file duplicates"),
        /// Blocks ÷ different contents.
        dedup_ratio: Value = to_one("dedup").answer(),
        /// Bytes of contents ÷ bytes that the model stores for them.
        compression_ratio: Value = to_one("compression"),
        /// Bytes of blocks ÷ bytes stored.
        reduction_ratio: Value = to_one("reduction").answer(),
        /// Share of hash space whose contents were kept; 1 if nothing is estimated.
        share: f64 = share("share of hash space"),
        /// Different contents in the table.
        contents_kept: f64 = count("contents kept"),
        /// Contents that were compressed.
        contents_compressed: f64 = count("compressed"),
        /// Blocks that were drawn and compressed, on which the ratio is based if the model stores
        /// every block and not all contents were compressed; otherwise 0.
        blocks_drawn: u64 = count("blocks drawn"),
    }
}

rows! {
    /// Compression of the model's blocks by each compressor, at each step of allocation: bytes of
    /// contents ÷ bytes stored for them.
    pub struct CompressionRow {
        /// The compressor.
        codec: String = text("compressor").answer(),
        /// Compressed blocks are stored in steps of this size.
        granule_bytes: u32 = bytes("step").answer(),
        /// Of all contents.
        ratio_all: Value = to_one("all").answer(),
        /// Of contents that occur once.
        ratio_once: Value = to_one("occurs once"),
        /// Of contents that occur more than once, in one file.
        ratio_same_file: Value = to_one("repeats in a file"),
        /// Of contents that occur in several files.
        ratio_cross_file: Value = to_one("repeats across files"),
        /// Of contents of pages that are formatted and empty.
        ratio_never_used: Value = to_one("never used"),
    }
}

rows! {
    /// Contents of the model's grid that were compressed, by class.
    pub struct ClassRow {
        /// Class of the contents.
        class: &'static str = text("contents").answer(),
        /// Contents of the class that were compressed.
        contents: f64 = count("compressed").answer(),
    }
}

rows! {
    /// Deduplication with classes of header fields set to zero.
    pub struct MaskedRow {
        /// Size of a block, and offset of the first one in each file if it is not 0.
        grid: String = text("grid").answer(),
        /// Classes of fields that are set to zero, separated by commas.
        masked: String = text("set to zero").answer(),
        /// Blocks ÷ different contents.
        dedup_ratio: Value = to_one("dedup").answer(),
    }
}

rows! {
    /// Effect of each class of header fields on deduplication at the model's block size.
    pub struct FieldRow {
        /// A class of header fields.
        field: &'static str = text("field"),
        /// The names of these fields in the database.
        called: String = text("called"),
        /// Ratio with the class and those above it set to zero.
        dedup_ratio_without: Value = to_one("without it and those above"),
        /// Ratio with all other classes set to zero.
        dedup_ratio_only: Value = to_one("with it alone"),
    }
}

rows! {
    /// The longest copies of consecutive blocks of the model.
    pub struct RunRow {
        /// The file that repeats another or itself.
        copy: String = text("copy").answer(),
        /// Location of the first block in it.
        start_bytes: u64 = bytes("begins at"),
        /// Blocks in a row.
        blocks: u64 = count("blocks"),
        /// The same in bytes.
        bytes: u64 = bytes("bytes").answer(),
        /// The file that was read first.
        original: String = text("original"),
        /// Location of the first block in it.
        original_start_bytes: u64 = bytes("begins at"),
    }
}

rows! {
    /// Copies that are not aligned to blocks of 4 KiB.
    pub struct ShiftRow {
        /// The file that contains unaligned data of another.
        copy: String = text("copy").answer(),
        /// Distance between the bytes in the two files, positive if the copy has them further from
        /// its beginning.
        shift_bytes: f64 = count("shifted by bytes").answer(),
        /// Bytes that both contain.
        bytes: u64 = bytes("bytes that match"),
        /// The same as a share of the copy.
        copy_share: f64 = share("part of the copy").answer(),
        /// The file that was read first.
        original: String = text("original"),
    }
}

rows! {
    /// Contents by the number of their occurrences.
    pub struct OccurrenceRow {
        /// Least number of occurrences of a content.
        from_times: u32 = count("occur from"),
        /// Greatest number of occurrences of a content.
        to_times: u32 = count("to times"),
        /// Contents that occur this often.
        contents: f64 = count("contents"),
        /// Blocks with these contents.
        blocks: f64 = count("blocks"),
    }
}

rows! {
    /// Pairs of files with common contents.
    pub struct SharedRow {
        /// One of the files.
        file: String = text("file").answer(),
        /// The other one, which was read later.
        other: String = text("other").answer(),
        /// Contents that both have.
        contents: f64 = count("contents").answer(),
    }
}

rows! {
    /// Kinds of blocks along each file: parts of equal size, except for rounding.
    pub struct StripRow {
        /// The file.
        file: String = text("file").answer(),
        /// Number of the part, from 1 at the beginning of the file.
        part: u32 = count("part").answer(),
        /// Blocks that are the first of their content.
        unique_blocks: u32 = count("unique"),
        /// Blocks whose content occurs earlier in the same file.
        same_file_duplicates: u32 = count("same-file duplicates"),
        /// Blocks with a content that another file has.
        cross_file_duplicates: u32 = count("cross-file duplicates"),
        /// Blocks of zeros.
        zero_blocks: u32 = count("zero"),
    }
}

rows! {
    /// Files that were scanned; those come first that the figures do not cover in full.
    pub struct FileRow {
        /// Its path, relative to the directory that all files have in common.
        file: String = text("file").answer(),
        /// Bytes counted.
        bytes: u64 = bytes("bytes").answer(),
        /// Bytes that are not allocated, counted as zeros.
        hole_bytes: u64 = bytes("holes"),
        /// Blocks of the model, as many as the file had when its scan began.
        blocks: Option<u64> = count("blocks"),
        /// Different contents of these blocks, of the files that share most contents.
        contents: Option<f64> = count("contents"),
        /// The database whose page format was recognised.
        format: Value = text("pages of"),
        /// `complete`, `incomplete`, `grew`, `shrank`, `written to` or `unreadable`.
        state: &'static str = text("state").answer(),
        /// Bytes that it grew by during the scan; negative if it shrank.
        changed_bytes: Value = count("grew by bytes"),
        /// Why it could not be read.
        why: String = text("why").prose(),
    }
}

rows! {
    /// Free space of file systems, and what it still holds.
    pub struct FreeRow {
        /// Where the file system is mounted.
        mount_point: String = text("file system").answer(),
        /// Its type.
        kind: String = text("type"),
        /// The device that it is on.
        device: String = text("device"),
        /// Bytes that the file system calls free.
        free_bytes: u64 = bytes("free").answer(),
        /// Share of them in blocks that are not all zeros.
        holding_share: Value = share("hold data").answer(),
        /// The same in bytes.
        holding_bytes: Value = bytes("bytes").answer(),
        /// Free blocks that were read.
        read_blocks: u64 = count("read"),
        /// Size of a block.
        block_bytes: u64 = bytes("block"),
        /// Number of pieces of free space.
        extents: u64 = count("pieces"),
        /// Whether all devices beneath take discards.
        takes_discards: bool = flag("takes discards"),
        /// The first device that takes none.
        stopped_by: Value = text("stopped by"),
        /// Least amount that can be discarded: the largest of the devices.
        granularity_bytes: u64 = bytes("in steps of"),
        /// Whether the file system discards blocks as soon as they are freed.
        mounted_with_discard: bool = flag("mounted with discard"),
        /// Size of the file of a loop device.
        backing_bytes: Option<u64> = bytes("its file"),
        /// Space that this file takes.
        backing_allocated_bytes: Option<u64> = bytes("takes"),
    }
}

rows! {
    /// Paths that were found but not scanned.
    pub struct SkippedRow {
        /// The path.
        path: String = text("path").answer(),
        /// Whether it has content that the figures lack.
        matters: bool = flag("matters"),
        /// The reason.
        why: String = text("why").prose(),
    }
}

/// Converts a figure with its interval.
pub fn ratio(of: Interval) -> Value {
    let Interval { value, low, high, samples } = of;
    if !value.is_finite() {
        Value::default()
    } else if of.is_exact() {
        value.into()
    } else {
        Estimate { value, low, high, samples, duration_ns: 0 }.into()
    }
}

/// Returns a missing value, and not zero, for a figure that is unknown.
fn known(value: f64) -> Value {
    Some(value).filter(|value| !value.is_nan()).into()
}

/// Returns a ratio of a grid. If it has none, it has no contents, or the scan did not compress or
/// chunk them.
fn ratio_of(grid: &GridFigures, ratio: Option<impl Into<Value>>) -> Value {
    let missing = if grid.blocks == grid.zero_blocks { Missing::Nothing } else { Missing::Off };
    ratio.map_or(missing.into(), Into::into)
}

impl FreeRow {
    pub fn of(free: &FreeSpace) -> Self {
        let holding = free.holding_share();
        let granularities = free.discards.iter().map(|device| device.granularity_bytes);
        let bytes = |share: Interval| ratio(share.scaled(free.free_bytes() as f64));
        Self {
            mount_point: free.mount_point.clone(),
            kind: free.kind.clone(),
            device: free.device.clone(),
            free_bytes: free.free_bytes(),
            holding_share: happened(holding.map(ratio)),
            holding_bytes: happened(holding.map(bytes)),
            read_blocks: free.read_blocks,
            block_bytes: free.block_bytes,
            extents: free.extents,
            takes_discards: free.takes_discards(),
            stopped_by: happened(words::without_discards(free).map(str::to_owned)),
            granularity_bytes: granularities.max().unwrap_or_default(),
            mounted_with_discard: free.mounted_with_discard,
            backing_bytes: free.backing_bytes.map(|(bytes, _)| bytes),
            backing_allocated_bytes: free.backing_bytes.map(|(_, allocated)| allocated),
        }
    }
}

impl Summary {
    pub fn of(findings: &Findings, scanned: &Scanned) -> Self {
        let (model, usage) = (&findings.model, &findings.usage);
        let grid = findings.primary();
        let (bytes, stored_bytes) = words::in_and_stored(findings);
        let sample = findings.block_sample;
        let rows = Some(usage.rows).filter(|rows| rows.row_pages > 0);
        Self {
            dedup_ratio: ratio_of(grid, grid.dedup_ratio.map(ratio)),
            compression_ratio: ratio_of(grid, grid.compression_ratio.map(ratio)),
            reduction_ratio: ratio_of(grid, grid.reduction_ratio.map(ratio)),
            bytes,
            stored_bytes: ratio_of(grid, stored_bytes),
            whole: scanned.is_whole(),
            ended_by: happened(scanned.ended_by.as_ref()),
            directory: happened(words::directory(scanned)),
            model: model.name.clone(),
            model_about: model.about.clone(),
            block_bytes: model.block_bytes,
            offset_bytes: grid.grid.offset_bytes,
            codec: happened(model.codec.map(String::from)),
            granule_bytes: model.granule_bytes,
            smallest_bytes: model.smallest_bytes,
            counted_below_share: model.counted_below,
            deduplicates: model.deduplicates,
            zeros_are_free: model.zeros_are_free,
            used_blocks: usage.used_blocks,
            formatted_blocks: usage.formatted_blocks,
            never_used_share: usage.never_used_part(),
            used_dedup_ratio: happened(usage.used_dedup_ratio),
            used_compression_ratio: happened(usage.used_compression_ratio.map(ratio)),
            used_reduction_ratio: happened(usage.used_reduction_ratio()),
            stored_bytes_when_full: happened(usage.bytes_when_full.map(f64::round)),
            live_rows: rows.map(|rows| rows.live_rows).into(),
            deleted_rows: rows.map(|rows| rows.deleted_rows).into(),
            row_pages: rows.map(|rows| rows.row_pages).into(),
            deleted_pages: rows.map(|rows| rows.deleted_pages).into(),
            sampled_blocks: happened(sample.map(|sample| sample.blocks)),
            sampled_share: happened(sample.map(|sample| sample.part)),
            sampled_dedup_ratio: happened(sample.map(|sample| sample.dedup_ratio)),
            chunk_ratio: ratio_of(grid, findings.chunk_ratio),
            time_ns: (scanned.elapsed_s * SECOND_NS).round(),
            cpu_ns: (scanned.cpu_s * SECOND_NS).round(),
            read_bytes: scanned.read_bytes,
            memory_bytes: scanned.memory_bytes,
            direct: scanned.direct,
        }
    }
}

impl GridRow {
    pub fn of(figures: &GridFigures) -> Self {
        Self {
            grid: words::grid(figures.grid),
            block_bytes: figures.grid.block_bytes,
            offset_bytes: figures.grid.offset_bytes,
            blocks: figures.blocks,
            zero_blocks: figures.zero_blocks,
            unique_blocks: ratio(figures.unique_blocks),
            same_file_duplicates: known(figures.same_file_duplicates),
            cross_file_duplicates: known(figures.cross_file_duplicates),
            dedup_ratio: ratio_of(figures, figures.dedup_ratio.map(ratio)),
            compression_ratio: ratio_of(figures, figures.compression_ratio.map(ratio)),
            reduction_ratio: ratio_of(figures, figures.reduction_ratio.map(ratio)),
            share: figures.share,
            contents_kept: figures.contents_kept as f64,
            contents_compressed: figures.contents_compressed as f64,
            blocks_drawn: figures.blocks_drawn,
        }
    }
}

impl MaskedRow {
    pub fn of(masked: &MaskedRatio) -> Self {
        let fields: Vec<&str> = masked.mask.fields().map(Field::name).collect();
        Self {
            grid: words::grid(masked.grid),
            masked: fields.join(", "),
            dedup_ratio: ratio(masked.dedup_ratio),
        }
    }
}

impl FieldRow {
    pub fn of(cost: &FieldCost) -> Self {
        Self {
            field: cost.field.name(),
            called: cost.called.clone(),
            dedup_ratio_without: ratio(cost.dedup_ratio_without),
            dedup_ratio_only: ratio(cost.dedup_ratio_only),
        }
    }
}

impl RunRow {
    pub fn of(run: &Run, block_bytes: u64, names: &[String]) -> Self {
        Self {
            copy: words::of(names, run.file),
            start_bytes: run.start * block_bytes,
            blocks: run.blocks,
            bytes: run.blocks * block_bytes,
            original: words::of(names, run.original),
            original_start_bytes: run.original_start * block_bytes,
        }
    }
}

impl ShiftRow {
    pub fn of(shift: &Shift, names: &[String]) -> Self {
        let displacement = &shift.displacement;
        Self {
            copy: words::of(names, displacement.copy),
            shift_bytes: displacement.shift_bytes as f64,
            bytes: shift.bytes,
            copy_share: shift.part_of_copy,
            original: words::of(names, displacement.original),
        }
    }
}

impl OccurrenceRow {
    pub fn of(it: &Occurrences) -> Self {
        let Occurrences { from, to, contents, blocks } = *it;
        Self { from_times: from, to_times: to, contents, blocks }
    }
}

impl StripRow {
    pub fn of<'a>(strip: &'a Strip, names: &'a [String]) -> impl Iterator<Item = Self> + 'a {
        strip.bins.iter().zip(1..).map(move |(bin, part)| Self {
            file: words::of(names, strip.file),
            part,
            unique_blocks: bin.stored,
            same_file_duplicates: bin.same_file,
            cross_file_duplicates: bin.cross_file,
            zero_blocks: bin.zero,
        })
    }
}

impl FileRow {
    pub fn of(file: &ScannedFile, name: &str) -> Self {
        let (state, changed_bytes, why) = match &file.state {
            FileState::Complete => ("complete", None, ""),
            FileState::Pending => ("incomplete", None, ""),
            FileState::Grew { bytes } => ("grew", Some(*bytes as f64), ""),
            FileState::Shrank { bytes } => ("shrank", Some(-(*bytes as f64)), ""),
            FileState::Written => ("written to", None, ""),
            FileState::Unreadable { why } => ("unreadable", None, why.as_str()),
        };
        Self {
            file: name.to_owned(),
            bytes: file.bytes,
            hole_bytes: file.hole_bytes,
            blocks: None,
            contents: None,
            format: happened(file.format.as_ref()),
            state,
            changed_bytes: happened(changed_bytes),
            why: why.to_owned(),
        }
    }
}

impl SkippedRow {
    pub fn of(skipped: &Skipped) -> Self {
        let Skipped { path, why, matters } = skipped.clone();
        Self { path, matters, why }
    }
}
